import { type FieldList, fieldLines, replyField } from '../../core/http/reply.ts';
import type { ContentRequest, Fields } from '../../core/http/request.ts';
import type { Cancellation } from '../../core/values/failure.ts';
import type { CachedResponse, StoredResponse } from './cached-response.ts';
import { type ReceivedHeader, freshnessOf } from './freshness.ts';
import { type SentField, selectingKey, varyNames, withImpliedVary } from './selection.ts';
import { splitFields } from './storability.ts';

/** Values of the fields in Vary for which a source has confirmed the same response. */
const selectingsPerAnswerMax = 16;

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

/** Fields that freshening leaves unchanged (RFC 9111 §3.2): they describe the stored content. */
const notUpdated: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
]);

/** A freshened response, and the fields for the requesting client only. */
export interface FreshenedResponse {
  readonly answer: StoredResponse;
  readonly privateFields: FieldList;
}

/**
 * Freshens a stored response with the fields of a 304, or of the 200 to a HEAD (RFC 9111 §3.2): a
 * new field replaces all lines of the old one. It matches the current request, and the earlier ones
 * too unless its Vary has changed (§4.1).
 */
export function freshened(
  stored: StoredResponse,
  update: ReceivedHeader,
  sent: SentField,
): FreshenedResponse {
  const fresh = update.fields;
  const replaced = new Set(fresh.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()));
  const isOver = (name: string): boolean => replaced.has(name) && !notUpdated.has(name);
  const kept = pairsWhere(stored.fields, (name) => !isOver(name));
  const added = pairsWhere(fresh, (name) => !notUpdated.has(name));
  const fields = withImpliedVary([...kept, ...added]);
  const names = varyNames(fields);
  const key = selectingKey(names, sent);
  const isSameVary = names.join() === stored.varyNames.join();
  const others = isSameVary ? stored.selecting.filter((one) => one !== key) : [];
  const { stored: shared, privateFields } = splitFields(fields);
  const answer = {
    ...stored,
    fields: shared,
    varyNames: names,
    selecting: [key, ...others].slice(0, selectingsPerAnswerMax),
    freshness: freshnessOf({ ...update, status: stored.status, fields }),
  };
  return { answer, privateFields };
}

/**
 * Whether a 304 selects a stored response (RFC 9111 §4.3.4): by its entity tag, else by
 * Last-Modified. A 304 without a validator selects the only response that was validated.
 */
export function isSelectedBy304(
  stored: StoredResponse,
  fields: FieldList,
  askedAbout: number,
): boolean {
  for (const name of ['etag', 'last-modified']) {
    const confirmed = replyField({ fields }, name);
    if (confirmed !== undefined)
      return opaqueTag(replyField(stored, name)) === opaqueTag(confirmed);
  }
  return askedAbout === 1;
}

/**
 * Whether the response to a HEAD has the validators and length of a stored one (RFC 9111 §4.3.5).
 */
export function isSameRepresentation(stored: StoredResponse, fields: FieldList): boolean {
  return ['etag', 'last-modified', 'content-length'].every((name) => {
    const said = replyField({ fields }, name);
    return said === undefined || said === replyField(stored, name);
  });
}

function opaqueTag(tag: string | undefined): string | undefined {
  return tag?.replace(/^W\//, '');
}

function pairsWhere(fields: FieldList, wanted: (lowerCaseName: string) => boolean): FieldList {
  return fields.filter((_, at) => wanted(fields[at - (at % 2)]?.toLowerCase() ?? ''));
}
