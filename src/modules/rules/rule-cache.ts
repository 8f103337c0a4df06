import { LRUCache } from 'lru-cache';
import { type CacheUse, cacheUse, joinedUse } from '../../core/report/memory-use.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { MIB } from '../../core/values/units.ts';
import type { WildcardOptions } from './log/rule-index.ts';
import type { CandidateReads } from './matcher.ts';
import type { Candidate, RuleContent, StoredRule } from './rule.ts';
import { type RuleReader, validRules } from './valid-rules.ts';
import { storedRules } from './log/family.ts';
import type { Store } from '../../core/log/store.ts';

/** Rules in memory with their content. */
const ruleCacheBytesMax = 128 * MIB;

/** Results of look-ups by origin and path in memory: once for exact paths, once for wildcards;
 * for a site with rules that begin or end, once more for each. */
const ruleLookupsBytesMax = 8 * MIB;

/** The reads of the store that the cache uses. */
export interface RuleStore extends CandidateReads {
  /** As RuleReads.wildcardRules. */
  wildcardRules(
    origin: string,
    path: string,
    known?: WildcardOptions,
  ): Iterable<readonly Candidate[]>;
  /** Whether some rule has a `*` for a segment: otherwise, no request looks for one. */
  hasSegmentWildcards(): boolean;
  /** Whether some rule has an origin such as `https://*.example.com`. */
  hasWildcardOrigins(): boolean;
  rule(id: string): StoredRule | undefined;
  /** The next time after another one at which some rule begins or ceases to answer. */
  nextRuleTimeMs(nowMs: number): number | undefined;
  /** Seq of the newest change. */
  seq(): number;
  /** Makes later reads see all changes up to now, also of other processes. */
  refresh(): void;
}

/** The RuleStore of a store. */
export function ruleStoreOf(store: Store): RuleStore {
  return {
    ...store.of(storedRules),
    seq: () => store.seq(),
    refresh: () => {
      store.refresh();
    },
  };
}

/** The current page rules, with the recently used ones in memory. */
export interface RuleCache extends RuleReader {
  /**
   * A number that changes with each change of the log, and each time at which some rule begins or
   * ceases to answer. It reads the clock only if there is a rule with `from` or `until`.
   */
  period(): number;
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
export function createRuleCache(reads: RuleStore, now: () => number): RuleCache {
  const remembered = new LRUCache<string, StoredRule>({
    maxSize: ruleCacheBytesMax,
    sizeCalculation: ({ rule }) =>
      ruleBytes + 2 * contentLength(rule.content) + enginedataBytes(rule.enginedata),
  });
  const newest = readOncePerTurn(() => reads.seq());
  const seq = (): number => newest.read();
  const clock = readOncePerTurn(now);
  const periods = new RulePeriods({ reads, seq, now: () => clock.read() });
  const period = (): number => periods.current();
  const hasWildcardOrigins = (): boolean => periods.hasWildcardOrigins();
  const all: CandidateReads = {
    exactRules: (origin, path) => reads.exactRules(origin, path),
    wildcardRules: (origin, path) =>
      reads.wildcardRules(origin, path, { hasSegments: periods.hasSegments() }),
  };
  const valid = validRules(all, () => clock.read());
  const exact = cacheLookups(period, (origin, path) => valid.exactRules(origin, path));
  const wildcard = cacheLookups(period, (origin, path) => [...valid.wildcardRules(origin, path)]);
  // Only a site with times to come looks up the rules of all times for visitors.
  const anyExact = cacheLookups(period, (origin, path) => all.exactRules(origin, path));
  const anyWildcard = cacheLookups(period, (origin, path) => [...all.wildcardRules(origin, path)]);
  const lookups = [exact, wildcard, anyExact, anyWildcard];
  return {
    period,
    hasComing: () => periods.endMs() < Infinity,
    anyTime: { exactRules: anyExact.find, wildcardRules: anyWildcard.find, hasWildcardOrigins },
    nowMs: () => clock.read(),
    memory: () => [
      cacheUse('rules', remembered),
      joinedUse(
        'rules by path',
        lookups.map(({ remembered: found }) => cacheUse('', found)),
      ),
    ],
    refresh() {
      reads.refresh();
      newest.forget();
      clock.forget();
    },
    exactRules: exact.find,
    wildcardRules: wildcard.find,
    hasWildcardOrigins,
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

/** What a period begins with. */
type RulePeriodReads = Pick<
  RuleStore,
  'nextRuleTimeMs' | 'hasSegmentWildcards' | 'hasWildcardOrigins'
>;

/**
 * The periods in which the same rules answer: they end with each change of the log, and when a rule
 * begins or ceases to answer. The end of the current one is known, so without such rules no request
 * reads the clock.
 */
class RulePeriods {
  readonly #reads: RulePeriodReads;
  readonly #seq: () => number;
  readonly #now: () => number;
  #upTo = -1;
  #count = 0;
  #startMs = -Infinity;
  #endMs = Infinity;
  #hasSegments = false;
  #hasWildcardOrigins = false;

  constructor(given: {
    readonly reads: RulePeriodReads;
    readonly seq: () => number;
    readonly now: () => number;
  }) {
    this.#reads = given.reads;
    this.#seq = given.seq;
    this.#now = given.now;
  }

  /** A number that is another one in each period. */
  current(): number {
    const seq = this.#seq();
    if (seq !== this.#upTo || this.#isOver()) this.#begin();
    this.#upTo = seq;
    return this.#count;
  }

  /** The end of the current period in milliseconds since 1970, or Infinity. */
  endMs(): number {
    this.current();
    return this.#endMs;
  }

  /** Whether some rule has a `*` for a segment. */
  hasSegments(): boolean {
    this.current();
    return this.#hasSegments;
  }

  /** Whether some rule has an origin such as `https://*.example.com`. */
  hasWildcardOrigins(): boolean {
    this.current();
    return this.#hasWildcardOrigins;
  }

  #isOver(): boolean {
    if (this.#startMs === -Infinity) return false;
    const nowMs = this.#now();
    // A clock that is set back leads into an earlier period.
    return nowMs < this.#startMs || nowMs >= this.#endMs;
  }

  #begin(): void {
    this.#count += 1;
    const hasTimes = this.#reads.nextRuleTimeMs(-1) !== undefined;
    this.#startMs = hasTimes ? this.#now() : -Infinity;
    const endMs = hasTimes ? this.#reads.nextRuleTimeMs(this.#startMs) : undefined;
    this.#endMs = endMs ?? Infinity;
    this.#hasSegments = this.#reads.hasSegmentWildcards();
    this.#hasWildcardOrigins = this.#reads.hasWildcardOrigins();
  }
}

/**
 * Caches look-ups by origin and path until the end of the period: each source repeats the same
 * look-up, and so do further requests.
 */
function cacheLookups<T extends readonly unknown[]>(
  period: () => number,
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
  const findOnce = (origin: string, path: string): T => {
    const now = period();
    if (now !== upTo) remembered.clear();
    upTo = now;
    // No origin contains a line end.
    const key = `${origin}\n${path}`;
    let found = remembered.get(key);
    if (found === undefined) {
      found = find(origin, path);
      remembered.set(key, found);
    }
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
