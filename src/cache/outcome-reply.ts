import { discard, type FieldList, type Reply } from '../http/reply.ts';
import type { CachedResponse } from './cached-response.ts';
import type { FetchOutcome } from './source-fetch.ts';
import { forwardedStatus, withCacheStatus, type ForwardReason } from './cache-status.ts';
import { sharedBodyReply, forwardedReply } from './forwarded-reply.ts';
import { remainingMs } from './freshness.ts';
import { cachedReply } from './cached-reply.ts';
import { mayServeStale } from './reuse.ts';
import { credentialsRefusal } from './storability.ts';
import { matchesVary, type CacheLookup } from './cache-lookup.ts';

/** A fetch outcome, and the request that gets its response. */
interface OutcomeReplyParts {
  readonly lookup: CacheLookup;
  readonly forwarded: ForwardReason;
  /** The stored response that the source validated. */
  readonly cached: CachedResponse | undefined;
  readonly outcome: FetchOutcome;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Whether the request joined the fetch of another request. */
  readonly isCollapsed: boolean;
}

/** Makes the response to one request from a fetch outcome, with its Cache-Status. */
export function replyFromOutcome({
  lookup: { request, plan },
  forwarded,
  cached,
  outcome,
  nowMs,
  isCollapsed,
}: OutcomeReplyParts): Reply {
  const { httpresponse } = plan.fetch;
  const cacheOutcome = forwarded === 'method' ? 'pass' : 'miss';
  switch (outcome.kind) {
    case 'stored': {
      const { content, answer } = outcome;
      const { status } = answer;
      const cacheStatus = forwardedStatus({
        forwarded,
        status,
        isStored: true,
        isCollapsed,
        outcome: cacheOutcome,
      });
      const reply =
        'page' in content
          ? cachedReply(content, request, nowMs, cacheStatus)
          : withCacheStatus(sharedBodyReply(answer, content, request, nowMs), cacheStatus);
      return withPrivateFields(reply, outcome.privateFields, isCollapsed);
    }
    case 'revalidated': {
      const { cached: confirmed, isStored, privateFields } = outcome;
      const forwardedRequest = { forwarded, status: 304, isStored, isCollapsed };
      const cacheStatus = forwardedStatus({ ...forwardedRequest, outcome: 'revalidated' });
      return withPrivateFields(
        cachedReply(confirmed, request, nowMs, cacheStatus),
        privateFields,
        isCollapsed,
      );
    }
    case 'error': {
      const { reply } = outcome;
      const { status } = reply;
      const forwardedRequest = { forwarded, status, detail: 'stale-if-error' };
      if (cached === undefined) {
        return withCacheStatus(
          forwardedReply(reply, httpresponse, request),
          forwardedStatus({ ...forwardedRequest, outcome: cacheOutcome }),
        );
      }
      void discard(reply);
      return cachedReply(
        cached,
        request,
        nowMs,
        forwardedStatus({ ...forwardedRequest, outcome: 'stale' }),
      );
    }
    case 'forwarded': {
      const { reply, reason: detail } = outcome;
      const cacheStatus = forwardedStatus({
        forwarded,
        status: reply.status,
        detail,
        outcome: cacheOutcome,
      });
      return withCacheStatus(forwardedReply(reply, httpresponse, request), cacheStatus);
    }
  }
}

/** Adds the private fields to the response of the client whose request went to the source. */
function withPrivateFields(reply: Reply, privateFields: FieldList, isCollapsed: boolean): Reply {
  if (isCollapsed || privateFields.length === 0) return reply;
  return { ...reply, fields: [...reply.fields, ...privateFields] };
}

/** Whether a fetch outcome answers another request that joined the fetch. */
export function isUsableFor(
  { sent, directives }: CacheLookup,
  cached: CachedResponse | undefined,
  outcome: FetchOutcome,
  nowMs: number,
): boolean {
  if (outcome.kind === 'error') {
    return (
      cached !== undefined && mayServeStale(cached.answer.freshness, 'error', directives, nowMs)
    );
  }
  if (!isFreshOutcome(outcome, nowMs)) return false;
  if (outcome.kind === 'stored') return matchesVary(outcome.answer, sent);
  return outcome.kind !== 'revalidated' || matchesVary(outcome.cached.answer, sent);
}

/** Whether a fetch outcome may answer other requests without another validation. */
export function isFreshOutcome(outcome: FetchOutcome, nowMs: number): boolean {
  if (outcome.kind === 'forwarded') return false;
  if (outcome.kind === 'error') return true;
  if (outcome.kind === 'revalidated' && !outcome.isStored) return false;
  const { freshness } = outcome.kind === 'stored' ? outcome.answer : outcome.cached.answer;
  return !freshness.isValidatedAlways && remainingMs(freshness, nowMs) > 0;
}

/**
 * Whether a response that is not stored replaces the stored one all the same (RFC 9111 §4.3.3): the
 * page no longer exists, or now differs for each client.
 */
export function replacesStored(outcome: FetchOutcome): boolean {
  if (outcome.kind !== 'forwarded' || outcome.reason === credentialsRefusal) return false;
  const { status } = outcome.reply;
  return (status < 400 && status !== 304) || status === 404 || status === 410;
}
