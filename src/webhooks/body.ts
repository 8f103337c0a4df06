import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WaymarkEvent } from '../model/event.ts';
import { bodySliceBytes } from './limits.ts';

/**
 * An event as deliveries tell it (docs/design/webhooks.md#deliveries): its JSON in front of its
 * `seq` and behind it.
 */
export interface EventText {
  readonly id: string;
  readonly type: string;
  /** Milliseconds since 1970: when it was stored. */
  readonly storedMs: number;
  readonly head: string;
  readonly tail: string;
  /** Of both together. */
  readonly bytes: number;
}

/** Writes an event as deliveries tell it; every time the same. */
export function eventText(event: WaymarkEvent): EventText {
  const { id, type, occurred_at, counter, data } = event;
  const storedMs = Date.parse(event.stored_at);
  const head = `${JSON.stringify({ id, type, occurred_at }).slice(0, -1)},"seq":`;
  const tail = `,${JSON.stringify({ counter, data }).slice(1)}`;
  const bytes = Buffer.byteLength(head) + Buffer.byteLength(tail);
  return { id, type, storedMs, head, tail, bytes };
}

/** The body of a delivery of one event, the n-th of the hook. */
export function eachBody(event: EventText, n: number): Buffer {
  return Buffer.from(numbered(event, n));
}

/** About how many bytes an event adds to a batch, at most. */
export function batchedBytes({ bytes }: EventText): number {
  return bytes + numberBytesMax;
}

/** About how many bytes a batch has besides its events. */
export const batchFrameBytes = 64;
/** The digits of a seq, and a comma. */
const numberBytesMax = 17;

/**
 * The body of a delivery of several events, the first of which is the n-th of the hook; others have
 * their turn after each slice of it.
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
