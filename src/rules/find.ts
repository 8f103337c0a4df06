import type { Fields } from '../http/request.ts';
import type { CandidateExplanation } from '../model/explanation.ts';
import type { FoundRule } from '../model/rule.ts';
import { proxyName, unmatchableOrigin, type Candidate } from '../model/rule.ts';
import { explainCandidatesMax } from './limits.ts';
import {
  candidatesFor,
  captureOf,
  possibleWinners,
  sortByPrecedence,
  lossReason,
  varyByLanguage,
} from './matcher.ts';
import type { RuleReader } from './rule-cache.ts';
import type { PageRequest, SourceExplanation } from './source.ts';

/** The parts of a request that rules are matched with. */
type RuleLookup = Pick<PageRequest, 'origin' | 'path' | 'fields'>;

/** `content.fetch` has the rules of that kind, `stored` all other rules. */
type RuleSource = 'stored' | 'content.fetch';

/** The rules of a source that match an origin and path, by precedence: the first one wins. */
export function candidatesOf(
  source: RuleSource,
  rules: RuleReader,
  where: RuleLookup,
): readonly Candidate[] {
  return sortByPrecedence(candidatesFor(rules, where).filter(isOf[source]), where.fields);
}

/** The rules of a source that would match a path if their origin were valid. */
export function waitingCandidatesOf(
  source: RuleSource,
  rules: RuleReader,
  { path }: Pick<RuleLookup, 'path'>,
): readonly Candidate[] {
  const wildcards = [...rules.wildcardRules(unmatchableOrigin, path)].flat();
  return [...rules.exactRules(unmatchableOrigin, path), ...wildcards].filter(isOf[source]);
}

const isOf: Readonly<Record<RuleSource, (rule: Candidate) => boolean>> = {
  stored: ({ kind }) => kind !== 'content.fetch',
  'content.fetch': ({ kind }) => kind === 'content.fetch',
};

/** The first of some candidates with its rule; undefined if there is none. */
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

/** The rule that a source replies with; undefined if it has none. */
export function findRule(
  source: RuleSource,
  rules: RuleReader,
  where: RuleLookup,
): FoundRule | undefined {
  const contenders = possibleWinners(rules, where, isOf[source]);
  return winnerOf(sortByPrecedence(contenders, where.fields), rules, where);
}

/** Explains rules in order of precedence: each but the first with its loss against the first. */
export function explainCandidates(
  ordered: readonly Candidate[],
  fields: Fields,
): Pick<SourceExplanation, 'candidates' | 'omitted'> {
  const [winner] = ordered;
  const omitted = ordered.length - explainCandidatesMax;
  return {
    candidates: ordered.slice(0, explainCandidatesMax).map((rule) => {
      const { id, kind, origin, path } = rule;
      const proxy = proxyName(id);
      const lost = winner && lossReason(winner, rule, fields);
      const named = proxy === undefined ? { id, kind } : { proxy };
      return { ...named, origin, path, ...(lost && { lost }) };
    }),
    ...(omitted > 0 && { omitted }),
  };
}

/** Explains rules that would match a path, but whose invalid origin waits in `_unknowns_`. */
export function explainWaiting(found: readonly Candidate[]): readonly CandidateExplanation[] {
  return found.slice(0, explainCandidatesMax).map(({ id, kind, path }) => ({
    id,
    kind,
    origin: unmatchableOrigin,
    path,
    lost: { code: 'waits', says: waits },
  }));
}

const waits = 'It matches nothing: its origin is not valid and waits in _unknowns_.';
