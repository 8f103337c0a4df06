import { originRank, patternsOver } from '../../core/values/network/origin-pattern.ts';
import {
  languagePreference,
  type LanguagePreference,
} from '../../core/http/representation/negotiation.ts';
import type { Fields } from '../../core/http/request.ts';
import type { LossReason, RuleLoss } from '../../core/pipeline/explanation.ts';
import { hasWildcard, wildcardRank } from '../../core/values/path.ts';
import { proxyName, type Candidate } from './rule.ts';

/** The reads of the store that the matcher uses. */
export interface CandidateReads {
  exactRules(origin: string, path: string): readonly Candidate[];
  /** The rules of each wildcard, in the order of wildcardRank. */
  wildcardRules(origin: string, path: string): Iterable<readonly Candidate[]>;
  /** False if no rule has an origin such as `https://*.example.com`; by default, some may. */
  hasWildcardOrigins?(): boolean;
}

/** A criterion that rules are compared by. */
interface Criterion {
  /** The loss of the rule with less merit. */
  readonly code: RuleLoss;
  /**
   * The rule with more merit wins; `rank` is that of its language, undefined for an excluded one.
   */
  readonly merit: (rule: Candidate, rank: number | undefined) => number;
  /** The sentence that explains the loss. */
  readonly says: (loser: Candidate, winner: Candidate) => string;
}

/**
 * The precedence of rules (docs/design/page-rules.md#matching): the first criterion in which two
 * rules differ decides. The order is total, since no two rules have the same insert.
 */
const criteria: readonly Criterion[] = [
  {
    code: 'language_excluded',
    merit: (_, rank) => (rank === undefined ? 0 : 1),
    says: ({ lang }) => `The client excludes its language, ${lang ?? 'none'}.`,
  },
  {
    code: 'any_origin',
    merit: ({ origin }) => originRank(origin),
    says: (loser, winner) =>
      `It applies to ${loser.origin === '*' ? 'every origin' : loser.origin}; another rule ` +
      `applies to ${winner.origin}.`,
  },
  {
    code: 'wildcard',
    merit: ({ path }) => (hasWildcard(path) ? 0 : 1),
    says: (_, winner) => `It is a wildcard; another rule has exactly the path ${winner.path}.`,
  },
  {
    code: 'shorter_wildcard',
    merit: ({ path }) => (hasWildcard(path) ? wildcardRank(path) : 0),
    says: (_, winner) => `Another rule has the longer wildcard ${winner.path}.`,
  },
  {
    code: 'proxy',
    merit: ({ id }) => (proxyName(id) === undefined ? 1 : 0),
    says: (_, winner) => `It is of the ini file; a page rule has the same path ${winner.path}.`,
  },
  {
    code: 'language',
    merit: (_, rank) => -(rank ?? 0),
    says: (loser, winner) =>
      `The client prefers ${languageOf(winner)}; this rule has ${languageOf(loser)}.`,
  },
  {
    code: 'lower_rve',
    merit: ({ rve }) => rve ?? 0,
    says: (loser, winner) => `Its rve is ${loser.rve ?? 0}; another rule has ${winner.rve ?? 0}.`,
  },
  {
    code: 'older_design',
    merit: ({ designedAtMs }) => designedAtMs ?? -Infinity,
    says: (loser, winner) =>
      `It was designed ${designOf(loser)}, another rule ${designOf(winner)}.`,
  },
  {
    code: 'older_insert',
    merit: ({ insertedSeq }) => insertedSeq,
    says: (loser, winner) =>
      `It was inserted as change ${loser.insertedSeq}, before the one with ${winner.insertedSeq}.`,
  },
];

/** The origin and path for which the matcher looks up rules. */
interface RuleAddress {
  readonly origin: string;
  readonly path: string;
}

/** The origins of the rules that may match one, the best first. */
export function ownersOf(reads: CandidateReads, origin: string): readonly string[] {
  return reads.hasWildcardOrigins?.() === false ? [origin, '*'] : patternsOver(origin);
}

/** The rules that match an origin and path (docs/design/page-rules.md#matching), unordered. */
export function candidatesFor(
  reads: CandidateReads,
  { origin, path }: RuleAddress,
): readonly Candidate[] {
  return ownersOf(reads, origin).flatMap((owner) => [
    ...reads.exactRules(owner, path),
    ...[...reads.wildcardRules(owner, path)].flat(),
  ]);
}

/**
 * The candidates that can win for some client. All rules of an earlier look-up win over those of a
 * later one, except in a language that the client excludes. So the search ends at the first look-up
 * with a rule without a language, which no client excludes. `counts` selects the rules to consider.
 */
export function possibleWinners(
  reads: CandidateReads,
  { origin, path }: RuleAddress,
  counts: (rule: Candidate) => boolean,
): readonly Candidate[] {
  let found: readonly Candidate[] = [];
  for (const owner of ownersOf(reads, origin)) {
    found = joined(found, reads.exactRules(owner, path).filter(counts));
    if (isDecided(found)) return found;
    for (const group of reads.wildcardRules(owner, path)) {
      found = joined(found, group.filter(counts));
      if (isDecided(found)) return found;
    }
  }
  return found;
}

function joined(found: readonly Candidate[], further: readonly Candidate[]): readonly Candidate[] {
  return found.length === 0 ? further : [...found, ...further];
}

function isDecided(contenders: readonly Candidate[]): boolean {
  return contenders.some(({ lang }) => lang === undefined);
}

/** Sorts rules by precedence (docs/design/page-rules.md#matching): the first one wins. */
export function sortByPrecedence(
  candidates: readonly Candidate[],
  fields: Fields,
): readonly Candidate[] {
  if (candidates.length < 2) return candidates;
  const preference = languagePreference(fields['accept-language']);
  return candidates.toSorted((one, other) => precedence(one, other, preference));
}

/** Why a rule loses against another one for a client; undefined if it does not. */
export function lossReason(
  winner: Candidate,
  loser: Candidate,
  fields: Fields,
): LossReason | undefined {
  const preference = languagePreference(fields['accept-language']);
  const criterion = criteria[precedence(loser, winner, preference) - 1];
  return criterion && { code: criterion.code, says: criterion.says(loser, winner) };
}

/** Whether rules differ in language, so that Accept-Language chooses between them. */
export function varyByLanguage(candidates: readonly Candidate[]): boolean {
  return candidates.some(({ lang }) => lang !== candidates[0]?.lang);
}

/**
 * Negative if `one` wins over `other`, positive if it loses; the absolute value is the number of
 * the deciding criterion, counted from 1.
 */
function precedence(one: Candidate, other: Candidate, preference: LanguagePreference): number {
  const oneRank = preference.rank(one.lang);
  const otherRank = preference.rank(other.lang);
  let place = 0;
  for (const { merit } of criteria) {
    place += 1;
    const oneMerit = merit(one, oneRank);
    const otherMerit = merit(other, otherRank);
    if (oneMerit !== otherMerit) return oneMerit > otherMerit ? -place : place;
  }
  return 0;
}

function languageOf({ lang }: Candidate): string {
  return lang ?? 'no language';
}

function designOf({ designedAtMs }: Candidate): string {
  return designedAtMs === undefined
    ? 'at an unknown time'
    : `at ${new Date(designedAtMs).toISOString()}`;
}
