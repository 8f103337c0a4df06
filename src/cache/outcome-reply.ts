import { discard, type FieldList, type Reply } from '../http/reply.ts';
import type { CachedResponse } from './cached-response.ts';
import type { FetchOutcome } from './source-fetch.ts';
import { forwardedStatus, withCacheStatus, type ForwardReason } from './cache-status.ts';
import { sharedBodyReply, forwardedReply } from './forwarded-reply.ts';
import { remainingMs } from './freshness.ts';
import { cachedReply } from './cached-reply.ts';
import { mayStandIn } from './reuse.ts';
import { credentialsRefusal } from './storability.ts';
import { matchesVary, type CacheLookup } from './cache-lookup.ts';

/** An arrival, and one who gets it. */
interface OutcomeReplyParts {
  readonly visit: CacheLookup;
  readonly forwarded: ForwardReason;
  /** The kept answer that the source was asked about. */
  readonly held: CachedResponse | undefined;
  readonly arrival: FetchOutcome;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Whether somebody else has asked. */
  readonly isCollapsed: boolean;
}

/** The answer that somebody gets from what has arrived, with the member of Cache-Status. */
export function replyFromOutcome({
  visit: { request, plan },
  forwarded,
  held,
  arrival,
  nowMs,
  isCollapsed,
}: OutcomeReplyParts): Reply {
  const { httpresponse } = plan.fetch;
  const outcome = forwarded === 'method' ? 'pass' : 'miss';
  switch (arrival.kind) {
    case 'kept': {
      const { content, answer } = arrival;
      const { status } = answer;
      const told = forwardedStatus({ forwarded, status, isStored: true, isCollapsed, outcome });
      const reply =
        'page' in content
          ? cachedReply(content, request, nowMs, told)
          : withCacheStatus(sharedBodyReply(answer, content, request, nowMs), told);
      return withPrivateFields(reply, arrival.leftOut, isCollapsed);
    }
    case 'confirmed': {
      const { held: confirmed, isKept, leftOut } = arrival;
      const asked = { forwarded, status: 304, isStored: isKept, isCollapsed };
      const told = forwardedStatus({ ...asked, outcome: 'revalidated' });
      return withPrivateFields(cachedReply(confirmed, request, nowMs, told), leftOut, isCollapsed);
    }
    case 'error': {
      const { reply } = arrival;
      const { status } = reply;
      const asked = { forwarded, status, detail: 'stale-if-error' };
      if (held === undefined) {
        return withCacheStatus(
          forwardedReply(reply, httpresponse, request),
          forwardedStatus({ ...asked, outcome }),
        );
      }
      void discard(reply);
      return cachedReply(held, request, nowMs, forwardedStatus({ ...asked, outcome: 'stale' }));
    }
    case 'passing': {
      const { reply, why: detail } = arrival;
      const told = forwardedStatus({ forwarded, status: reply.status, detail, outcome });
      return withCacheStatus(forwardedReply(reply, httpresponse, request), told);
    }
  }
}

/** An answer with the fields that are for the one alone who asked, if that is who gets it. */
function withPrivateFields(reply: Reply, leftOut: FieldList, isCollapsed: boolean): Reply {
  if (isCollapsed || leftOut.length === 0) return reply;
  return { ...reply, fields: [...reply.fields, ...leftOut] };
}

/** Whether an arrival answers somebody else who waited for it, about the same kept answer. */
export function isUsableFor(
  { sent, asked }: CacheLookup,
  held: CachedResponse | undefined,
  arrival: FetchOutcome,
  nowMs: number,
): boolean {
  if (arrival.kind === 'error') {
    return held !== undefined && mayStandIn(held.answer.freshness, 'error', asked, nowMs);
  }
  if (!isFreshOutcome(arrival, nowMs)) return false;
  if (arrival.kind === 'kept') return matchesVary(arrival.answer, sent);
  return arrival.kind !== 'confirmed' || matchesVary(arrival.held.answer, sent);
}

/** Whether an arrival may answer others than the one who asked, without being asked about anew. */
export function isFreshOutcome(arrival: FetchOutcome, nowMs: number): boolean {
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
export function replacesStored(arrival: FetchOutcome): boolean {
  if (arrival.kind !== 'passing' || arrival.why === credentialsRefusal) return false;
  const { status } = arrival.reply;
  return (status < 400 && status !== 304) || status === 404 || status === 410;
}
