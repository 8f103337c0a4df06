import type { Change } from '../../core/log/change.ts';
import { recordAfter } from '../../core/log/write/fold.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/values/json/json.ts';
import { referenced } from './schema-check.ts';

/** The properties of a table of records (docs/design/records.md#tables-and-their-rows). */
export interface TableDefinition {
  /** A UUIDv7 that the server assigns. */
  readonly id: string;
  /** The name of the table; no other existing table has it, and it never changes. */
  readonly name: string;
  /** JSON Schema 2020-12 of a row: an object. */
  readonly schema?: JsonObject;
  /** The property that identifies a row: no two rows have the same value. */
  readonly key?: string;
  /** The properties by which lists filter and sort, besides the key. */
  readonly index?: readonly string[];
  /** The properties that text search reads. */
  readonly search?: readonly string[];
  /** The property that stands for the row where another table refers to it. */
  readonly title?: string;
  /** The property that names the user who owns the row. */
  readonly owner?: string;
  /** Scopes, `anonymous` or `user`: who may read rows … */
  readonly read?: readonly string[];
  /** … insert them … */
  readonly insert?: readonly string[];
  /** … and edit them. */
  readonly edit?: readonly string[];
  /** The name of a form field that people leave empty. */
  readonly honeypot?: string;
  /** Event type → condition on a property. */
  readonly events?: JsonObject;
  /** The URL of the remote data host that has the rows. */
  readonly host?: string;
  /** Whether rows may have values that a former schema permitted: the server checks them now. */
  readonly rows_pending?: boolean;
  readonly _unknowns_?: JsonObject;
}

/** A table with its place in the log. */
export interface StoredTable {
  readonly table: TableDefinition;
  /** Seq of the newest change of the definition: its version. */
  readonly seq: number;
  readonly insertedSeq: number;
}

/** The indexes that the store keeps for a table. */
export interface TableIndexes {
  /** The property whose values are unique. */
  readonly key: string | undefined;
  /** The indexed properties, without the key. */
  readonly fields: readonly string[];
  /** The properties that text search reads. */
  readonly search: readonly string[];
  /** The indexed properties with the format date-time, which are compared as instants. */
  readonly instants: ReadonlySet<string>;
}

/** The names of the indexes of a table, each once. */
export function tableIndexes({
  key,
  index = [],
  search = [],
  schema,
}: Pick<TableDefinition, 'key' | 'index' | 'search' | 'schema'>): TableIndexes {
  const fields = [...new Set(index)].filter((name) => name !== key);
  return {
    key,
    fields,
    search: [...new Set(search)],
    instants: new Set(fields.filter((name) => isInstantField(schema, name))),
  };
}

/**
 * Whether values of a property are compared as instants. A key is not: it names a row by its text.
 */
export function isInstant(
  { key, schema }: Pick<TableDefinition, 'key' | 'schema'>,
  name: string,
): boolean {
  return name !== key && isInstantField(schema, name);
}

function isInstantField(schema: JsonObject | undefined, name: string): boolean {
  const properties = schema?.properties;
  if (schema === undefined || !isJsonObject(properties) || !Object.hasOwn(properties, name)) {
    return false;
  }
  return formatsOf(schema, properties[name], referencesMax).includes('date-time');
}

/** References that lead to the format of a property, one after the other. */
const referencesMax = 8;

/** The formats that a schema names for a value, also in its alternatives. */
function formatsOf(schema: JsonObject, part: Json | undefined, levels: number): readonly Json[] {
  if (!isJsonObject(part) || levels === 0) return [];
  const { format, $ref: reference, anyOf, oneOf, allOf } = part;
  const others = [anyOf, oneOf, allOf].flatMap((one) => {
    return Array.isArray(one) ? (one as readonly Json[]) : [];
  });
  if (typeof reference === 'string') others.push(referenced(schema, reference) ?? null);
  const inner = others.flatMap((one) => formatsOf(schema, one, levels - 1));
  return format === undefined ? inner : [format, ...inner];
}

/** Families of Waymark's own records, which no table has for a name. */
const reservedNames: readonly string[] = [
  ...['userinterface', 'webhook', 'key', 'table', 'record', 'event'],
];

/** Why a text cannot be the name of a table, as the end of a sentence; undefined if it can. */
export function tableNameMistake(name: string): string | undefined {
  if (!/^[a-z][a-z0-9_-]{0,62}$/.test(name)) {
    return 'a table has 1 to 63 lower-case letters, digits, - or _, and begins with a letter';
  }
  if (!reservedNames.includes(name)) return undefined;
  return `${name} is a family of Waymark's own records: choose another name`;
}

/** Applies an insert or edit to a table, as for a page rule. */
export function foldTable(before: StoredTable | undefined, change: Change): StoredTable {
  const table = recordAfter(before?.table, change, ['name']);
  const { seq } = change;
  const stored = { table: table as unknown as TableDefinition, seq };
  return { ...stored, insertedSeq: before?.insertedSeq ?? seq };
}
