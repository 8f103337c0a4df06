import type { Fields } from '../http/request.ts';
import { explainCandidatesMax } from './limits.ts';
import type { TriedCandidate } from '../model/explanation.ts';
import {
  candidatesFor,
  captureOf,
  possibleWinners,
  sortByPrecedence,
  lossAgainst,
  varyByLanguage,
} from './matcher.ts';
import type { PageRequest, SourceExplanation } from './source.ts';
import type { FoundRule } from '../model/found.ts';
import { waitingOrigin, type Candidate } from '../model/rule.ts';
import type { RuleReader } from './rule-cache.ts';

/** What a rule is looked for by. */
type RuleLookup = Pick<PageRequest, 'origin' | 'path' | 'fields'>;

/** The kinds of rule that make up a source: content.fetch alone, or all others. */
type RuleSource = 'stored' | 'content.fetch';

/** The rules of a source that cover an origin and path, in the order in which they win. */
export function candidatesOf(
  source: RuleSource,
  rules: RuleReader,
  where: RuleLookup,
): readonly Candidate[] {
  return sortByPrecedence(candidatesFor(rules, where).filter(isOf[source]), where.fields);
}

/** The rules of a source that would cover a path, but wait with their origin. */
export function waitingCandidatesOf(
  source: RuleSource,
  rules: RuleReader,
  { path }: Pick<RuleLookup, 'path'>,
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
  rules: RuleReader,
  { path }: RuleLookup,
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
  rules: RuleReader,
  where: RuleLookup,
): FoundRule | undefined {
  const contenders = possibleWinners(rules, where, isOf[source]);
  return winnerOf(sortByPrecedence(contenders, where.fields), rules, where);
}

/** Rules in the order in which they win, each but the first with what it lost to the first by. */
export function explainCandidates(
  ordered: readonly Candidate[],
  fields: Fields,
): Pick<SourceExplanation, 'candidates' | 'omitted'> {
  const [winner] = ordered;
  const omitted = ordered.length - explainCandidatesMax;
  return {
    candidates: ordered.slice(0, explainCandidatesMax).map((rule) => {
      const { id, kind, origin, path } = rule;
      const lost = winner && lossAgainst(winner, rule, fields);
      return { id, kind, origin, path, ...(lost && { lost }) };
    }),
    ...(omitted > 0 && { omitted }),
  };
}

/** Rules that would cover a path, and match nothing while their origin waits in `_unknowns_`. */
export function explainWaiting(found: readonly Candidate[]): readonly TriedCandidate[] {
  return found.slice(0, explainCandidatesMax).map(({ id, kind, path }) => ({
    id,
    kind,
    origin: waitingOrigin,
    path,
    lost: { code: 'waits', says: waits },
  }));
}

const waits = 'It matches nothing, for its origin is not valid and waits in _unknowns_.';
