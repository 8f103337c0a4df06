import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { When } from '../ui.tsx';

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

/** Changes, newest first, with links to the record, its author's changes and its transaction. */
export function ChangeList({ rows }: { rows: readonly ChangeRow[] }) {
  return (
    <ol class="changes">
      {rows.map((row) => (
        <li key={row.seq} class={row.applies ? row.action : `${row.action} reverted`}>
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
      ))}
    </ol>
  );
}

function Title({ row }: { row: ChangeRow }) {
  const name = row.title ?? row.id;
  if (row.family !== 'userinterface') return <b>{`${row.family} ${name}`}</b>;
  return <a href={linkTo('/history', { id: row.id })}>{name}</a>;
}
