import type { WaymarkEvent } from '../model/event.ts';

/** An event as deliveries tell it (contract §7): its JSON in front of its `seq` and behind it. */
export interface EventText {
  readonly id: string;
  readonly type: string;
  /** Milliseconds since 1970: when it was stored. */
  readonly storedMs: number;
  readonly head: string;
  readonly tail: string;
}

/** Writes an event as deliveries tell it; every time the same. */
export function eventText(event: WaymarkEvent): EventText {
  const { id, type, occurred_at, counter, data } = event;
  const head = JSON.stringify({ id, type, occurred_at });
  const tail = JSON.stringify({ counter, data });
  const storedMs = Date.parse(event.stored_at);
  return { id, type, storedMs, head: `${head.slice(0, -1)},"seq":`, tail: `,${tail.slice(1)}` };
}

/** The body of a delivery of one event, the n-th of the hook. */
export function eachBody(event: EventText, n: number): Buffer {
  return Buffer.from(numbered(event, n));
}

function numbered({ head, tail }: EventText, n: number): string {
  return head + String(n) + tail;
}
