import { call } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { lazy } from '../components/lazy.tsx';
import type { Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, Fault, ScreenHead } from '../components/ui.tsx';
import { TableRows } from './table-rows.tsx';
import '../operations/operations.css';
import './tables.css';

const t = texts.tables;

const TableForm = lazy(() => import('./table-form.tsx').then(({ TableForm: one }) => one));
const RowEditor = lazy(() => import('./row-editor.tsx').then(({ RowEditor: one }) => one));
const Transfer = lazy(() => import('./rows-transfer.tsx').then(({ Transfer: one }) => one));

/** All tables; or the rows of one, its definition, one of its rows, or import and export. */
export function Tables({ route }: { route: Route }) {
  const [, , name, part = '', id] = route.path.split('/').map(decodeURIComponent);
  if (name === undefined || name === '') return <TableList />;
  if (name === 'new') return <TableForm />;
  const key = route.path;
  switch (part) {
    case 'definition':
      return <TableForm key={key} name={name} />;
    case 'transfer':
      return <Transfer key={key} table={name} />;
    case 'row':
      return <RowEditor key={key} table={name} id={id ?? 'new'} route={route} />;
    default:
      return <TableRows key={key} table={name} route={route} />;
  }
}

interface TableRow {
  readonly id: string;
  readonly name: string;
  readonly key?: string;
  readonly host?: string;
  readonly rows_pending?: boolean;
  readonly schema?: { readonly properties?: object };
}

/** All tables with the number of their rows. */
function TableList() {
  const loaded = useLoad(
    (signal) =>
      Promise.all([
        call<{ rows: readonly TableRow[] }>('table.list', { limit: 1000 }, { signal }),
        call<{ rows: readonly { name: string; rows: number }[] }>('table.counts', {}, { signal }),
      ]),
    [],
  );
  const [tables, counts] = loaded.data ?? [];
  const rowsOf = new Map(counts?.rows.map(({ name, rows }) => [name, rows]));
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['table.counts', {}]}>
        <a class="main-button" href="#/tables/new">
          {t.fresh}
        </a>
      </ScreenHead>
      <Fault error={loaded.error} onRetry={loaded.reload} />
      {tables === undefined && loaded.error === undefined ? <Busy /> : null}
      {tables?.rows.length === 0 ? (
        <div class="empty">
          <h2>{t.empty}</h2>
          <p>{t.emptyHint}</p>
        </div>
      ) : null}
      <ul class="cards">
        {tables?.rows.map((table) => (
          <li key={table.id}>
            <h2>
              <a href={`#/tables/${table.name}`}>{table.name}</a>
              {table.rows_pending === true ? <span class="tag">{t.checking}</span> : null}
            </h2>
            <p class="note">
              {table.host === undefined
                ? t.rows(rowsOf.get(table.name) ?? 0)
                : t.hosted(table.host)}
            </p>
            <p class="note">{Object.keys(table.schema?.properties ?? {}).join(', ')}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
