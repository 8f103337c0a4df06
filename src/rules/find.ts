import type { FoundRule } from '../model/found.ts';
import { waitingOrigin, type Candidate } from '../model/rule.ts';
import { candidatesFor, captureOf, contendersFor, inOrder, varyByLanguage } from './matcher.ts';
import type { SiteRules } from './rules.ts';
import type { Asked } from './source.ts';

/** What a rule is looked for by. */
type Where = Pick<Asked, 'origin' | 'path' | 'fields'>;

/** The kinds of rule that make up a source: content.fetch alone, or all others. */
type RuleSource = 'stored' | 'content.fetch';

/** The rules of a source that cover an origin and path, in the order in which they win. */
export function candidatesOf(
  source: RuleSource,
  rules: SiteRules,
  where: Where,
): readonly Candidate[] {
  return inOrder(candidatesFor(rules, where).filter(isOf[source]), where.fields);
}

/** The rules of a source that would cover a path, but wait with their origin. */
export function waitingOf(
  source: RuleSource,
  rules: SiteRules,
  { path }: Pick<Where, 'path'>,
): readonly Candidate[] {
  const wildcards = [...rules.wildcardRules(waitingOrigin, path)].flat();
  return [...rules.exactRules(waitingOrigin, path), ...wildcards].filter(isOf[source]);
}

const isOf: Readonly<Record<RuleSource, (rule: Candidate) => boolean>> = {
  stored: ({ kind }) => kind !== 'content.fetch',
  'content.fetch': ({ kind }) => kind === 'content.fetch',
};

/** The winner of candidates in their order; undefined when there is none. */
export function winnerOf(
  candidates: readonly Candidate[],
  rules: SiteRules,
  { path }: Where,
): FoundRule | undefined {
  const [winner] = candidates;
  const stored = winner && rules.ruleOf(winner);
  if (stored === undefined) return undefined;
  return {
    stored,
    capture: captureOf(stored.rule.path, path),
    variesByLanguage: varyByLanguage(candidates),
  };
}

/** The rule with which a source answers; undefined when it has none. */
export function findRule(
  source: RuleSource,
  rules: SiteRules,
  where: Where,
): FoundRule | undefined {
  const contenders = contendersFor(rules, where, isOf[source]);
  return winnerOf(inOrder(contenders, where.fields), rules, where);
}
