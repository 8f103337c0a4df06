import type { Fields } from '../http/request.ts';
import type { Visitor } from '../http/visitor.ts';

/** The part of a request that decides whose rate it counts for. */
export interface RatedRequest {
  readonly origin: string;
  /** The canonical path. */
  readonly path: string;
  readonly address: string;
  readonly fields: Fields;
  readonly visitor: () => Visitor;
  /** The id of its API key; undefined without a valid one. */
  readonly keyId: () => string | undefined;
  /** Paths of its own origin for whose rates it has been counted before. */
  readonly countedFor?: readonly string[];
}

/** Limits how often clients ask for some paths (`[rate.<name>]`). */
export interface Rates {
  /**
   * Counts a request for all rates of its path. Throws or rejects with `rate_limited` if one of
   * them is used up. Without a promise if that is known at once.
   */
  count(request: RatedRequest): void | Promise<void>;
  /**
   * As `count`, for a request of which only origin, path and address are known; returns false if
   * the whole request has to be counted, and has counted nothing then.
   */
  countPlain(request: Pick<RatedRequest, 'origin' | 'path' | 'address'>): boolean;
  /** Whether a path has rates. */
  covers(place: { readonly origin: string; readonly path: string }): boolean;
  /** The rates of a path, a sentence each. */
  explain(place: { readonly origin: string; readonly path: string }): readonly string[];
}
