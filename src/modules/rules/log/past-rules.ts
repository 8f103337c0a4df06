import { coversPath, hasWildcard, wildcardRank } from '../../../core/values/path.ts';
import { matchingOrigin, originsOf, type StoredRule } from '../rule.ts';
import type { Databases } from '../../../core/log/databases.ts';
import {
  historyKey,
  historyPrefix,
  keyOf,
  seqBytes,
  seqMax,
  storedJson,
} from '../../../core/log/encoding.ts';
import { historyBytes } from '../../../core/log/reads.ts';
import type { Reads } from '../../../core/log/store.ts';
import { storedTables } from '../../tables/log/family.ts';
import type { PastRules, RuleReads } from './reads.ts';
import {
  candidateOf,
  historicalExactIds,
  historicalWildcardIds,
  withinLimits,
} from './rule-index.ts';

/** The reads that the past is derived from. */
interface PastReads {
  readonly ruleAt: RuleReads['ruleAt'];
  readonly reads: Reads;
}

/**
 * The page rules as they were right after a change of the log. An index of all places that a record
 * ever had finds them, and a fold of their own rows derives them, without a replay of the log.
 */
export function createPastRules(
  databases: Databases,
  { ruleAt, reads }: PastReads,
  seq: number,
): PastRules {
  const rule = (id: string): StoredRule | undefined => ruleAt(id, seq);
  const candidates = (
    origin: string,
    ids: readonly string[],
    isThere: (then: StoredRule['rule']) => boolean,
  ) =>
    [...new Set(ids)].flatMap((id) => {
      const stored = rule(id);
      if (stored === undefined || !isThere(stored.rule)) return [];
      const isOf = originsOf(matchingOrigin(stored.rule)).includes(origin);
      return isOf ? [candidateOf(stored, origin)] : [];
    });
  return {
    rule,
    rowByKey: (table, value) => reads.of(storedTables).rowByKeyAt(table, value, seq),
    exactRules: (origin, path) =>
      candidates(origin, historicalExactIds(databases, origin, path), (then) => then.path === path),
    wildcardRules(origin, path) {
      const found = candidates(
        origin,
        historicalWildcardIds(databases, origin, path),
        (then) => hasWildcard(then.path) && coversPath(then.path, path),
      );
      const byPath = Map.groupBy(found, (candidate) => candidate.path);
      const ordered = [...byPath].toSorted(
        ([one], [other]) => wildcardRank(other) - wildcardRank(one),
      );
      return withinLimits(ordered.map(([, group]) => group));
    },
    *recordsAfter(after) {
      for (const id of recordIds(databases, after)) {
        // A table may have a million rows: they cost no read of the log.
        const isRow = databases.row.doesExist(keyOf(id));
        yield isRow
          ? { id, stored: undefined, size: 0 }
          : { id, stored: rule(id), size: historyBytes(reads, id) };
      }
    },
  };
}

/** Ids of all records that ever existed, in order. */
function* recordIds({ history, log }: Databases, after: string): Iterable<string> {
  let last = after === '' ? undefined : historyPrefix(after);
  for (let isEnd = false; !isEnd;) {
    isEnd = true;
    let repeated = 0;
    for (const key of history.getKeys(last && { start: historyKey(last, seqMax) })) {
      const prefix = key.subarray(0, -seqBytes);
      if (last !== undefined && Buffer.compare(prefix, last) === 0) {
        repeated += 1;
        if (repeated < seekAfter) continue;
        // Of a record with many changes, the rest is skipped.
        isEnd = false;
        break;
      }
      repeated = 0;
      last = Buffer.from(prefix);
      yield last[0] === 0 ? idInLog(log, key) : last.toString('utf8', 0, last.length - 1);
    }
  }
}

/** The changes of one record after which a seek costs less than the next ones. */
const seekAfter = 8;

/** The id of an entry of the history whose key has only a hash of it. */
function idInLog(log: Databases['log'], key: Uint8Array): string {
  const seq = new DataView(key.buffer, key.byteOffset).getUint32(key.length - 4);
  const row = log.get(seq);
  if (row === undefined)
    throw new Error(`the history refers to change ${seq}, which the log does not have`);
  return (storedJson(row) as { readonly id: string }).id;
}
