import { fieldLines, replyField } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import type { Cancellation } from '../model/cancellation.ts';
import type { CachedResponse } from './cached-response.ts';

/** What makes an answer less than what the target has to show (RFC 9110 §13, §14). */
const conditions = [
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
] as const;

/**
 * Whether a request has preconditions that are the source's to evaluate (RFC 9111 §4.3.2): caches
 * have no part in them.
 */
export function hasSourcePreconditions(fields: Fields): boolean {
  return fields['if-match'] !== undefined || fields['if-unmodified-since'] !== undefined;
}

/** A request for all of the target, on behalf of whoever waits for it. */
export function unconditional(request: ContentRequest, signal: Cancellation): ContentRequest {
  const isConditional = conditions.some((name) => request.fields[name] !== undefined);
  return isConditional ? withConditions(request, {}, signal) : asSent(request, signal);
}

/** A request as its client made it, for as long as somebody waits for its answer. */
export function asSent(request: ContentRequest, signal: Cancellation): ContentRequest {
  return signal === request.signal ? request : asGet(request, request.fields, signal);
}

/** What the source is sent: by one alone what the client sent, else what answers many. */
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
 * A request that asks whether kept answers are still what the target has to show (RFC 9111 §4.3.1):
 * with all their entity tags; with the date of the one that would be sent.
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

/** Whether there is anything by which a kept answer can be validated. */
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
