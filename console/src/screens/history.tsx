import { useMemo, useState } from 'preact/hooks';
import { call, may, type Json, type JsonObject } from '../api.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, Fault, ScreenHead, useLoad, When } from '../ui.tsx';
import { ChangeList, type ChangeRow } from './changes.tsx';
import { usePages } from './pages.tsx';
import { Undo } from './undo.tsx';

const t = texts.history;
const filterNames = ['by', 'txn', 'action', 'from', 'until'] as const;

/** The history of the whole site, or of one page rule. */
export function History({ route: { params } }: { route: Route }) {
  const id = params.get('id');
  if (id !== null) return <RecordHistory key={id} id={id} seq={params.get('seq')} />;
  const filters = Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = params.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
  return <SiteHistory key={params.toString()} filters={filters} />;
}

type Filters = Readonly<Record<string, string>>;

function SiteHistory({ filters }: { filters: Filters }) {
  const [isUndoing, setUndoing] = useState(false);
  const { action: _action, ...selection } = filters;
  const isSelected = Object.keys(selection).length > 0;
  const { rows, isEnd, isLoading, error, more } = usePages<ChangeRow, number>((before) =>
    call('change.list', { ...filters, limit: 100, ...(before !== undefined && { before }) }),
  );
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['change.list', filters]}>
        {isSelected && may('design') ? (
          <button
            type="button"
            onClick={() => {
              setUndoing(true);
            }}
          >
            {t.undo}
          </button>
        ) : null}
      </ScreenHead>
      <FilterForm filters={filters} />
      {isUndoing ? (
        <Undo
          selection={selection}
          onClose={() => {
            setUndoing(false);
          }}
        />
      ) : null}
      <Fault error={error} />
      <ChangeList rows={rows} />
      {isLoading ? <Busy /> : null}
      {isEnd ? (
        <p class="note">{t.everything}</p>
      ) : (
        <button type="button" onClick={more}>
          {texts.states.more}
        </button>
      )}
    </>
  );
}

function FilterForm({ filters }: { filters: Filters }) {
  const set = (name: string, value: string): void => {
    goTo('/history', { ...filters, [name]: value });
  };
  const texted = ['by', 'txn'] as const;
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      {texted.map((name) => (
        <label key={name} class="inline-field">
          {t[name]}
          <input
            type="text"
            spellcheck={false}
            value={filters[name] ?? ''}
            onChange={({ currentTarget }) => {
              set(name, currentTarget.value);
            }}
          />
        </label>
      ))}
      <label class="inline-field">
        {t.action}
        <select
          value={filters.action ?? ''}
          onChange={({ currentTarget }) => {
            set('action', currentTarget.value);
          }}
        >
          <option value="">{t.any}</option>
          {Object.entries(t.actions).map(([action, name]) => (
            <option key={action} value={action}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {filters.from === undefined ? null : (
        <span class="tag">
          <When time={filters.from} /> – <When time={filters.until ?? new Date().toISOString()} />
        </span>
      )}
      {Object.keys(filters).length === 0 ? null : <a href="#/history">{t.clear}</a>}
    </form>
  );
}

interface HistoryRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly action: 'insert' | 'edit' | 'invalidate';
  readonly dtu_stored: string;
  readonly invalidated?: string;
}

/** The versions of one page rule, with the differences between one and the one before it. */
function RecordHistory({ id, seq }: { id: string; seq: string | null }) {
  const history = useLoad(
    (signal) =>
      call<{ rows: readonly HistoryRow[] }>(
        'userinterface.read',
        { id },
        { qk: 'history', signal },
      ),
    [id],
  );
  const rows = history.data?.rows ?? [];
  const chosen = rows.find((row) => String(row.seq) === seq) ?? rows[0];
  const newest = rows[0];
  return (
    <>
      <ScreenHead title={t.record} shown={['userinterface.read', { id }, { qk: 'history' }]}>
        <a class="quiet-button" href={`#/pages/${id}`}>
          {texts.nav.pages}
        </a>
        <a class="quiet-button" href="#/history">
          {t.whole}
        </a>
      </ScreenHead>
      <Fault error={history.error} onRetry={history.reload} />
      <div class="versions">
        <ol class="version-list" aria-label={t.version}>
          {rows.map((row) => (
            <li key={row.seq}>
              <a
                href={linkTo('/history', { id, seq: row.seq })}
                aria-current={row.seq === chosen?.seq ? 'true' : undefined}
              >
                {t.actions[row.action]} <span class="quiet">{row.seq}</span>
                {row.invalidated === undefined ? null : <span class="tag">{t.reverted}</span>}
                <br />
                <span class="quiet">
                  <When time={row.dtu_stored} />
                </span>
              </a>
            </li>
          ))}
        </ol>
        {chosen === undefined || newest === undefined ? null : (
          <Version
            key={chosen.seq}
            id={id}
            row={chosen}
            newest={newest.seq}
            onChange={history.reload}
          />
        )}
      </div>
    </>
  );
}

/** The record right before a change; undefined before its insert. */
async function recordBefore(id: string, { seq, action }: HistoryRow) {
  return action === 'insert' ? undefined : recordAt(id, seq - 1);
}

/** The record right after a change; undefined if it did not exist. */
async function recordAt(id: string, seq: number): Promise<JsonObject | undefined> {
  return call<JsonObject>('userinterface.read', { id, as_of: String(seq) }).catch(() => undefined);
}

function Version({
  id,
  row,
  newest,
  onChange,
}: {
  id: string;
  row: HistoryRow;
  newest: number;
  onChange: () => void;
}) {
  const states = useLoad(
    () => Promise.all([recordBefore(id, row), recordAt(id, row.seq)]),
    [id, row.seq],
  );
  const [isUndoing, setUndoing] = useState(false);
  const [before, after] = states.data ?? [];
  // Everything after this row goes: the record is then as it was right after it.
  const later = { id, from: String(row.seq + 1) };
  return (
    <section class="version">
      <p class="note">
        <When time={row.dtu_stored} />
        {' · '}
        <a href={linkTo('/history', { by: row.by })}>{row.by}</a>
        {' · '}
        <a href={linkTo('/history', { txn: row.txn })}>{t.txn}</a>
      </p>
      {row.seq < newest && may('design') ? (
        <p>
          <button
            type="button"
            onClick={() => {
              setUndoing(true);
            }}
          >
            {t.restore}
          </button>
        </p>
      ) : null}
      {isUndoing ? (
        <Undo
          selection={later}
          onDone={onChange}
          onClose={() => {
            setUndoing(false);
          }}
        />
      ) : null}
      {states.isLoading ? <Busy /> : <Differences before={before} after={after} />}
    </section>
  );
}

const unshown = new Set(['id', 'seq', 'enginereference', 'meta']);

function Differences({
  before,
  after,
}: {
  before: JsonObject | undefined;
  after: JsonObject | undefined;
}) {
  const fields = useMemo(() => {
    const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
    return names
      .filter((name) => !unshown.has(name))
      .map((name) => ({ name, from: shown(before?.[name]), to: shown(after?.[name]) }))
      .filter(({ from, to }) => from !== to);
  }, [before, after]);
  if (fields.length === 0) return <p class="note">{t.same}</p>;
  return (
    <div class="diffs">
      {fields.map(({ name, from, to }) => (
        <figure key={name} class="diff">
          <figcaption>{name}</figcaption>
          <div class="diff-sides">
            <Side label={t.before} lines={from} others={to} sign="removed" />
            <Side label={t.after} lines={to} others={from} sign="added" />
          </div>
        </figure>
      ))}
    </div>
  );
}

function shown(value: Json | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}

/** One side of a difference; lines that the other side lacks are marked, also by a sign. */
function Side({
  label,
  lines,
  others,
  sign,
}: {
  label: string;
  lines: string;
  others: string;
  sign: 'added' | 'removed';
}) {
  const known = new Set(others.split('\n'));
  return (
    <pre class="side" role="group" aria-label={label} tabIndex={0}>
      {lines.split('\n').map((line, at) => {
        const isNew = lines !== '' && !known.has(line);
        return (
          <span key={`${at} ${line}`} class={isNew ? sign : ''}>
            {isNew ? (sign === 'added' ? '+ ' : '− ') : '  '}
            {line}
            {'\n'}
          </span>
        );
      })}
    </pre>
  );
}
