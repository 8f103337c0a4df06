import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';

/** Limits of `waymark follow`. */

/** Bytes of a name in PostgreSQL. */
const columnNameBytesMax = 63;

/** Columns of a table, of PostgreSQL's 1,600. */
const columnsMax = 1_500;

/** The types of PostgreSQL that columns have. */
export type ColumnType =
  | 'text'
  | 'bigint'
  | 'double precision'
  | 'boolean'
  | 'timestamptz'
  | 'date'
  | 'jsonb';

/** The columns of a table by their names, without those that every table has. */
export type Columns = Readonly<Record<string, ColumnType>>;

/** The columns that every table has: fields of rows cannot have these names. */
const ownColumns = ['id', 'seq', '_unknowns_'] as const;

/**
 * The columns for the properties of a schema (docs/design/records.md#a-copy-in-postgresql): scalars
 * have the type of PostgreSQL, everything else is `jsonb`. A property that is writeOnly, or whose
 * name cannot be that of a column, has none.
 */
export function columnsOf(schema: JsonObject): Columns {
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const columns = Object.entries(properties).flatMap(([name, property]) => {
    if (!isColumnName(name) || isWriteOnly(property)) return [];
    return [[name, columnType(property)] as const];
  });
  return Object.fromEntries(columns.slice(0, columnsMax));
}

/** The names of the properties that are writeOnly. */
export function writeOnlyNames({ properties }: JsonObject): readonly string[] {
  if (!isJsonObject(properties)) return [];
  return Object.keys(properties).filter((name) => isWriteOnly(properties[name]));
}

/** Whether a value can be stored in a column as it is. */
export function fitsColumn(value: Json, type: ColumnType): boolean {
  switch (type) {
    case 'text':
      return typeof value === 'string';
    case 'bigint':
      return Number.isSafeInteger(value);
    case 'double precision':
      return typeof value === 'number';
    case 'boolean':
      return typeof value === 'boolean';
    case 'timestamptz':
      return typeof value === 'string' && dateTime.test(value) && isTime(value);
    case 'date':
      return typeof value === 'string' && date.test(value) && isTime(value);
    case 'jsonb':
      return true;
  }
}

/**
 * A row's fields as columns: `seq` is that of its change. Values that fit no column, and those that
 * wait in `_unknowns_`, are in the column of that name.
 */
export function columnValues(
  { id, seq, table: _table, _unknowns_: waiting = {}, ...fields }: JsonObject,
  columns: Columns,
): JsonObject {
  const placed = new Map<string, Json>();
  const rest = new Map(Object.entries(isJsonObject(waiting) ? waiting : {}));
  for (const [name, value] of Object.entries(fields)) {
    const type = Object.hasOwn(columns, name) ? columns[name] : undefined;
    if (type !== undefined && (value === null || fitsColumn(value, type))) placed.set(name, value);
    else if (value !== null && !serverFields.has(name)) rest.set(name, value);
  }
  const unknowns = rest.size > 0 ? { _unknowns_: Object.fromEntries(rest) } : {};
  return storable({ id: id ?? null, seq: seq ?? null, ...Object.fromEntries(placed), ...unknowns });
}

/** Whether a row has a value that its columns do not know: the schema may have changed. */
export function hasNewField(row: JsonObject, columns: Columns): boolean {
  return Object.entries(row).some(([name, value]) => {
    if ((ownColumns as readonly string[]).includes(name) || serverFields.has(name)) return false;
    if (value === null) return false;
    return !Object.hasOwn(columns, name) || !fitsColumn(value, columns[name] ?? 'jsonb');
  });
}

/** Members of a row that are no fields of its table. */
const serverFields: ReadonlySet<string> = new Set(['table', 'problems', 'unknowns']);

const dateTime =
  /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,20})?(?:[Zz]|[+-](?:0\d|1[0-4]):\d\d)$/;
const date = /^\d{4}-\d\d-\d\d$/;

/** Whether the day exists, and the time of the day; PostgreSQL has no year 0. */
function isTime(text: string): boolean {
  const day = text.slice(0, 'yyyy-mm-dd'.length);
  const startMs = Date.parse(day);
  if (Number.isNaN(startMs) || Number.isNaN(Date.parse(text))) return false;
  return !day.startsWith('0000') && new Date(startMs).toISOString().startsWith(day);
}

function isColumnName(name: string): boolean {
  const isOwn = (ownColumns as readonly string[]).includes(name);
  const isText = name !== '' && name.isWellFormed() && !name.includes('\0');
  return isText && !isOwn && Buffer.byteLength(name) <= columnNameBytesMax;
}

function isWriteOnly(property: Json | undefined): boolean {
  if (Array.isArray(property)) return property.some((one: Json) => isWriteOnly(one));
  if (!isJsonObject(property)) return false;
  return property.writeOnly === true || Object.values(property).some(isWriteOnly);
}

function columnType(property: Json): ColumnType {
  if (!isJsonObject(property)) return 'jsonb';
  const { type, format } = property;
  const named = Array.isArray(type) ? (type as readonly Json[]) : [type];
  const types = named.filter((one) => one !== 'null');
  const [only] = types;
  if (types.length !== 1) return 'jsonb';
  if (only === 'string') {
    if (format === 'date-time') return 'timestamptz';
    return format === 'date' ? 'date' : 'text';
  }
  if (only === 'integer') return 'bigint';
  if (only === 'number') return 'double precision';
  return only === 'boolean' ? 'boolean' : 'jsonb';
}

/**
 * A value that PostgreSQL can store: its texts have no NUL and no lone surrogate, so each becomes
 * U+FFFD.
 */
function storable<Value extends Json>(value: Value): Value {
  // JSON.stringify escapes both, and few values have other escapes.
  if (!/\\u(?:0000|d[89a-f])/.test(JSON.stringify(value))) return value;
  return cleaned(value) as Value;
}

function cleaned(value: Json): Json {
  if (typeof value === 'string') return value.replaceAll('\0', '\u{fffd}').toWellFormed();
  if (Array.isArray(value)) return value.map((one: Json) => cleaned(one));
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, one]) => {
    return [cleaned(name) as string, cleaned(one)] as const;
  });
  return Object.fromEntries(members);
}
