import { useMemo, useState } from 'preact/hooks';
import { call, may, type Json, type JsonObject } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { Rendered } from '../components/rendered.tsx';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, When } from '../components/ui.tsx';
import { Undo } from './undo.tsx';
import '../components/panes.css';

const t = texts.history;

/** A row of the history of a page rule. */
export interface HistoryRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly by_name?: string;
  readonly action: 'insert' | 'edit' | 'invalidate';
  readonly dtu_stored: string;
  readonly invalidated?: string;
}

/** The record right before a change; undefined before its insert. */
async function recordBefore(id: string, { seq, action }: HistoryRow) {
  return action === 'insert' ? undefined : recordAt(id, seq - 1);
}

/** The record right after a change; undefined if it did not exist. */
async function recordAt(id: string, seq: number): Promise<JsonObject | undefined> {
  return call<JsonObject>('userinterface.read', { id, as_of: String(seq) }).catch(() => undefined);
}

interface VersionProps {
  readonly id: string;
  readonly row: HistoryRow;
  readonly newest: number;
  readonly onChange: () => void;
}

/** What one change of a page rule did: its fields and the page, before and after. */
export function Version({ id, row, newest, onChange }: VersionProps) {
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
        {texts.past.by} <a href={linkTo('/history', { by: row.by })}>{row.by_name ?? row.by}</a>
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
          isLive
          selection={later}
          onDone={onChange}
          onClose={() => {
            setUndoing(false);
          }}
        />
      ) : null}
      {states.isLoading ? (
        <Busy />
      ) : (
        <>
          <h2>{t.fieldsTitle}</h2>
          <Differences before={before} after={after} />
          <RenderedDifference before={before} after={after} seq={row.seq} />
        </>
      )}
    </section>
  );
}

/** The page at the address of the rule, before and after the change. */
function RenderedDifference({
  before,
  after,
  seq,
}: {
  before: JsonObject | undefined;
  after: JsonObject | undefined;
  seq: number;
}) {
  const places = [
    { title: t.before, rule: before ?? after, asOf: String(seq - 1) },
    { title: t.after, rule: after ?? before, asOf: String(seq) },
  ];
  const sides = places.flatMap(({ title, rule, asOf }) => {
    const { path, origin } = rule ?? {};
    if (typeof path !== 'string' || !path.startsWith('/') || path.includes('*')) return [];
    const place = { origin: typeof origin === 'string' ? origin : '*', path, asOf };
    return [<Rendered key={title} title={title} place={place} />];
  });
  if (sides.length === 0) return null;
  return (
    <>
      <h2>{t.pageTitle}</h2>
      <div class="diff-sides">{sides}</div>
    </>
  );
}

const unshown = new Set(['id', 'seq', 'enginereference', 'meta']);

/** The fields that differ between two states of a record, side by side. */
export function Differences({
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
            {before === undefined ? null : (
              <Side label={t.before} lines={from} others={to} sign="removed" />
            )}
            {after === undefined ? null : (
              <Side label={t.after} lines={to} others={from} sign="added" />
            )}
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
