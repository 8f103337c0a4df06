import type { JsonObject } from '../../values/json/json.ts';
import { MIB } from '../../values/units.ts';
import type { Change } from '../change.ts';
import { type Databases, putLast } from '../databases.ts';
import { type IndexEntry, putIndexEntry, removeIndexEntry } from '../index-entries.ts';
import { removeKeyUse } from '../key-uses.ts';

/** Characters of the rows of one decision whose texts are in memory until both copies are put. */
const dataTextsCharactersMax = 16 * MIB;

/** The databases with keys of bytes that a plan writes. */
type PlannedDatabase = Exclude<
  keyof Databases,
  'environment' | 'meta' | 'log' | 'mark' | 'lane' | 'job' | 'delivery' | 'outbox'
>;

/** An entry that a plan puts or removes. */
export interface PlannedEntry {
  readonly key: Uint8Array;
  /** A text, a function that makes a long text for the put, or undefined to remove the entry. */
  readonly value: string | (() => string) | undefined;
  /** The value to remove, in a database with several values under a key. */
  readonly removed?: string;
}

/** Makes each entry just before its put, so that a large decision does not keep all in memory. */
type EntryGroup = (put: PutEntry) => void;

type PutEntry = (entry: PlannedEntry) => void;

/** A record before and after a change; undefined if it does not exist. */
export interface Transition<S> {
  readonly before: S | undefined;
  readonly after: S | undefined;
}

/** Seqs of rows, each with the row that invalidates it, if any. */
export type Marks = readonly (readonly [number, Change | undefined])[];

/**
 * The entries of projections that a plan puts and removes, by database: one tree after the other is
 * written, so that its pages stay in the CPU cache.
 */
export class PlannedEntries {
  readonly #entries = new Map<PlannedDatabase, (PlannedEntry | EntryGroup)[]>();
  readonly #marks: Marks[number][] = [];
  readonly #revokedKeys: string[] = [];
  #hooksChange: Change | undefined;

  put(database: PlannedDatabase, key: Uint8Array, value: string | (() => string)): void {
    this.#add(database, { key, value });
  }

  /** Puts entries that are made when it is their turn. */
  group(database: PlannedDatabase, make: EntryGroup): void {
    this.#add(database, make);
  }

  /** Removes an entry; in a database with several values under a key, the given one. */
  remove(database: PlannedDatabase, key: Uint8Array, removed?: string): void {
    this.#add(database, { key, value: undefined, ...(removed !== undefined && { removed }) });
  }

  /** Puts the state of a record under its key, or removes it. */
  state(database: PlannedDatabase, key: Uint8Array, after: object | undefined): void {
    if (after === undefined) this.remove(database, key);
    else this.put(database, key, () => JSON.stringify(after));
  }

  mark(marks: Marks): void {
    this.#marks.push(...marks);
  }

  /** Removes the last use of a key. */
  revokedKey(id: string): void {
    this.#revokedKeys.push(id);
  }

  stampHooks(change: Change): void {
    this.#hooksChange = change;
  }

  /** Writes the entries. The caller runs it in a write transaction. */
  write(databases: Databases): void {
    for (const [name, entries] of this.#entries) {
      const isPlace = name === 'exact' || name === 'wildcard';
      const put = isPlace ? candidatePut(databases, name) : entryPut(databases, name);
      for (const entry of entries) {
        if (typeof entry === 'function') entry(put);
        else put(entry);
      }
    }
    for (const [seq, by] of this.#marks) {
      if (by === undefined) databases.mark.removeSync(seq);
      else databases.mark.putSync(seq, String(by.seq));
    }
    for (const id of this.#revokedKeys) removeKeyUse(databases, id);
    if (this.#hooksChange !== undefined) putHooksStamp(databases.meta, this.#hooksChange);
  }

  /** Calls `each` with the entries, without marks, in the order of their databases. */
  forEach(each: (database: PlannedDatabase, entry: PlannedEntry) => void): void {
    for (const [name, entries] of this.#entries) {
      const put: PutEntry = (entry) => {
        each(name, entry);
      };
      for (const entry of entries) {
        if (typeof entry === 'function') entry(put);
        else put(entry);
      }
    }
  }

  #add(database: PlannedDatabase, entry: PlannedEntry | EntryGroup): void {
    const known = this.#entries.get(database);
    if (known === undefined) this.#entries.set(database, [entry]);
    else known.push(entry);
  }
}

/** Includes the transaction, because another change can get the seq of a rolled-back one. */
export function putHooksStamp(
  meta: Databases['meta'],
  { seq, txn }: Pick<Change, 'seq' | 'txn'>,
): void {
  meta.putSync('hooks', `${seq} ${txn}`);
}

/** The databases with keys that usually grow, because the ids of records do. */
const growing: ReadonlySet<string> = new Set(['rule', 'row', 'tablerow']);

function entryPut(
  databases: Databases,
  name: Exclude<PlannedDatabase, IndexEntry['database']>,
): PutEntry {
  const database = databases[name];
  const grows = growing.has(name);
  return ({ key, value, removed }) => {
    if (value !== undefined) {
      const text = typeof value === 'string' ? value : value();
      if (grows) putLast(database, key, text);
      else database.putSync(key, text);
    } else if (removed === undefined) database.removeSync(key);
    else database.removeSync(key, removed);
  };
}

function candidatePut(databases: Databases, database: IndexEntry['database']): PutEntry {
  return ({ key, value, removed = '' }) => {
    const entry = { database, key: Buffer.from(key) };
    if (typeof value === 'string') putIndexEntry(databases, { ...entry, value });
    else removeIndexEntry(databases, { ...entry, value: removed });
  };
}

/** The JSON texts of data that two databases get, the log and the rows: each is made once. */
export class DataTexts {
  readonly #texts = new Map<JsonObject, string>();
  #characters = 0;

  /** The text of an object, which does not change meanwhile. */
  of(data: JsonObject): string {
    const known = this.#texts.get(data);
    if (known !== undefined) return known;
    const text = JSON.stringify(data);
    this.#characters += text.length;
    if (this.#characters <= dataTextsCharactersMax) this.#texts.set(data, text);
    return text;
  }

  /** The state of a record after its insert, as JSON: its fields are the data of the insert. */
  ofInserted(
    name: 'rule' | 'row',
    {
      id,
      data,
      state: { seq, insertedSeq },
    }: {
      readonly id: string;
      readonly data: JsonObject;
      readonly state: { readonly seq: number; readonly insertedSeq: number };
    },
  ): string {
    const fields = `"id":${JSON.stringify(id)},${this.of(data).slice(1)}`;
    return `{"${name}":{${fields},"seq":${seq},"insertedSeq":${insertedSeq}}`;
  }
}
