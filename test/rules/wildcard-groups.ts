import type { Candidate } from '../../src/model/rule.ts';

/** Wildcard rules as the store gives them: those of each wildcard together, longest first. */
export function wildcardGroups(rules: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const longestFirst = rules.toSorted((one, other) => other.path.length - one.path.length);
  return [...Map.groupBy(longestFirst, ({ path }) => path).values()];
}
