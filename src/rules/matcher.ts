import { languagePreference, type LanguagePreference } from '../http/negotiation.ts';
import type { Fields } from '../http/request.ts';
import type { Loss, RuleLoss } from '../model/explanation.ts';
import type { Candidate } from '../model/rule.ts';

/** What the matcher reads of the store. */
export interface CandidateReads {
  exactRules(origin: string, path: string): readonly Candidate[];
  /** The rules of each wildcard, longest first. */
  wildcardRules(origin: string, path: string): Iterable<readonly Candidate[]>;
}

/** What rules are compared by. */
interface Criterion {
  /** What a rule loses by that has less of it. */
  readonly code: RuleLoss;
  /** The rule with more of it wins; `rank` is that of its language, none for an excluded one. */
  readonly merit: (rule: Candidate, rank: number | undefined) => number;
  /** The sentence to the code. */
  readonly says: (loser: Candidate, winner: Candidate) => string;
}

/**
 * THE order in which rules win (docs/design/page-rules.md#matching): the first criterion in which
 * two differ decides. It is total, for no two rules share an insert.
 */
const criteria: readonly Criterion[] = [
  {
    code: 'language_excluded',
    merit: (_, rank) => (rank === undefined ? 0 : 1),
    says: ({ lang }) => `The caller does not want its language, ${lang ?? 'none'}.`,
  },
  {
    code: 'any_origin',
    merit: ({ origin }) => (origin === '*' ? 0 : 1),
    says: (_, winner) => `It is for every origin, and there is a rule for ${winner.origin}.`,
  },
  {
    code: 'wildcard',
    merit: ({ path }) => (isWildcard(path) ? 0 : 1),
    says: (_, winner) => `It is a wildcard, and there is a rule for exactly ${winner.path}.`,
  },
  {
    code: 'shorter_wildcard',
    merit: ({ path }) => path.length,
    says: (_, winner) => `There is a rule with the longer wildcard ${winner.path}.`,
  },
  {
    code: 'language',
    merit: (_, rank) => -(rank ?? 0),
    says: (loser, winner) =>
      `The caller prefers ${languageOf(winner)} to ${languageOf(loser)}, which is this rule's.`,
  },
  {
    code: 'lower_rve',
    merit: ({ rve }) => rve ?? 0,
    says: (loser, winner) =>
      `Its rve is ${loser.rve ?? 0}; there is a rule with ${winner.rve ?? 0}.`,
  },
  {
    code: 'older_design',
    merit: ({ designedAtMs }) => designedAtMs ?? -Infinity,
    says: (loser, winner) =>
      `It was designed ${designOf(loser)}; there is a rule designed ${designOf(winner)}.`,
  },
  {
    code: 'older_insert',
    merit: ({ insertedSeq }) => insertedSeq,
    says: (loser, winner) =>
      `It was inserted as change ${loser.insertedSeq}, before the one with ${winner.insertedSeq}.`,
  },
];

/** What a rule is looked for by. */
interface RulePlace {
  readonly origin: string;
  readonly path: string;
}

/**
 * The rules that cover an origin and path (docs/design/page-rules.md#matching), in no special
 * order.
 */
export function candidatesFor(
  reads: CandidateReads,
  { origin, path }: RulePlace,
): readonly Candidate[] {
  return [origin, '*'].flatMap((owner) => [
    ...reads.exactRules(owner, path),
    ...[...reads.wildcardRules(owner, path)].flat(),
  ]);
}

/**
 * Those of the candidates that can win for anybody, of the rules that count. All rules of an
 * earlier look-up win over all of a later one, but for those in a language that the caller
 * excludes: behind a rule without a language, which nobody excludes, nothing is even looked for.
 */
export function possibleWinners(
  reads: CandidateReads,
  { origin, path }: RulePlace,
  counts: (rule: Candidate) => boolean,
): readonly Candidate[] {
  let found: readonly Candidate[] = [];
  for (const owner of [origin, '*']) {
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

/**
 * The rules in the one order in which they win (docs/design/page-rules.md#matching): the first is
 * the winner.
 */
export function sortByPrecedence(
  candidates: readonly Candidate[],
  fields: Fields,
): readonly Candidate[] {
  if (candidates.length < 2) return candidates;
  const preference = languagePreference(fields['accept-language']);
  return candidates.toSorted((one, other) => precedence(one, other, preference));
}

/** Why a rule comes after another one for a caller; undefined when it does not. */
export function lossAgainst(winner: Candidate, loser: Candidate, fields: Fields): Loss | undefined {
  const preference = languagePreference(fields['accept-language']);
  const criterion = criteria[precedence(loser, winner, preference) - 1];
  return criterion && { code: criterion.code, says: criterion.says(loser, winner) };
}

/**
 * Whether some of the rules are in other languages than others, so that Accept-Language chooses
 * between them.
 */
export function varyByLanguage(candidates: readonly Candidate[]): boolean {
  return candidates.some(({ lang }) => lang !== candidates[0]?.lang);
}

/** The part of a path under a rule's `*`; undefined for an exact rule. */
export function captureOf(rulePath: string, path: string): string | undefined {
  return isWildcard(rulePath) ? path.slice(rulePath.length - 1) : undefined;
}

/**
 * Negative when `one` wins over `other`, positive when it loses; its size is the place of the
 * criterion that decides, counted from 1.
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

function isWildcard(path: string): boolean {
  return path.startsWith('/') && path.endsWith('*');
}

function languageOf({ lang }: Candidate): string {
  return lang ?? 'no language';
}

function designOf({ designedAtMs }: Candidate): string {
  return designedAtMs === undefined
    ? 'at an unknown time'
    : `at ${new Date(designedAtMs).toISOString()}`;
}
