import type { Hook } from '../model/hook.ts';
import { queuedReadMax } from '../model/limits.ts';
import type { Batch, Deliveries, QueuedEvent, QueueKey } from '../store/deliveries.ts';
import type { EventText } from './body.ts';
import { batchLimits, BatchBuffer } from './batch-buffer.ts';
import { eventCostBytes } from './limits.ts';
import type { HookMessage } from './message.ts';
import type { Turns } from './turns.ts';

/** What a hook has to send next. */
export type Next =
  | {
      readonly kind: 'message';
      readonly message: HookMessage;
      readonly isFirst: boolean;
      /** When something else is due that may be sent where this may not; Infinity for never. */
      readonly otherMs: number;
    }
  /** A batch that is complete and has to be made first. */
  | { readonly kind: 'batch'; readonly batch: Batch }
  /** Something, once more events may be read. */
  | { readonly kind: 'unread' }
  /** Nothing before that time. */
  | { readonly kind: 'later'; readonly atMs: number }
  | { readonly kind: 'nothing' };

/** What it is read from. */
interface UpcomingParts {
  readonly deliveries: Deliveries;
  readonly eventText: (logSeq: number) => EventText;
  readonly turns: Turns;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * What a hook has to send, read some at a time: messages that are due, the earliest first, before
 * events that were never tried, in their order. For a hook in order, the first of those that wait
 * comes before all others, and nothing comes while it is not due.
 */
export class Upcoming {
  readonly #queue: QueueKey;
  readonly #parts: UpcomingParts;
  /** The events that come next, and the n behind which others are to be read. */
  #events: QueuedEvent[] = [];
  #readTo = 0;
  #gathering: BatchBuffer | undefined;
  /** Whether anything may wait until it is due. */
  #mayWait = true;

  constructor(queue: QueueKey, parts: UpcomingParts) {
    this.#queue = queue;
    this.#parts = parts;
  }

  /** Reads everything anew: the hook has changed, or a message was withdrawn. */
  reset(): void {
    this.#events = [];
    this.#readTo = 0;
    this.#gathering = undefined;
    this.#mayWait = true;
  }

  /** Tells that something waits that did not. */
  expectDue(): void {
    this.#mayWait = true;
  }

  /** What comes next, less the messages that are open, by their n; it stays next until taken. */
  next(hook: Hook, nowMs: number, isOpen: (n: number) => boolean, open: number): Next {
    const due = this.#due(hook, nowMs, isOpen, open);
    if (due.kind === 'message' || (due.kind === 'later' && hook.order)) return due;
    const limits = batchLimits(hook);
    if (limits === undefined) {
      const event = this.#peek(isOpen);
      if (event === undefined) return due;
      const { n, logSeq } = event;
      const message = { n, logSeqs: [logSeq], before: undefined, dueMs: undefined };
      const otherMs = due.kind === 'later' ? due.atMs : Infinity;
      return { kind: 'message', message, isFirst: true, otherMs };
    }
    this.#gathering ??= new BatchBuffer(limits);
    const gathered = this.#gather(this.#gathering, nowMs, isOpen);
    if (gathered === 'unread') return { kind: 'unread' };
    const { batch, isSentWhenFull } = this.#gathering;
    if (batch === undefined) return due;
    const deadlineMs = this.#gathering.deadlineMs({ nowMs, wallMs: this.#parts.now() });
    const isComplete = gathered === 'complete' && isSentWhenFull;
    if (isComplete || deadlineMs <= nowMs) return { kind: 'batch', batch };
    const atMs = due.kind === 'later' ? Math.min(due.atMs, deadlineMs) : deadlineMs;
    return { kind: 'later', atMs };
  }

  /** Takes an event out of what comes next, as it is being sent. */
  takeEvent(): void {
    this.#events.shift();
  }

  /** Takes the batch out of what comes next, as it was made. */
  takeBatch(): void {
    this.#gathering = undefined;
    this.#mayWait = true;
  }

  #due(hook: Hook, nowMs: number, isOpen: (n: number) => boolean, open: number): Next {
    if (!this.#mayWait) return { kind: 'nothing' };
    const { deliveries } = this.#parts;
    const first = hook.order ? deliveries.firstWaiting(this.#queue) : undefined;
    const waiting = first === undefined ? deliveries.waiting(this.#queue, open + 1) : [first];
    this.#mayWait = waiting.length > 0;
    for (const { n, dueMs } of waiting) {
      if (isOpen(n)) continue;
      if (dueMs > nowMs) return { kind: 'later', atMs: dueMs };
      const before = deliveries.latest(this.#queue, n);
      if (before === undefined) throw new Error(`message ${n} waits, and nothing is known of it`);
      const message = { n, logSeqs: before.logSeqs, before, dueMs };
      return { kind: 'message', message, isFirst: before.tries === 0, otherMs: Infinity };
    }
    return { kind: 'nothing' };
  }

  #peek(isOpen: (n: number) => boolean): QueuedEvent | undefined {
    while (this.#events.length === 0) {
      const read = this.#parts.deliveries.queued(this.#queue, this.#readTo, queuedReadMax);
      if (read.length === 0) return undefined;
      this.#readTo = read.at(-1)?.n ?? this.#readTo;
      // After a reset it reads again what is open.
      this.#events = read.filter(({ n }) => !isOpen(n));
    }
    return this.#events[0];
  }

  /** Adds events to a batch, as many as may be read in this turn. */
  #gather(
    gathering: BatchBuffer,
    nowMs: number,
    isOpen: (n: number) => boolean,
  ): 'complete' | 'growing' | 'unread' {
    const { eventText, now, turns } = this.#parts;
    for (;;) {
      if (gathering.isFull) return 'complete';
      const event = this.#peek(isOpen);
      if (event === undefined) return 'growing';
      if (turns.isSpent) return 'unread';
      const text = eventText(event.logSeq);
      turns.spend(text.bytes + eventCostBytes);
      if (!gathering.add(event, text, { nowMs, wallMs: now() })) return 'complete';
      this.#events.shift();
    }
  }
}
