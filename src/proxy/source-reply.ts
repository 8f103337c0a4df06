import { Readable } from 'node:stream';
import { plainPage } from '../http/html.ts';
import {
  isEmptyStatus,
  noBody,
  replyField,
  withoutFields,
  type Body,
  type FieldList,
  type Reply,
} from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import { trailerFields } from './response-fields.ts';
import type { FetchPlan } from './fetch-plan.ts';

/** Turns a source's answer into the reply to the client; `fields` are already rewritten. */
export function replyToClient(
  answer: SourceResponse,
  {
    request,
    plan,
    fields,
  }: {
    readonly request: ContentRequest;
    readonly plan: FetchPlan;
    readonly fields: FieldList;
  },
): Reply {
  const status = answer.status === 200 ? (plan.httpresponse ?? 200) : answer.status;
  const source = `rule:${plan.id}`;
  if (request.method === 'HEAD' || isEmptyStatus(status)) {
    answer.discard();
    // RFC 9110 §8.6: a 204 has no Content-Length; that of a 304 or to a HEAD is the length a GET
    // would have had.
    const kept =
      status === 204 || status === 205 ? withoutFields(fields, 'content-length') : fields;
    return { status, fields: kept, body: noBody, source };
  }
  const length = replyField({ fields }, 'content-length');
  const takesTrailers = length === undefined && acceptsTrailers(request);
  const body = takesTrailers ? bodyWithTrailers(answer) : bodyFrom(answer, length);
  if (body.kind !== 'bytes' || length !== undefined) return { status, fields, body, source };
  const measured = [...fields, 'Content-Length', String(body.bytes.length)];
  return { status, fields: measured, body, source };
}

function bodyFrom(answer: SourceResponse, contentLength: string | undefined): Body {
  const content = answer.content();
  if (Buffer.isBuffer(content)) return { kind: 'bytes', bytes: content };
  const bytesLength = contentLength === undefined ? undefined : Number(contentLength);
  return { kind: 'stream', stream: content, bytesLength };
}

/** Whether a client accepts trailer fields (RFC 9110 §10.1.4). */
function acceptsTrailers({ fields }: ContentRequest): boolean {
  return fields.te !== undefined && /(?:^|[\s,])trailers(?:[\s,;]|$)/i.test(fields.te);
}

/** Content without a known length, with the source's trailer fields. */
function bodyWithTrailers(answer: SourceResponse): Body {
  const content = answer.content();
  const trailers = (): FieldList => trailerFields(answer.trailers());
  if (Buffer.isBuffer(content) && trailers().length === 0) return { kind: 'bytes', bytes: content };
  const stream = Buffer.isBuffer(content) ? Readable.from([content]) : content;
  return { kind: 'stream', stream, bytesLength: undefined, trailers };
}

/** The reply to a request that comes back to the rule that sent it (508, after RFC 5842 §7.2). */
export function loopReply({ id }: FetchPlan): Reply {
  const page = plainPage('508 Loop Detected', 'This page is fetched from itself.');
  const bytes = Buffer.from(page);
  return {
    status: 508,
    fields: [
      'Content-Type',
      'text/html; charset=utf-8',
      'Content-Length',
      String(bytes.length),
      'Cache-Control',
      'no-store',
    ],
    body: { kind: 'bytes', bytes },
    source: `rule:${id}`,
  };
}
