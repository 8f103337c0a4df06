import type { Fields } from '../../core/http/request.ts';
import {
  type BranchExplanation,
  type CandidateExplanation,
  type LossReason,
  explainCandidatesMax,
} from '../../core/pipeline/explanation.ts';
import type { FoundRule } from './rule.ts';
import { isValidAt, proxyName, unmatchableOrigin, type Candidate } from './rule.ts';
import { capturedPart } from '../../core/values/path.ts';
import { namedMoment, shownMoment } from '../../core/values/time.ts';
import {
  candidatesFor,
  possibleWinners,
  sortByPrecedence,
  lossReason,
  varyByLanguage,
} from './matcher.ts';
import type { RuleReader } from './valid-rules.ts';
import type { PageRequest, SourceExplanation } from '../../core/pipeline/source.ts';

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

/**
 * The rules of a source that would match a request if their origin were valid, or at another time.
 */
export function silentCandidatesOf(
  source: RuleSource,
  rules: RuleReader,
  where: Pick<RuleLookup, 'origin' | 'path'>,
): readonly Candidate[] {
  const { path } = where;
  const wildcards = [...rules.wildcardRules(unmatchableOrigin, path)].flat();
  const waiting = [...rules.exactRules(unmatchableOrigin, path), ...wildcards];
  const nowMs = rules.nowMs();
  const atOtherTimes = candidatesFor(rules.anyTime, where).filter((one) => !isValidAt(one, nowMs));
  return [...waiting, ...atOtherTimes].filter(isOf[source]);
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
    capture: capturedPart(stored.rule.path, path),
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

/** Explains the rules of silentCandidatesOf. */
export function explainSilent(
  found: readonly Candidate[],
  rules: Pick<RuleReader, 'ruleOf' | 'nowMs'>,
): readonly CandidateExplanation[] {
  return found.slice(0, explainCandidatesMax).map((one) => {
    const { id, kind, origin, path } = one;
    return { id, kind, origin, path, lost: silence(one, rules) };
  });
}

function silence(
  one: Candidate,
  { ruleOf, nowMs }: Pick<RuleReader, 'ruleOf' | 'nowMs'>,
): LossReason {
  if (one.origin === unmatchableOrigin) return { code: 'waits', says: waits('origin') };
  const { rule } = ruleOf(one) ?? {};
  const { validity } = one;
  if (validity === 'waits') {
    const names = ['from', 'until'].filter((name) => rule?._unknowns_?.[name] !== undefined);
    return { code: 'waits', says: waits(names.join(' and ')) };
  }
  const shown = (moment = ''): string => shownMoment(namedMoment(moment));
  const now = `it is ${new Date(nowMs()).toISOString()}`;
  const isEarly = validity?.fromMs !== undefined && nowMs() < validity.fromMs;
  return isEarly
    ? { code: 'not_yet', says: `It answers from ${shown(rule?.from)} on; ${now}.` }
    : { code: 'ended', says: `It answered until ${shown(rule?.until)}; ${now}.` };
}

function waits(names: string): string {
  return `It matches nothing: its ${names} is not valid and waits in _unknowns_.`;
}

/** Adds branches to the first candidate. */
export function withBranches(
  candidates: readonly CandidateExplanation[],
  branches: readonly BranchExplanation[] | undefined,
): readonly CandidateExplanation[] {
  const [first, ...others] = candidates;
  if (branches === undefined) return candidates;
  return first === undefined ? [] : [{ ...first, branches }, ...others];
}
