import { webhookTest } from '../model/event.ts';
import type { Hook } from '../model/hook.ts';
import { minutesOfDay, nextTimeOfDay } from '../model/time-of-day.ts';
import { durationMs, sizeBytes } from '../model/units.ts';
import type { Batch, QueuedEvent } from '../store/deliveries.ts';
import { batchedBytes, batchFrameBytes, type EventText } from './body.ts';

/** What makes a batch complete (docs/design/webhooks.md#registration). */
interface BatchLimits {
  readonly when: BatchTime;
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** How long an event waits, or at which times of the day all of them are sent. */
type BatchTime =
  | { readonly everyMs: number }
  | { readonly minutes: readonly number[]; readonly zone: string };

/** The limits of a hook's batches; undefined for a hook that is told of each event by itself. */
export function batchLimits({ frequency }: Hook): BatchLimits | undefined {
  if (frequency.mode === 'each') return undefined;
  const { at, zone = 'UTC', every = '', max_events: eventsMax, max_bytes: bytes } = frequency;
  const when =
    at === undefined
      ? { everyMs: durationMs(every) ?? 0 }
      : { minutes: at.map((time) => minutesOfDay(time) ?? 0), zone };
  return { when, eventsMax, bytesMax: sizeBytes(bytes) ?? 0 };
}

/** A moment by both clocks: the one that never jumps, and the time of day. */
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
  /** By the clock that never jumps; Infinity for a batch that waits for a time of the day. */
  #deadlineMs = Infinity;
  /** The time of the day that it waits for, in milliseconds since 1970. */
  #sentAtMs = Infinity;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  /** When it is sent, whatever else comes; Infinity as long as it is empty. */
  deadlineMs({ nowMs, wallMs }: Moment): number {
    return Math.min(this.#deadlineMs, nowMs + Math.max(0, this.#sentAtMs - wallMs));
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

  /** Whether it is sent as soon as nothing more fits in. */
  get isSentWhenFull(): boolean {
    return 'everyMs' in this.#limits.when;
  }

  /**
   * Takes an event; false for one that has to go into the next batch. A batch waits for the oldest
   * event in it no longer than the hook says, or for the first of its times of the day after that
   * event; for a test not at all.
   */
  add({ n, logSeq }: QueuedEvent, text: EventText, moment: Moment): boolean {
    const bytes = batchedBytes(text);
    if (this.#first !== undefined) {
      const isNext = n === this.#first + this.#logSeqs.length;
      if (!isNext || this.#bytes + bytes > this.#limits.bytesMax) return false;
      // One of these times has passed between them.
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
