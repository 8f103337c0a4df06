import { isWildcardPath } from '../../model/path.ts';
import { matchingOrigin, type StoredRule } from '../../model/rule.ts';
import type { Databases } from '../databases.ts';
import { historyKey, historyPrefix, seqMax, storedJson } from '../encoding.ts';
import type { PastRules } from '../store.ts';
import {
  candidateOf,
  historicalExactIds,
  historicalWildcardIds,
  withinLimits,
} from './rule-index.ts';

/** The reads that the past is derived from. */
export interface PastReads {
  ruleAt(id: string, seq: number): StoredRule | undefined;
  /** The bytes of all rows of a record. */
  readonly historyBytes: (id: string) => number;
}

/**
 * The page rules as they were right after a change of the log. An index of all places that a record
 * ever had finds them, and a fold of their own rows derives them, without a replay of the log.
 */
export function createPastRules(databases: Databases, reads: PastReads, seq: number): PastRules {
  const rule = (id: string): StoredRule | undefined => reads.ruleAt(id, seq);
  const candidates = (ids: readonly string[], isThere: (stored: StoredRule) => boolean) =>
    [...new Set(ids)].flatMap((id) => {
      const stored = rule(id);
      return stored !== undefined && isThere(stored) ? [candidateOf(stored)] : [];
    });
  return {
    rule,
    exactRules: (origin, path) =>
      candidates(
        historicalExactIds(databases, origin, path),
        ({ rule: then }) => matchingOrigin(then) === origin && then.path === path,
      ),
    wildcardRules(origin, path) {
      const found = candidates(
        historicalWildcardIds(databases, origin, path),
        ({ rule: then }) => matchingOrigin(then) === origin && covers(then.path, path),
      );
      const byPath = Map.groupBy(found, (candidate) => candidate.path);
      const longestFirst = [...byPath.values()].toSorted(
        ([one], [other]) => (other?.path.length ?? 0) - (one?.path.length ?? 0),
      );
      return withinLimits(longestFirst);
    },
    *recordsAfter(after) {
      for (const id of recordIds(databases, after)) {
        yield { id, stored: rule(id), size: reads.historyBytes(id) };
      }
    },
  };
}

function covers(wildcard: string, path: string): boolean {
  return isWildcardPath(wildcard) && path.startsWith(wildcard.slice(0, -1));
}

/** Ids of all records that ever existed, in order: one seek each. */
function* recordIds({ history, log }: Databases, after: string): Iterable<string> {
  let start = after === '' ? undefined : historyKey(historyPrefix(after), seqMax);
  for (;;) {
    const [key] = history.getKeys({ ...(start !== undefined && { start }), limit: 1 });
    if (key === undefined) return;
    const seq = new DataView(key.buffer, key.byteOffset).getUint32(key.length - 4);
    const row = log.get(seq);
    if (row === undefined)
      throw new Error(`the history refers to change ${seq}, which the log does not have`);
    const { id } = storedJson(row) as { readonly id: string };
    yield id;
    start = historyKey(historyPrefix(id), seqMax);
  }
}
