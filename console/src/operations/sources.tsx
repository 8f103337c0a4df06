import { call } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault, msText, ScreenHead, When } from '../components/ui.tsx';

const t = texts.sources;

interface Source {
  readonly origin: string;
  readonly requests: number;
  readonly failed: number;
  readonly server_errors: number;
  readonly open_requests: number;
  readonly connections: number;
  readonly set_aside: boolean;
  readonly check_problem: string | null;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly last_error: { readonly message: string; readonly at: string } | null;
}

/** The servers that content is fetched from, those with failures first. */
export function Sources() {
  const sources = useLoad(
    (signal) => call<{ rows: readonly Source[] }>('source.list', {}, { signal }),
    [],
    useLive(['sources']),
  );
  const rows = sources.data?.rows.toSorted((one, other) => troubles(other) - troubles(one));
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['source.list', {}]} />
      <Fault error={sources.error} onRetry={sources.reload} />
      {rows === undefined && sources.error === undefined ? <Busy /> : null}
      {rows?.length === 0 ? (
        <div class="empty">
          <h2>{t.empty}</h2>
          <p>{t.emptyHint}</p>
        </div>
      ) : null}
      {rows === undefined || rows.length === 0 ? null : (
        <div class="grid-box" role="region" aria-label={t.title} tabIndex={0}>
          <table class="grid">
            <thead>
              <tr>
                <th scope="col">{t.origin}</th>
                <th scope="col" class="number">
                  {t.requests}
                </th>
                <th scope="col" class="number">
                  {t.failed}
                </th>
                <th scope="col" class="number">
                  {t.serverErrors}
                </th>
                <th scope="col" class="number">
                  p50
                </th>
                <th scope="col" class="number">
                  p99
                </th>
                <th scope="col" class="number">
                  {t.open}
                </th>
                <th scope="col" class="number">
                  {t.connections}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((one) => (
                <SourceRow key={one.origin} source={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="note">{t.note}</p>
    </>
  );
}

function troubles(source: Source): number {
  const { failed, server_errors: errors, set_aside: isSetAside, check_problem: problem } = source;
  return (isSetAside || problem !== null ? 1e15 : 0) + failed + errors;
}

function SourceRow({ source }: { source: Source }) {
  const { origin, requests, failed, server_errors: errors, last_error: last } = source;
  return (
    <tr>
      <td class="main-cell">
        {origin} {source.set_aside ? <span class="tag bad">{t.setAside}</span> : null}
        {source.check_problem === null ? null : (
          <>
            {' '}
            <span class="tag bad">{t.checkFails}</span>
            <span class="problem">{source.check_problem}</span>
          </>
        )}
        {last === null ? null : (
          <span class="problem">
            <When time={last.at} />: {last.message}
          </span>
        )}
      </td>
      <td class="number">{requests.toLocaleString()}</td>
      <td class={failed > 0 ? 'number bad-text' : 'number'}>{failed.toLocaleString()}</td>
      <td class={errors > 0 ? 'number bad-text' : 'number'}>{errors.toLocaleString()}</td>
      <td class="number">{source.p50_ms === null ? '–' : msText(source.p50_ms)}</td>
      <td class="number">{source.p99_ms === null ? '–' : msText(source.p99_ms)}</td>
      <td class="number">{source.open_requests.toLocaleString()}</td>
      <td class="number">{source.connections.toLocaleString()}</td>
    </tr>
  );
}
