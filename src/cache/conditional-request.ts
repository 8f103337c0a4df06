import { fieldLines, replyField } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import type { Cancellation } from '../model/cancellation.ts';
import type { CachedResponse } from './cached-response.ts';

/** Fields that make a response partial or conditional (RFC 9110 §13, §14). */
const conditions = [
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
] as const;

/** Whether a request has preconditions that only the source may evaluate (RFC 9111 §4.3.2). */
export function hasSourcePreconditions(fields: Fields): boolean {
  return fields['if-match'] !== undefined || fields['if-unmodified-since'] !== undefined;
}

/** A request for the whole representation, without preconditions. */
export function unconditional(request: ContentRequest, signal: Cancellation): ContentRequest {
  const isConditional = conditions.some((name) => request.fields[name] !== undefined);
  return isConditional ? withConditions(request, {}, signal) : asSent(request, signal);
}

/** A request as the client sent it, with the signal of the fetch. */
export function asSent(request: ContentRequest, signal: Cancellation): ContentRequest {
  return signal === request.signal ? request : asGet(request, request.fields, signal);
}

/**
 * The request to the source: a validation if possible; for an unshareable response what the client
 * sent; else an unconditional GET.
 */
export function sourceRequest(
  request: ContentRequest,
  {
    validating,
    isUnshareable,
    signal,
  }: {
    readonly validating: readonly CachedResponse[];
    readonly isUnshareable: boolean;
    readonly signal: Cancellation;
  },
): ContentRequest {
  if (validating.length > 0) return validationRequest(request, validating, signal);
  return isUnshareable ? asSent(request, signal) : unconditional(request, signal);
}

/**
 * A validation of stored responses (RFC 9111 §4.3.1): with all their entity tags, and with
 * Last-Modified if there is one response.
 */
function validationRequest(
  request: ContentRequest,
  cached: readonly CachedResponse[],
  signal: Cancellation,
): ContentRequest {
  const tags = cached.flatMap(({ answer }) => replyField(answer, 'etag') ?? []);
  const [only, ...others] = cached;
  const date = others.length > 0 || only === undefined ? undefined : lastModifiedOf(only);
  const fields = {
    ...(tags.length > 0 && { 'if-none-match': [...new Set(tags)].join(', ') }),
    ...(date !== undefined && { 'if-modified-since': date }),
  };
  return withConditions(request, fields, signal);
}

/** Whether a response has a validator. */
export function isValidatable({ answer }: CachedResponse): boolean {
  return replyField(answer, 'etag') !== undefined || lastModifiedOf({ answer }) !== undefined;
}

function lastModifiedOf({ answer }: Pick<CachedResponse, 'answer'>): string | undefined {
  return fieldLines(answer.fields, 'last-modified')[0];
}

function withConditions(
  request: ContentRequest,
  added: Fields,
  signal: Cancellation,
): ContentRequest {
  const fields = Object.create(null) as Record<string, string | undefined>;
  Object.assign(fields, request.fields);
  for (const name of conditions) fields[name] = undefined;
  Object.assign(fields, added);
  return asGet(request, fields, signal);
}

function asGet(request: ContentRequest, fields: Fields, signal: Cancellation): ContentRequest {
  return { ...request, method: 'GET', body: undefined, fields, signal };
}
