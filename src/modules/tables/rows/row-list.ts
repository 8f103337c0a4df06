import type { WorkTurns } from '../../../core/fair/turns.ts';
import { searchSliceRows } from '../../../core/log/limits.ts';
import type { Reads } from '../../../core/log/store.ts';
import { ruleCharacters } from '../../../core/operations/limits.ts';
import type {
  ListSelection,
  ListSteps,
  RecordStep,
  StoredRecord,
} from '../../../core/operations/records/family.ts';
import { examinedRecords } from '../../../core/operations/records/list.ts';
import { Failure } from '../../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { type Row, compareScalars, comparedValue } from '../row.ts';
import { isInstant } from '../table.ts';
import { type RowTable, rowTable } from './compiled-tables.ts';
import { type SortOrder, rowSteps, storedRow, unusableCursor, walkIndexes } from './index-walk.ts';
import { type RowCondition, indexedField, parseWhere } from './row-conditions.ts';
import { storedTables } from '../log/family.ts';

/** Rows of the past that a list with an order sorts at once, and reads for that. */
const sortedRowsThenMax = 10_000;
const examinedRowsThenMax = 100_000;

/** Rows that `count` counts one by one; a larger number is reported as a minimum. */
const countedRowsMax = 100_000;

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
  const fields = seq === undefined ? table : tableThen(table, reads, seq);
  const conditions = parseWhere(isJsonObject(where) ? where : {}, fields);
  const order = typeof sort === 'string' ? sortOrder(sort, fields) : undefined;
  const search = typeof text === 'string' ? text : undefined;
  if (seq !== undefined && search !== undefined) {
    throw new Failure('invalid', 'A list with as_of finds no text: leave out text.', {
      field: 'text',
    });
  }
  const { name } = table.definition;
  const isListed = (row: Row): boolean =>
    row.table === name && isVisible(row) && conditions.every((one) => one.matches(row));
  const source: Source =
    seq === undefined
      ? sourceNow({ table, reads, conditions, order, search, seesAll })
      : sourceThen(reads, { table, seq, ...(order && { order }) }, isListed);
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
    members: (turns) =>
      isWhole ? { count: reads.of(storedTables).tableCounts(name).rows } : counted(steps, turns),
  };
}

/** Counts the rows one by one, up to a limit. */
async function counted(steps: ListSteps<Row>, turns: WorkTurns): Promise<JsonObject> {
  let [count, examined] = [0, 0];
  for (const { stored, size } of steps.stepsAfter('')) {
    if (stored !== undefined) count += 1;
    examined += examinedRecords(size);
    if (examined >= countedRowsMax) return { count, count_is_minimum: true };
    if (turns.isOver()) await turns.next();
  }
  return { count };
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
    return (cursor) => rowSteps(reads.of(storedTables).rowsAfter(name, afterRow(cursor)));
  }
  for (const { field } of [...(order ? [order] : []), ...conditions]) {
    requireBuilt(reads, name, field);
  }
  return (cursor) => walkIndexes(reads, name, { conditions, order, cursor });
}

/** The table with the fields and indexes of a moment; fields that are hidden now stay hidden. */
function tableThen(table: RowTable, reads: Reads, seq: number): RowTable {
  const then = reads.of(storedTables).tableAt(table.stored.table.id, seq);
  return then === undefined ? table : { ...rowTable(reads, then), hidden: table.hidden };
}

/** The rows of a moment, which no index has: a list with an order reads all of them first. */
function sourceThen(
  reads: Reads,
  {
    table: { definition },
    seq,
    order,
  }: { readonly table: RowTable; readonly seq: number; readonly order?: SortOrder },
  isListed: (row: Row) => boolean,
): Source {
  const { name } = definition;
  if (order === undefined)
    return (cursor) => rowSteps(reads.of(storedTables).rowsAt(name, afterRow(cursor), seq));
  const asInstant = isInstant(definition, order.field);
  let sorted: readonly FoundStep[] | undefined;
  return function* steps(cursor) {
    const found: FoundStep[] = [];
    let examined = 0;
    for (const step of sorted === undefined
      ? rowSteps(reads.of(storedTables).rowsAt(name, '', seq))
      : []) {
      examined += 1;
      const { stored } = step;
      if (stored !== undefined && isListed(stored.record)) found.push({ ...step, stored });
      if (found.length > sortedRowsThenMax || examined > examinedRowsThenMax) throw tooManyThen();
      yield { ...step, stored: undefined, cursor };
    }
    sorted ??= inOrder(found, order, asInstant);
    // The past does not change, so the last row of a page is the place where the next one begins.
    const at = cursor === '' ? -1 : sorted.findIndex(({ id }) => id === cursor);
    if (cursor !== '' && at < 0) throw unusableCursor();
    for (const step of sorted.slice(at + 1)) yield step;
  };
}

/** A step with its row. */
type FoundStep = RecordStep<Row> & { readonly stored: StoredRecord<Row> };

/** Rows in the order of an index: by the value, and of equal values by the id. */
function inOrder(
  found: readonly FoundStep[],
  { field, descending }: SortOrder,
  asInstant: boolean,
): readonly FoundStep[] {
  const sorted = found
    .map((step) => ({ step, value: comparedValue(step.stored.record[field], asInstant) }))
    .toSorted((one, other) => {
      const order = compareScalars(one.value, other.value);
      if (order !== 0) return order;
      return one.step.id < other.step.id ? -1 : 1;
    })
    .map(({ step }) => step);
  return descending ? sorted.toReversed() : sorted;
}

function tooManyThen(): Failure {
  const message =
    `A list with as_of and sort reads at most ${examinedRowsThenMax} rows, and sorts at most ` +
    `${sortedRowsThenMax}: leave out sort, or select fewer rows by where.`;
  return new Failure('unprocessable', message, { field: 'sort' });
}

/** The id after which a list in the order of ids goes on. Throws `invalid` for another cursor. */
function afterRow(cursor: string): string {
  if (cursor === '' || rowId.test(cursor)) return cursor;
  throw unusableCursor();
}

const rowId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The rows that a search finds: it ranks all of them before it returns the first one. */
function foundSteps(
  reads: Reads,
  table: string,
  { text, seesAll }: { readonly text: string; readonly seesAll: boolean },
): Source {
  return function* steps(cursor) {
    // The cursor contains the relevance, which would reveal how many rows of other users have a
    // word.
    const found = reads.of(storedTables).searchRows(table, text, {
      after: cursor === '' ? undefined : cursor,
      isByRowAlone: !seesAll,
    });
    for (const step of found) {
      if (step.id === undefined) yield { id: '', stored: undefined, size: pauseSize, cursor };
      else yield { ...storedRow(reads, step.id), cursor: step.cursor };
    }
  };
}

/** The work of a step that ranks rows. */
const pauseSize = searchSliceRows * ruleCharacters;

/** Throws `unavailable` for an index that is being built; '' is that of the search. */
function requireBuilt(reads: Reads, table: string, index: string): void {
  const build = reads.of(storedTables).indexBuild(table, index);
  if (build === undefined) return;
  const what = index === '' ? 'search' : `index on ${index}`;
  throw new Failure(
    'unavailable',
    `The ${what} of ${table} is being built: ${build.done} of ${build.of} rows are in it.`,
    { retryAfterSeconds: 2, field: index === '' ? 'text' : index },
  );
}
