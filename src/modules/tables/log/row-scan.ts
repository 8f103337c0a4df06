import type { Database } from 'lmdb';
import { Failure } from '../../../core/values/failure.ts';
import { comparedValue, compareScalars, type Row, type Scalar, type StoredRow } from '../row.ts';
import { isInstant, type StoredTable } from '../table.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyBytesMax, keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { IndexRange, IndexStep } from './reads.ts';
import {
  indexKey,
  isCut,
  keyPrefix,
  orderedPrefix,
  orderedValue,
  orderedValueEnd,
  prefixEnd,
  rowKey,
  typeTag,
  valueEnd,
} from './index-key.ts';

type RowDatabases = Pick<Databases, 'row' | 'rowkey' | 'rowindex'>;

/** A range of an index as keys. */
interface KeyRange {
  readonly database: Database<string, Uint8Array>;
  /** The beginning of all keys of the index. */
  readonly prefix: Buffer;
  /** The first key of the range … */
  readonly lower: Buffer;
  /** … and the key after its last one. */
  readonly upper: Buffer;
  /**
   * Compares the value of a row if its key is not enough: the key has only the first bytes of a
   * long string.
   */
  readonly check: ((value: Scalar) => boolean) | undefined;
}

/** @inheritdoc Reads.rowsByIndex. */
export function* rowsByIndex(
  databases: RowDatabases,
  table: StoredTable | undefined,
  range: IndexRange,
): Iterable<IndexStep> {
  const found = keyRange(databases, table, range);
  if (found === undefined) return;
  const { database, prefix, check } = found;
  const asInstant =
    check !== undefined && table !== undefined && isInstant(table.table, range.field);
  const { lower, upper, isAfter } = afterCursor(found, range);
  const options =
    range.descending === true
      ? { start: upper, end: lower, reverse: true, exclusiveStart: true, inclusiveEnd: true }
      : { start: lower, end: upper, exclusiveStart: isAfter };
  const isOfKeys = database === databases.rowkey;
  for (const entry of isOfKeys ? database.getRange(options) : keysOnly(database, options)) {
    const suffix = Buffer.from(entry.key.subarray(prefix.length));
    const id = isOfKeys ? entry.value : suffix.toString('latin1', orderedValueEnd(suffix));
    const isIn =
      check === undefined || check(comparedValue(valueOf(databases, id, range.field), asInstant));
    if (isIn) yield new FoundRow(id, suffix);
  }
}

/** @inheritdoc Reads.placesInIndex. */
export function placesInIndex(
  databases: RowDatabases,
  table: StoredTable | undefined,
  range: IndexRange,
  rows: readonly Row[],
): readonly IndexStep[] {
  const found = keyRange(databases, table, range);
  if (found === undefined || table === undefined) return [];
  const { prefix, check } = found;
  const { lower, upper, isAfter } = afterCursor(found, range);
  const { name, key: keyField } = table.table;
  const isDescending = range.descending === true;
  const places = rows.flatMap((row) => {
    const { id, [range.field]: field } = row;
    const value = comparedValue(field, isInstant(table.table, range.field));
    const isOfKeys = range.field === keyField;
    const key = isOfKeys ? rowKey(name, value, id) : indexKey(name, range.field, value, id);
    const fromLower = Buffer.compare(key, lower);
    const isIn = fromLower > 0 || (fromLower === 0 && (isDescending || !isAfter));
    return isIn && Buffer.compare(key, upper) < 0 && check?.(value) !== false ? { id, key } : [];
  });
  const sorted = places.toSorted((one, other) => Buffer.compare(one.key, other.key));
  return (isDescending ? sorted.toReversed() : sorted).map(({ id, key }) => {
    return new FoundRow(id, key.subarray(prefix.length));
  });
}

/** @inheritdoc Reads.countByIndex. */
export function countByIndex(
  databases: RowDatabases,
  table: StoredTable | undefined,
  range: IndexRange,
  limit: number,
): number {
  const found = keyRange(databases, table, range);
  if (found === undefined) return 0;
  const { lower: start, upper: end } = found;
  return found.database.getKeysCount({ start, end, limit });
}

/** A row of an index; its cursor is made only if it is needed. */
class FoundRow implements IndexStep {
  readonly id: string;
  readonly #suffix: Buffer;

  constructor(id: string, suffix: Buffer) {
    this.id = id;
    this.#suffix = suffix;
  }

  get cursor(): string {
    return this.#suffix.toString('base64url');
  }
}

function* keysOnly(
  database: Database<string, Uint8Array>,
  options: object,
): Iterable<{ readonly key: Uint8Array; readonly value: string }> {
  for (const key of database.getKeys(options)) yield { key, value: '' };
}

/** The keys of a range; undefined if the table has no such index. */
function keyRange(
  { rowkey, rowindex }: RowDatabases,
  stored: StoredTable | undefined,
  range: IndexRange,
): KeyRange | undefined {
  if (stored === undefined) return undefined;
  const { name, key } = stored.table;
  const isOfKeys = range.field === key;
  if (!isOfKeys && stored.table.index?.includes(range.field) !== true) return undefined;
  const prefix = isOfKeys ? keyPrefix(name) : keyPrefix(name, range.field);
  const ends = [prefixRange(range), lowerRange(range), upperRange(range)];
  const lowers = ends.flatMap(({ lower }) => lower ?? []);
  const uppers = ends.flatMap(({ upper }) => upper ?? []);
  const checks = ends.flatMap(({ check }) => check ?? []);
  return {
    database: isOfKeys ? rowkey : rowindex,
    prefix,
    lower: Buffer.concat([prefix, ...lowers.toSorted(byBytes).slice(-1)]),
    upper: Buffer.concat([prefix, uppers.toSorted(byBytes)[0] ?? beyond]),
    check: checks.length === 0 ? undefined : (value) => checks.every((check) => check(value)),
  };
}

const byBytes = (one: Buffer, other: Buffer): number => Buffer.compare(one, other);

/** A byte that is greater than every byte of a value, and of an id. */
const beyond = Buffer.from([0xff]);

/** One end of a range, or both. */
interface RangeEnds {
  readonly lower?: Buffer;
  readonly upper?: Buffer;
  readonly check?: (value: Scalar) => boolean;
}

function prefixRange({ prefix }: IndexRange): RangeEnds {
  if (prefix === undefined) return {};
  const lower = orderedPrefix(prefix);
  const check = (value: Scalar) => typeof value === 'string' && value.startsWith(prefix);
  const isWhole = !isCut(orderedValue(prefix));
  return { lower, upper: prefixEnd(lower), ...(!isWhole && { check }) };
}

function lowerRange({ from, to }: IndexRange): RangeEnds {
  // A range with one end has the values of one type.
  if (from === undefined) return to === undefined ? {} : { lower: typeStart(to.value) };
  const bytes = orderedValue(from.value);
  if (!isCut(bytes) || from.value === to?.value)
    return { lower: from.inclusive ? bytes : valueEnd(bytes) };
  const check = (value: Scalar) => compareScalars(value, from.value) >= (from.inclusive ? 0 : 1);
  return { lower: beginningOf(from.value), check };
}

function upperRange({ from, to }: IndexRange): RangeEnds {
  if (to === undefined) return from === undefined ? {} : { upper: typeStart(from.value, 1) };
  const bytes = orderedValue(to.value);
  if (!isCut(bytes) || to.value === from?.value)
    return { upper: to.inclusive ? valueEnd(bytes) : bytes };
  const check = (value: Scalar) => compareScalars(value, to.value) <= (to.inclusive ? 0 : -1);
  return { upper: prefixEnd(beginningOf(to.value)), check };
}

/** The first bytes of a long string, whose key does not have the whole. */
function beginningOf(value: Scalar): Buffer {
  return orderedPrefix(typeof value === 'string' ? value : '');
}

/** The first bytes of the values of a type, or of the next type. */
function typeStart(value: Scalar, later = 0): Buffer {
  return Buffer.from([typeTag(value) + later]);
}

/** The rest of a range after a cursor. Throws `invalid` for a text that is none. */
function afterCursor(
  { prefix, lower, upper }: KeyRange,
  { after, descending = false }: IndexRange,
): { readonly lower: Buffer; readonly upper: Buffer; readonly isAfter: boolean } {
  if (after === undefined) return { lower, upper, isAfter: false };
  const suffix = Buffer.from(after, 'base64url');
  const isCursor = suffix.length > 0 && prefix.length + suffix.length <= keyBytesMax;
  if (!isCursor || suffix.toString('base64url') !== after) {
    throw new Failure('invalid', 'after has to be the `next` of an earlier answer.', {
      field: 'after',
    });
  }
  const at = Buffer.concat([prefix, suffix]);
  if (descending) {
    return { lower, upper: Buffer.compare(at, upper) < 0 ? at : upper, isAfter: true };
  }
  const isAfter = Buffer.compare(at, lower) >= 0;
  return { lower: isAfter ? at : lower, upper, isAfter };
}

function valueOf({ row }: RowDatabases, id: string, field: string): Row[string] {
  const text = row.get(keyOf(id));
  return text === undefined ? null : (storedJson(text) as StoredRow).row[field];
}
