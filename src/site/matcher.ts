import { languagePreference, type LanguagePreference } from '../http/negotiation.ts';
import type { Fields } from '../http/request.ts';
import type { Candidate } from '../model/rule.ts';

/** What the matcher reads of the store. */
export interface CandidateReads {
  exactRules(origin: string, path: string): readonly Candidate[];
  wildcardRules(origin: string, path: string): readonly Candidate[];
}

/**
 * The rules that cover an origin and path, in no special order (contract §4.2): four look-ups,
 * never a scan.
 */
export function candidatesFor(
  reads: CandidateReads,
  { origin, path }: { readonly origin: string; readonly path: string },
): readonly Candidate[] {
  return [
    ...reads.exactRules(origin, path),
    ...reads.wildcardRules(origin, path),
    ...reads.exactRules('*', path),
    ...reads.wildcardRules('*', path),
  ];
}

/** The rules in the one order in which they win (contract §4.2): the first is the winner. */
export function inOrder(candidates: readonly Candidate[], fields: Fields): readonly Candidate[] {
  if (candidates.length < 2) return candidates;
  const preference = languagePreference(fields['accept-language']);
  return candidates.toSorted((one, other) => precedence(one, other, preference));
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
 * Negative when `one` wins over `other`: a language the caller excluded last, then exact origin,
 * exact path, longer wildcard, better language, higher rve (absent counts as 0), newer designed_at,
 * newer insert. Total: no two rules share an insert.
 */
function precedence(one: Candidate, other: Candidate, preference: LanguagePreference): number {
  const oneRank = preference.rank(one.lang);
  const otherRank = preference.rank(other.lang);
  return (
    Number(oneRank === undefined) - Number(otherRank === undefined) ||
    Number(one.origin === '*') - Number(other.origin === '*') ||
    Number(isWildcard(one.path)) - Number(isWildcard(other.path)) ||
    other.path.length - one.path.length ||
    (oneRank ?? 0) - (otherRank ?? 0) ||
    (other.rve ?? 0) - (one.rve ?? 0) ||
    (other.designedAtMs ?? -Infinity) - (one.designedAtMs ?? -Infinity) ||
    other.insertedSeq - one.insertedSeq
  );
}

function isWildcard(path: string): boolean {
  return path.startsWith('/') && path.endsWith('*');
}
