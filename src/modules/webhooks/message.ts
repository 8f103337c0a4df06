import { LRUCache } from 'lru-cache';
import { eventLoop } from '../../core/fair/turns.ts';
import { type WaymarkEvent, batchId } from '../../core/log/events/event.ts';
import { KIB, MIB } from '../../core/values/units.ts';
import { bodySliceBytes, eventDataBytesMax, hookBatchBytesMax } from './limits.ts';
import type { AttemptRecord, Deliveries } from './log/deliveries.ts';

/** The text of an event in a body, if JSON escapes do not lengthen its data. */
const eventTextBytesMax = eventDataBytesMax + 4 * KIB;

/** Characters of the latest events that are cached for further hooks. */
const eventTextsCharactersMax = 16 * MIB;

/** A message to send. */
export interface HookMessage {
  /** The place of its first event in the hook's count. */
  readonly n: number;
  readonly logSeqs: readonly number[];
  /** Its newest attempt, or its creation as a batch; undefined for an event from the queue. */
  readonly before: AttemptRecord | undefined;
  /** The time at which it was due; undefined for an event from the queue. */
  readonly dueMs: number | undefined;
}

/** The part of a message that is the same at every attempt. */
interface Written {
  readonly id: string;
  readonly body: Buffer;
  /** Its first event. */
  readonly event: EventText;
}

/**
 * Serialises a message (docs/design/webhooks.md#deliveries). It depends on the log alone, so it is
 * the same at every attempt. A long message is written in several turns of the event loop.
 */
export async function writeMessage(
  { n, logSeqs, before }: HookMessage,
  hookId: string,
  eventText: (logSeq: number) => EventText,
): Promise<Written> {
  const [first] = logSeqs;
  if (first === undefined) throw new Error(`message ${n} of ${hookId} has no event`);
  const event = eventText(first);
  if (before?.batch !== true) return { id: event.id, body: eachBody(event, n), event };
  const id = batchId(hookId, n, n + logSeqs.length - 1);
  return { id, body: await batchBody(logSeqs, n, eventText), event };
}

/** An upper estimate of the length of the body of a message with these events, in bytes. */
export function bodyBytesAtMost(
  logSeqs: readonly number[],
  { eventBytes }: Pick<Deliveries, 'eventBytes'>,
): number {
  let bytes = 0;
  for (const logSeq of logSeqs) {
    bytes += Math.min(eventBytes(logSeq), eventTextBytesMax);
    if (bytes > hookBatchBytesMax) return hookBatchBytesMax;
  }
  return bytes;
}

/** The halves of a batch that is too large for its receiver; empty if it cannot be split. */
export function halvesOf({ n, logSeqs, before }: HookMessage): readonly [] | readonly [Half, Half] {
  if (before?.batch !== true || logSeqs.length < 2) return [];
  const middle = Math.ceil(logSeqs.length / 2);
  return [
    { n, logSeqs: logSeqs.slice(0, middle) },
    { n: n + middle, logSeqs: logSeqs.slice(middle) },
  ];
}

type Half = Pick<HookMessage, 'n' | 'logSeqs'>;

/**
 * An event as a delivery sends it (docs/design/webhooks.md#deliveries): the JSON text before its
 * `seq`, and the text after it.
 */
export interface EventText {
  readonly id: string;
  readonly type: string;
  /** The time at which it was stored, in milliseconds since 1970. */
  readonly storedMs: number;
  readonly head: string;
  readonly tail: string;
  /** The length of head and tail together. */
  readonly bytes: number;
}

/** Serialises an event for deliveries. The same event always gives the same text. */
function eventText(event: WaymarkEvent): EventText {
  const { id, type, occurred_at, counter, data } = event;
  const storedMs = Date.parse(event.stored_at);
  const head = `${JSON.stringify({ id, type, occurred_at }).slice(0, -1)},"seq":`;
  const tail = `,${JSON.stringify({ counter, data }).slice(1)}`;
  const bytes = Buffer.byteLength(head) + Buffer.byteLength(tail);
  return { id, type, storedMs, head, tail, bytes };
}

/** Caches the texts of the latest events, because many hooks get the same event. */
export function cacheEventTexts(
  eventAt: (logSeq: number) => WaymarkEvent,
): (logSeq: number) => EventText {
  const texts = new LRUCache<number, EventText>({
    maxSize: eventTextsCharactersMax,
    sizeCalculation: ({ head, tail }) => head.length + tail.length,
  });
  return (logSeq) => {
    const known = texts.get(logSeq);
    if (known !== undefined) return known;
    const text = eventText(eventAt(logSeq));
    texts.set(logSeq, text);
    return text;
  };
}

/** The body of a delivery of one event, the hook's n-th. */
export function eachBody(event: EventText, n: number): Buffer {
  return Buffer.from(numbered(event, n));
}

/** An upper estimate of the bytes that an event adds to a batch. */
export function batchedBytes({ bytes }: EventText): number {
  return bytes + numberBytesMax;
}

/** An estimate of the bytes of a batch without its events. */
export const batchFrameBytes = 64;
/** The digits of a seq, and a comma. */
const numberBytesMax = 17;

/**
 * The body of a delivery of several events; the first is the hook's n-th. The function yields to
 * the event loop after each slice.
 */
export async function batchBody(
  logSeqs: readonly number[],
  n: number,
  textOf: (logSeq: number) => EventText,
): Promise<Buffer> {
  const slices: Buffer[] = [];
  const turns = eventLoop.turns('webhooks');
  let [slice, bytes] = ['{"batch":[', 0];
  for (const [at, logSeq] of logSeqs.entries()) {
    const text = textOf(logSeq);
    slice += (at === 0 ? '' : ',') + numbered(text, n + at);
    bytes += text.bytes;
    if (bytes < bodySliceBytes) continue;
    slices.push(Buffer.from(slice));
    [slice, bytes] = ['', 0];
    if (turns.isOver()) await turns.next();
  }
  slices.push(Buffer.from(`${slice}],"first_seq":${n},"last_seq":${n + logSeqs.length - 1}}`));
  return Buffer.concat(slices);
}

function numbered({ head, tail }: EventText, n: number): string {
  return head + String(n) + tail;
}
