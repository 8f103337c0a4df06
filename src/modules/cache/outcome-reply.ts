import { plainPage } from '../../core/http/content/page.ts';
import { parseHttpDate } from '../../core/http/date.ts';
import {
  type FieldList,
  type Reply,
  discard,
  isEmptyStatus,
  noBody,
  replyField,
  withoutFields,
} from '../../core/http/reply.ts';
import { hasPreconditionOrRange, select } from '../../core/http/representation/represent.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { ruleName } from '../rules/rule.ts';
import { type CacheLookup, matchesVary } from './cache-lookup.ts';
import {
  type ForwardReason,
  cachedReply,
  forwardedStatus,
  representationOf,
  withCacheStatus,
} from './cached-reply.ts';
import type { CachedResponse, StoredResponse } from './cached-response.ts';
import { ageMs, mayServeStale, remainingMs } from './freshness.ts';
import type { SharedBody } from './shared-body.ts';
import type { FetchOutcome } from './source-fetch.ts';
import { credentialsRefusal } from './storability.ts';

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

/**
 * The response to one request from a body that still arrives. It has an Age if a cache between here
 * and its source stored it (RFC 9111 §5.1).
 */
function sharedBodyReply(
  answer: StoredResponse,
  content: SharedBody,
  request: ContentRequest,
  nowMs: number,
): Reply {
  const { shownStatus: status, freshness } = answer;
  const age = Math.floor(ageMs(freshness, nowMs) / 1000);
  const aged = age === 0 ? [] : ['Age', String(age)];
  const fields = [...answer.fields, ...aged];
  const source = ruleName(answer.rule);
  const known = notModifiedReply({ status, fields, source }, request);
  if (known !== undefined) return { ...known, fields: [...known.fields, ...aged] };
  if (isEmptyStatus(status)) {
    return { status, fields: withoutFields(fields, 'content-length'), body: noBody, source };
  }
  const length = replyField({ fields }, 'content-length');
  const bytesLength = length === undefined ? undefined : Number(length);
  const body = { kind: 'stream', stream: content.read(), bytesLength } as const;
  return { status, fields, body, source };
}

/**
 * A response for the requesting client only: as the source sent it, with the status of the rule; a
 * 304 if the client's preconditions match.
 */
export function forwardedReply(
  reply: Reply,
  httpresponse: number | undefined,
  request: ContentRequest,
): Reply {
  const { fields, source } = reply;
  const status = reply.status === 200 ? (httpresponse ?? 200) : reply.status;
  const known = notModifiedReply({ status, fields, source }, request);
  if (known !== undefined) {
    void discard(reply);
    return known;
  }
  if (!isEmptyStatus(status) || reply.body.kind === 'none') {
    return status === reply.status ? reply : { ...reply, status };
  }
  void discard(reply);
  return { ...reply, status, fields: withoutFields(fields, 'content-length'), body: noBody };
}

/** A 304 if the preconditions of the request match; else undefined. */
function notModifiedReply(
  { status, fields, source }: Pick<Reply, 'status' | 'fields' | 'source'>,
  request: ContentRequest,
): Reply | undefined {
  if (status !== 200 || !hasPreconditionOrRange(request.fields)) return undefined;
  const date = replyField({ fields }, 'date') ?? '';
  const said = { status, bytesLength: 0, receivedMs: parseHttpDate(date, 0) ?? 0 };
  const selection = select(representationOf(fields, said), request);
  if (selection.status !== 304) return undefined;
  return { status: 304, fields: [...selection.fields, 'Date', date], body: noBody, source };
}

/** The response to `only-if-cached` without a stored response (RFC 9111 §5.2.1.7). */
export function notCachedReply(rule: string): Reply {
  const page = plainPage('504 Gateway Timeout', 'This page is not in the cache.');
  const bytes = Buffer.from(page);
  const type = ['Content-Type', 'text/html; charset=utf-8'];
  const length = ['Content-Length', String(bytes.length)];
  const fields = [...type, ...length, 'Cache-Control', 'no-store'];
  const reply: Reply = {
    status: 504,
    fields,
    body: { kind: 'bytes', bytes },
    source: ruleName(rule),
  };
  return withCacheStatus(reply, forwardedStatus({ forwarded: 'miss' }));
}
