import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { When } from '../components/ui.tsx';

/** A row of change.list. */
export interface ChangeRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly by_name?: string;
  readonly via?: { readonly client: string; readonly tool: string };
  readonly action: 'insert' | 'edit' | 'invalidate';
  readonly family: string;
  readonly id: string;
  readonly title?: string;
  readonly dtu_stored: string;
  readonly fields: readonly string[];
  readonly applies: boolean;
}

/** So many changes in a row, of one transaction or by one key, are folded. */
const foldedFrom = { txn: 4, key: 6 };
/** Changes by one key are a group while no pause between them is longer. */
const pauseMs = 600_000;

/**
 * Changes, newest first, with links to the record, its author's changes and its transaction.
 * `linesMax` are the lines that it shows. `folded` says what is one line: long transactions, such as an import, or also long runs of changes
 * by one key.
 */
export function ChangeList({
  rows,
  folded,
  linesMax = Infinity,
}: {
  rows: readonly ChangeRow[];
  folded?: 'transactions' | 'runs';
  linesMax?: number;
}) {
  const all = folded === undefined ? rows.map((row) => [row]) : groupsOf(rows, folded === 'runs');
  const groups = all.slice(0, linesMax);
  return (
    <ol class="changes">
      {groups.flatMap((group) =>
        isFolded(group) ? (
          <Folded key={group[0]?.seq} rows={group} />
        ) : (
          group.map((row) => <Change key={row.seq} row={row} />)
        ),
      )}
    </ol>
  );
}

function groupsOf(
  rows: readonly ChangeRow[],
  withRuns: boolean,
): readonly (readonly ChangeRow[])[] {
  const groups: ChangeRow[][] = [];
  for (const row of rows) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    const isSame =
      last !== undefined && (row.txn === last.txn || (withRuns && isSoonBefore(row, last)));
    if (group !== undefined && isSame) group.push(row);
    else groups.push([row]);
  }
  return groups;
}

/** Whether a change is by the same key as a later one, without a long pause between them. */
function isSoonBefore(row: ChangeRow, later: ChangeRow): boolean {
  const pause = Date.parse(later.dtu_stored) - Date.parse(row.dtu_stored);
  return row.by === later.by && pause <= pauseMs;
}

function isFolded(group: readonly ChangeRow[]): boolean {
  const isTransaction = group.every(({ txn }) => txn === group[0]?.txn);
  return group.length >= (isTransaction ? foldedFrom.txn : foldedFrom.key);
}

function Folded({ rows }: { rows: readonly ChangeRow[] }) {
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined) return null;
  const isTransaction = first.txn === last.txn;
  const { by } = first;
  const selection = isTransaction
    ? { txn: first.txn }
    : { by, from: String(last.seq), until: String(first.seq) };
  return (
    <li class={first.action}>
      <details>
        <summary>
          {isTransaction ? texts.history.grouped(rows.length) : texts.history.rows(rows.length)} ·{' '}
          <When time={first.dtu_stored} /> · {first.by_name ?? by}
        </summary>
        <p class="folded-links">
          <a href={linkTo('/history', selection)}>
            {isTransaction ? texts.history.txn : texts.history.select}
          </a>
          <a href={linkTo('/history', { by })}>{texts.history.changesOf(first.by_name ?? by)}</a>
        </p>
        <ol class="changes">
          {rows.map((row) => (
            <Change key={row.seq} row={row} />
          ))}
        </ol>
      </details>
    </li>
  );
}

function Change({ row }: { row: ChangeRow }) {
  return (
    <li class={row.applies ? row.action : `${row.action} reverted`}>
      <p class="change">
        <span>
          <Title row={row} /> {texts.history.actions[row.action]}
          {row.action === 'edit' ? (
            <span class="quiet"> ({texts.history.fields(row.fields.join(', '))})</span>
          ) : null}
          {row.applies ? null : <span class="tag">{texts.history.reverted}</span>}
        </span>
        <span class="note">
          <When time={row.dtu_stored} />
          {' · '}
          <a href={linkTo('/history', { by: row.by })}>{row.by_name ?? row.by}</a>
          {row.via === undefined ? null : ` ${texts.history.via(row.via.client, row.via.tool)}`}
          {' · '}
          <a href={linkTo('/history', { txn: row.txn })}>{row.seq}</a>
        </span>
      </p>
    </li>
  );
}

function Title({ row }: { row: ChangeRow }) {
  const name = row.title ?? row.id;
  if (row.family !== 'userinterface') return <b>{`${row.family} ${name}`}</b>;
  return <a href={linkTo('/history', { id: row.id })}>{name}</a>;
}
