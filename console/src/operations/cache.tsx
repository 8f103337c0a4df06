import { useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { Busy, bytesText, CopyCurl, Fault, ScreenHead, StaleList } from '../components/ui.tsx';
import { UrlInput } from '../components/url-field.tsx';

const t = texts.cache;

interface CacheStatus {
  readonly answers: number;
  readonly urls: number;
  readonly bytes: number;
  readonly bytes_max: number;
}

interface CacheRow {
  readonly url: string;
  readonly rule?: string;
  readonly status: number;
  readonly contenttype?: string;
  readonly bytes: number;
  readonly age_seconds: number;
  readonly fresh_seconds: number;
  readonly vary: readonly string[];
  readonly range?: string;
}

/** What the cache has of other servers, and what to remove of it. */
export function CacheContent({ route: { params } }: { route: Route }) {
  const prefix = params.get('prefix') ?? '';
  const rule = params.get('rule') ?? '';
  const filters = { ...(prefix !== '' && { prefix }), ...(rule !== '' && { rule }) };
  const live = useLive(['cache']);
  const status = useLoad((signal) => call<CacheStatus>('cache.status', {}, { signal }), [], live);
  const [said, setSaid] = useState('');
  const [error, setError] = useState<unknown>();
  const purge = async (v: object): Promise<void> => {
    setError(undefined);
    try {
      const { urls } = await call<{ urls: number }>('cache.purge', v);
      setSaid(t.purged(urls));
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['cache.list', filters]} />
      <Fault error={status.error ?? error} onRetry={status.reload} />
      {status.data === undefined ? null : <Used status={status.data} />}
      <CacheFilters {...{ prefix, rule }} />
      {may('design') ? <PurgeButtons {...{ prefix, rule, purge }} /> : null}
      <p role="status">{said}</p>
      <CacheRows key={`${prefix} ${rule}`} {...{ filters, purge, live }} />
    </>
  );
}

function Used({ status }: { status: CacheStatus }) {
  return (
    <dl class="tiles spaced">
      <div class="tile">
        <dt>{t.responses}</dt>
        <dd>
          <b>{status.answers.toLocaleString()}</b>
          <span>{t.urls(status.urls)}</span>
        </dd>
      </div>
      <div class="tile">
        <dt>{t.used}</dt>
        <dd>
          <b>{bytesText(status.bytes)}</b>
          <span>{t.of(bytesText(status.bytes_max))}</span>
        </dd>
      </div>
    </dl>
  );
}

function CacheFilters({ prefix, rule }: { prefix: string; rule: string }) {
  const set = (next: { prefix?: string; rule?: string }): void => {
    goTo('/operations/cache', { prefix, rule, ...next });
  };
  return (
    <form
      class="filters cache-filters"
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      <label class="inline-field">
        {t.prefix}
        <UrlInput
          type="search"
          placeholder="/stock/"
          value={prefix}
          onSend={(value) => {
            set({ prefix: value });
          }}
        />
      </label>
      <label class="inline-field">
        {t.rule}
        <UrlInput
          type="text"
          value={rule}
          onSend={(value) => {
            set({ rule: value });
          }}
        />
      </label>
    </form>
  );
}

function PurgeButtons({
  prefix,
  rule,
  purge,
}: {
  prefix: string;
  rule: string;
  purge: (v: object) => Promise<void>;
}) {
  const buttons: readonly (readonly [string, object])[] = [
    ...(prefix === '' ? [] : ([[t.purgePrefix(prefix), { prefix }]] as const)),
    ...(rule === '' ? [] : ([[t.purgeRule, { rule }]] as const)),
    [t.purgeAll, { all: true }],
  ];
  return (
    <p class="actions">
      {buttons.map(([name, v]) => (
        <button
          key={name}
          type="button"
          class="danger"
          onClick={() => {
            if (confirm(t.purgeConfirm(name))) void purge(v);
          }}
        >
          {name}
        </button>
      ))}
      <CopyCurl shown={['cache.purge', buttons[0]?.[1] ?? {}]} />
    </p>
  );
}

function CacheRows({
  filters,
  purge,
  live,
}: {
  filters: object;
  purge: (v: object) => Promise<void>;
  live: number;
}) {
  const pages = usePages<CacheRow, string>(
    (after) =>
      call('cache.list', { ...filters, limit: 100, ...(after !== undefined && { after }) }),
    live,
  );
  const { rows, isEnd, isLoading, error, more } = pages;
  if (rows.length === 0 && isEnd) return <p class="empty">{t.empty}</p>;
  return (
    <>
      <Fault error={error} />
      <StaleList {...pages} />
      <div class="grid-box" role="region" aria-label={t.title} tabIndex={0}>
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">URL</th>
              <th scope="col">{t.status}</th>
              <th scope="col" class="number">
                {t.size}
              </th>
              <th scope="col" class="number">
                {t.age}
              </th>
              <th scope="col">{t.fresh}</th>
              <th scope="col">
                <span class="unseen">{t.purge}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              // oxlint-disable-next-line react/no-array-index-key -- a URL may have several
              <StoredResponse key={at} {...{ row, purge }} />
            ))}
          </tbody>
        </table>
      </div>
      {isLoading ? <Busy /> : null}
      {isEnd ? null : (
        <p>
          <button type="button" onClick={more}>
            {texts.states.more}
          </button>
        </p>
      )}
    </>
  );
}

function StoredResponse({ row, purge }: { row: CacheRow; purge: (v: object) => Promise<void> }) {
  return (
    <tr>
      <td class="main-cell">
        {row.url}
        <br />
        <span class="quiet">
          {row.contenttype ?? ''}
          {row.vary.length === 0 ? '' : ` · ${t.vary} ${row.vary.join(', ')}`}
          {row.range === undefined ? '' : ` · ${t.range} ${row.range}`}{' '}
          {row.rule === undefined ? null : <a href={linkTo(`/pages/${row.rule}`)}>{t.ofRule}</a>}
        </span>
      </td>
      <td>{row.status}</td>
      <td class="number">{bytesText(row.bytes)}</td>
      <td class="number">{secondsText(row.age_seconds)}</td>
      <td>
        {row.fresh_seconds > 0 ? (
          <span class="good-text">{t.freshFor(secondsText(row.fresh_seconds))}</span>
        ) : (
          t.staleFor(secondsText(-row.fresh_seconds))
        )}
      </td>
      <td class="actions-cell">
        {may('design') ? (
          <button type="button" class="quiet-button" onClick={() => void purge({ url: row.url })}>
            {t.purge}
            <span class="unseen"> {row.url}</span>
          </button>
        ) : null}
      </td>
    </tr>
  );
}

function secondsText(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800
    ? `${Math.round(seconds / 3600)} h`
    : `${Math.round(seconds / 86_400)} d`;
}
