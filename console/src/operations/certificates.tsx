import { call } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { endsSoon, type Validity } from '../components/certificate-end.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault, ScreenHead, When } from '../components/ui.tsx';

const t = texts.certificates;

interface Certificate extends Validity {
  readonly section: string;
  readonly names: readonly string[];
  readonly issuer: string | null;
  readonly problem: string | null;
  readonly acme: {
    readonly state: 'obtaining' | 'valid' | 'failed';
    readonly since: string;
    readonly failures: number;
    readonly next: string | null;
    readonly error: string | null;
    /** In a cluster, the machine that has ordered last. */
    readonly node?: string;
  } | null;
}

/** The certificates in use, and when the server orders them again. */
export function Certificates() {
  const status = useLoad(
    (signal) => call<{ certificates: readonly Certificate[] }>('server.status', {}, { signal }),
    [],
    useLive(['certificates']),
  );
  const rows = status.data?.certificates;
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['server.status', {}]} />
      <Fault error={status.error} onRetry={status.reload} />
      {rows === undefined && status.error === undefined ? <Busy /> : null}
      {rows?.length === 0 ? (
        <div class="empty">
          <h2>{t.empty}</h2>
          <p>{t.emptyHint}</p>
        </div>
      ) : null}
      <ul class="cards">
        {rows?.map((one) => (
          <li key={one.section} class="node-card">
            <h2>
              {one.names.join(', ') || one.section} <State certificate={one} />
            </h2>
            <CertificateFacts certificate={one} />
          </li>
        ))}
      </ul>
    </>
  );
}

function State({ certificate }: { certificate: Certificate }) {
  const { valid_until: until, problem, acme } = certificate;
  const leftMs = until === null ? 0 : Date.parse(until) - Date.now();
  if (problem !== null || acme?.state === 'failed')
    return <span class="tag bad">{t.hasProblem}</span>;
  if (until === null) return <span class="tag">{t.obtaining}</span>;
  if (leftMs < 0) return <span class="tag bad">{t.expired}</span>;
  return endsSoon(certificate) ? (
    <span class="tag bad">{t.soon}</span>
  ) : (
    <span class="tag good">{t.valid}</span>
  );
}

function CertificateFacts({ certificate }: { certificate: Certificate }) {
  const { section, issuer, valid_until: until, problem, acme } = certificate;
  const facts: readonly (readonly [string, preact.ComponentChildren])[] = [
    [t.until, until === null ? '–' : <When time={until} />],
    [t.issuer, issuer ?? '–'],
    [t.section, <code key="section">[{section}]</code>],
    [t.renewal, acme === null ? t.byHand : acme.next === null ? '–' : <When time={acme.next} />],
    ...(acme?.node === undefined ? [] : ([[t.orderedBy, acme.node]] as const)),
    ...(acme === null || acme.failures === 0 ? [] : ([[t.failures, acme.failures]] as const)),
  ];
  return (
    <>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {[problem, acme?.error ?? null].map((message) =>
        message === null ? null : (
          <p key={message} class="problem">
            {message}
          </p>
        ),
      )}
    </>
  );
}
