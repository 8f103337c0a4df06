import { parseHttpDate } from '../http/date.ts';
import { plainPage } from '../http/html.ts';
import {
  discard,
  isEmptyStatus,
  noBody,
  replyField,
  withoutFields,
  type Reply,
} from '../http/reply.ts';
import { asksForLess, select } from '../http/represent.ts';
import type { ContentRequest } from '../http/request.ts';
import type { StoredResponse } from './cached-response.ts';
import { forwardedStatus, withCacheStatus } from './cache-status.ts';
import { ageMs } from './freshness.ts';
import { representationOf } from './cached-reply.ts';
import type { SharedBody } from './shared-body.ts';

/**
 * The response to one request from a body that still arrives. It has an Age if a cache between here
 * and its source stored it (RFC 9111 §5.1).
 */
export function sharedBodyReply(
  answer: StoredResponse,
  content: SharedBody,
  request: ContentRequest,
  nowMs: number,
): Reply {
  const { shownStatus: status, freshness } = answer;
  const age = Math.floor(ageMs(freshness, nowMs) / 1000);
  const aged = age === 0 ? [] : ['Age', String(age)];
  const fields = [...answer.fields, ...aged];
  const source = `rule:${answer.rule}`;
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
  const status = reply.status === 200 ? (httpresponse ?? 200) : reply.status;
  const known = notModifiedReply({ ...reply, status }, request);
  if (known !== undefined) {
    void discard(reply);
    return known;
  }
  if (!isEmptyStatus(status) || reply.body.kind === 'none') return { ...reply, status };
  void discard(reply);
  return { ...reply, status, fields: withoutFields(reply.fields, 'content-length'), body: noBody };
}

/** A 304 if the preconditions of the request match; else undefined. */
function notModifiedReply(
  { status, fields, source }: Pick<Reply, 'status' | 'fields' | 'source'>,
  request: ContentRequest,
): Reply | undefined {
  if (status !== 200 || !asksForLess(request.fields)) return undefined;
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
    source: `rule:${rule}`,
  };
  return withCacheStatus(reply, forwardedStatus({ forwarded: 'miss' }));
}
