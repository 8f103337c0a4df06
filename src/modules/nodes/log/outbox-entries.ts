import type { Change } from '../../../core/log/change.ts';
import { claimKey, packClaim, unpackClaim } from '../../../core/log/claims.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { seqMax, storedJson } from '../../../core/log/encoding.ts';
import type { PutEvent } from '../../../core/log/events/emit.ts';
import { type WaymarkEvent, eventOf } from '../../../core/log/events/event.ts';
import type { LogFamily, LogPart, OpenPart } from '../../../core/log/store.ts';
import { Failure } from '../../../core/values/failure.ts';
import { sizeText } from '../../../core/values/units.ts';
import {
  type Outbox,
  type OutboxClaim,
  type OutboxEntry,
  type OutboxMax,
  type RefusedEntries,
  type Settled,
  eventInsert,
  rowInsert,
} from './outbox.ts';

/** Entries that the centre has stored and that are kept for the deliveries of hooks. */
const outboxKeptMax = 1_000_000;

/** Entries that are shortened in one transaction. */
const outboxTidiedMax = 1_000;

/** The seqs of queued events that are entries of the outbox begin after those of the log. */
const outboxSeq = seqMax + 1;

/** The seq under which the queues of hooks name an entry. */
function seqOfEntry(n: number): number {
  return outboxSeq + n;
}

/** The entry that such a seq names; undefined for a seq of the log. */
export function entryOfSeq(seq: number): number | undefined {
  return seq > outboxSeq ? seq - outboxSeq : undefined;
}

/** An entry whose row is in the log: see putTidied. */
type ShortEntry = Pick<OutboxEntry, 'n' | 'id' | 'seq'>;

/** The event that an entry of the outbox is; undefined if it is none or no longer there. */
export function entryEvent(databases: Databases, n: number): WaymarkEvent | undefined {
  const text = databases.outbox.get(n);
  if (text === undefined) return undefined;
  const { id, a, v, dtu_txn, seq } = storedJson(text) as ShortEntry & Partial<OutboxEntry>;
  if (seq !== undefined && a === undefined) {
    const row = databases.log.get(seq);
    const event = row === undefined ? undefined : eventOf(storedJson(row) as Change);
    return event && { ...event, logSeq: seqOfEntry(n) };
  }
  if (a !== eventInsert) return undefined;
  const change = { id, family: 'event', data: v, dtu_stored: dtu_txn, seq: seqOfEntry(n) };
  return eventOf(change as unknown as Change);
}

/** Followers of the log wait for entries, too. */
export const outboxFamily: LogFamily = { watched: ['outbox'] };

/** The place of the newest entry. */
export function newestEntry({ meta }: Pick<Databases, 'meta'>): number {
  return Number(meta.get('outbox') ?? 0);
}

/** The most that an outbox has, if the ini file sets nothing else. */
export const outboxMaxDefault: OutboxMax = { entries: 1_000_000, bytes: 4 * 2 ** 30 };

/** The writes that this node took for its centre. */
export const outboxPart: LogPart<Outbox> = { open: (given) => new OutboxEntries(given) };

class OutboxEntries implements Outbox {
  readonly #databases: Databases;
  readonly #reads: OpenPart['reads'];
  readonly #queue: OpenPart['queue'];
  readonly #wake: () => void;
  max = outboxMaxDefault;

  constructor({ databases, reads, queue, wake }: OpenPart) {
    this.#databases = databases;
    this.#reads = reads;
    this.#queue = queue;
    this.#wake = wake;
  }

  counts(): ReturnType<Outbox['counts']> {
    const [waiting, refused] = [this.#number('outboxwaiting'), this.#number('outboxrefused')];
    return { waiting, refused, bytes: waiting + refused === 0 ? 0 : this.#bytes() };
  }

  newest(): number {
    return newestEntry(this.#databases);
  }

  async put(decide: Parameters<Outbox['put']>[0]): Promise<OutboxEntry | undefined> {
    const entry = await this.#queue.write(() => {
      const made = decide((vk) => this.#earlier(vk));
      if (made !== undefined) this.#requireRoom(made);
      return () => ({ result: made && this.#append(made), bytes: 0 });
    });
    this.#wake();
    return entry;
  }

  waiting(limit: number, characters = Infinity): readonly OutboxEntry[] {
    const isWaiting = ({ refused, seq }: OutboxEntry) => refused === undefined && seq === undefined;
    return this.#find(this.#number('outboxsent'), { limit, characters }, isWaiting);
  }

  refused({ after, upTo, code, limit }: RefusedEntries): readonly OutboxEntry[] {
    const isMeant = ({ refused }: OutboxEntry) =>
      refused !== undefined && (code === undefined || refused.code === code);
    return this.#find(after, { limit, upTo, characters: Infinity }, isMeant);
  }

  settle(settled: readonly Settled[]): Promise<void> {
    return this.#write(() => {
      for (const { n, seq, refused } of settled) {
        const entry = this.#entryAt(n);
        if (entry === undefined || entry.seq !== undefined) continue;
        const before = bytesOf(entry);
        if (refused !== undefined) {
          const decided = { ...entry, refused };
          this.#count(-1, 1, bytesOf(decided) - before);
          this.#putEntry(decided);
        } else if (seq !== undefined) {
          this.#count(-1, 0, -before);
          this.#putEntry({ ...entry, seq });
        }
      }
      const { outbox, meta } = this.#databases;
      let upTo = this.#number('outboxsent');
      for (const { key, value } of outbox.getRange({ start: upTo + 1 })) {
        const { seq, refused } = storedJson(value) as OutboxEntry;
        if (seq === undefined && refused === undefined) break;
        upTo = key;
      }
      meta.putSync('outboxsent', String(upTo));
    });
  }

  retry(n: number): Promise<void> {
    return this.#change('retry', () => [this.#requireRefused(n)]).then(() => undefined);
  }

  discard(n: number): Promise<void> {
    return this.#change('discard', () => [this.#requireRefused(n)]).then(() => undefined);
  }

  changeRefused(verb: 'retry' | 'discard', which: RefusedEntries): Promise<readonly number[]> {
    return this.#change(verb, () => this.refused(which));
  }

  async tidy(): Promise<void> {
    const [from, upTo] = [this.#number('outboxtidied'), this.#number('outboxsent')];
    if (from >= upTo) return;
    await this.#write(() => {
      putTidied(this.#databases, { from, upTo, newest: this.#reads.seq() });
    });
  }

  #number(name: string): number {
    return Number(this.#databases.meta.get(name) ?? 0);
  }

  #entryAt(n: number): OutboxEntry | undefined {
    const text = this.#databases.outbox.get(n);
    return text === undefined ? undefined : (storedJson(text) as OutboxEntry);
  }

  #find(
    after: number,
    {
      limit,
      characters,
      upTo,
    }: { readonly limit: number; readonly characters: number; readonly upTo?: number | undefined },
    isMeant: (entry: OutboxEntry) => boolean,
  ): readonly OutboxEntry[] {
    const found: OutboxEntry[] = [];
    let read = 0;
    const range = { start: after + 1, ...(upTo !== undefined && { end: upTo + 1 }) };
    for (const { value } of this.#databases.outbox.getRange(range)) {
      const entry = storedJson(value) as OutboxEntry;
      if (!isMeant(entry)) continue;
      found.push(entry);
      read += value.length;
      if (found.length >= limit || read >= characters) break;
    }
    return found;
  }

  #earlier(vk: string): OutboxClaim | undefined {
    const value = this.#databases.outboxvk.get(claimKey(vk));
    if (value === undefined) {
      const claim = this.#reads.vkClaim(vk);
      const { dtu_txn } = (claim && this.#reads.change(claim.seq)) ?? {};
      return claim && { ...claim, dtu_txn: dtu_txn ?? '' };
    }
    const { seq: n, requestHash } = unpackClaim(vk, value);
    const { id, dtu_txn = '' } = this.#entryAt(n) ?? {};
    return id === undefined ? undefined : { id, requestHash, seq: null, dtu_txn };
  }

  #write(change: () => void): Promise<void> {
    return this.#queue.write(() => () => {
      change();
      return { result: undefined, bytes: 0 };
    });
  }

  #requireRefused(n: number): OutboxEntry {
    const entry = this.#entryAt(n);
    if (entry?.refused === undefined) throw noSuchEntry();
    return entry;
  }

  /** Changes refused entries, which no longer count as refused after that. */
  #change(
    verb: 'retry' | 'discard',
    find: () => readonly OutboxEntry[],
  ): Promise<readonly number[]> {
    return this.#queue.write(() => {
      const entries = find();
      return () => {
        for (const whole of entries) {
          const { n, refused: _refused, ...entry } = whole;
          this.#count(0, -1, -bytesOf(whole));
          this.#databases.outbox.removeSync(n);
          if (verb === 'retry') this.#append(entry);
          else if (entry.vk !== undefined) {
            this.#databases.outboxvk.removeSync(claimKey(entry.vk.vk));
          }
        }
        return { result: entries.map(({ n }) => n), bytes: 0 };
      };
    });
  }

  #append(entry: Omit<OutboxEntry, 'n'>): OutboxEntry {
    const { meta, outboxvk } = this.#databases;
    const n = this.newest() + 1;
    const made = { ...entry, n };
    this.#count(1, 0, bytesOf(made));
    this.#putEntry(made);
    meta.putSync('outbox', String(n));
    if (made.vk !== undefined) {
      outboxvk.putSync(...packClaim({ ...made.vk, seq: n }));
    }
    return made;
  }

  #putEntry(entry: OutboxEntry): void {
    this.#databases.outbox.putSync(entry.n, JSON.stringify(entry));
  }

  /** Adds to the counts; the caller changes the entries after that. */
  #count(waiting: number, refused: number, bytes: number): void {
    const { meta } = this.#databases;
    const now = this.counts();
    meta.putSync('outboxwaiting', String(now.waiting + waiting));
    meta.putSync('outboxrefused', String(now.refused + refused));
    meta.putSync('outboxbytes', String(now.bytes + bytes));
  }

  /** Earlier versions did not count bytes. */
  #bytes(): number {
    const { meta, outbox } = this.#databases;
    const known = meta.get('outboxbytes');
    if (known !== undefined) return Number(known);
    let bytes = 0;
    for (const { value } of outbox.getRange({})) {
      if ((storedJson(value) as OutboxEntry).seq === undefined) bytes += Buffer.byteLength(value);
    }
    return bytes;
  }

  #requireRoom(made: object): void {
    const counts = this.counts();
    const { entries, bytes } = this.max;
    if (counts.waiting + counts.refused >= entries) {
      throw full(counts, `\`outbox_entries = ${entries}\``);
    }
    if (counts.bytes + bytesOf(made) > bytes) {
      throw full(counts, `\`outbox_size = ${sizeText(bytes)}\``);
    }
  }
}

/** The size of a stored entry. */
function bytesOf(entry: object): number {
  return Buffer.byteLength(JSON.stringify(entry));
}

function noSuchEntry(): Failure {
  return new Failure('not_found', 'The outbox has no refused entry with this number.', {
    field: 'n',
  });
}

/** Shortens stored entries to pointers to their rows, and makes their claims those of the log. */
function putTidied(
  { outbox, outboxvk, vk: claims, meta }: Databases,
  { from, upTo, newest }: { readonly from: number; readonly upTo: number; readonly newest: number },
): void {
  let tidied = from;
  const range = { start: from + 1, end: upTo + 1, limit: outboxTidiedMax };
  for (const { key: n, value } of [...outbox.getRange(range)]) {
    const entry = storedJson(value) as OutboxEntry;
    const { id, seq, vk } = entry;
    if (seq !== undefined && seq > newest) break;
    tidied = n;
    if (seq === undefined) continue;
    outbox.putSync(n, JSON.stringify({ n, id, seq }));
    if (vk === undefined) continue;
    const [key, claim] = packClaim({ ...vk, seq });
    claims.putSync(key, claim);
    outboxvk.removeSync(key);
  }
  meta.putSync('outboxtidied', String(tidied));
  // The queues of hooks may still refer to the newest ones.
  if (tidied <= outboxKeptMax) return;
  const old = outbox.getRange({ start: 0, end: tidied - outboxKeptMax, limit: outboxTidiedMax });
  for (const { key, value } of [...old]) {
    if ((storedJson(value) as OutboxEntry).refused === undefined) outbox.removeSync(key);
  }
}

/**
 * Makes the entries wait again that the former centre had stored and that the log of the new one
 * does not have: it was promoted, or restored, without them. `source` has the data of the node from
 * before, and `target` the new copy of the log with the entries. The caller runs it in a write
 * transaction of `target`.
 */
export function putLostEntries(source: Databases, target: Databases): void {
  const { outbox, meta } = target;
  const lost: OutboxEntry[] = [];
  for (const { value } of outbox.getRange({ reverse: true })) {
    const { seq, ...entry } = storedJson(value) as ShortEntry & Partial<OutboxEntry>;
    if (seq === undefined) continue;
    // The new log has the rows of the former one up to some seq.
    if (changeAt(target, seq)?.id === entry.id) break;
    const restored = isWhole(entry) ? entry : entryOf(entry.n, changeAt(source, seq));
    if (restored !== undefined) lost.push(restored);
  }
  const oldest = lost.at(-1);
  if (oldest === undefined) return;
  for (const entry of lost) outbox.putSync(entry.n, JSON.stringify(entry));
  const numberOf = (name: string): number => Number(meta.get(name) ?? 0);
  meta.putSync('outboxwaiting', String(numberOf('outboxwaiting') + lost.length));
  if (meta.get('outboxbytes') !== undefined) {
    const bytes = lost.reduce((sum, entry) => sum + bytesOf(entry), numberOf('outboxbytes'));
    meta.putSync('outboxbytes', String(bytes));
  }
  for (const name of ['outboxsent', 'outboxtidied']) {
    meta.putSync(name, String(Math.min(numberOf(name), oldest.n - 1)));
  }
}

function changeAt({ log }: Databases, seq: number): Change | undefined {
  const text = log.get(seq);
  return text === undefined ? undefined : (storedJson(text) as Change);
}

/** Whether it was not shortened yet. */
function isWhole(entry: Partial<OutboxEntry>): entry is OutboxEntry {
  return entry.a !== undefined;
}

/** The entry of a change, as it was before the centre stored its row. */
function entryOf(n: number, change: Change | undefined): OutboxEntry | undefined {
  if (change === undefined) return undefined;
  const { id, family, data: v, dtu_txn, by } = change;
  return { n, id, a: family === 'event' ? eventInsert : rowInsert, v, dtu_txn, by };
}

function full(
  { waiting, refused }: { readonly waiting: number; readonly refused: number },
  key: string,
): Failure {
  const advice =
    refused === 0
      ? ''
      : ' `waymark outbox retry --all` or `discard --all` here makes room of refused entries.';
  return new Failure(
    'unavailable',
    `The outbox of this node is full (${key} in [node] of the ini file): ${waiting} entries wait ` +
      `for the centre, and ${refused} were refused. Nothing was stored.${advice}`,
    { retryAfterSeconds: 60, limit: 'outbox' },
  );
}

/** Stores events of a node with a centre, which takes them into its outbox. */
export function outboxEvents(
  entries: Outbox,
  { node, by, now }: { readonly node: string; readonly by: string; readonly now: () => number },
): PutEvent {
  return ({ id, data }, claim) =>
    entries.put((earlier) => {
      if (claim !== undefined && earlier(claim.vk) !== undefined) return undefined;
      return {
        ...{ id, a: eventInsert, v: { ...data, counter: node, node } },
        ...{ dtu_txn: new Date(now()).toISOString(), by, ...(claim && { vk: claim }) },
      };
    });
}
