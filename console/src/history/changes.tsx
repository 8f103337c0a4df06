import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { When } from '../components/ui.tsx';

/** A row of change.list. */
export interface ChangeRow {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly by_name?: string;
  readonly action: 'insert' | 'edit' | 'invalidate';
  readonly family: string;
  readonly id: string;
  readonly title?: string;
  readonly dtu_stored: string;
  readonly fields: readonly string[];
  readonly applies: boolean;
}

/** Changes of one transaction in a row of this length and more are folded. */
const foldedFrom = 4;

/**
 * Changes, newest first, with links to the record, its author's changes and its transaction. A long
 * transaction, such as an import, is folded if `isGrouped`.
 */
export function ChangeList({
  rows,
  isGrouped = false,
}: {
  rows: readonly ChangeRow[];
  isGrouped?: boolean;
}) {
  const groups = groupsOf(rows);
  return (
    <ol class="changes">
      {groups.flatMap((group) =>
        isGrouped && group.length >= foldedFrom ? (
          <Folded key={group[0]?.seq} rows={group} />
        ) : (
          group.map((row) => <Change key={row.seq} row={row} />)
        ),
      )}
    </ol>
  );
}

function groupsOf(rows: readonly ChangeRow[]): readonly (readonly ChangeRow[])[] {
  const groups: ChangeRow[][] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last?.[0]?.txn === row.txn) last.push(row);
    else groups.push([row]);
  }
  return groups;
}

function Folded({ rows }: { rows: readonly ChangeRow[] }) {
  const [first] = rows;
  if (first === undefined) return null;
  return (
    <li class={first.action}>
      <details>
        <summary>
          {texts.history.grouped(rows.length)} · <When time={first.dtu_stored} /> ·{' '}
          {first.by_name ?? first.by}
        </summary>
        <p>
          <a href={linkTo('/history', { txn: first.txn })}>{texts.history.txn}</a>
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
      <p>
        <Title row={row} /> {texts.history.actions[row.action]}
        {row.action === 'edit' ? (
          <span class="quiet"> ({texts.history.fields(row.fields.join(', '))})</span>
        ) : null}
        {row.applies ? null : <span class="tag">{texts.history.reverted}</span>}
      </p>
      <p class="note">
        <When time={row.dtu_stored} />
        {' · '}
        <a href={linkTo('/history', { by: row.by })}>{row.by_name ?? row.by}</a>
        {' · '}
        <a href={linkTo('/history', { txn: row.txn })}>{row.seq}</a>
      </p>
    </li>
  );
}

function Title({ row }: { row: ChangeRow }) {
  const name = row.title ?? row.id;
  if (row.family !== 'userinterface') return <b>{`${row.family} ${name}`}</b>;
  return <a href={linkTo('/history', { id: row.id })}>{name}</a>;
}
