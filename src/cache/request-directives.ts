import type { Fields } from '../http/request.ts';
import { parseDirectives, secondsOf } from './directives.ts';

/** The cache directives of a request (RFC 9111 §5.2.1); times in milliseconds. */
export interface RequestDirectives {
  /** The response must not be stored, and stored responses must not be used. */
  readonly noStore: boolean;
  /** Stored responses must be validated first. */
  readonly noCache: boolean;
  readonly onlyIfCached: boolean;
  /** The client accepts no response that is older. */
  readonly maxAgeMs: number;
  /** The client wants a response that stays fresh at least this long. */
  readonly minFreshMs: number;
  /** The client accepts a response that is stale by up to this much. */
  readonly maxStaleMs: number;
  /** The client accepts a stale response in place of an error (RFC 5861 §4). */
  readonly staleIfErrorMs: number;
}

const noDirectives: RequestDirectives = {
  noStore: false,
  noCache: false,
  onlyIfCached: false,
  maxAgeMs: Infinity,
  minFreshMs: 0,
  maxStaleMs: 0,
  staleIfErrorMs: 0,
};

/** Parses the cache directives of a request. Pragma is deprecated (RFC 9111 §5.4). */
export function requestDirectives(fields: Fields): RequestDirectives {
  const field = fields['cache-control'];
  if (field === undefined) return noDirectives;
  const directives = parseDirectives(field);
  const ms = (name: string): number | undefined => {
    const seconds = secondsOf(directives, name);
    return seconds === undefined ? undefined : seconds * 1000;
  };
  return {
    noStore: directives.has('no-store'),
    noCache: directives.has('no-cache'),
    onlyIfCached: directives.has('only-if-cached'),
    maxAgeMs: ms('max-age') ?? Infinity,
    minFreshMs: ms('min-fresh') ?? 0,
    maxStaleMs: directives.get('max-stale') === true ? Infinity : (ms('max-stale') ?? 0),
    staleIfErrorMs: ms('stale-if-error') ?? 0,
  };
}
