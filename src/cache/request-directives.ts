import type { Fields } from '../http/request.ts';
import { parseDirectives, secondsOf } from './directives.ts';

/** What a client says of the caches on its way (RFC 9111 §5.2.1); times in milliseconds. */
export interface RequestDirectives {
  /** Nothing of the answer is to be kept, and nothing that was kept is wanted. */
  readonly noStore: boolean;
  /** Nothing is wanted that the source was not asked about just now. */
  readonly noCache: boolean;
  readonly onlyIfCached: boolean;
  /** Answers older than this are not wanted. */
  readonly maxAgeMs: number;
  /** Answers are wanted that will hold at least this long. */
  readonly minFreshMs: number;
  /** Stale answers are welcome that are stale by up to this much. */
  readonly maxStaleMs: number;
  /** Stale answers are welcome in place of an error (RFC 5861 §4). */
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

/** Reads what a request says of caches. Pragma says nothing any more (RFC 9111 §5.4). */
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
