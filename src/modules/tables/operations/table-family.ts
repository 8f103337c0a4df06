import type { Reads } from '../../../core/log/store.ts';
import { unknownField } from '../../../core/operations/problems.ts';
import type {
  RecordFamily,
  RecordParts,
  RecordStep,
  StoredRecord,
} from '../../../core/operations/records/family.ts';
import {
  type FieldWrite,
  fieldsOf,
  placeRecord,
  requireSize,
} from '../../../core/operations/records/placement.ts';
import { differingNames } from '../../../core/operations/records/shown.ts';
import { Failure } from '../../../core/values/failure.ts';
import { parseDistinct } from '../../../core/values/json/parse.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { type DefinitionMistake, definitionFields, parseDefinition } from '../definition.ts';
import { type StoredTable, type TableDefinition, foldTable } from '../table.ts';
import { reviewSchemaChange } from './schema-change.ts';
import { schemaChangeReport, tableSchema } from './table-schema.ts';
import { storedTables } from '../log/family.ts';

/** Bytes of the JSON of a definition. */
const tableBytesMax = 1_200_000;

/** The parts that the operations on tables need. */
export interface TableParts extends RecordParts {
  /** The names of the tables that the ini file has. */
  readonly configuredTables: ReadonlySet<string>;
}

const text = { type: 'string', nullable: true } as const;

/** Tables of records (docs/design/records.md#tables-and-their-rows). */
export const tableFamily: RecordFamily<TableParts, TableDefinition> = {
  name: 'table',
  noun: 'table',
  command: 'table',
  scopes: { read: 'admin', write: 'admin' },
  schema: tableSchema,
  summaries: {
    edit:
      'Changes the sent fields of a table. A schema that makes values of rows invalid is only ' +
      'reported without confirm.',
  },

  forCall: (_given, reads, parts) => tablesFor(reads, parts),
  find: (reads, id) => recordOf(reads.of(storedTables).tableById(id)),
  findAt: (reads, id, seq) => recordOf(reads.of(storedTables).tableAt(id, seq)),
  after: (reads, id) => steps(reads.of(storedTables).tablesAfter(id)),
  afterAt: (reads, id, seq) => steps(reads.of(storedTables).tablesAt(id, seq)),
  fold: (before, change) =>
    placed(foldTable(before && { ...before, table: before.record }, change)),

  place: (write, { store }) => placeTableFields(write, store),
  fromText: tableFieldsFromText,
  problems: (table, names) => tableProblems(table, names),
  review: (edit, parts) => reviewSchemaChange(edit, parts),
  reviewSchema: schemaChangeReport,
  afterRevert: (reads, records) =>
    records.flatMap(({ id, becomes, now = {}, then = {} }) => {
      const stored = reads.of(storedTables).tableById(id);
      const isSchema = becomes === 'changed' && differingNames(now, then).includes('schema');
      if (!isSchema || stored === undefined || rowsOf(reads, stored) === 0) return [];
      return [{ family: 'table', id, action: 'edit', data: { rows_pending: true } } as const];
    }),

  list: {
    filters: { name: { ...text, description: 'The name of a table.' } },
    matches: (table, { name }) => name === undefined || table.name === name,
    columns: {
      ID: 'id',
      NAME: 'name',
      KEY: ({ key }) => (typeof key === 'string' ? key : '-'),
      FIELDS: fieldNames,
    },
  },
};

function fieldNames({ schema }: JsonObject): string {
  const properties = isJsonObject(schema) ? schema.properties : undefined;
  return isJsonObject(properties) ? Object.keys(properties).join(',') : '';
}

function placed({ table, ...place }: StoredTable): StoredRecord<TableDefinition> {
  return { record: table, ...place };
}

function recordOf(stored: StoredTable | undefined): StoredRecord<TableDefinition> | undefined {
  return stored && placed(stored);
}

function* steps(tables: Iterable<StoredTable>): Iterable<RecordStep<TableDefinition>> {
  for (const stored of tables) {
    const size = JSON.stringify(stored.table).length;
    yield { id: stored.table.id, stored: placed(stored), size };
  }
}

function rowsOf(reads: Pick<Reads, 'of'>, { table }: StoredTable): number {
  return reads.of(storedTables).tableCounts(table.name).rows;
}

/** The family in a transaction: the ini file decides about its own tables. */
function tablesFor(
  reads: Reads,
  { configuredTables }: TableParts,
): RecordFamily<TableParts, TableDefinition> {
  const requireOwn = (name: string | undefined): void => {
    if (name === undefined || !configuredTables.has(name)) return;
    throw new Failure(
      'conflict',
      `The ini file has the table ${name}: change it in its section [table.${name}].`,
      { field: 'name' },
    );
  };
  return {
    ...tableFamily,
    place(write) {
      requireOwn(write.current?.name ?? nameIn(write.sent));
      return placeTableFields(write, reads);
    },
    requireRevertAccess(now, { id }) {
      if (typeof id === 'string') requireOwn(now.of(storedTables).tableById(id)?.table.name);
    },
  };
}

function nameIn({ name }: JsonObject): string | undefined {
  return typeof name === 'string' ? name : undefined;
}

/**
 * Places the fields of a definition. All of its fields have to be valid, because a table with its
 * access in `_unknowns_` could be open to all; only unknown fields go there. Returns the data of
 * the change. Throws `invalid` with the first mistake, `conflict` for another name.
 */
export function placeTableFields(
  write: FieldWrite<TableDefinition>,
  reads: Pick<Reads, 'of'>,
): JsonObject {
  const { current } = write;
  const known: readonly string[] = definitionFields;
  const data = placeRecord(write, () => ({
    names: new Set(definitionFields),
    placeField(_name, { old, sent: given, waiting }) {
      const next = given === undefined ? waiting : given;
      return next === null ? {} : { field: next ?? old };
    },
    complete(fields, unknowns) {
      const definition = parsedDefinition(
        Object.fromEntries([...fields].filter(([name]) => known.includes(name))),
      );
      if (current !== undefined && definition.name !== current.name) {
        throw new Failure('conflict', 'The name of a table never changes.', { field: 'name' });
      }
      for (const name of known) fields.delete(name);
      for (const [name, value] of Object.entries(definition)) fields.set(name, value);
      requireSize('The table', { fields, unknowns }, tableBytesMax);
    },
  }));
  const isPending =
    current !== undefined &&
    'schema' in data &&
    reads.of(storedTables).tableCounts(current.name).rows > 0;
  return isPending ? { ...data, rows_pending: true } : data;
}

/** A definition with its lists as lists. Throws `invalid` with the first mistake. */
function parsedDefinition(fields: JsonObject): Omit<TableDefinition, 'id'> {
  const parsed = parseDefinition(fields);
  if ('definition' in parsed) return parsed.definition;
  throw invalidDefinition(parsed.mistakes);
}

function invalidDefinition(mistakes: readonly DefinitionMistake[]): Failure {
  const [first, ...others] = mistakes;
  const more = others.length > 0 ? ` Further mistakes: ${others.length}.` : '';
  return new Failure('invalid', `${first?.message ?? ''}${more}`, {
    field: first?.field ?? 'schema',
    problems: mistakes.map(({ field, message }) => ({ field, message, reason: 'bad_format' })),
  });
}

/** Objects in a form or query are JSON texts. */
function tableFieldsFromText(sent: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(sent).map(([name, value]) => {
      if (!['schema', 'events'].includes(name) || typeof value !== 'string') return [name, value];
      // `events` has a form as a text of its own.
      if (name === 'events' && !value.trimStart().startsWith('{')) return [name, value];
      try {
        return [name, parseDistinct(value) as Json];
      } catch (error) {
        if (error instanceof Failure) throw error;
        throw new Failure('invalid', `${name} is not JSON.`, { field: name });
      }
    }),
  );
}

function tableProblems(
  table: TableDefinition,
  names: readonly string[],
): ReturnType<RecordFamily<TableParts, TableDefinition>['problems']> {
  const { unknowns } = fieldsOf(table);
  return names
    .filter((name) => unknowns.has(name))
    .map((name) => unknownField(name, name, definitionFields));
}
