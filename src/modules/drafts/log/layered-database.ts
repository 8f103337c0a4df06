import type { Database } from 'lmdb';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf } from '../../../core/log/encoding.ts';
import type { TableCounts } from '../../tables/log/reads.ts';
import {
  draftEntries,
  draftEntryKey,
  hasSeveralValues,
  layerPrefix,
  type LayeredName,
} from './draft-entries.ts';

/** The options of lmdb's ranges that the reads of the store use. */
interface RangeOptions {
  readonly start?: Uint8Array;
  readonly end?: Uint8Array;
  readonly reverse?: boolean;
  readonly limit?: number;
  readonly exclusiveStart?: boolean;
  readonly inclusiveEnd?: boolean;
}

interface Entry {
  readonly key: Buffer;
  readonly value: string;
}

/** The values of a key of the live database, or what a draft puts and removes there. */
interface Group<V> {
  readonly key: Buffer;
  readonly values: readonly V[];
}

interface OwnValue {
  readonly value: string;
  readonly isPut: boolean;
}

/** The marks of keys with several page rules: see core/log/index-entries.ts. */
const marks: Readonly<Record<string, string>> = { exact: '!', wildcard: '~' };

/** Keys in `draftentry` that a read ignores, as hexadecimal digits. */
export type HiddenKeys = ReadonlySet<string>;

/**
 * A database as a draft sees it: the live entries with those of the draft on top. It has the reads
 * of lmdb that the projections use, so that all of them can read a draft.
 */
export class LayeredDatabase {
  readonly #live: Database<string, Uint8Array>;
  readonly #own: Database<string, Uint8Array>;
  readonly #name: LayeredName;
  readonly #draft: number;
  readonly #hidden: HiddenKeys;
  readonly #prefix: Buffer;
  readonly #isSorted: boolean;

  constructor(
    databases: Databases,
    {
      name,
      draft,
      hidden,
    }: { readonly name: LayeredName; readonly draft: number; readonly hidden: HiddenKeys },
  ) {
    this.#live = databases[name] as Database<string, Uint8Array>;
    this.#own = databases.draftentry;
    this.#name = name;
    this.#draft = draft;
    this.#hidden = hidden;
    this.#prefix = layerPrefix(draft, name);
    this.#isSorted = hasSeveralValues(name);
  }

  get(key: Uint8Array): string | undefined {
    if (this.#isSorted) return this.#valuesAt(key)[0];
    const own = this.ownText(key);
    if (own === undefined) return this.#live.get(key);
    return own.startsWith('+') ? own.slice(1) : undefined;
  }

  doesExist(key: Uint8Array): boolean {
    return this.get(key) !== undefined;
  }

  getValues(key: Uint8Array, { limit = Infinity }: { limit?: number } = {}): readonly string[] {
    return this.#valuesAt(key).slice(0, limit);
  }

  *getRange(options: RangeOptions = {}): Generator<Entry> {
    const { limit = Infinity, reverse = false } = options;
    let count = 0;
    for (const { key, values } of this.#groups(options)) {
      for (const value of reverse ? values.toReversed() : values) {
        if (count >= limit) return;
        yield { key, value };
        count += 1;
      }
    }
  }

  *getKeys(options: RangeOptions = {}): Generator<Buffer> {
    const { limit = Infinity } = options;
    let count = 0;
    for (const { key } of this.#groups(options)) {
      if (count >= limit) return;
      yield key;
      count += 1;
    }
  }

  getKeysCount(options: RangeOptions = {}): number {
    return [...this.getKeys(options)].length;
  }

  /** The draft's entry at a key, as it is stored; undefined if it has none. */
  ownText(key: Uint8Array): string | undefined {
    const whole = Buffer.concat([this.#prefix, key]);
    return this.#isHidden(whole) ? undefined : this.#own.get(whole);
  }

  #isHidden(whole: Buffer): boolean {
    return this.#hidden.size > 0 && this.#hidden.has(whole.toString('hex'));
  }

  #valuesAt(key: Uint8Array): readonly string[] {
    const live = this.#live.doesExist(key) ? [...this.#live.getValues(key)] : [];
    const start = draftEntryKey(this.#draft, this.#name, { key, value: '' });
    const own = [...this.#ownEntries({ start, end: afterAll(start), reverse: false })];
    return this.#combined(live, own);
  }

  *#ownEntries(range: {
    readonly start: Buffer;
    readonly end: Buffer;
    readonly reverse: boolean;
  }): Generator<Entry & OwnValue> {
    for (const entry of draftEntries(this.#own, this.#name, range)) {
      if (!this.#isHidden(entry.whole)) yield entry;
    }
  }

  /** The values of a key in their order; none if there is no such key. */
  #combined(live: readonly string[], own: readonly OwnValue[]): readonly string[] {
    if (own.length === 0) return live;
    if (!this.#isSorted) return own.flatMap(({ value, isPut }) => (isPut ? value : []));
    const mark = marks[this.#name];
    const values = new Set(live.filter((value) => value !== mark));
    for (const { value, isPut } of own) {
      if (isPut) values.add(value);
      else values.delete(value);
    }
    if (mark !== undefined && values.size > 1) values.add(mark);
    return [...values].sort(compareTexts);
  }

  /** The keys of a range with their values: the live ones and those of the draft, merged. */
  *#groups(options: RangeOptions): Generator<Group<string>> {
    const { limit: _limit, reverse = false, ...bounds } = options;
    const live = grouped(this.#live.getRange({ ...bounds, reverse }), ({ value }) => value);
    const mine = grouped(this.#ownWithin(options), (entry) => entry);
    try {
      let [first, second] = [live.next().value, mine.next().value];
      while (first !== undefined || second !== undefined) {
        const order = compareGroups(first, second, reverse);
        const key = order <= 0 ? first?.key : second?.key;
        const [read, own] = [order <= 0 ? first?.values : [], order >= 0 ? second?.values : []];
        const values = this.#combined(
          reverse ? (read ?? []).toReversed() : (read ?? []),
          own ?? [],
        );
        if (order <= 0) first = live.next().value;
        if (order >= 0) second = mine.next().value;
        if (key !== undefined && values.length > 0) yield { key, values };
      }
    } finally {
      live.return(undefined);
      mine.return(undefined);
    }
  }

  /** The draft's entries whose keys are in a range. */
  *#ownWithin(options: RangeOptions): Generator<Entry & OwnValue> {
    const { start, end, reverse = false, exclusiveStart = false, inclusiveEnd = false } = options;
    const [lower, upper] = reverse ? [end, start] : [start, end];
    const isLowerOut = reverse ? !inclusiveEnd : exclusiveStart;
    const isUpperOut = reverse ? exclusiveStart : !inclusiveEnd;
    // With a NUL and its value behind it, a key may sort after a bound that it sorts before.
    for (const entry of this.#ownEntries(this.#ownRange(options))) {
      const above = lower === undefined ? 1 : Buffer.compare(entry.key, lower);
      const below = upper === undefined ? -1 : Buffer.compare(entry.key, upper);
      if (above < 0 || below > 0) continue;
      if ((above > 0 || !isLowerOut) && (below < 0 || !isUpperOut)) yield entry;
    }
  }

  /** The range of the draft's entries, its start included and its end left out. */
  #ownRange({ start, end, reverse = false, exclusiveStart, inclusiveEnd }: RangeOptions): {
    readonly start: Buffer;
    readonly end: Buffer;
    readonly reverse: boolean;
  } {
    const whole = (key: Uint8Array): Buffer => Buffer.concat([this.#prefix, key]);
    // All values of a key follow it directly.
    const behind = (key: Uint8Array): Buffer =>
      this.#isSorted
        ? afterAll(Buffer.concat([whole(key), nul]))
        : Buffer.concat([whole(key), nul]);
    const [lower, upper] = reverse ? [end, start] : [start, end];
    const isLowerOut = reverse ? inclusiveEnd !== true : exclusiveStart === true;
    const isUpperIn = reverse ? exclusiveStart !== true : inclusiveEnd === true;
    return {
      start: lower === undefined ? this.#prefix : isLowerOut ? behind(lower) : whole(lower),
      end: upper === undefined ? afterAll(this.#prefix) : isUpperIn ? behind(upper) : whole(upper),
      reverse,
    };
  }
}

/** The sizes of tables as a draft sees them: it stores by how much it changes them. */
export class LayeredCounts extends LayeredDatabase {
  readonly #databases: Databases;
  readonly #draft: number;

  constructor(databases: Databases, draft: number) {
    super(databases, { name: 'tablecount', draft, hidden: new Set() });
    this.#databases = databases;
    this.#draft = draft;
  }

  override get(key: Uint8Array): string | undefined {
    const live = countsOf(this.#databases.tablecount.get(key));
    const own = countsOf(draftCounts(this.#databases, this.#draft, key));
    const rows = live.rows + own.rows;
    return JSON.stringify({ rows, words: live.words + own.words });
  }
}

/** By how much a draft changes the size of a table, as it is stored. */
function draftCounts(
  { draftentry }: Databases,
  draft: number,
  key: Uint8Array,
): string | undefined {
  return draftentry.get(Buffer.concat([layerPrefix(draft, 'tablecount'), key]))?.slice(1);
}

/** Adds to the changes of the size of a table. The caller runs it in a write transaction. */
export function addDraftCounts(
  databases: Databases,
  draft: number,
  { table, rows, words }: { readonly table: string } & TableCounts,
): void {
  if (rows === 0 && words === 0) return;
  const key = keyOf(table);
  const before = countsOf(draftCounts(databases, draft, key));
  const after = { rows: before.rows + rows, words: before.words + words };
  const whole = Buffer.concat([layerPrefix(draft, 'tablecount'), key]);
  if (after.rows === 0 && after.words === 0) databases.draftentry.removeSync(whole);
  else databases.draftentry.putSync(whole, `+${JSON.stringify(after)}`);
}

function countsOf(text: string | undefined): TableCounts {
  return text === undefined ? { rows: 0, words: 0 } : (JSON.parse(text) as TableCounts);
}

const nul = Buffer.from([0]);

/** A key after all that begin with one. */
function afterAll(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  for (let at = end.length - 1; at >= 0; at -= 1) {
    const byte = end[at] ?? 0;
    if (byte === 0xff) continue;
    end[at] = byte + 1;
    return end.subarray(0, at + 1);
  }
  return Buffer.concat([prefix, Buffer.alloc(8, 0xff)]);
}

function* grouped<E extends { readonly key: Uint8Array }, V>(
  entries: Iterable<E>,
  valueOf: (entry: E) => V,
): Generator<Group<V>, undefined> {
  let key: Buffer | undefined;
  let values: V[] = [];
  for (const entry of entries) {
    if (key !== undefined && Buffer.compare(key, entry.key) === 0) {
      values.push(valueOf(entry));
      continue;
    }
    if (key !== undefined) yield { key, values };
    // lmdb uses the memory of a key again.
    key = Buffer.from(entry.key);
    values = [valueOf(entry)];
  }
  if (key !== undefined) yield { key, values };
}

function compareGroups(
  one: { readonly key: Buffer } | undefined,
  other: { readonly key: Buffer } | undefined,
  reverse: boolean,
): number {
  if (one === undefined) return 1;
  if (other === undefined) return -1;
  const order = Buffer.compare(one.key, other.key);
  return reverse ? -order : order;
}

function compareTexts(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
