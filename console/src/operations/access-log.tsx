import { useRef, useState } from 'preact/hooks';
import { useFollow } from '../api/live.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { bytesText, msText, ScreenHead } from '../components/ui.tsx';
import { UrlInput } from '../components/url-field.tsx';

const t = texts.accessLog;
const linesMax = 500;
const filterNames = ['status', 'method', 'path', 'cache', 'ms_min'] as const;

interface AccessRow {
  readonly time: string;
  readonly address: string;
  readonly method: string;
  readonly host: string;
  readonly target: string;
  readonly status: number;
  readonly bytes: number;
  readonly ms: number;
  readonly source: string;
  readonly user_agent?: string;
  readonly referer?: string;
  readonly cache?: string;
  readonly id?: string;
  readonly cut?: boolean;
}

interface AccessRows {
  readonly rows: readonly AccessRow[];
  readonly dropped: number;
}

/** A line of the list: a request, or how many are missing. */
type Line = { readonly n: number } & ({ readonly row: AccessRow } | { readonly dropped: number });

/** The filters of the URL, as log.access takes them. */
function filtersIn(params: URLSearchParams): Readonly<Record<string, string | number>> {
  return Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = params.get(name) ?? '';
      if (value === '') return [];
      return [[name, name === 'ms_min' ? Number(value) : value]];
    }),
  );
}

/** The access log as requests are answered. All that clients sent is shown as text. */
export function AccessLog({ route: { params } }: { route: Route }) {
  const filters = filtersIn(params);
  const showsOwn = params.get('own') === 'yes';
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [isPaused, setPaused] = useState(false);
  const paused = useRef(0);
  const last = useRef(0);
  const state = useFollow('log.access', filters, (data) => {
    const { rows, dropped } = data as AccessRows;
    const wanted = rows.filter(({ source }) => showsOwn || source !== 'svc1');
    if (isPaused) {
      paused.current += wanted.length + dropped;
      return;
    }
    const numbered = (line: { row: AccessRow } | { dropped: number }): Line => {
      last.current += 1;
      return { n: last.current, ...line };
    };
    const missed = dropped + paused.current;
    paused.current = 0;
    const added = [
      ...(missed > 0 ? [numbered({ dropped: missed })] : []),
      ...wanted.map((row) => numbered({ row })),
    ];
    setLines((before) => [...added.toReversed(), ...before].slice(0, linesMax));
  });
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['log.access', filters]}>
        <span class={`note pulse ${isPaused ? '' : state}`} role="status">
          {isPaused ? t.paused : t.states[state]}
        </span>
        <button
          type="button"
          class="quiet-button"
          onClick={() => {
            setPaused(!isPaused);
          }}
        >
          {isPaused ? t.resume : t.pause}
        </button>
        <button
          type="button"
          class="quiet-button"
          onClick={() => {
            setLines([]);
          }}
        >
          {t.clear}
        </button>
      </ScreenHead>
      <LogFilters params={params} />
      <div class="log-lines" role="region" aria-label={t.title} tabIndex={0}>
        {lines.length === 0 ? <p class="empty">{t.empty}</p> : null}
        {lines.map((line) =>
          'row' in line ? (
            <LogLine key={line.n} row={line.row} />
          ) : (
            <p key={line.n} class="log-dropped">
              {t.dropped(line.dropped)}
            </p>
          ),
        )}
      </div>
    </>
  );
}

const options = {
  status: ['', '1xx', '2xx', '3xx', '4xx', '5xx'],
  method: ['', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  cache: ['', 'hit', 'miss', 'stale', 'revalidated', 'pass'],
} as const;

function LogFilters({ params }: { params: URLSearchParams }) {
  const set = (name: string, value: string): void => {
    goTo('/operations/log', { ...Object.fromEntries(params), [name]: value }, true);
  };
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      {(['status', 'method', 'cache'] as const).map((name) => (
        <label key={name} class="inline-field small">
          {t.filters[name]}
          <select
            value={params.get(name) ?? ''}
            onChange={({ currentTarget }) => {
              set(name, currentTarget.value);
            }}
          >
            {options[name].map((one) => (
              <option key={one} value={one}>
                {one === '' ? t.any : one}
              </option>
            ))}
          </select>
        </label>
      ))}
      {(['path', 'ms_min'] as const).map((name) => (
        <label key={name} class={name === 'path' ? 'inline-field' : 'inline-field small'}>
          {t.filters[name]}
          <UrlInput
            type="search"
            inputMode={name === 'path' ? 'text' : 'decimal'}
            value={params.get(name) ?? ''}
            onSend={(value) => {
              set(name, value);
            }}
          />
        </label>
      ))}
      <label class="check">
        <input
          type="checkbox"
          checked={params.get('own') === 'yes'}
          onChange={({ currentTarget }) => {
            set('own', currentTarget.checked ? 'yes' : '');
          }}
        />
        {t.own}
      </label>
    </form>
  );
}

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

function LogLine({ row }: { row: AccessRow }) {
  const { method, status, target, host, bytes, ms, source, cache, address } = row;
  const url = target.startsWith('/') ? `http://${host}${target}` : target;
  const more = [address, source, row.user_agent, row.referer, row.id].filter(
    (one) => one !== undefined,
  );
  return (
    <div class="log-line">
      <span class="wide-only quiet" title={row.time}>
        {clock.format(new Date(row.time))}
      </span>
      <span class={`is${String(status).slice(0, 1)}`}>{status}</span>
      <span>{method}</span>
      <span title={`${host} ${target}`}>
        <a href={linkTo('/explain', { url })}>{target}</a>
      </span>
      <span class="number wide-only">{bytesText(bytes)}</span>
      <span class="number">{msText(ms)}</span>
      <span class="wide-only">{cache ?? ''}</span>
      <span class="log-more">
        {more.join(' · ')}
        {row.cut === true ? ` · ${t.cut}` : ''}
      </span>
    </div>
  );
}
