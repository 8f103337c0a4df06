import { call } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import '../operations/operations.css';
import { endsSoon, type Validity } from '../components/certificate-end.ts';
import { useLoad } from '../components/loading.ts';
import { Fault, When } from '../components/ui.tsx';
import { texts } from '../texts.ts';
import type { RequestSums } from './summary.ts';

const t = texts.visits;

/** What fails, who was refused, and which certificates end: of the whole server. */
export function ServerParts({ requests }: { requests: RequestSums | undefined }) {
  return (
    <>
      {requests === undefined ? null : (
        <>
          <Troubles requests={requests} />
          <Refusals requests={requests} />
        </>
      )}
      <Renewals />
    </>
  );
}

function Troubles({ requests }: { requests: RequestSums }) {
  const rows = requests.sources
    .filter(({ failed, slow }) => failed + slow > 0)
    .toSorted((one, other) => other.failed - one.failed || other.slow - one.slow);
  return (
    <section class="visit-part">
      <h2>{t.sources}</h2>
      {rows.length === 0 ? (
        <p class="note">{t.noTrouble}</p>
      ) : (
        <div class="grid-box" role="region" aria-label={t.sources} tabIndex={0}>
          <table class="grid">
            <thead>
              <tr>
                <th scope="col">{t.source}</th>
                {[t.answers, t.failedAnswers, t.slowAnswers].map((name) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ source, answers, failed, slow }) => (
                <tr key={source}>
                  <td class="main-cell">{source}</td>
                  <td class="number">{answers.toLocaleString()}</td>
                  <td class={failed > 0 ? 'number bad-text' : 'number'}>
                    {failed.toLocaleString()}
                  </td>
                  <td class="number">{slow.toLocaleString()}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p>
        <a href="#/operations/sources">{t.allSources}</a>
      </p>
    </section>
  );
}

function Refusals({ requests: { refused } }: { requests: RequestSums }) {
  return (
    <section class="visit-part">
      <h2>{t.refusals}</h2>
      {refused.length === 0 ? (
        <p class="note">{t.noRefusals}</p>
      ) : (
        <div class="grid-box" role="region" aria-label={t.refusals} tabIndex={0}>
          <table class="grid">
            <thead>
              <tr>
                <th scope="col">{t.by}</th>
                <th scope="col">{t.reason}</th>
                <th scope="col" class="number">
                  {t.status}
                </th>
                <th scope="col" class="number">
                  {t.answers}
                </th>
              </tr>
            </thead>
            <tbody>
              {refused.map(({ source, status, reason, answers }) => (
                <tr key={`${source} ${status} ${reason}`}>
                  <td class="main-cell">{t.names[source] ?? source}</td>
                  <td>{reason}</td>
                  <td class="number">{status === 0 ? '–' : status}</td>
                  <td class="number">{answers.toLocaleString()}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

interface Certificate extends Validity {
  readonly section: string;
  readonly names: readonly string[];
  readonly problem: string | null;
  readonly acme: { readonly next: string | null; readonly error: string | null } | null;
}

/** The certificates, the one that ends first at the top. */
function Renewals() {
  const status = useLoad(
    (signal) => call<{ certificates: readonly Certificate[] }>('server.status', {}, { signal }),
    [],
    useLive(['certificates']),
  );
  const rows = status.data?.certificates.toSorted((one, other) =>
    (one.valid_until ?? '').localeCompare(other.valid_until ?? ''),
  );
  return (
    <section class="visit-part">
      <h2>{t.certificates}</h2>
      <Fault error={status.error} onRetry={status.reload} />
      {rows?.length === 0 ? <p class="note">{t.noCertificates}</p> : null}
      {rows === undefined || rows.length === 0 ? null : (
        <>
          <div class="grid-box" role="region" aria-label={t.certificates} tabIndex={0}>
            <table class="grid">
              <thead>
                <tr>
                  {[t.host, t.validUntil, t.renews].map((name) => (
                    <th key={name} scope="col">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map((one) => (
                  <CertificateRow key={one.section} certificate={one} />
                ))}
              </tbody>
            </table>
          </div>
          <p>
            <a href="#/operations/certificates">{t.allCertificates}</a>
          </p>
        </>
      )}
    </section>
  );
}

function CertificateRow({ certificate }: { certificate: Certificate }) {
  const { section, names, valid_until: until, problem, acme } = certificate;
  const message = problem ?? acme?.error ?? null;
  const next = acme?.next ?? null;
  return (
    <tr>
      <td class="main-cell">
        {names.join(', ') || section}{' '}
        {endsSoon(certificate) ? <span class="tag bad">{texts.certificates.soon}</span> : null}
        {message === null ? null : <span class="problem">{message}</span>}
      </td>
      <td>{until === null ? '–' : <When time={until} />}</td>
      <td>{acme === null ? t.byHand : next === null ? '–' : <When time={next} />}</td>
    </tr>
  );
}
