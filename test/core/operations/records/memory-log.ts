import type { Change, HistoryRow } from '../../../../src/core/log/change.ts';
import { foldRows, type ApplyChange } from '../../../../src/core/log/write/fold.ts';
import type { Decision, Reads, Store, StoredVkClaim } from '../../../../src/core/log/store.ts';

interface Placed {
  readonly seq: number;
  readonly insertedSeq: number;
}

/** A log in memory, with the reads and the commit that the operations of records use. */
export interface MemoryLog<S extends Placed> {
  readonly store: Store;
  /** A record as it was right after a seq; undefined if there was none. */
  readonly recordAt: (id: string, seq?: number) => S | undefined;
  /** Ids of all records that were ever inserted, in order. */
  readonly ids: () => readonly string[];
}

/** Makes a log for the records of one family, which the store need not know. */
export function memoryLog<S extends Placed>(fold: ApplyChange<S>): MemoryLog<S> {
  const log: Change[] = [];
  const claims = new Map<string, StoredVkClaim>();
  const rowsOf = (id: string, upTo = Infinity) =>
    log.filter((row) => row.id === id && row.seq <= upTo);
  const invalidating = (row: Change) => foldRows(rowsOf(row.id), fold).invalidated.get(row.seq);

  const reads: Partial<Reads> = {
    families: [],
    projectionOf: () => undefined,
    seq: () => log.length,
    key: () => undefined,
    seqAt: (timeMs) => log.findLastIndex((row) => Date.parse(row.dtu_stored) <= timeMs) + 1,
    change: (seq) => log[seq - 1],
    rowBytes: (seq) => JSON.stringify(log[seq - 1]).length,
    rows: (_family, id, upTo) => rowsOf(id, upTo),
    inForce: (seq) => log.slice(seq - 1, seq).every((row) => invalidating(row) === undefined),
    vkClaim: (vk) => claims.get(vk),
    history: (_family, id, { before = Infinity, limit }) =>
      rowsOf(id, before - 1)
        .toReversed()
        .slice(0, limit)
        .map((row): HistoryRow => ({ ...row, invalidated: invalidating(row)?.dtu_stored })),
    txnSeqs(txn) {
      const seqs = log.filter((row) => row.txn === txn).map(({ seq }) => seq);
      const [first, last] = [seqs[0], seqs.at(-1)];
      return first === undefined || last === undefined ? undefined : { first, last };
    },
  };

  function commit<T>(by: string, decide: (reads: Reads) => Decision<T>): Promise<T> {
    const { drafts, answer } = decide(reads as Reads);
    const time = new Date(Date.UTC(2026, 0, 1) + log.length).toISOString();
    const stamp = { dtu_txn: time, dtu_stored: time, by, txn: `txn-${log.length + 1}` };
    const changes = drafts.flatMap((draft) => {
      if (!('family' in draft)) return [];
      const { vk, ...change } = draft;
      const row: Change = { seq: log.length + 1, ...stamp, ...change };
      log.push(row);
      if (vk !== undefined) claims.set(vk.vk, { ...vk, id: row.id, by, seq: row.seq });
      return [row];
    });
    return Promise.resolve(answer(changes));
  }

  return {
    store: {
      ...reads,
      commit,
      inSnapshot: <T>(read: (then: Reads) => Promise<T>) => read(reads as Reads),
    } as Store,
    recordAt: (id, seq) => foldRows(rowsOf(id, seq), fold).stored,
    ids: () => [...new Set(log.map(({ id }) => id))].sort(),
  };
}
