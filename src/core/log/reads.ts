import type { ApiKey } from '../values/key.ts';
import type { Change, Family, HistoryRow } from './change.ts';
import { claimKey, unpackClaim } from './claims.ts';
import type { Databases } from './databases.ts';
import { historyKey, historyPrefix, keyOf, seqMax, storedJson } from './encoding.ts';
import type { LogFamily, ReadFamily, Reads } from './store.ts';

/**
 * Reads of the databases: inside a write transaction of this process its state, elsewhere the
 * newest committed one. `inOrder` puts the rows of a record, which come by seq, into the order in
 * which they apply.
 */
export function createReads(
  databases: Databases,
  families: readonly LogFamily[],
  inOrder: (rows: readonly Change[]) => readonly Change[] = (rows) => rows,
): Reads {
  const { meta, log, mark, txn, vk, key, keyhash } = databases;

  const change = (seq: number): Change | undefined => parsed(log.get(seq)) as Change | undefined;
  const keyById = createKeyRead(databases);
  const rows: Reads['rows'] = (family, id, upTo = seqMax) => {
    const seqs = historySeqs(databases, id, { from: 0, below: upTo + 1 });
    const found = seqs.flatMap((seq) => {
      const row = change(seq);
      return row?.family === family ? [row] : [];
    });
    return inOrder(found);
  };
  const reads: Reads = {
    rows,
    change,
    ...createRecordPlaces(databases),
    inForce: (seq) => !mark.doesExist(seq),
    txnSeqs(name) {
      const [first, last] = txn.get(keyOf(name))?.split(' ').map(Number) ?? [];
      return first === undefined || last === undefined ? undefined : { first, last };
    },
    seqAt: (timeMs) => seqAt(databases, timeMs),
    history: (family, id, page) => recordHistory(databases, change, { family, id, ...page }),
    vkClaim(name) {
      const value = vk.get(claimKey(name));
      if (value === undefined) return undefined;
      const { seq, requestHash } = unpackClaim(name, value);
      const { id = '', by = '' } = change(seq) ?? {};
      return { vk: name, requestHash, id, by, seq };
    },
    key: keyById,
    keyByHash(hash) {
      const id = keyhash.get(keyOf(hash));
      return id === undefined ? undefined : keyById(id);
    },
    keys: () => [...key.getRange()].map(({ value }) => storedJson(value) as ApiKey),
    seq: () => Number(meta.get('seq') ?? 0),
    families,
    projectionOf: projectionsOf(families),
    of: (family) => opened(family),
  };
  const opened = familyReads(databases, reads);
  return reads;
}

/** `Reads.of` in which some reads of one family are others. */
export function withReads<R extends object>(
  reads: Pick<Reads, 'of'>,
  family: ReadFamily<R>,
  changed: Partial<R>,
): Reads['of'] {
  const whole = { ...reads.of(family), ...changed };
  return <O extends object>(asked: ReadFamily<O>): O =>
    Object.is(asked, family) ? (whole as unknown as O) : reads.of(asked);
}

/** Opens the reads of each family once. */
function familyReads(databases: Databases, reads: Reads): Reads['of'] {
  const opened = new Map<object, object>();
  return <R extends object>(family: ReadFamily<R>): R => {
    const known = opened.get(family) as R | undefined;
    if (known !== undefined) return known;
    const made = family.reads(databases, reads);
    opened.set(family, made);
    return made;
  };
}

function projectionsOf(families: readonly LogFamily[]): Reads['projectionOf'] {
  const records = Object.assign({}, ...families.map((one) => one.records)) as LogFamily['records'];
  return (family) => records?.[family];
}

function createRecordPlaces(databases: Databases): Pick<Reads, 'rowSeqs' | 'rowBytes'> {
  return {
    rowSeqs: (id) => rowSeqs(databases, id),
    rowBytes: (seq) => rowBytes(databases, seq),
  };
}

/** A websocket asks for its key at each message, so the latest one is parsed once. */
function createKeyRead({ key }: Databases): (id: string) => ApiKey | undefined {
  let latest: { readonly text: string; readonly parsed: ApiKey } | undefined;
  return (id) => {
    const text = key.get(keyOf(id));
    if (text === undefined) return undefined;
    if (latest?.text !== text) latest = { text, parsed: storedJson(text) as ApiKey };
    return latest.parsed;
  };
}

function recordHistory(
  databases: Databases,
  change: Reads['change'],
  {
    family,
    id,
    before,
    limit,
    characters = Infinity,
  }: { readonly family: Family; readonly id: string } & Parameters<Reads['history']>[2],
): readonly HistoryRow[] {
  const { log, mark } = databases;
  const found: HistoryRow[] = [];
  let read = 0;
  for (const seq of historySeqs(databases, id, { below: before, newestFirst: limit })) {
    const text = log.get(seq);
    const row = parsed(text) as Change | undefined;
    if (row?.family === family) found.push(historyRow(row, change(Number(mark.get(seq)))));
    read += text?.length ?? 0;
    if (read > characters) break;
  }
  return found;
}

function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : storedJson(text);
}

/** Seqs of a record's rows: oldest first from `from`, or the newest first, below `below`. */
function historySeqs(
  { history }: Databases,
  id: string,
  page:
    | { readonly from: number; readonly below: number }
    | { readonly below: number | undefined; readonly newestFirst: number },
): readonly number[] {
  const prefix = historyPrefix(id);
  const range =
    'from' in page
      ? { start: historyKey(prefix, page.from), end: historyKey(prefix, bounded(page.below)) }
      : {
          start: historyKey(prefix, bounded((page.below ?? seqMax) - 1)),
          end: historyKey(prefix, 0),
          reverse: true,
          limit: page.newestFirst,
        };
  return [...history.getKeys(range)].map((key) =>
    new DataView(key.buffer, key.byteOffset).getUint32(prefix.length),
  );
}

/** The seqs of all rows of a record, oldest first. */
export function rowSeqs(databases: Databases, id: string): readonly number[] {
  return historySeqs(databases, id, { from: 0, below: seqMax });
}

/** The bytes of all rows of a record. */
export function historyBytes(reads: Reads, id: string): number {
  return reads.rowSeqs(id).reduce((sum, seq) => sum + reads.rowBytes(seq), 0);
}

/** The length of a row of the log in bytes; 0 if it does not exist. */
export function rowBytes({ log }: Databases, seq: number): number {
  return log.getBinaryFast(seq)?.length ?? 0;
}

function bounded(seq: number): number {
  return Math.max(0, Math.min(seqMax, Math.trunc(seq)));
}

function historyRow(change: Change, invalidating: Change | undefined): HistoryRow {
  const { seq, txn, by, via, action, dtu_stored, dtu_txn, data } = change;
  const invalidated = invalidating?.dtu_stored;
  const tool = via !== undefined && { via };
  return { seq, txn, by, ...tool, action, dtu_stored, dtu_txn, data, invalidated };
}

/** Times of rows never go back, so a binary search finds the row. */
function seqAt(databases: Databases, timeMs: number): number {
  let [low, high] = [0, Number(databases.meta.get('seq') ?? 0)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const storedMs = Date.parse(storedAt(databases, middle) ?? '');
    if (storedMs <= timeMs) low = middle;
    else high = middle - 1;
  }
  return low;
}

const storedField = /"dtu_stored":"([^"]+)"/;
/** The length of a row up to `dtu_stored` and its value: write/write-plan.ts puts them first. */
const rowHeadBytes = 120;

/**
 * The time at which a row of the log was stored, read without decoding the rest of the row;
 * undefined for a seq that the log has not reached.
 */
export function storedAt({ log }: Databases, seq: number): string | undefined {
  const head = log.getBinaryFast(seq)?.toString('latin1', 0, rowHeadBytes);
  return head === undefined ? undefined : storedField.exec(head)?.[1];
}
