import type { Failure } from '../../../core/values/failure.ts';
import type { Scalar, StoredRow } from '../../tables/row.ts';
import type { Candidate, StoredRule } from '../rule.ts';
import type { TreeReads } from './path-tree.ts';
import type { RulePlace } from './rule-index.ts';

/** A step of an iteration over the page rules. */
export interface RuleStep {
  readonly id: string;
  /**
   * Undefined for a record that was not a page rule or did not exist at that time; such steps let
   * the caller pause.
   */
  readonly stored: StoredRule | undefined;
  /** The amount of stored data that the step read, in characters or bytes. */
  readonly size: number;
}

/** The page rules that Reads.rulesByPath returns. */
export interface PathRange {
  /** The place of the step after which it continues. */
  readonly after: string | undefined;
  readonly descending: boolean;
  /** The canonical origin and the start of the paths; rules of others may come, too. */
  readonly origin?: string | undefined;
  readonly path?: string | undefined;
}

/** A page rule in the order of the paths, with its place in that order. */
export interface PathStep extends RuleStep {
  readonly place: string;
}

/** Times from a moment on (ISO 8601 UTC), or after a cursor, and before another moment. */
interface RuleTimeRange {
  readonly from: string;
  readonly after?: string | undefined;
  readonly until?: string | undefined;
}

/** A time at which a page rule begins to answer (`from`), or ceases to (`until`). */
export interface RuleTime {
  /** Stands for its place in the order. */
  readonly cursor: string;
  /** ISO 8601 UTC. */
  readonly at: string;
  readonly field: 'from' | 'until';
  readonly stored: StoredRule;
  /** Characters of the stored rule. */
  readonly size: number;
}

/** The page rules at one position of the log, and the rows that they refer to by a key. */
export interface PastRules {
  /** The current state of a page rule; undefined when there is none. */
  rule(id: string): StoredRule | undefined;
  exactRules(origin: string, path: string): readonly Candidate[];
  wildcardRules(
    origin: string,
    path: string,
    /** `hasSegments` false if none of them stands for a segment, which is quicker. */
    known?: { readonly hasSegments?: boolean },
  ): Iterable<readonly Candidate[]>;
  /** The current page rules in the order of their ids, after `after`. */
  recordsAfter(after: string): Iterable<RuleStep>;
  /** The row of a table with this key. */
  rowByKey(table: string, value: Scalar): StoredRow | undefined;
}

/** Reads of page rules. */
export interface RuleReads extends PastRules, TreeReads {
  /** A page rule as it was right after the change `seq` of the log. */
  ruleAt(id: string, seq: number): StoredRule | undefined;
  /**
   * Rules of exactly this origin (or `*`) and exactly this path, wildcards not counted; in no
   * particular order.
   */
  /**
   * The rules of each wildcard of exactly this origin (or `*`) that covers the path, in the order
   * of wildcardRank. The caller iterates within one turn of the event loop.
   */
  /** Whether some rule has a `*` for a segment of its path. */
  hasSegmentWildcards(): boolean;
  /** Whether some rule has an origin such as `https://*.example.com`. */
  hasWildcardOrigins(): boolean;
  /**
   * The next time after another one at which a page rule begins or ceases to answer, in
   * milliseconds since 1970; undefined for none.
   */
  nextRuleTimeMs(nowMs: number): number | undefined;
  /** These times in their order, as RuleTimeRange says. */
  ruleTimes(range: RuleTimeRange): Iterable<RuleTime>;
  /** Ids of the page rules that name an asset, at most `limit`, in their order. */
  rulesOfAsset(asset: string, limit: number): Iterable<string>;
  /** The access sections that page rules name, in order; at most `limit`. */
  accessNames(limit: number): readonly string[];
  /** Ids of the page rules that name an access section; at most `limit`. */
  rulesOfAccess(name: string, limit: number): readonly string[];
  /**
   * Returns a Failure `too_large` if a place has no room for another rule, otherwise undefined.
   * `planned` counts the rules that are about to be put there.
   */
  roomFailure(place: Pick<RulePlace, 'database' | 'key'>, planned: number): Failure | undefined;
  /** The current page rules in the reverse order of their ids, before `before`; '' is the end. */
  recordsBefore(before: string): Iterable<RuleStep>;
  /**
   * The current page rules by origin and path; a wildcard directly follows its path without the
   * `*`, rules of the same path are in the order of their ids. Those whose origin waits, or whose
   * path is too long for a key, come first. Throws `invalid` for an unusable `after`.
   */
  rulesByPath(range: PathRange): Iterable<PathStep>;
  /** All page rules as they were right after the change `seq`. */
  at(seq: number): PastRules;
}
