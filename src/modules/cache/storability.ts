import { formatHttpDate } from '../../core/http/date.ts';
import {
  fieldLines,
  replyField,
  withoutFields,
  type FieldList,
  type Reply,
} from '../../core/http/reply.ts';
import type { CachePlan } from './cache-lookup.ts';
import type { StoredRange, StoredResponse } from './cached-response.ts';
import { fieldsOf, governingDirectives, type Directives } from './directives.ts';
import {
  cachedDateMs,
  freshnessOf,
  type Freshness,
  type ReceivedHeader,
  isHeuristicallyCacheable,
} from './freshness.ts';
import { selectingKey, varyNames, withImpliedVary, type SentField } from './selection.ts';

/** What a refusal depends on besides the response. */
interface StorePolicy {
  /** Whether the request carried credentials. */
  readonly hasCredentials: boolean;
  /** Whether the rule stores a response with cookies, without them. */
  readonly storesWithoutCookies: boolean;
}

/**
 * Why a shared cache must not store the response to a GET (RFC 9111 §3), as a Cache-Status token;
 * undefined if it is storable. A response with Set-Cookie is one client's, whatever its lifetime:
 * frameworks start a session on pages with `max-age`, too. `private` or `no-cache` that names the
 * field says that all else is for everybody.
 */
export function refusalToStore(
  received: ReceivedHeader,
  { hasCredentials, storesWithoutCookies }: StorePolicy,
): string | undefined {
  const { status, fields } = received;
  const { directives } = governingDirectives(fields);
  if (hasCredentials && !allowsSharedUse(directives)) return credentialsRefusal;
  if (!isStorable(status)) return 'status';
  if (directives.has('must-understand')) {
    // The no-store beside it is for caches that do not know must-understand (§5.2.2.3).
    if (!understood.has(status)) return 'must-understand';
  } else if (directives.has('no-store')) return 'no-store';
  if (fieldsOf(directives, 'private') === 'all') return 'private';
  if (variesByAll(fields)) return 'vary';
  const setsCookie = fieldLines(fields, 'set-cookie').length > 0;
  if (setsCookie && !storesWithoutCookies && !withheldNames(directives).has('set-cookie')) {
    return 'cookie';
  }
  const freshness = freshnessOf(received);
  if (!freshness.isExplicit) {
    if (!isHeuristicallyCacheable(status) && !directives.has('public')) return 'status';
    // Without an explicit lifetime, a response to credentials has to say `public`.
    if (hasCredentials && !directives.has('public')) return 'cookie';
  }
  return isReusableLater(freshness, fields) ? undefined : 'expired';
}

/**
 * The reason for a response to a request with credentials. A stored response stays, because other
 * clients may get another one.
 */
export const credentialsRefusal = 'credentials';

/** The directives that allow storing a response to credentials (RFC 9111 §3.5). */
function allowsSharedUse(directives: Directives): boolean {
  return ['public', 's-maxage', 'must-revalidate'].some((name) => directives.has(name));
}

/** Final statuses whose caching rules are implemented (RFC 9110 §15, RFC 6585, …). */
const understood: ReadonlySet<number> = new Set([
  ...[200, 201, 202, 203, 204, 205, 206, 207, 208, 226],
  ...[300, 301, 302, 303, 305, 307, 308],
  ...[400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417],
  ...[421, 422, 423, 424, 425, 426, 428, 429, 431, 451],
  ...[500, 501, 502, 503, 504, 505, 506, 507, 508, 511],
]);

/**
 * Final statuses that say what is wrong with one request, or its client, beyond its method and URL:
 * stored, one odd request of a stranger would take the page from all others. RFC 6585 forbids
 * storing its statuses; 412 and 416 depend on the preconditions and range of the request.
 */
const ofOneRequest: ReadonlySet<number> = new Set([
  ...[400, 401, 406, 407, 408, 409, 411, 412, 413, 415, 416, 417, 421, 422, 423, 424, 425, 426],
  ...[428, 429, 431, 511],
]);

/** HTTP defines no status above it (RFC 9110 §15): a cache stores none. */
const lastStatus = 599;

/** Whether responses of a status may be stored with an explicit lifetime. */
function isStorable(status: number): boolean {
  return status >= 200 && status <= lastStatus && status !== 304 && !ofOneRequest.has(status);
}

function variesByAll(fields: FieldList): boolean {
  return fieldLines(fields, 'vary').some((line) =>
    line.split(',').some((name) => name.trim() === '*'),
  );
}

/** Whether a stored response could be reused: it has a lifetime or a validator. */
function isReusableLater(freshness: Freshness, fields: FieldList): boolean {
  if (replyField({ fields }, 'etag') !== undefined) return true;
  if (replyField({ fields }, 'last-modified') !== undefined) return true;
  const { lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs } = freshness;
  return !freshness.isValidatedAlways && lifetimeMs + staleWhileRevalidateMs + staleIfErrorMs > 0;
}

/** The fields of a response, by whether they are stored. Age is in neither: it is computed. */
interface SplitFields {
  readonly stored: FieldList;
  /** For the requesting client only. */
  readonly privateFields: FieldList;
}

/**
 * Separates the fields that a qualified `no-cache` or `private` names (RFC 9111 §3.1), and
 * Set-Cookie, from those that are stored.
 */
export function splitFields(fields: FieldList): SplitFields {
  const { directives } = governingDirectives(fields);
  const names = withheldNames(directives).add('set-cookie');
  const isWithheld = (at: number): boolean => names.has(fields[at - (at % 2)]?.toLowerCase() ?? '');
  return {
    stored: withoutFields(
      fields.filter((_, at) => !isWithheld(at)),
      'age',
    ),
    privateFields: fields.filter((_, at) => isWithheld(at)),
  };
}

/** The lower-case names of fields that directives keep out of a stored response. */
function withheldNames(directives: Directives): Set<string> {
  const named = [fieldsOf(directives, 'no-cache'), fieldsOf(directives, 'private')];
  return new Set(named.filter((one) => one !== 'all').flat());
}

/** A response of a source, with the times that its age counts from. */
export interface ReceivedResponse {
  readonly reply: Reply;
  readonly received: ReceivedHeader;
}

/** Records the times of a response, and adds a missing Date (RFC 9110 §6.6.1). */
export function receiveResponse(
  reply: Reply,
  requestMs: number,
  responseMs: number,
): ReceivedResponse {
  const { status } = reply;
  const dated = fieldLines(reply.fields, 'date');
  const isDated = dated.length === 1 && cachedDateMs(dated[0], responseMs) !== undefined;
  if (isDated) {
    return { reply, received: { status, fields: reply.fields, requestMs, responseMs } };
  }
  const date = ['Date', formatHttpDate(responseMs)];
  const fields: FieldList = [...withoutFields(reply.fields, 'date'), ...date];
  return { reply: { ...reply, fields }, received: { status, fields, requestMs, responseMs } };
}

/** The request and limits that decide whether a response is stored. */
interface StoreParts {
  readonly newId: () => string;
  readonly url: string;
  readonly plan: CachePlan;
  readonly sent: SentField;
  readonly hasCredentials: boolean;
  readonly contentBytesMax: number;
}

/** Makes the stored form of a response; a reason (a Cache-Status token) if it is not storable. */
export function storedResponseFrom(
  { reply, received }: ReceivedResponse,
  { newId, url, plan, sent, hasCredentials, contentBytesMax }: StoreParts,
): StoredResponse | string {
  const { storesWithoutCookies } = plan.fetch;
  const refusal = refusalToStore(received, { hasCredentials, storesWithoutCookies });
  if (refusal !== undefined) return refusal;
  const { status } = received;
  const fields = withImpliedVary(received.fields);
  const range = status === 206 ? rangeOf(fields) : undefined;
  if (status === 206 && range === undefined) return 'parts';
  const bytesLength = lengthOf(reply, range);
  if (bytesLength === undefined) return 'length';
  if (bytesLength > contentBytesMax) return 'too-large';
  const names = varyNames(fields);
  return {
    id: newId(),
    url,
    rule: plan.fetch.id,
    plan: plan.hash,
    status,
    shownStatus: status === 200 ? (plan.fetch.httpresponse ?? 200) : status,
    fields: splitFields(fields).stored,
    freshness: freshnessOf(received),
    varyNames: names,
    selecting: [selectingKey(names, sent)],
    range,
    bytesLength,
  };
}

/**
 * The length of the content in bytes, 0 if unknown; undefined if Content-Length and Content-Range
 * disagree.
 */
function lengthOf({ body, fields }: Reply, range: StoredRange | undefined): number | undefined {
  const said = Number(replyField({ fields }, 'content-length') ?? Number.NaN);
  const length = body.kind === 'bytes' ? body.bytes.length : said;
  const whole = Number.isNaN(length) ? 0 : length;
  if (range === undefined) return whole;
  const ranged = range.last - range.first + 1;
  return Number.isNaN(length) || length === ranged ? ranged : undefined;
}

/** The single range of a response (RFC 9110 §14.4); undefined for several or none. */
function rangeOf(fields: FieldList): StoredRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/i.exec(fieldLines(fields, 'content-range').join(', '));
  const [first = 0, last = 0, completeLength = 0] = (match ?? []).slice(1).map(Number);
  if (match === null || first > last || last >= completeLength) return undefined;
  return { first, last, completeLength };
}
