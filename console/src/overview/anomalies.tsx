import { endsSoon } from '../components/certificate-end.ts';
import { anomaliesOf, type Anomaly, type Series } from './find-anomalies.ts';
import { call, may } from '../api/api.ts';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { msText, shortCount, When } from '../components/ui.tsx';
import type { ChangeRow } from '../history/changes.tsx';
import type { Status } from './status.ts';

const t = texts.anomalies;

const changesShown = 3;
/** A change may have its effect later, when a cached page becomes stale. */
const beforeMs = 10 * 60_000;

interface Hook {
  readonly id: string;
  readonly name?: string;
  readonly url: string;
  readonly state: string;
}

interface Source {
  readonly origin: string;
  readonly failed: number;
  readonly server_errors: number;
  readonly set_aside: boolean;
  readonly check_problem: string | null;
}

interface Causes {
  readonly hooks: readonly Hook[];
  readonly sources: readonly Source[];
}

/** What stands out in a time and now, each with links to what may have caused it. */
export function Anomalies({ series, status }: { series: Series; status: Status | undefined }) {
  const causes = useLoad(loadCauses, [series]);
  const { hooks = [], sources = [] } = causes.data ?? {};
  const found = anomaliesOf(series);
  const faults = faultsOf(status);
  const asideSources = sources.filter(isPassedOver);
  const isQuiet = [found, faults, hooks, asideSources].every((all) => all.length === 0);
  if (isQuiet) return null;
  return (
    <section class="anomalies" aria-label={t.title}>
      <h2>{t.title}</h2>
      <ul class="changes">
        {faults.map(({ text, href }) => (
          <li key={text} class="failed">
            <a href={href}>{text}</a>
          </li>
        ))}
        {asideSources.map(({ origin }) => (
          <li key={origin} class="failed">
            <a href="#/operations/sources">{t.aside(origin)}</a>
          </li>
        ))}
        {hooks.length === 0 ? null : (
          <li class="failed">
            <p>
              <b>{t.hooks(hooks.length)}</b>
            </p>
            <p class="note causes">
              {hooks.map((hook) => (
                <HookLink key={hook.id} hook={hook} />
              ))}
            </p>
          </li>
        )}
        {found.map((one) => (
          <AnomalyRow key={`${one.kind} ${one.from}`} anomaly={one} {...{ hooks, sources }} />
        ))}
      </ul>
    </section>
  );
}

async function loadCauses(signal: AbortSignal): Promise<Causes> {
  const [hooks, sources] = await Promise.all([
    may('webhook')
      ? call<{ rows: readonly Hook[] }>('webhook.health', {}, { signal })
      : { rows: [] },
    call<{ rows: readonly Source[] }>('source.list', {}, { signal }).catch(() => ({ rows: [] })),
  ]);
  return {
    hooks: hooks.rows.filter(({ state }) => state === 'failing'),
    sources: sources.rows.filter((one) => one.failed + one.server_errors > 0 || isPassedOver(one)),
  };
}

/** Whether other sources get the requests. */
function isPassedOver({ set_aside: isSetAside, check_problem: problem }: Source): boolean {
  return isSetAside || problem !== null;
}

/** What is wrong with the server itself now. */
function faultsOf(status: Status | undefined): readonly { text: string; href: string }[] {
  if (status === undefined) return [];
  const { configuration, certificates, keys } = status;
  const ending = certificates.filter((one) => one.problem !== null || endsSoon(one));
  return [
    ...(configuration.state === 'broken'
      ? [{ text: t.configuration, href: '#/operations/configuration' }]
      : []),
    ...ending.map(({ section, names }) => ({
      text: t.certificate(names.join(', ') || section),
      href: '#/operations/certificates',
    })),
    ...(keys.ending > 0 ? [{ text: t.keys(keys.ending), href: '#/operations' }] : []),
  ];
}

function HookLink({ hook: { id, name, url } }: { hook: Hook }) {
  return <a href={`#/webhooks/${id}`}>{name ?? url}</a>;
}

/** The history of a page rule, or else the transaction of the change. */
function addressOf({ family, id, seq, txn }: ChangeRow): string {
  return linkTo('/history', family === 'userinterface' ? { id, seq } : { txn });
}

function AnomalyRow({ anomaly, hooks, sources }: { anomaly: Anomaly } & Causes) {
  const { kind, value } = anomaly;
  const from = new Date(Date.parse(anomaly.from) - beforeMs).toISOString();
  const { until } = anomaly;
  const changes = useLoad(
    (signal) =>
      kind === 'hooks'
        ? Promise.resolve({ rows: [] })
        : call<{ rows: readonly ChangeRow[] }>(
            'change.list',
            { from, until, limit: changesShown },
            { signal },
          ),
    [kind, from, until],
  );
  const rows = changes.data?.rows ?? [];
  return (
    <li class="failed">
      <p>
        <b>{t.kinds[kind](kind === 'slow' ? msText(value) : shortCount(value))}</b>{' '}
        <span class="quiet">
          <When time={anomaly.from} />
        </span>
      </p>
      <p class="note causes">
        {kind === 'hooks'
          ? hooks.map((hook) => <HookLink key={hook.id} hook={hook} />)
          : [
              ...rows.map((row) => (
                <a key={row.seq} href={addressOf(row)}>
                  {row.title ?? row.id} {texts.history.actions[row.action]}
                </a>
              )),
              ...sources.map(({ origin }) => (
                <a key={origin} href="#/operations/sources">
                  {origin}
                </a>
              )),
            ]}
        <a href={linkTo('/history', { from, until })}>{t.changes}</a>
      </p>
    </li>
  );
}
