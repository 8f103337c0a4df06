import { webhookTest } from '../../core/log/events/event.ts';
import type { Hook } from './hook.ts';
import { minutesOfDay, nextTimeOfDay } from '../../core/values/time.ts';
import { durationMs, sizeBytes } from '../../core/values/units.ts';
import type { Batch, QueuedEvent } from './log/deliveries.ts';
import { batchedBytes, batchFrameBytes, type EventText } from './message.ts';

/** The limits at which a batch is complete (docs/design/webhooks.md#registration). */
interface BatchLimits {
  readonly when: BatchTime;
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** Either how long an event may wait, or the times of the day at which batches are sent. */
export type BatchTime =
  | { readonly everyMs: number }
  | { readonly minutes: readonly number[]; readonly zone: string };

/**
 * The limits of a hook's batches; undefined for a hook that gets each event in a message of its
 * own.
 */
export function batchLimits({ frequency }: Hook): BatchLimits | undefined {
  if (frequency.mode === 'each') return undefined;
  const { at, zone = 'UTC', every = '', max_events: eventsMax, max_bytes: bytes } = frequency;
  const when =
    at === undefined
      ? { everyMs: durationMs(every) ?? 0 }
      : { minutes: at.map((time) => minutesOfDay(time) ?? 0), zone };
  return { when, eventsMax, bytesMax: sizeBytes(bytes) ?? 0 };
}

/** A moment on two clocks: the steady clock, and the time of day. */
interface Moment {
  readonly nowMs: number;
  /** Milliseconds since 1970. */
  readonly wallMs: number;
}

/** The next batch of a hook, as it grows. */
export class BatchBuffer {
  readonly #limits: BatchLimits;
  #first: number | undefined;
  #logSeqs: number[] = [];
  #bytes = batchFrameBytes;
  /** On the steady clock; Infinity for a batch that waits for a time of the day. */
  #deadlineMs = Infinity;
  /** The time of day at which the batch is sent, in milliseconds since 1970. */
  #sentAtMs = Infinity;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  /** The latest time at which the batch is sent; Infinity while it is empty. */
  deadlineMs({ nowMs, wallMs }: Moment): number {
    return Math.min(this.#deadlineMs, nowMs + Math.max(0, this.#sentAtMs - wallMs));
  }

  /** The events of the batch; undefined while it is empty. */
  get batch(): Batch | undefined {
    if (this.#first === undefined) return undefined;
    return { n: this.#first, logSeqs: this.#logSeqs };
  }

  /** Whether the batch has reached one of its limits. */
  get isFull(): boolean {
    return this.#logSeqs.length >= this.#limits.eventsMax || this.#bytes >= this.#limits.bytesMax;
  }

  /** Whether the hook sends a batch as soon as it is full. */
  get isSentWhenFull(): boolean {
    return 'everyMs' in this.#limits.when;
  }

  /**
   * Adds an event; returns false for one that belongs in the next batch. The oldest event waits at
   * most as long as the hook says, or until the first of its times of the day. A batch with a test
   * event is sent at once.
   */
  add({ n, logSeq }: QueuedEvent, text: EventText, moment: Moment): boolean {
    const bytes = batchedBytes(text);
    if (this.#first !== undefined) {
      const isNext = n === this.#first + this.#logSeqs.length;
      if (!isNext || this.#bytes + bytes > this.#limits.bytesMax) return false;
      // A time of the day lies between the first event and this one.
      if (text.storedMs >= this.#sentAtMs) return false;
    }
    this.#first ??= n;
    this.#logSeqs.push(logSeq);
    this.#bytes += bytes;
    this.#expect(text, moment);
    return true;
  }

  #expect({ type, storedMs }: EventText, { nowMs, wallMs }: Moment): void {
    const { when } = this.#limits;
    if (type === webhookTest) this.#deadlineMs = Math.min(this.#deadlineMs, nowMs);
    else if ('everyMs' in when) {
      const ageMs = Math.min(Math.max(wallMs - storedMs, 0), when.everyMs);
      this.#deadlineMs = Math.min(this.#deadlineMs, nowMs + when.everyMs - ageMs);
    } else if (this.#sentAtMs === Infinity) {
      this.#sentAtMs = nextTimeOfDay(Math.min(storedMs, wallMs), when.minutes, when.zone);
    }
  }
}
