import type { TurnBudget } from './attempt-limiter.ts';
import { BatchBuffer, batchLimits } from './batch-buffer.ts';
import type { Hook } from './hook.ts';
import type { Batch, Deliveries, QueueKey, QueuedEvent } from './log/deliveries.ts';
import type { EventText, HookMessage } from './message.ts';
import type { MessagesInFlight } from './messages-in-flight.ts';

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
