import type { Change, HistoryRow } from '../model/change.ts';
import type { Key } from '../model/key.ts';
import type { StoredRule } from '../model/rule.ts';
import { findExact, findWildcards } from './candidates.ts';
import type { Databases } from './databases.ts';
import { foldRule } from './fold.ts';
import { historyKey, historyPrefix, keyOf } from './key-bytes.ts';
import type { Reads, StoredVkClaim } from './store.ts';

/**
 * Reads of the databases: inside a write transaction of this process its state, elsewhere the
 * newest committed one.
 */
export function createReads(databases: Databases): Reads {
  const { log, rule, vk, key, keyhash } = databases;

  const change = (seq: number): Change | undefined => parsed(log.get(seq)) as Change | undefined;
  const keyById = (id: string): Key | undefined => parsed(key.get(keyOf(id))) as Key | undefined;
  const ruleById = (id: string): StoredRule | undefined =>
    parsed(rule.get(keyOf(id))) as StoredRule | undefined;

  return {
    rule: ruleById,
    ruleAt(id, seq) {
      const current = ruleById(id);
      if (current?.seq === seq) return current;
      let stored: StoredRule | undefined;
      for (const one of historySeqs(databases, id, { from: 0, below: seq + 1 })) {
        const row = change(one);
        if (row?.family === 'userinterface') stored = foldRule(stored, row);
      }
      return stored;
    },
    exactRules: (origin, path) => findExact(databases, origin, path),
    wildcardRules: (origin, path) => findWildcards(databases, origin, path),
    history(family, id, { before, limit }) {
      const rows: HistoryRow[] = [];
      for (const seq of historySeqs(databases, id, { below: before, newestFirst: limit })) {
        const row = change(seq);
        if (row?.family === family) rows.push(historyRow(row));
      }
      return rows;
    },
    vkClaim: (name) => parsed(vk.get(keyOf(name))) as StoredVkClaim | undefined,
    key: keyById,
    keyByHash(hash) {
      const id = keyhash.get(keyOf(hash));
      return id === undefined ? undefined : keyById(id);
    },
    keys: () => [...key.getRange()].map(({ value }) => JSON.parse(value) as Key),
    seq() {
      for (const seq of log.getKeys({ reverse: true, limit: 1 })) return seq;
      return 0;
    },
  };
}

function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

const seqMax = 0xffff_ffff;

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

function bounded(seq: number): number {
  return Math.max(0, Math.min(seqMax, Math.trunc(seq)));
}

function historyRow(change: Change): HistoryRow {
  const { seq, txn, by, action, dtu_stored, dtu_txn, data } = change;
  return { seq, txn, by, action, dtu_stored, dtu_txn, data };
}
