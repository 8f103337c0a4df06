import type { Reply } from '../../http/reply.ts';
import type { HeldAnswer } from './answer.ts';
import type { Arrival } from './asking.ts';
import { forwardedStatus, type Forwarded } from './cache-status.ts';
import { arrivingReply, discardContent, passingReply } from './forwarded-reply.ts';
import { remainingMs } from './freshness.ts';
import { heldReply } from './held-reply.ts';
import { fits, type Visit } from './visit.ts';

/** An arrival, and one who gets it. */
export interface Answering {
  readonly visit: Visit;
  readonly forwarded: Forwarded;
  /** The kept answer that the source was asked about. */
  readonly held: HeldAnswer | undefined;
  readonly arrival: Arrival;
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
  switch (arrival.kind) {
    case 'kept': {
      const { content, answer } = arrival;
      const { status } = answer;
      const cacheStatus = forwardedStatus({ forwarded, status, isStored: true, isCollapsed });
      const reply =
        'page' in content
          ? heldReply(content, request, nowMs, cacheStatus)
          : arrivingReply(answer, content, request, cacheStatus);
      if (isCollapsed || arrival.leftOut.length === 0) return reply;
      return { ...reply, fields: [...reply.fields, ...arrival.leftOut] };
    }
    case 'confirmed': {
      const cacheStatus = forwardedStatus({ forwarded, status: 304, isStored: true, isCollapsed });
      return heldReply(arrival.held, request, nowMs, cacheStatus);
    }
    case 'error': {
      const { reply } = arrival;
      const { status } = reply;
      const cacheStatus = forwardedStatus({ forwarded, status, detail: 'stale-if-error' });
      if (held === undefined) return passingReply(reply, { httpresponse, cacheStatus });
      discardContent(reply);
      return heldReply(held, request, nowMs, cacheStatus);
    }
    case 'passing': {
      const { reply, why } = arrival;
      const cacheStatus = forwardedStatus({ forwarded, status: reply.status, detail: why });
      return passingReply(reply, { httpresponse, cacheStatus });
    }
  }
}

/** Whether an arrival answers somebody else who waited for it. */
export function isShared({ sent }: Visit, arrival: Arrival, nowMs: number): boolean {
  if (!isFresh(arrival, nowMs)) return false;
  if (arrival.kind === 'kept') return fits(arrival.answer, sent);
  return arrival.kind !== 'confirmed' || fits(arrival.held.answer, sent);
}

/** Whether an arrival may answer others than the one who asked, without being asked about anew. */
export function isFresh(arrival: Arrival, nowMs: number): boolean {
  if (arrival.kind === 'passing') return false;
  if (arrival.kind === 'error') return true;
  const { freshness } = arrival.kind === 'kept' ? arrival.answer : arrival.held.answer;
  return !freshness.isValidatedAlways && remainingMs(freshness, nowMs) > 0;
}
