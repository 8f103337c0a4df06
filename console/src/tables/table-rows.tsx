import { useCallback, useMemo, useState } from 'preact/hooks';
import { call, type Json, type JsonObject } from '../api/api.ts';
import { useFollow } from '../api/live.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import {
  fieldsOf,
  referenceTitles,
  titleOf,
  valueOfText,
  valueText,
  type ShownRow,
  type TableShape,
} from './table-shape.ts';
import { texts } from '../texts.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { Busy, FailedScreen, Fault, ScreenHead } from '../components/ui.tsx';
import { UrlInput } from '../components/url-field.tsx';
import { VirtualList } from '../components/virtual-list.tsx';
import { parseJson } from '../api/json.ts';

const t = texts.tables;
const columnsMax = 5;
const operators = ['=', '>=', '<=', '>', '<', 'prefix'] as const;

/** The input of record.list, as the URL has it. */
interface Query {
  readonly where?: JsonObject;
  readonly sort?: string;
  readonly text?: string;
}

function queryIn(params: URLSearchParams): Query {
  const [where, sort, text] = ['where', 'sort', 'text'].map((name) => params.get(name) ?? '');
  return {
    ...(where !== '' && where !== undefined && { where: parseJson(where) as JsonObject }),
    ...(sort !== '' && sort !== undefined && { sort }),
    ...(text !== '' && text !== undefined && { text }),
  };
}

/** The rows of a table: sorted and filtered by its indexes, or found by their words. */
export function TableRows({ table, route: { params } }: { table: string; route: Route }) {
  const query = queryIn(params);
  const shape = useLoad(
    (signal) => call<TableShape>('record.schema', { table }, { signal }),
    [table],
  );
  const [changed, setChanged] = useState(0);
  const [turn, setTurn] = useState(0);
  useFollow('record.subscribe', { table }, () => {
    setChanged((before) => before + 1);
  });
  const reload = useCallback(() => {
    setChanged(0);
    setTurn((before) => before + 1);
  }, []);
  const { data, error } = shape;
  if (error !== undefined) {
    return <FailedScreen title={table} error={error} onRetry={shape.reload} />;
  }
  const input = { table, ...query };
  return (
    <>
      <ScreenHead
        title={table}
        back={{ href: '#/tables', name: t.all }}
        shown={['record.list', input]}
      >
        <a class="quiet-button" href={`#/tables/${table}/definition`}>
          {t.definition}
        </a>
        <a class="quiet-button" href={`#/tables/${table}/transfer`}>
          {t.transfer}
        </a>
        <a class="main-button" href={`#/tables/${table}/row/new`}>
          {t.newRow}
        </a>
      </ScreenHead>
      {data === undefined ? <Busy /> : <Filters shape={data} query={query} />}
      {changed === 0 ? null : (
        <p role="status">
          <button type="button" class="quiet-button" onClick={reload}>
            {t.changed(changed)}
          </button>
        </p>
      )}
      {data === undefined ? null : (
        <RowList key={`${JSON.stringify(input)} ${turn}`} shape={data} query={query} />
      )}
    </>
  );
}

function open(shape: TableShape, query: Query): void {
  const { where = {}, sort, text } = query;
  const isFiltered = Object.keys(where).length > 0;
  goTo(`/tables/${shape.table}`, {
    ...(isFiltered && { where: JSON.stringify(where) }),
    ...(sort !== undefined && { sort }),
    ...(text !== undefined && text !== '' && { text }),
  });
}

function indexed({ key, index }: TableShape): readonly string[] {
  return [...new Set([...(key === undefined ? [] : [key]), ...index])];
}

function Filters({ shape, query }: { shape: TableShape; query: Query }) {
  const { where = {} } = query;
  return (
    <>
      <div class="filters">
        {shape.search.length === 0 ? null : (
          <label class="inline-field">
            {t.search(shape.search.join(', '))}
            <UrlInput
              type="search"
              value={query.text ?? ''}
              onSend={(text) => {
                // A search sorts by relevance.
                open(shape, { where, text });
              }}
            />
          </label>
        )}
        {indexed(shape).length === 0 ? (
          <p class="note">{t.noIndex}</p>
        ) : (
          <ConditionForm shape={shape} query={query} />
        )}
      </div>
      {Object.keys(where).length === 0 ? null : (
        <div class="chips" role="group" aria-label={t.conditions}>
          {Object.entries(where).map(([name, condition]) => (
            <button
              key={name}
              type="button"
              class="tag"
              onClick={() => {
                const { [name]: _removed, ...others } = where;
                open(shape, { ...query, where: others });
              }}
            >
              {name} {conditionText(condition)} <span aria-hidden="true">×</span>
              <span class="unseen">{t.removeCondition}</span>
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function conditionText(condition: Json): string {
  if (typeof condition !== 'object' || condition === null) return `= ${valueText(condition)}`;
  return Object.entries(condition)
    .map(([operator, value]) => `${operator} ${valueText(value)}`)
    .join(', ');
}

function ConditionForm({ shape, query }: { shape: TableShape; query: Query }) {
  const names = indexed(shape);
  const [field, setField] = useState(names[0] ?? '');
  const [operator, setOperator] = useState('=');
  const [text, setText] = useState('');
  return (
    <form
      class="row-condition"
      onSubmit={(event) => {
        event.preventDefault();
        const value = valueOfText(text, fieldsOf(shape)[field]);
        open(shape, { ...query, where: { ...query.where, [field]: { [operator]: value } } });
      }}
    >
      <select
        aria-label={t.field}
        value={field}
        onChange={({ currentTarget }) => {
          setField(currentTarget.value);
        }}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label={t.operator}
        value={operator}
        onChange={({ currentTarget }) => {
          setOperator(currentTarget.value);
        }}
      >
        {operators.map((one) => (
          <option key={one} value={one}>
            {one === 'prefix' ? t.beginsWith : one}
          </option>
        ))}
      </select>
      <input
        type="text"
        aria-label={t.value}
        required
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
        }}
      />
      <button type="submit">{t.filter}</button>
    </form>
  );
}

interface ListPage {
  readonly rows: readonly ShownRow[];
  readonly next: string | null;
  readonly count?: number;
  readonly count_is_minimum?: boolean;
}

function RowList({ shape, query }: { shape: TableShape; query: Query }) {
  const { table } = shape;
  // A count by conditions may take longer than the first rows.
  const counted = useLoad(
    (signal) =>
      call<ListPage>('record.list', { table, ...query, limit: 1, count: true }, { signal }),
    [],
  );
  const { count = 0, count_is_minimum: isMinimum = false } = counted.data ?? {};
  const { rows, isEnd, isLoading, error, more } = usePages<ShownRow, string>((after, limit) =>
    call<ListPage>('record.list', {
      ...{ table, ...query, limit },
      ...(after !== undefined && { after }),
    }),
  );
  const titles = useMemo(() => referenceTitles(shape), [shape]);
  const columns = columnsOf(shape);
  return (
    <>
      <Fault error={error} />
      <p class="note" role="status">
        {isLoading && rows.length === 0 ? texts.states.loading : null}
        {counted.data === undefined ? null : t.found(count, isMinimum)}
      </p>
      {isEnd && rows.length === 0 ? (
        <div class="empty">
          <h2>{t.noRows}</h2>
        </div>
      ) : (
        <>
          <ColumnHeads {...{ shape, query, columns }} />
          <VirtualList
            label={table}
            rows={rows}
            isEnd={isEnd}
            onEnd={more}
            row={(row) => <RowLink {...{ shape, row, columns, titles }} />}
          />
        </>
      )}
    </>
  );
}

/** The columns beside the title: indexed fields first. */
function columnsOf(shape: TableShape): readonly string[] {
  const named = shape.title ?? shape.key;
  const simple = Object.entries(fieldsOf(shape)).flatMap(([name, { type }]) =>
    [type].flat().some((one) => one === 'object' || one === 'array') ? [] : [name],
  );
  const all = [...new Set([...indexed(shape), ...simple])].filter((name) => name !== named);
  return all.filter((name) => Object.hasOwn(fieldsOf(shape), name)).slice(0, columnsMax);
}

function ColumnHeads({
  shape,
  query,
  columns,
}: {
  shape: TableShape;
  query: Query;
  columns: readonly string[];
}) {
  const sortable = indexed(shape);
  const named = shape.title ?? shape.key;
  const head = (name: string): preact.ComponentChildren => {
    if (!sortable.includes(name) || query.text !== undefined) return name;
    const isUp = query.sort === name;
    const isDown = query.sort === `-${name}`;
    const sort = isUp ? `-${name}` : name;
    const { where } = query;
    return (
      <a
        href={linkTo(`/tables/${shape.table}`, {
          sort,
          ...(where !== undefined && { where: JSON.stringify(where) }),
        })}
        aria-current={isUp || isDown ? 'true' : undefined}
        title={t.sortBy(name)}
      >
        {name}
        {isUp ? ' ↑' : isDown ? ' ↓' : ''}
      </a>
    );
  };
  return (
    <div class="row-head row-grid" style={{ '--columns': columns.length }}>
      <span>{named === undefined ? 'id' : head(named)}</span>
      {columns.map((name, at) => (
        <span key={name} class={at > 0 ? 'wide-only' : ''}>
          {head(name)}
        </span>
      ))}
      <span />
    </div>
  );
}

function RowLink({
  shape,
  row,
  columns,
  titles,
}: {
  shape: TableShape;
  row: ShownRow;
  columns: readonly string[];
  titles: ReturnType<typeof referenceTitles>;
}) {
  const waiting = Object.keys((row._unknowns_ ?? {}) as object).length;
  return (
    <a
      class="row-grid row"
      style={{ '--columns': columns.length }}
      href={`#/tables/${shape.table}/row/${row.id}`}
    >
      <b dir="auto">{titleOf(shape, row)}</b>
      {columns.map((name, at) => (
        <span key={name} class={at > 0 ? 'wide-only' : ''} dir="auto">
          {titles[name]?.[valueText(row[name])] ?? valueText(row[name])}
        </span>
      ))}
      <span>{waiting === 0 ? '' : <span class="tag bad">{t.waiting(waiting)}</span>}</span>
    </a>
  );
}
