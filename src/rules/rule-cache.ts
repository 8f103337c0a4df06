import { LRUCache } from 'lru-cache';
import { cacheUse, joinedUse, type CacheUse } from '../observability/memory-use.ts';
import { ruleLookupsBytesMax, ruleCacheBytesMax } from './limits.ts';
import type { JsonObject } from '../model/json.ts';
import type { Candidate, RuleContent, StoredRule } from '../model/rule.ts';
import type { CandidateReads } from './matcher.ts';

/** The page rules as the site reads them. */
export interface RuleReader extends CandidateReads {
  /** The rule of a candidate; undefined when it has gone since. */
  ruleOf(candidate: Candidate): StoredRule | undefined;
}

/** What the store is asked for. */
export interface RuleStore extends CandidateReads {
  rule(id: string): StoredRule | undefined;
  /** Seq of the newest change. */
  seq(): number;
  /** Has all that is read from now on be no older than this moment. */
  refresh(): void;
}

/** The page rules as they were last, some of them in memory. */
export interface RuleCache extends RuleReader {
  /** Seq of the newest change that is seen. */
  seq(): number;
  /** As that of what is read: called when something is asked. */
  refresh(): void;
  /** What is in memory of rules, and of where they stand. */
  memory(): readonly CacheUse[];
}

/** What a rule costs besides its content. */
const ruleBytes = 2_048;

/**
 * Reads rules by their candidates, and remembers the latest ones: the seq of a candidate tells
 * whether what is remembered is still the rule, in whichever process it was edited.
 */
export function createRuleCache(reads: RuleStore): RuleCache {
  const remembered = new LRUCache<string, StoredRule>({
    maxSize: ruleCacheBytesMax,
    sizeCalculation: ({ rule }) =>
      ruleBytes + 2 * contentLength(rule.content) + enginedataBytes(rule.enginedata),
  });
  const newest = readOncePerTurn(() => reads.seq());
  const seq = (): number => newest.read();
  const exact = cacheLookups(seq, (origin, path) => reads.exactRules(origin, path));
  const wildcard = cacheLookups(seq, (origin, path) => [...reads.wildcardRules(origin, path)]);
  return {
    memory: () => [
      cacheUse('rules', remembered),
      joinedUse('rules by path', [
        cacheUse('', exact.remembered),
        cacheUse('', wildcard.remembered),
      ]),
    ],
    seq,
    refresh() {
      reads.refresh();
      newest.forget();
    },
    exactRules: exact.find,
    wildcardRules: wildcard.find,
    ruleOf(candidate) {
      const { id } = candidate;
      const known = remembered.get(id);
      if (known?.seq === candidate.seq) return known;
      const stored = reads.rule(id);
      if (stored !== undefined) remembered.set(id, stored);
      return stored;
    },
  };
}

/**
 * Remembers what is found at an origin and path as long as nothing is written: each source looks
 * there, and the same places are asked for again and again.
 */
function cacheLookups<T extends readonly unknown[]>(
  seq: () => number,
  find: (origin: string, path: string) => T,
): {
  readonly find: (origin: string, path: string) => T;
  readonly remembered: LRUCache<string, T>;
} {
  const remembered = new LRUCache<string, T>({
    maxSize: ruleLookupsBytesMax,
    sizeCalculation: (found, key) => 2 * key.length + placeBytes * (1 + found.flat().length),
  });
  let upTo = 0;
  // One source after the other looks for a request at the same places, its origin and every one.
  const newest = new Map<boolean, { origin: string; path: string; found: T }>();
  const findOnce = (origin: string, path: string): T => {
    const now = seq();
    if (now !== upTo) {
      remembered.clear();
      newest.clear();
    }
    upTo = now;
    const latest = newest.get(origin === '*');
    if (latest?.path === path && latest.origin === origin) return latest.found;
    // An origin has no line end.
    const key = `${origin}\n${path}`;
    let found = remembered.get(key);
    if (found === undefined) {
      found = find(origin, path);
      remembered.set(key, found);
    }
    newest.set(origin === '*', { origin, path, found });
    return found;
  };
  return { find: findOnce, remembered };
}

/**
 * Reads once in a run of code that nothing comes between: all sources look at the same moment, and
 * no request can have come since but one that has it forgotten.
 */
function readOncePerTurn<T>(look: () => T): {
  readonly read: () => T;
  readonly forget: () => void;
} {
  let known: { readonly value: T } | undefined;
  const forget = (): void => {
    known = undefined;
  };
  return {
    read() {
      if (known === undefined) {
        known = { value: look() };
        queueMicrotask(forget);
      }
      return known.value;
    },
    forget,
  };
}

/** What an entry, and each candidate in it, costs besides its key. */
const placeBytes = 512;

/** What enginedata costs, and what is made of it: a breadcrumb ready to be followed. */
function enginedataBytes(enginedata: JsonObject | undefined): number {
  return enginedata === undefined ? 0 : 4 * JSON.stringify(enginedata).length;
}

function contentLength(content: RuleContent | undefined): number {
  if (content === undefined) return 0;
  return typeof content === 'string' ? content.length : content.base64.length;
}
