import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../model/failure.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import type { Row } from '../../model/row.ts';
import type { Reads, SearchStep } from '../../store/store.ts';
import { ruleCharacters } from '../limits.ts';
import { examinedRecords } from '../records/list.ts';
import type { ListSelection, ListSteps, RecordStep } from '../records/family.ts';
import { listSliceRecords } from '../records/limits.ts';
import type { RowTable } from './compiled-tables.ts';
import { walkIndexes, type SortOrder } from './index-walk.ts';
import { countedRowsMax } from './limits.ts';
import { rowSteps, storedRow } from './row-steps.ts';
import { indexedField, parseWhere, type RowCondition } from './row-conditions.ts';

/** JSON Schemas of the filters of a list of rows. */
export const rowFilters: Readonly<Record<string, JsonObject>> = {
  where: {
    type: 'object',
    nullable: true,
    additionalProperties: true,
    description:
      'Conditions on indexed fields: a value, or =, <, <=, >, >=, in, prefix with values.',
  },
  sort: {
    type: 'string',
    nullable: true,
    description: 'An indexed field, with - before it for descending; by default, oldest first.',
  },
  count: { type: 'boolean', nullable: true, description: 'Whether to count the rows.' },
};

/** JSON Schemas of the members of a list besides its rows. */
export const countMembers = {
  count: { type: 'integer', description: 'The number of rows, if the input has count.' },
  count_is_minimum: { type: 'boolean', description: 'Whether there may be more rows.' },
} as const;

/** Steps after a cursor; their rows may not meet all conditions. */
type Source = (cursor: string) => Iterable<RecordStep<Row>>;

/**
 * The rows of a table that a list selects: by the index of one field, by the search, or by all
 * rows; the other conditions are checked on each row. `isVisible` is the access of the caller.
 */
export function selectRows(
  { filters, seq }: ListSelection,
  table: RowTable,
  reads: Reads,
  { isVisible, seesAll }: { readonly isVisible: (row: Row) => boolean; readonly seesAll: boolean },
): ListSteps<Row> {
  const { where, sort, text, count } = filters;
  const conditions = parseWhere(isJsonObject(where) ? where : {}, table);
  const order = typeof sort === 'string' ? sortOrder(sort, table) : undefined;
  const search = typeof text === 'string' ? text : undefined;
  if (seq !== undefined && (order !== undefined || search !== undefined)) {
    const field = order === undefined ? 'text' : 'sort';
    throw new Failure('invalid', `A list with as_of takes no ${field}: it is oldest first.`, {
      field,
    });
  }
  const { name } = table.definition;
  const source: Source =
    seq === undefined
      ? sourceNow({ table, reads, conditions, order, search, seesAll })
      : (cursor) => rowSteps(reads.rowsAt(name, cursor, seq));
  const isListed = (row: Row): boolean =>
    row.table === name && isVisible(row) && conditions.every((one) => one.matches(row));
  const steps: ListSteps<Row> = {
    ...(!seesAll && { endsAtShown: true }),
    *stepsAfter(cursor) {
      for (const step of source(cursor)) {
        const isShown = step.stored !== undefined && isListed(step.stored.record);
        yield isShown ? step : { ...step, stored: undefined };
      }
    },
  };
  if (count !== true) return steps;
  const isWhole = seesAll && conditions.length === 0 && search === undefined && seq === undefined;
  return {
    ...steps,
    members: (signal) =>
      isWhole ? { count: reads.tableCounts(name).rows } : counted(steps, signal),
  };
}

/** Counts the rows one by one, up to a limit, in slices that let other requests run. */
async function counted(steps: ListSteps<Row>, signal: AbortSignal): Promise<JsonObject> {
  let [count, examined, inSlice, last] = [0, 0, 0, ''];
  for (;;) {
    inSlice = 0;
    for (const { id, stored, size, cursor = id } of steps.stepsAfter(last)) {
      last = cursor;
      if (stored !== undefined) count += 1;
      inSlice += examinedRecords(size);
      if (inSlice >= listSliceRecords) break;
    }
    if (inSlice < listSliceRecords) return { count };
    examined += inSlice;
    if (examined >= countedRowsMax) return { count, count_is_minimum: true };
    await nextTurn(undefined, { signal });
  }
}

function sortOrder(sort: string, table: RowTable): SortOrder {
  const descending = sort.startsWith('-');
  const { name } = indexedField(descending ? sort.slice(1) : sort, table, 'sort');
  return { field: name, descending };
}

function sourceNow(selection: {
  readonly table: RowTable;
  readonly reads: Reads;
  readonly conditions: readonly RowCondition[];
  readonly order: SortOrder | undefined;
  readonly search: string | undefined;
  readonly seesAll: boolean;
}): Source {
  const { table, reads, conditions, order, search, seesAll } = selection;
  const { name, search: searched = [] } = table.definition;
  if (search !== undefined) {
    if (order !== undefined) {
      const message = 'A list with text is sorted by relevance: leave out sort.';
      throw new Failure('invalid', message, { field: 'sort' });
    }
    if (searched.length === 0) {
      const line = `search = ${[...table.fields.keys()][0] ?? 'name'}`;
      const where = `to [table.${name}]`;
      const message = `${name} has no search: add a line such as \`${line}\` ${where}.`;
      throw new Failure('invalid', message, { field: 'text' });
    }
    requireBuilt(reads, name, '');
    return foundSteps(reads, name, { text: search, seesAll });
  }
  if (order === undefined && conditions.length === 0) {
    return (cursor) => rowSteps(reads.rowsAfter(name, cursor));
  }
  for (const { field } of [...(order ? [order] : []), ...conditions]) {
    requireBuilt(reads, name, field);
  }
  return (cursor) => walkIndexes(reads, name, { conditions, order, cursor });
}

/**
 * The rows that a search finds. The search continues after the end of an earlier iteration: it
 * ranks all rows before it returns the first one, and lets other requests run meanwhile.
 */
function foundSteps(
  reads: Reads,
  table: string,
  { text, seesAll }: { readonly text: string; readonly seesAll: boolean },
): (cursor: string) => Iterable<RecordStep<Row>> {
  let running: { readonly steps: Iterator<SearchStep>; at: string } | undefined;
  return function* steps(cursor) {
    if (running?.at !== cursor) {
      // The cursor contains the relevance, which would reveal how many rows of other users have a
      // word.
      const found = reads.searchRows(table, text, {
        after: cursor === '' ? undefined : cursor,
        isByRowAlone: !seesAll,
      });
      running = { steps: found[Symbol.iterator](), at: cursor };
    }
    for (;;) {
      const next = running.steps.next();
      if (next.done === true) return;
      const step: SearchStep = next.value;
      if (step.id === undefined) {
        yield { id: '', stored: undefined, size: pauseSize, cursor: running.at };
        continue;
      }
      running.at = step.cursor;
      yield { ...storedRow(reads, step.id), cursor: step.cursor };
    }
  };
}

/** The work after which a list lets other requests run. */
const pauseSize = listSliceRecords * ruleCharacters;

/** Throws `unavailable` for an index that is being built; '' is that of the search. */
function requireBuilt(reads: Reads, table: string, index: string): void {
  const build = reads.indexBuild(table, index);
  if (build === undefined) return;
  const what = index === '' ? 'search' : `index on ${index}`;
  throw new Failure(
    'unavailable',
    `The ${what} of ${table} is being built: ${build.done} of ${build.of} rows are in it.`,
    { retryAfterSeconds: 2, field: index === '' ? 'text' : index },
  );
}
