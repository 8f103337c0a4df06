import type { Database } from 'lmdb';
import { Failure } from '../../../core/values/failure.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyBytesMax } from '../../../core/log/encoding.ts';

/**
 * The databases that a draft has entries of its own for, each with the byte that names it in
 * `draftentry`. Those of the past (`everexact` and so on) are not among them: a draft has none.
 */
const codes = {
  rule: 1,
  exact: 2,
  wildcard: 3,
  hook: 4,
  hooktype: 5,
  hooksecret: 6,
  table: 7,
  tablename: 8,
  row: 9,
  tablerow: 10,
  rowkey: 11,
  rowindex: 12,
  rowword: 13,
  tablecount: 14,
  indexbuild: 15,
  mark: 16,
  history: 17,
  ruletime: 18,
  ruleasset: 19,
  ruleaccess: 20,
} as const;

/** A database that a draft has entries of its own for. */
export type LayeredName = keyof typeof codes;

/** The names of these databases. */
export const layeredNames = Object.keys(codes) as readonly LayeredName[];

/** The databases with several values under a key: a draft's entry is about one of them. */
const sortedNames: ReadonlySet<string> = new Set(['exact', 'wildcard', 'hooktype']);

/** Whether a database has several values under a key. */
export function hasSeveralValues(name: string): boolean {
  return sortedNames.has(name);
}

/** Whether a draft has entries of its own for a database. */
export function isLayered(name: string): name is LayeredName {
  return Object.hasOwn(codes, name);
}

/** What a draft does at a key: it puts a value there, or removes it. */
export interface DraftEntry {
  readonly key: Buffer;
  /** The value; of a database with several values under a key, also the removed one. */
  readonly value: string;
  readonly isPut: boolean;
}

/** The seq of a draft's insert, as its keys begin. */
export function draftPrefix(draft: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(draft);
  return bytes;
}

/** The end of all keys of a draft. */
export function draftEnd(draft: number): Buffer {
  return draftPrefix(draft + 1);
}

/** The start of the keys of a draft for a database. */
export function layerPrefix(draft: number, name: LayeredName): Buffer {
  return Buffer.concat([draftPrefix(draft), Buffer.from([codes[name]])]);
}

const prefixBytes = 5;
const nul = Buffer.from([0]);

/**
 * The key in `draftentry`; of a database with several values, the value follows the key behind a
 * NUL, which keeps the order: no key continues another one with a NUL. Throws `too_large`.
 */
export function draftEntryKey(
  draft: number,
  name: LayeredName,
  { key, value }: { readonly key: Uint8Array; readonly value: string },
): Buffer {
  const start = [layerPrefix(draft, name), key];
  const whole = Buffer.concat(hasSeveralValues(name) ? [...start, nul, Buffer.from(value)] : start);
  if (whole.length <= keyBytesMax) return whole;
  throw new Failure(
    'too_large',
    'The origin and path, or the value of an index, are too long for a draft. Change it live.',
    { field: 'path' },
  );
}

/** The value in `draftentry`. */
export function draftEntryValue(name: LayeredName, { key, value, isPut }: DraftEntry): string {
  const sign = isPut ? '+' : '-';
  if (hasSeveralValues(name)) return sign + String(key.length);
  return isPut ? sign + value : sign;
}

/** The entries of a draft for a database, in the order of their keys, or the reverse one. */
export function* draftEntries(
  draftentry: Database<string, Uint8Array>,
  name: LayeredName,
  range: { readonly start: Buffer; readonly end: Buffer; readonly reverse: boolean },
): Generator<DraftEntry & { readonly whole: Buffer }> {
  for (const { key: read, value: text } of draftentry.getRange(lmdbRange(range))) {
    const whole = Buffer.from(read);
    const isPut = text.startsWith('+');
    if (hasSeveralValues(name)) {
      const length = prefixBytes + Number(text.slice(1));
      const key = whole.subarray(prefixBytes, length);
      yield { whole, key, value: whole.toString('utf8', length + 1), isPut };
    } else yield { whole, key: whole.subarray(prefixBytes), value: text.slice(1), isPut };
  }
}

/** The entries of all drafts for a database without several values; a removed key has no value. */
export function* draftsWith(
  draftentry: Database<string, Uint8Array>,
  name: LayeredName,
): Generator<{ readonly draft: number; readonly key: Buffer; readonly value: string | undefined }> {
  for (const { key: read, value } of draftentry.getRange()) {
    const whole = Buffer.from(read);
    if (whole[prefixBytes - 1] !== codes[name]) continue;
    const isPut = value.startsWith('+');
    const key = whole.subarray(prefixBytes);
    yield { draft: whole.readUInt32BE(0), key, value: isPut ? value.slice(1) : undefined };
  }
}

/** lmdb takes the greater end of a reversed range first, and leaves the second one out. */
function lmdbRange({
  start,
  end,
  reverse,
}: {
  readonly start: Buffer;
  readonly end: Buffer;
  readonly reverse: boolean;
}): object {
  if (!reverse) return { start, end };
  return { start: end, end: start, reverse, exclusiveStart: true, inclusiveEnd: true };
}

/** Removes all keys of a database that begin with those of a draft; calls `each` before. */
export function removeOfDraft(
  database: Databases['draftentry'],
  draft: number,
  each: (key: Buffer) => void = () => undefined,
): void {
  const range = { start: draftPrefix(draft), end: draftEnd(draft) };
  for (;;) {
    const keys = [...database.getKeys({ ...range, limit: removedAtOnce })].map((key) =>
      Buffer.from(key),
    );
    if (keys.length === 0) return;
    for (const key of keys) {
      each(key);
      database.removeSync(key);
    }
  }
}

const removedAtOnce = 10_000;
