import { webhookTest } from '../model/event.ts';
import type { Hook } from '../model/hook.ts';
import { durationMs, sizeBytes } from '../model/units.ts';
import type { Batch, QueuedEvent } from '../store/deliveries.ts';
import { batchedBytes, batchFrameBytes, type EventText } from './body.ts';

/** What makes a batch complete (docs/design/webhooks.md#registration). */
export interface BatchLimits {
  readonly everyMs: number;
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** The limits of a hook's batches; undefined for a hook that is told of each event by itself. */
export function batchLimits({ frequency }: Hook): BatchLimits | undefined {
  if (frequency.mode === 'each') return undefined;
  return {
    everyMs: durationMs(frequency.every) ?? 0,
    eventsMax: frequency.max_events,
    bytesMax: sizeBytes(frequency.max_bytes) ?? 0,
  };
}

/** The next batch of a hook, as it grows. */
export class Gathering {
  readonly #limits: BatchLimits;
  #first: number | undefined;
  #logSeqs: number[] = [];
  #bytes = batchFrameBytes;
  #deadlineMs = Infinity;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  /** When it is complete, whatever else comes; Infinity as long as it is empty. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** What it holds. */
  get batch(): Batch | undefined {
    if (this.#first === undefined) return undefined;
    return { n: this.#first, logSeqs: this.#logSeqs };
  }

  /** Whether nothing more fits in. */
  get isFull(): boolean {
    return this.#logSeqs.length >= this.#limits.eventsMax || this.#bytes >= this.#limits.bytesMax;
  }

  /**
   * Takes an event, which is `ageMs` old; false for one that has to go into the next batch. A batch
   * waits for the oldest event in it no longer than the hook says, and for a test not at all.
   */
  add(
    { n, logSeq }: QueuedEvent,
    text: EventText,
    { nowMs, ageMs }: { readonly nowMs: number; readonly ageMs: number },
  ): boolean {
    const bytes = batchedBytes(text);
    if (this.#first !== undefined) {
      const isNext = n === this.#first + this.#logSeqs.length;
      if (!isNext || this.#bytes + bytes > this.#limits.bytesMax) return false;
    }
    this.#first ??= n;
    this.#logSeqs.push(logSeq);
    this.#bytes += bytes;
    const { everyMs } = this.#limits;
    const waitMs = text.type === webhookTest ? 0 : everyMs - Math.min(Math.max(ageMs, 0), everyMs);
    this.#deadlineMs = Math.min(this.#deadlineMs, nowMs + waitMs);
    return true;
  }
}
