import type { Candidate } from '../../../src/modules/rules/rule.ts';

/** Groups wildcard rules as the store does: by wildcard, longest first. */
export function wildcardGroups(rules: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const longestFirst = rules.toSorted((one, other) => other.path.length - one.path.length);
  return [...Map.groupBy(longestFirst, ({ path }) => path).values()];
}
