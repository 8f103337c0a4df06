import { discard, type FieldList, type Reply } from '../http/reply.ts';
import type { CachedResponse } from './cached-response.ts';
import type { FetchOutcome } from './asking.ts';
import { toldForwarded, withTold, type Forwarded } from './cache-status.ts';
import { arrivingReply, passingReply } from './forwarded-reply.ts';
import { remainingMs } from './freshness.ts';
import { heldReply } from './held-reply.ts';
import { mayStandIn } from './reuse.ts';
import { credentialsRefusal } from './storing.ts';
import { fits, type CacheLookup } from './cache-lookup.ts';

/** An arrival, and one who gets it. */
interface Answering {
  readonly visit: CacheLookup;
  readonly forwarded: Forwarded;
  /** The kept answer that the source was asked about. */
  readonly held: CachedResponse | undefined;
  readonly arrival: FetchOutcome;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Whether somebody else has asked. */
  readonly isCollapsed: boolean;
}

/** The answer that somebody gets from what has arrived, with the member of Cache-Status. */
export function answerWith({
  visit: { request, plan },
  forwarded,
  held,
  arrival,
  nowMs,
  isCollapsed,
}: Answering): Reply {
  const { httpresponse } = plan.fetch;
  const outcome = forwarded === 'method' ? 'pass' : 'miss';
  switch (arrival.kind) {
    case 'kept': {
      const { content, answer } = arrival;
      const { status } = answer;
      const told = toldForwarded({ forwarded, status, isStored: true, isCollapsed, outcome });
      const reply =
        'page' in content
          ? heldReply(content, request, nowMs, told)
          : withTold(arrivingReply(answer, content, request, nowMs), told);
      return withLeftOut(reply, arrival.leftOut, isCollapsed);
    }
    case 'confirmed': {
      const { held: confirmed, isKept, leftOut } = arrival;
      const asked = { forwarded, status: 304, isStored: isKept, isCollapsed };
      const told = toldForwarded({ ...asked, outcome: 'revalidated' });
      return withLeftOut(heldReply(confirmed, request, nowMs, told), leftOut, isCollapsed);
    }
    case 'error': {
      const { reply } = arrival;
      const { status } = reply;
      const asked = { forwarded, status, detail: 'stale-if-error' };
      if (held === undefined) {
        return withTold(
          passingReply(reply, httpresponse, request),
          toldForwarded({ ...asked, outcome }),
        );
      }
      void discard(reply);
      return heldReply(held, request, nowMs, toldForwarded({ ...asked, outcome: 'stale' }));
    }
    case 'passing': {
      const { reply, why: detail } = arrival;
      const told = toldForwarded({ forwarded, status: reply.status, detail, outcome });
      return withTold(passingReply(reply, httpresponse, request), told);
    }
  }
}

/** An answer with the fields that are for the one alone who asked, if that is who gets it. */
function withLeftOut(reply: Reply, leftOut: FieldList, isCollapsed: boolean): Reply {
  if (isCollapsed || leftOut.length === 0) return reply;
  return { ...reply, fields: [...reply.fields, ...leftOut] };
}

/** Whether an arrival answers somebody else who waited for it, about the same kept answer. */
export function isShared(
  { sent, asked }: CacheLookup,
  held: CachedResponse | undefined,
  arrival: FetchOutcome,
  nowMs: number,
): boolean {
  if (arrival.kind === 'error') {
    return held !== undefined && mayStandIn(held.answer.freshness, 'error', asked, nowMs);
  }
  if (!isFresh(arrival, nowMs)) return false;
  if (arrival.kind === 'kept') return fits(arrival.answer, sent);
  return arrival.kind !== 'confirmed' || fits(arrival.held.answer, sent);
}

/** Whether an arrival may answer others than the one who asked, without being asked about anew. */
export function isFresh(arrival: FetchOutcome, nowMs: number): boolean {
  if (arrival.kind === 'passing') return false;
  if (arrival.kind === 'error') return true;
  if (arrival.kind === 'confirmed' && !arrival.isKept) return false;
  const { freshness } = arrival.kind === 'kept' ? arrival.answer : arrival.held.answer;
  return !freshness.isValidatedAlways && remainingMs(freshness, nowMs) > 0;
}

/**
 * Whether an arrival that is not kept says that the kept answer, which the source was asked about,
 * is none any more (RFC 9111 §4.3.3): the page has gone, or is another one for each who asks.
 */
export function isInItsPlace(arrival: FetchOutcome): boolean {
  if (arrival.kind !== 'passing' || arrival.why === credentialsRefusal) return false;
  const { status } = arrival.reply;
  return (status < 400 && status !== 304) || status === 404 || status === 410;
}
