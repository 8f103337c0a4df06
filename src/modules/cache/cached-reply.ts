import { replyWithPage } from '../../core/http/content/page-reply.ts';
import { contentRange, parseRanges, rangeBytes } from '../../core/http/representation/ranges.ts';
import {
  fieldLines,
  noBody,
  replyField,
  withoutFields,
  type Body,
  type ByteRange,
  type CacheOutcome,
  type FieldList,
  type Part,
  type Reply,
} from '../../core/http/reply.ts';
import { select, type Representation } from '../../core/http/representation/represent.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { Failure } from '../../core/values/failure.ts';
import { ruleName } from '../rules/rule.ts';
import type { CachedResponse, StoredResponse } from './cached-response.ts';
import type { ContentFile } from './content-file.ts';
import { ageMs, cachedDateMs, remainingMs, type Freshness } from './freshness.ts';
import type { StoredEntry } from './storage/record.ts';

/** Makes a cached response from a stored one, with its content if it is loaded. */
export function toCachedResponse(
  answer: StoredResponse,
  content: Buffer | ContentFile | undefined,
  row?: StoredEntry<StoredResponse>,
): CachedResponse {
  const isAtHand = Buffer.isBuffer(content);
  const file = isAtHand ? undefined : content;
  const cached = { answer, row, page: undefined, file, usedSecond: 0 };
  return isAtHand ? withContent(cached, content) : cached;
}

/** Adds the loaded content to a cached response. */
export function withContent(cached: CachedResponse, bytes: Buffer): CachedResponse {
  const { answer } = cached;
  const representation = representationOfAnswer(answer);
  const page = { representation, bytes, answered: { source: sourceOf(answer) } };
  return Object.assign(cached, { page });
}

/**
 * Answers a request from a cached response: evaluates preconditions and ranges, and adds Age and
 * Cache-Status. Throws `bad_gateway` if the content file was just removed.
 */
export function cachedReply(
  cached: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  nowMs: number,
  cacheStatus: CacheStatus,
): Reply {
  const { answer } = cached;
  const reply =
    answer.range === undefined ? wholeReply(cached, request) : rangeReply(cached, request);
  const age = Math.floor(ageMs(answer.freshness, nowMs) / 1000);
  // An Age field tells clients that the response is not new (RFC 9111 §5.1).
  const isNew =
    age === 0 && (cacheStatus.outcome === 'miss' || cacheStatus.outcome === 'revalidated');
  const date = replyField(reply, 'date') === undefined ? fieldLines(answer.fields, 'date') : [];
  const fields = [
    ...reply.fields,
    ...date.flatMap((value) => ['Date', value]),
    ...(isNew ? [] : ['Age', String(age)]),
  ];
  return withCacheStatus({ ...reply, fields }, cacheStatus);
}

/**
 * The response to a cache hit (RFC 9111 §4). A fresh one may be reused until the end of the second,
 * because its Age is then the same, as long as no other stored variant could match.
 */
export function hitReply(
  cached: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  nowMs: number,
  answers: { readonly find: (url: string) => readonly CachedResponse[] },
): Reply {
  const { freshness } = cached.answer;
  const reply = cachedReply(cached, request, nowMs, hitStatus(freshness, nowMs));
  if (remainingMs(freshness, nowMs) <= 0) return reply;
  const isCurrent = (atMs: number): boolean =>
    secondOf(atMs) === secondOf(nowMs) &&
    remainingMs(freshness, atMs) > 0 &&
    isOnlyChoice(cached, answers.find(cached.answer.url));
  return { ...reply, isReusable: true, isCurrent };
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Whether a response is still stored, and all others of its URL have the same Vary. */
function isOnlyChoice(cached: CachedResponse, known: readonly CachedResponse[]): boolean {
  if (known.length === 1) return known[0] === cached;
  const names = cached.answer.varyNames.join();
  return known.includes(cached) && known.every(({ answer }) => answer.varyNames.join() === names);
}

/**
 * Whether a stored response covers a request (RFC 9111 §3.3): a stored range covers a request for
 * one range within it.
 */
export function covers(
  { range }: StoredResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): boolean {
  return range === undefined || rangeWithin(range, request) !== undefined;
}

function rangeWithin(
  { first, last, completeLength }: NonNullable<StoredResponse['range']>,
  { method, fields }: Pick<ContentRequest, 'method' | 'fields'>,
): ByteRange | undefined {
  if (method !== 'GET' || fields.range === undefined || fields['if-range'] !== undefined) {
    return undefined;
  }
  const [asked, ...others] = parseRanges(fields.range, completeLength) ?? [];
  if (asked === undefined || others.length > 0) return undefined;
  return asked.first >= first && asked.last <= last ? asked : undefined;
}

/** Answers from a whole representation. */
function wholeReply(
  cached: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): Reply {
  if (cached.page !== undefined) return replyWithPage(cached.page, request);
  const { answer } = cached;
  const { status, fields, parts, bytesLength } = select(representationOfAnswer(answer), request);
  const body = parts.length === 0 ? noBody : fileBody(cached, parts, bytesLength);
  return { status, fields, body, source: sourceOf(answer) };
}

/** Answers from a stored range. */
function rangeReply(
  cached: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): Reply {
  const { answer, page } = cached;
  const { range } = answer;
  const asked = range && rangeWithin(range, request);
  if (range === undefined || asked === undefined) return wholeReply(cached, plainGet);
  const { status, fields } = select(representationOfAnswer(answer), plainGet);
  const [first, last] = [asked.first - range.first, asked.last - range.first];
  const bytesLength = rangeBytes(asked);
  return {
    status,
    fields: [
      ...withoutFields(fields, 'content-length', 'content-range'),
      'Content-Length',
      String(bytesLength),
      'Content-Range',
      contentRange(asked, range.completeLength),
    ],
    body:
      page === undefined
        ? fileBody(cached, [{ first, last }], bytesLength)
        : { kind: 'bytes', bytes: page.bytes.subarray(first, last + 1) },
    source: sourceOf(answer),
  };
}

/** A request without preconditions or ranges. */
const plainGet = { method: 'GET', fields: {} } as const;

function fileBody(
  { answer, file }: CachedResponse,
  parts: readonly Part[],
  bytesLength: number,
): Body {
  if (file === undefined) throw new TypeError(`the content of ${answer.id} is not at hand`);
  const opened = file.open();
  if (opened === undefined)
    throw new Failure('bad_gateway', 'The cached page was just removed. Request it again.');
  return { kind: 'file', file: opened, parts, bytesLength };
}

function sourceOf({ rule }: StoredResponse): string {
  return ruleName(rule);
}

function representationOfAnswer(answer: StoredResponse): Representation {
  const { fields, shownStatus: status, bytesLength, freshness } = answer;
  return representationOf(fields, { status, bytesLength, receivedMs: freshness.bornMs });
}

/** Fields that `select` generates from the representation. */
const generatedFields = ['content-type', 'content-length', 'etag', 'accept-ranges'];

/** The representation in a response of a source, without its content. */
export function representationOf(
  fields: FieldList,
  {
    status,
    bytesLength,
    receivedMs,
  }: { readonly status: number; readonly bytesLength: number; readonly receivedMs: number },
): Representation {
  const lastModified = fieldLines(fields, 'last-modified')[0];
  const lastModifiedMs = cachedDateMs(lastModified, receivedMs);
  const others = withoutFields(fields, ...generatedFields);
  return {
    status,
    contentType: replyField({ fields }, 'content-type'),
    etag: replyField({ fields }, 'etag'),
    lastModifiedMs,
    lastModified,
    fields: lastModifiedMs === undefined ? others : withoutFields(others, 'last-modified'),
    bytesLength,
  };
}

/** How the cache handled a request, for clients and the access log. */
interface CacheStatus {
  /** A member of Cache-Status (RFC 9211 §2). */
  readonly member: string;
  readonly outcome: CacheOutcome;
}

/** Adds Cache-Status to a response. */
export function withCacheStatus(reply: Reply, { member, outcome }: CacheStatus): Reply {
  const fields = [...reply.fields, 'Cache-Status', member];
  return { ...reply, fields, cache: outcome };
}

/** Why a request was forwarded to its source (RFC 9211 §2.2). */
export type ForwardReason =
  | 'bypass'
  | 'method'
  | 'uri-miss'
  | 'vary-miss'
  | 'miss'
  | 'request'
  | 'stale'
  | 'partial';

/** How a request was forwarded. */
interface ForwardedRequest {
  readonly forwarded: ForwardReason;
  readonly outcome?: CacheOutcome;
  /** The status of the source; undefined if it did not respond. */
  readonly status?: number;
  readonly isStored?: boolean;
  /** Whether it was coalesced with another request. */
  readonly isCollapsed?: boolean;
  /** Why it was not stored, or why a stale response was served: a token. */
  readonly detail?: string | undefined;
}

/** This cache's name in Cache-Status. */
const cacheName = 'waymark';

/** The Cache-Status of a hit, with the remaining lifetime in seconds, negative if stale. */
function hitStatus(freshness: Freshness, nowMs: number): CacheStatus {
  const ttl = Math.floor((freshness.lifetimeMs - ageMs(freshness, nowMs)) / 1000);
  return { member: `${cacheName}; hit; ttl=${ttl}`, outcome: ttl < 0 ? 'stale' : 'hit' };
}

/** The Cache-Status of a forwarded request. */
export function forwardedStatus({
  forwarded,
  outcome = 'miss',
  status,
  isStored = false,
  isCollapsed = false,
  detail,
}: ForwardedRequest): CacheStatus {
  let member = `${cacheName}; fwd=${forwarded}`;
  if (status !== undefined) member += `; fwd-status=${status}`;
  if (isStored) member += '; stored';
  if (isCollapsed) member += '; collapsed';
  if (detail !== undefined) member += `; detail=${detail}`;
  return { member, outcome };
}
