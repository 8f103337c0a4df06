import type { StoredRule } from './rule.ts';

/** The page rule that won a match, with what its wildcard covered. */
export interface FoundRule {
  readonly stored: StoredRule;
  /** The part of the path under the rule's `*`; undefined for an exact rule. */
  readonly capture: string | undefined;
  /** Whether another Accept-Language could have made another rule win. */
  readonly variesByLanguage: boolean;
}

/**
 * What a breadcrumb comes to (docs/design/rendering.md#breadcrumbs): a redirect to `target`, or
 * `content` to show, or a bare status.
 */
export interface Resolution {
  /** Id of the rule that decided, the last one of a `key:` chain. */
  readonly id: string;
  readonly status: number;
  /** Absolute URL, or path on the same site, ready for a Location field. */
  readonly target: string | undefined;
  readonly content: string | undefined;
  readonly contenttype: string | undefined;
  /** Which branch of it decided: `when[0]`, `when[1]` …, or `default`. */
  readonly matched: string;
}
