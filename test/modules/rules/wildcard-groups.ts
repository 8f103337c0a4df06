import type { Candidate } from '../../../src/modules/rules/rule.ts';

/**
 * Groups wildcard rules as the store does: by wildcard, that whose `*` begins last first, and of
 * two at the same place the longer one.
 */
export function wildcardGroups(rules: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const longestFirst = rules.toSorted(
    ({ path: one }, { path: other }) =>
      other.indexOf('*') - one.indexOf('*') || other.length - one.length,
  );
  return [...Map.groupBy(longestFirst, ({ path }) => path).values()];
}
