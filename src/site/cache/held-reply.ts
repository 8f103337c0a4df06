import { contentRange, parseRanges, rangeBytes } from '../../http/ranges.ts';
import {
  fieldLines,
  replyField,
  withoutFields,
  type ByteRange,
  type FieldList,
  type Reply,
} from '../../http/reply.ts';
import { asksForLess, type Representation } from '../../http/represent.ts';
import type { ContentRequest } from '../../http/request.ts';
import type { Row } from '../../store/cache/record.ts';
import { holdPage, sendHeld, type HeldPage } from '../held-page.ts';
import type { HeldAnswer, StoredAnswer } from './answer.ts';
import { toldHit, withTold, type Told } from './cache-status.ts';
import { ageMs, cachedDateMs } from './freshness.ts';

/** Has a kept answer in memory, with its content where that is at hand. */
export function holdAnswer(
  answer: StoredAnswer,
  bytes: Buffer | undefined,
  row?: Row<StoredAnswer>,
): HeldAnswer {
  const held = { answer, row, page: undefined, usedSecond: 0, whole: undefined };
  return bytes === undefined ? held : withContent(held, bytes);
}

/** Makes a kept answer ready to be sent. */
export function withContent(held: HeldAnswer, bytes: Buffer): HeldAnswer {
  const { answer } = held;
  const { fields, shownStatus: status, bytesLength, freshness } = answer;
  const said = { status, bytesLength, receivedMs: freshness.bornMs };
  const representation = representationOf(fields, said);
  return Object.assign(held, { page: holdPage({ representation, bytes }, `rule:${answer.rule}`) });
}

/** The answer to a request that a kept answer fits, as it was kept: a hit (RFC 9111 §4). */
export function hitReply(
  held: HeldAnswer,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  nowMs: number,
): Reply {
  const { freshness } = held.answer;
  const isPlain = request.method === 'GET' && !asksForLess(request.fields);
  if (!isPlain) return heldReply(held, request, nowMs, toldHit(freshness, nowMs));
  const second = Math.floor(nowMs / 1000);
  if (held.whole?.second !== second) {
    const reply = heldReply(held, request, nowMs, toldHit(freshness, nowMs));
    held.whole = { second, reply };
  }
  return held.whole.reply;
}

/**
 * What a request's preconditions and ranges ask for of a kept answer, with its age and what the
 * cache did for it.
 */
export function heldReply(
  held: HeldAnswer,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  nowMs: number,
  told: Told,
): Reply {
  const { answer } = held;
  const page = requirePage(held);
  const reply =
    answer.range === undefined ? sendHeld(page, request) : partOf(answer, page, request);
  const age = Math.floor(ageMs(answer.freshness, nowMs) / 1000);
  // That it is there says that the source was not asked for it just now (RFC 9111 §5.1).
  const isNew = age === 0 && (told.outcome === 'miss' || told.outcome === 'revalidated');
  const date = replyField(reply, 'date') === undefined ? fieldLines(answer.fields, 'date') : [];
  const fields = [
    ...reply.fields,
    ...date.flatMap((value) => ['Date', value]),
    ...(isNew ? [] : ['Age', String(age)]),
  ];
  return withTold({ ...reply, fields }, told);
}

/**
 * Whether a kept answer has all that a request asks for (RFC 9111 §3.3): of a part of a
 * representation, one range that lies within it.
 */
export function covers(
  { range }: StoredAnswer,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): boolean {
  return range === undefined || rangeWithin(range, request) !== undefined;
}

function rangeWithin(
  { first, last, completeLength }: NonNullable<StoredAnswer['range']>,
  { method, fields }: Pick<ContentRequest, 'method' | 'fields'>,
): ByteRange | undefined {
  if (method !== 'GET' || fields.range === undefined || fields['if-range'] !== undefined) {
    return undefined;
  }
  const [asked, ...others] = parseRanges(fields.range, completeLength) ?? [];
  if (asked === undefined || others.length > 0) return undefined;
  return asked.first >= first && asked.last <= last ? asked : undefined;
}

/** A range of a part that is kept. */
function partOf(
  { range }: StoredAnswer,
  page: HeldPage,
  request: Pick<ContentRequest, 'method' | 'fields'>,
): Reply {
  const asked = range && rangeWithin(range, request);
  if (range === undefined || asked === undefined) return page.whole;
  const bytes = page.bytes.subarray(asked.first - range.first, asked.last - range.first + 1);
  return {
    ...page.whole,
    fields: [
      ...withoutFields(page.whole.fields, 'content-length', 'content-range'),
      'Content-Length',
      String(rangeBytes(asked)),
      'Content-Range',
      contentRange(asked, range.completeLength),
    ],
    body: { kind: 'bytes', bytes },
  };
}

function requirePage({ page, answer }: HeldAnswer): HeldPage {
  if (page === undefined) throw new TypeError(`the content of ${answer.id} is not at hand`);
  return page;
}

/** What a representation says itself. */
const saidAnew = ['content-type', 'content-length', 'etag', 'accept-ranges'];

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
  const others = withoutFields(fields, ...saidAnew);
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
