import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { WaymarkEvent } from '../model/event.ts';
import { bodySliceBytes, eventTextsCharactersMax } from './limits.ts';

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
  let [slice, bytes] = ['{"batch":[', 0];
  for (const [at, logSeq] of logSeqs.entries()) {
    const text = textOf(logSeq);
    slice += (at === 0 ? '' : ',') + numbered(text, n + at);
    bytes += text.bytes;
    if (bytes < bodySliceBytes) continue;
    slices.push(Buffer.from(slice));
    [slice, bytes] = ['', 0];
    await nextTurn();
  }
  slices.push(Buffer.from(`${slice}],"first_seq":${n},"last_seq":${n + logSeqs.length - 1}}`));
  return Buffer.concat(slices);
}

function numbered({ head, tail }: EventText, n: number): string {
  return head + String(n) + tail;
}
