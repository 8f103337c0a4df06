import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../model/json.ts';
import type { Candidate, RuleContent, StoredRule } from '../model/rule.ts';
import { cacheUse, joinedUse, type CacheUse } from '../observability/memory-use.ts';
import { ruleLookupsBytesMax, ruleCacheBytesMax } from './limits.ts';
import type { CandidateReads } from './matcher.ts';

/** Reads page rules for the site. */
export interface RuleReader extends CandidateReads {
  /** The rule of a candidate; undefined if it is gone. */
  ruleOf(candidate: Candidate): StoredRule | undefined;
}

/** The reads of the store that the cache uses. */
export interface RuleStore extends CandidateReads {
  rule(id: string): StoredRule | undefined;
  /** Seq of the newest change. */
  seq(): number;
  /** Makes later reads see all changes up to now, also of other processes. */
  refresh(): void;
}

/** The current page rules, with the recently used ones in memory. */
export interface RuleCache extends RuleReader {
  /** Seq of the newest change that reads see. */
  seq(): number;
  /** Sees the changes of other processes. Call it at the beginning of each request. */
  refresh(): void;
  /** The memory that rules and look-ups use now. */
  memory(): readonly CacheUse[];
}

/** The memory of a rule besides its content. */
const ruleBytes = 2_048;

/**
 * Creates a cache of rules. A rule in memory is current if it has the seq of its candidate.
 * Candidates come from the store, or from a look-up since the newest change of any process; so the
 * edits of other processes count too.
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
 * Caches look-ups by origin and path until the next change of the log: each source repeats the same
 * look-up, and so do further requests.
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
  // Each source repeats the latest look-ups of a request: with its origin, and with `*`.
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
    // No origin contains a line end.
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
 * Reads a value once until the next microtask: all sources of a request see the same moment, and
 * each request that begins meanwhile calls `forget` first.
 */
function readOncePerTurn<T>(readValue: () => T): {
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
        known = { value: readValue() };
        queueMicrotask(forget);
      }
      return known.value;
    },
    forget,
  };
}

/** The memory of an entry, and of each candidate in it, besides its key. */
const placeBytes = 512;

/** The memory of enginedata, and of the breadcrumb that is parsed from it. */
function enginedataBytes(enginedata: JsonObject | undefined): number {
  return enginedata === undefined ? 0 : 4 * JSON.stringify(enginedata).length;
}

function contentLength(content: RuleContent | undefined): number {
  if (content === undefined) return 0;
  return typeof content === 'string' ? content.length : content.base64.length;
}
