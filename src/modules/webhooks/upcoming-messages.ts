import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { webhookTest } from '../../core/log/events/event.ts';
import { minutesOfDay, nextTimeOfDay } from '../../core/values/time.ts';
import { durationMs, sizeBytes } from '../../core/values/units.ts';
import type { TurnBudget } from './attempt-limiter.ts';
import type { Hook } from './hook.ts';
import type { Batch, Deliveries, QueueKey, QueuedEvent } from './log/deliveries.ts';
import { type EventText, type HookMessage, batchFrameBytes, batchedBytes } from './message.ts';

/** The next batch of a hook, as it grows. */
class BatchBuffer {
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

/** The messages of one hook that are in flight, by the number of their first event. */
export class MessagesInFlight {
  readonly #messages = new Map<number, MessageInFlight>();
  /** Messages with a completed attempt that is not recorded yet. */
  readonly #completed = new Set<number>();

  get size(): number {
    return this.#messages.size;
  }

  readonly has = (n: number): boolean => this.#messages.has(n);

  add(n: number, message: MessageInFlight): void {
    this.#messages.set(n, message);
  }

  /** Notes that the receiver has accepted a message. */
  complete(n: number): void {
    this.#completed.add(n);
  }

  /** Whether the receiver has accepted all messages in flight. */
  get areCompleted(): boolean {
    return this.#completed.size === this.#messages.size;
  }

  delete(n: number): void {
    this.#messages.delete(n);
    this.#completed.delete(n);
  }

  /**
   * Waits up to graceMs for all messages except those of one version, then cancels them; resolves
   * when they have ended.
   */
  async end(graceMs: number, exceptSeq?: number): Promise<void> {
    const ending = [...this.#messages.values()].filter(({ version }) => version.seq !== exceptSeq);
    const all = Promise.all(ending.map(({ ended }) => ended));
    const inTime = new AbortController();
    const grace = delay(graceMs, undefined, { signal: inTime.signal }).catch(() => undefined);
    await Promise.race([all, grace]);
    inTime.abort();
    for (const { version } of ending) version.cancellation.abort();
    await all;
  }
}

const eventCostBytes = 512;

/** Events of a hook that are read ahead. */
const queuedReadMax = 64;

/** The next step of a sender. */
export type Next =
  | {
      readonly kind: 'message';
      readonly message: HookMessage;
      readonly isFirst: boolean;
      /** The time of the next retry, which a pause of first attempts does not hold; or Infinity. */
      readonly otherMs: number;
    }
  /** A complete batch, which has to be stored before it is sent. */
  | { readonly kind: 'batch'; readonly batch: Batch }
  /** There are more events to read, in a later turn of the event loop. */
  | { readonly kind: 'unread' }
  /** Nothing is due before this time. */
  | { readonly kind: 'later'; readonly atMs: number }
  | { readonly kind: 'nothing' };

type InFlight = Pick<MessagesInFlight, 'has' | 'size'>;

interface UpcomingMessagesParts {
  readonly deliveries: Deliveries;
  readonly eventText: (logSeq: number) => EventText;
  readonly turnBudget: TurnBudget;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Reads the messages of a hook in the order in which they are sent, a few at a time: due messages
 * first, the earliest of them first, then events without an attempt, in their order. A hook with
 * `order` sends its first waiting message before all others, and sends nothing until that message
 * is due.
 */
export class UpcomingMessages {
  readonly #queue: QueueKey;
  readonly #parts: UpcomingMessagesParts;
  /** The next events, and the n after which to read more. */
  #events: QueuedEvent[] = [];
  #readTo = 0;
  #batch: BatchBuffer | undefined;
  /** Whether there may be messages that wait for their time. */
  #mayWait = true;

  constructor(queue: QueueKey, parts: UpcomingMessagesParts) {
    this.#queue = queue;
    this.#parts = parts;
  }

  /** Drops everything read so far, after a change of the hook or a cancelled attempt. */
  reset(): void {
    this.#events = [];
    this.#readTo = 0;
    this.#batch = undefined;
    this.#mayWait = true;
  }

  /** Notes that the store may have new waiting messages. */
  expectDue(): void {
    this.#mayWait = true;
  }

  /** The next step without the messages in flight. It stays the same until taken. */
  next(hook: Hook, nowMs: number, inFlight: InFlight): Next {
    const due = this.#due(hook, nowMs, inFlight);
    if (due.kind === 'message' || (due.kind === 'later' && hook.order)) return due;
    const limits = batchLimits(hook);
    if (limits === undefined) {
      const event = this.#peek(inFlight);
      if (event === undefined) return due;
      const { n, logSeq } = event;
      const message = { n, logSeqs: [logSeq], before: undefined, dueMs: undefined };
      const otherMs = due.kind === 'later' ? due.atMs : Infinity;
      return { kind: 'message', message, isFirst: true, otherMs };
    }
    this.#batch ??= new BatchBuffer(limits);
    const gathered = this.#gather(this.#batch, nowMs, inFlight);
    if (gathered === 'unread') return { kind: 'unread' };
    const { batch, isSentWhenFull } = this.#batch;
    if (batch === undefined) return due;
    const deadlineMs = this.#batch.deadlineMs({ nowMs, wallMs: this.#parts.now() });
    const isComplete = gathered === 'complete' && isSentWhenFull;
    if (isComplete || deadlineMs <= nowMs) return { kind: 'batch', batch };
    const atMs = due.kind === 'later' ? Math.min(due.atMs, deadlineMs) : deadlineMs;
    return { kind: 'later', atMs };
  }

  /** Removes the first event, because its attempt begins. */
  takeEvent(): void {
    this.#events.shift();
  }

  /** Removes the batch, because it is stored. */
  takeBatch(): void {
    this.#batch = undefined;
    this.#mayWait = true;
  }

  #due(hook: Hook, nowMs: number, inFlight: InFlight): Next {
    if (!this.#mayWait) return { kind: 'nothing' };
    const { deliveries } = this.#parts;
    const first = hook.order ? deliveries.firstWaiting(this.#queue) : undefined;
    const waiting =
      first === undefined ? deliveries.waiting(this.#queue, inFlight.size + 1) : [first];
    this.#mayWait = waiting.length > 0;
    // The next messages are unknown until its record is stored.
    if (first !== undefined && inFlight.has(first.n)) return { kind: 'later', atMs: Infinity };
    for (const { n, dueMs } of waiting) {
      if (inFlight.has(n)) continue;
      if (dueMs > nowMs) return { kind: 'later', atMs: dueMs };
      const before = deliveries.latest(this.#queue, n);
      if (before === undefined)
        throw new Error(`message ${n} is waiting but has no recorded attempt`);
      const message = { n, logSeqs: before.logSeqs, before, dueMs };
      return { kind: 'message', message, isFirst: before.tries === 0, otherMs: Infinity };
    }
    return { kind: 'nothing' };
  }

  #peek(inFlight: InFlight): QueuedEvent | undefined {
    while (this.#events.length === 0) {
      const read = this.#parts.deliveries.queued(this.#queue, this.#readTo, queuedReadMax);
      if (read.length === 0) return undefined;
      this.#readTo = read.at(-1)?.n ?? this.#readTo;
      // After a reset the queue still holds the events in flight.
      this.#events = read.filter(({ n }) => !inFlight.has(n));
    }
    return this.#events[0];
  }

  /** Adds events to a batch, as many as this turn of the event loop allows. */
  #gather(
    batch: BatchBuffer,
    nowMs: number,
    inFlight: InFlight,
  ): 'complete' | 'growing' | 'unread' {
    const { eventText, now, turnBudget } = this.#parts;
    for (;;) {
      if (batch.isFull) return 'complete';
      const event = this.#peek(inFlight);
      if (event === undefined) return 'growing';
      if (turnBudget.isSpent) return 'unread';
      const text = eventText(event.logSeq);
      turnBudget.spend(text.bytes + eventCostBytes);
      if (!batch.add(event, text, { nowMs, wallMs: now() })) return 'complete';
      this.#events.shift();
    }
  }
}

/** A version of a hook. Each message in flight belongs to one. */
export interface Version {
  readonly seq: number;
  /** Cancels all attempts that began with this version. */
  readonly cancellation: AbortController;
}

/** Makes the version of a hook with a seq. */
export function newVersion(seq: number): Version {
  const cancellation = new AbortController();
  setMaxListeners(0, cancellation.signal);
  return { seq, cancellation };
}

/** A message from the start of its attempt until the attempt is recorded. */
interface MessageInFlight {
  readonly version: Version;
  readonly ended: Promise<void>;
}

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
