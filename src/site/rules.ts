import { LRUCache } from 'lru-cache';
import { rememberedRulesBytesMax } from '../model/limits.ts';
import type { Candidate, RuleContent, StoredRule } from '../model/rule.ts';
import type { CandidateReads } from './matcher.ts';

/** The page rules as the site reads them. */
export interface SiteRules extends CandidateReads {
  /** The rule of a candidate; undefined when it has gone since. */
  ruleOf(candidate: Candidate): StoredRule | undefined;
}

/** What the store is asked for. */
export interface RuleReads extends CandidateReads {
  rule(id: string): StoredRule | undefined;
}

/** What a rule costs besides its content. */
const ruleBytes = 2_048;

/**
 * Reads rules by their candidates, and remembers the latest ones: the seq of a candidate tells
 * whether what is remembered is still the rule, in whichever process it was edited.
 */
export function rememberRules(reads: RuleReads): SiteRules {
  const remembered = new LRUCache<string, StoredRule>({
    maxSize: rememberedRulesBytesMax,
    sizeCalculation: ({ rule }) => ruleBytes + 2 * contentLength(rule.content),
  });
  return {
    exactRules: (origin, path) => reads.exactRules(origin, path),
    wildcardRules: (origin, path) => reads.wildcardRules(origin, path),
    ruleOf({ id, seq }) {
      const known = remembered.get(id);
      if (known?.seq === seq) return known;
      const stored = reads.rule(id);
      if (stored !== undefined) remembered.set(id, stored);
      return stored;
    },
  };
}

function contentLength(content: RuleContent | undefined): number {
  if (content === undefined) return 0;
  return typeof content === 'string' ? content.length : content.base64.length;
}
