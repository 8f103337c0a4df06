import { isWildcardOrigin } from '../../core/values/network/origin-pattern.ts';
import type { Candidate, Rule, StoredRule } from './rule.ts';
import type { CandidateReads } from './matcher.ts';
import type { RuleReader } from './valid-rules.ts';
import { wildcardRank } from '../../core/values/path.ts';

/**
 * The page rules of the log, together with rules that the ini file adds. Each of these covers the
 * paths below a prefix, and the prefix without its last slash, as a location of nginx does. They
 * have no place in the log: of two rules with the same origin and path, the one in the log wins.
 */
export function withConfiguredRules(rules: RuleReader, added: readonly Rule[]): RuleReader {
  if (added.length === 0) return rules;
  const byId = new Map(added.map((rule) => [rule.id, { rule, seq: 0, insertedSeq: 0 }]));
  const byOrigin = Map.groupBy(
    added.toSorted((one, other) => other.path.length - one.path.length).map(candidateOf),
    ({ origin }) => origin,
  );
  const addsWildcard = added.some(({ origin }) => isWildcardOrigin(origin));
  const withAdded = (reads: CandidateReads): CandidateReads => ({
    hasWildcardOrigins: () => addsWildcard || (reads.hasWildcardOrigins?.() ?? true),
    exactRules: (origin, path) => reads.exactRules(origin, path),
    wildcardRules(origin, path) {
      const stored = reads.wildcardRules(origin, path);
      const covering = (byOrigin.get(origin) ?? []).filter((one) =>
        `${path}/`.startsWith(one.path.slice(0, -1)),
      );
      return covering.length === 0 ? stored : merged([...stored], covering);
    },
  });
  return {
    ...withAdded(rules),
    anyTime: withAdded(rules.anyTime),
    nowMs: () => rules.nowMs(),
    hasComing: () => rules.hasComing(),
    ruleOf: (candidate): StoredRule | undefined =>
      byId.get(candidate.id) ?? rules.ruleOf(candidate),
  };
}

/** Adds candidates to groups of one path each; both are in the order of wildcardRank. */
function merged(
  groups: readonly (readonly Candidate[])[],
  added: readonly Candidate[],
): readonly (readonly Candidate[])[] {
  const alone = added.filter(({ path }) => groups.every((group) => group[0]?.path !== path));
  const all = groups.map((group) => [
    ...group,
    ...added.filter(({ path }) => path === group[0]?.path),
  ]);
  for (const one of alone) all.push([one]);
  return all.toSorted(([one], [other]) => rankOf(other) - rankOf(one));
}

function rankOf(one: Candidate | undefined): number {
  return one === undefined ? 0 : wildcardRank(one.path);
}

function candidateOf({ id, origin, path, kind }: Rule): Candidate {
  return {
    ...{ id, origin, path, kind, seq: 0, insertedSeq: 0 },
    ...{ lang: undefined, rve: undefined, designedAtMs: undefined },
  };
}
