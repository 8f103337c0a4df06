import { isValidAt, type Candidate, type StoredRule } from './rule.ts';
import type { CandidateReads } from './matcher.ts';

/** Reads page rules for the site: those that answer now. */
export interface RuleReader extends CandidateReads {
  /** The rule of a candidate; undefined if it is gone. */
  ruleOf(candidate: Candidate): StoredRule | undefined;
  /** The same rules, together with those that answer at another time, or never. */
  readonly anyTime: CandidateReads;
  /** The time at which they answer, in milliseconds since 1970. */
  nowMs(): number;
  /** Whether some rule begins or ceases to answer in the future. */
  hasComing(): boolean;
}

/** The rules of some reads that answer at the time of `now` (docs/design/page-rules.md#times). */
export function validRules(reads: CandidateReads, now: () => number): CandidateReads {
  const valid = (found: readonly Candidate[]): readonly Candidate[] =>
    found.some(({ validity }) => validity !== undefined)
      ? found.filter((one) => isValidAt(one, now()))
      : found;
  return {
    exactRules: (origin, path) => valid(reads.exactRules(origin, path)),
    *wildcardRules(origin, path) {
      for (const group of reads.wildcardRules(origin, path)) {
        const found = valid(group);
        if (found.length > 0) yield found;
      }
    },
    ...(reads.hasWildcardOrigins && {
      hasWildcardOrigins: () => reads.hasWildcardOrigins?.() ?? true,
    }),
  };
}

/** A reader of the same rules for a time that stands still. */
export function rulesAtTime(
  { anyTime, ruleOf }: Pick<RuleReader, 'anyTime' | 'ruleOf'>,
  timeMs: number,
): RuleReader {
  const nowMs = (): number => timeMs;
  return { ...validRules(anyTime, nowMs), ruleOf, anyTime, nowMs, hasComing: () => false };
}
