import type { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import type { CallerEnd, CallerEnds } from './authenticate.ts';

/**
 * How often the ends are looked at while one is due: keys can be edited and clocks be set, and a
 * timer takes no more than 2^31 ms.
 */
const endLookMs = 1_000;

/** What the ends of callers follow from. */
interface CallerEndsParts {
  readonly endOf: (caller: Caller) => CallerEnd;
  /** The seq of the newest change of the log, whichever process wrote it. */
  readonly logSeq: () => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

interface Watched {
  readonly caller: Caller;
  readonly ended: (failure: Failure) => void;
}

/**
 * Makes the CallerEnds of a configuration. One timer serves all connections; it reads the keys
 * again only after a change of the log, and there is none without callers that have a key.
 */
export function createCallerEnds(parts: CallerEndsParts): CallerEnds {
  const all = new Set<Watched>();
  let timer: NodeJS.Timeout | undefined;
  let nextMs = Infinity;
  let seenSeq: number | undefined;

  function wait(): void {
    const ms = Math.min(Math.max(nextMs - parts.now(), 0), endLookMs);
    timer = all.size === 0 ? undefined : setTimeout(look, ms).unref();
  }

  function look(): void {
    const seq = parts.logSeq();
    if (seq !== seenSeq || parts.now() >= nextMs) {
      seenSeq = seq;
      endThem();
    }
    wait();
  }

  /** Ends the connections of callers that have ended, and finds the next end. */
  function endThem(): void {
    const endOf = memoized(parts.endOf);
    const nowMs = parts.now();
    nextMs = Infinity;
    for (const one of all) {
      const { endMs, failure } = endOf(one.caller);
      if (endMs > nowMs) {
        nextMs = Math.min(nextMs, endMs);
      } else {
        all.delete(one);
        one.ended(failure());
      }
    }
  }

  return {
    watch(caller, ended) {
      if (caller.keyId === undefined) return () => undefined;
      const one = { caller, ended };
      all.add(one);
      nextMs = Math.min(nextMs, parts.endOf(caller).endMs);
      clearTimeout(timer);
      wait();
      return () => {
        all.delete(one);
        if (all.size === 0) clearTimeout(timer);
      };
    },
  };
}

/** Of many connections of one key, the first reads it. */
function memoized(endOf: CallerEndsParts['endOf']): CallerEndsParts['endOf'] {
  const known = new Map<string, CallerEnd>();
  return (caller) => {
    const name = `${caller.keyId ?? ''} ${caller.sessionId ?? ''}`;
    const end = known.get(name) ?? endOf(caller);
    known.set(name, end);
    return end;
  };
}
