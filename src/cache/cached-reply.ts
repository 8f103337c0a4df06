import { contentRange, parseRanges, rangeBytes } from '../http/ranges.ts';
import {
  fieldLines,
  noBody,
  replyField,
  withoutFields,
  type Body,
  type ByteRange,
  type FieldList,
  type Part,
  type Reply,
} from '../http/reply.ts';
import { asksForLess, select, type Representation } from '../http/represent.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Row } from './storage/record.ts';
import { holdPage, sendHeld } from '../http/held-page.ts';
import type { CachedResponse, StoredResponse } from './cached-response.ts';
import { hitStatus, withCacheStatus, type CacheStatus } from './cache-status.ts';
import type { ContentFile } from './content-file.ts';
import { ageMs, cachedDateMs, remainingMs } from './freshness.ts';

/** Has a kept answer in memory, with its content where that is at hand. */
export function toCachedResponse(
  answer: StoredResponse,
  content: Buffer | ContentFile | undefined,
  row?: Row<StoredResponse>,
): CachedResponse {
  const isAtHand = Buffer.isBuffer(content);
  const file = isAtHand ? undefined : content;
  const cached = { answer, row, page: undefined, file, usedSecond: 0, whole: undefined };
  return isAtHand ? withContent(cached, content) : cached;
}

/** Makes a kept answer ready to be sent. */
export function withContent(cached: CachedResponse, bytes: Buffer): CachedResponse {
  const { answer } = cached;
  const page = { representation: representationOfAnswer(answer), bytes };
  return Object.assign(cached, { page: holdPage(page, sourceOf(answer)) });
}

/**
 * What a request's preconditions and ranges ask for of a kept answer, with its age and what the
 * cache did for it. Throws `bad_gateway` where its file has gone this very moment.
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
  // That it is there says that the source was not asked for it just now (RFC 9111 §5.1).
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
 * The answer to a request that a kept answer fits, as it was kept: a hit (RFC 9111 §4). While it is
 * fresh, others may have it as well until the second is over, as long as nothing else is kept that
 * could be for them.
 */
export function hitReply(
  cached: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  nowMs: number,
  answers: { readonly find: (url: string) => readonly CachedResponse[] },
): Reply {
  const second = secondOf(nowMs);
  const make = (): Reply => {
    const { freshness } = cached.answer;
    const reply = cachedReply(cached, request, nowMs, hitStatus(freshness, nowMs));
    if (remainingMs(freshness, nowMs) <= 0) return reply;
    const holds = (atMs: number): boolean =>
      secondOf(atMs) === second &&
      remainingMs(freshness, atMs) > 0 &&
      isOnlyChoice(cached, answers.find(cached.answer.url));
    return { ...reply, isReusable: true, holds };
  };
  const isPlain = request.method === 'GET' && !asksForLess(request.fields);
  // What is read from a file is read anew for each.
  if (!isPlain || cached.page === undefined) return make();
  if (cached.whole?.second !== second) cached.whole = { second, reply: make() };
  return cached.whole.reply;
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Whether a kept answer is still kept, and the others of its URL vary by nothing else. */
function isOnlyChoice(cached: CachedResponse, known: readonly CachedResponse[]): boolean {
  if (known.length === 1) return known[0] === cached;
  const names = cached.answer.varyNames.join();
  return known.includes(cached) && known.every(({ answer }) => answer.varyNames.join() === names);
}

/**
 * Whether a kept answer has all that a request asks for (RFC 9111 §3.3): of a part of a
 * representation, one range that lies within it.
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

/** What a request asks for of a whole representation. */
function wholeReply(
  cached: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): Reply {
  if (cached.page !== undefined) return sendHeld(cached.page, request);
  const { answer } = cached;
  const { status, fields, parts, bytesLength } = select(representationOfAnswer(answer), request);
  const body = parts.length === 0 ? noBody : fileBody(cached, parts, bytesLength);
  return { status, fields, body, source: sourceOf(answer) };
}

/** A range of a part that is kept. */
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

/** A request for all there is. */
const plainGet = { method: 'GET', fields: {} } as const;

function fileBody(
  { answer, file }: CachedResponse,
  parts: readonly Part[],
  bytesLength: number,
): Body {
  if (file === undefined) throw new TypeError(`the content of ${answer.id} is not at hand`);
  const opened = file.open();
  if (opened === undefined) throw new Failure('bad_gateway', 'This page has just been let go of.');
  return { kind: 'file', file: opened, parts, bytesLength };
}

function sourceOf({ rule }: StoredResponse): string {
  return `rule:${rule}`;
}

function representationOfAnswer(answer: StoredResponse): Representation {
  const { fields, shownStatus: status, bytesLength, freshness } = answer;
  return representationOf(fields, { status, bytesLength, receivedMs: freshness.bornMs });
}

/** What a representation says itself. */
const generatedFields = ['content-type', 'content-length', 'etag', 'accept-ranges'];

/** What an answer of a source has to show, its content left where it is. */
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
