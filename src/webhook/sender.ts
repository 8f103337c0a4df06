import { setTimeout as delay } from 'node:timers/promises';
import { setMaxListeners } from 'node:events';
import { Failure } from '../model/failure.ts';
import { queuedReadMax, recordAgainMs, wakeMsMax } from '../model/limits.ts';
import type { AttemptRecord, Deliveries, QueuedEvent, QueueKey } from '../store/deliveries.ts';
import type { Attempt } from './attempt.ts';
import { attemptRecord, type Message } from './attempt-record.ts';
import { eachBody, type EventText } from './body.ts';
import type { SteadyClock } from './clock.ts';
import { hasRoom, laneWithBegun, laneWithEnded, newLane, type Lane } from './lane.ts';
import { verdictOn, type Verdict } from './outcome.ts';
import type { Receiver, Receivers } from './receivers.ts';

/** What the sender of a hook stands on. */
export interface SenderParts {
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  readonly attempt: Attempt;
  readonly eventText: (logSeq: number) => EventText;
  readonly clockMs: SteadyClock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  /** `[webhook]` of the ini file, as it is at that moment. */
  readonly settings: () => { readonly retryMs: readonly number[]; readonly concurrency: number };
  /** Told of each attempt that was recorded. */
  readonly ended: (ended: EndedAttempt) => void;
  /** Told when this process may not write any more. */
  readonly superseded: () => void;
  /** Told of what must not happen: nothing of the hook is sent any more then. */
  readonly broken: (error: unknown, queue: QueueKey) => void;
}

/** An attempt that is over, for whoever watches. */
export interface EndedAttempt {
  readonly receiver: Receiver;
  readonly n: number;
  readonly record: AttemptRecord;
  readonly verdict: Verdict;
  /** The message's event, or its first. */
  readonly event: EventText;
}

/**
 * Sends the messages of one hook: those that are due again first, then new ones in their order, as
 * many at a time as its lane has room for. Nothing is kept of what waits but the next few.
 */
export class Sender {
  readonly #queue: QueueKey;
  readonly #parts: SenderParts;
  /** Messages from the beginning of their attempt until that is recorded, by their n. */
  readonly #open = new Map<number, Promise<void>>();
  #lane: Lane = newLane;
  /** The events that come next, and the n behind which others are to be read. */
  #next: QueuedEvent[] = [];
  #readTo = 0;
  /** Whether messages may wait for another attempt. */
  #mayWait = true;
  /** The version of the hook by which messages were begun last. */
  #version = 0;
  /** The version of the hook whose receiver is gone: that it is paused may not be stored yet. */
  #goneVersion: number | undefined;
  #withdrawal = withdrawal();
  /** How many reasons there are to begin nothing for the time being. */
  #holds = 0;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires, by the steady clock. */
  #wakeMs = Infinity;

  constructor(queue: QueueKey, parts: SenderParts) {
    this.#queue = queue;
    this.#parts = parts;
  }

  /** Whether nothing is left of it that a new one would not know. */
  get isIdle(): boolean {
    return this.#open.size === 0 && this.#timer === undefined && this.#lane.failures === 0;
  }

  /** Sends what may be sent: to be called whenever there may be more. */
  wake(): void {
    this.#clearTimer();
    while (!this.#isStopped && this.#holds === 0) {
      const receiver = this.#parts.receivers.find(this.#queue);
      if (receiver === undefined || receiver.seq === this.#goneVersion) return;
      const message = this.#take(receiver);
      if (message === undefined) return;
      this.#begin(message, receiver);
    }
  }

  /**
   * Resolves once nothing is under way that the hook, as it is in the store, would not send: what
   * was begun may end for a while, and is withdrawn then.
   */
  async settle(graceMs: number): Promise<void> {
    if (this.#parts.receivers.find(this.#queue)?.seq === this.#version) return;
    this.#holds += 1;
    await this.#endOpen(graceMs);
    this.#holds -= 1;
    this.wake();
  }

  /** Begins nothing any more; resolves when all that was begun has ended or was withdrawn. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    this.#clearTimer();
    await this.#endOpen(graceMs);
  }

  async #endOpen(graceMs: number): Promise<void> {
    const open = [...this.#open.values()];
    const ended = new AbortController();
    const grace = delay(graceMs, undefined, { signal: ended.signal }).catch(() => undefined);
    await Promise.race([Promise.all(open), grace]);
    ended.abort();
    this.#withdrawal.abort();
    this.#withdrawal = withdrawal();
    await Promise.all(open);
  }

  /** The next message to send; undefined where there is none, or no room for it. */
  #take({ hook }: Receiver): Message | undefined {
    const nowMs = this.#parts.clockMs();
    if (hook.order && this.#open.size > 0) return undefined;
    const room = (isFirst: boolean) =>
      hasRoom(this.#lane, { isFirst, nowMs, widthMax: this.#parts.settings().concurrency });
    const due = this.#nextDue(nowMs);
    if (due?.isDue === true) {
      if (room(false)) return due.message;
      this.#wakeAt(this.#lane.heldUntilMs, nowMs);
      return undefined;
    }
    if (due !== undefined) this.#wakeAt(due.dueMs, nowMs);
    // In order, what comes later waits for what is to be sent again.
    if (due !== undefined && hook.order) return undefined;
    const first = this.#nextQueued();
    if (first === undefined) return undefined;
    if (!room(true)) {
      this.#wakeAt(Math.max(this.#lane.heldUntilMs, this.#lane.restsUntilMs), nowMs);
      return undefined;
    }
    this.#next.shift();
    return { ...first, before: undefined };
  }

  #nextDue(
    nowMs: number,
  ):
    | { readonly isDue: true; readonly message: Message }
    | { readonly isDue: false; readonly dueMs: number }
    | undefined {
    if (!this.#mayWait) return undefined;
    const { deliveries } = this.#parts;
    const waiting = deliveries.waiting(this.#queue, this.#open.size + 1);
    this.#mayWait = waiting.length > 0;
    for (const { n, dueMs } of waiting) {
      if (this.#open.has(n)) continue;
      if (dueMs > nowMs) return { isDue: false, dueMs };
      const before = deliveries.latest(this.#queue, n);
      const [logSeq] = before?.logSeqs ?? [];
      if (before === undefined || logSeq === undefined) throw new Error(`${n} was never tried`);
      return { isDue: true, message: { n, logSeq, before } };
    }
    return undefined;
  }

  #nextQueued(): QueuedEvent | undefined {
    while (this.#next.length === 0) {
      const read = this.#parts.deliveries.queued(this.#queue, this.#readTo, queuedReadMax);
      if (read.length === 0) return undefined;
      this.#readTo = read.at(-1)?.n ?? this.#readTo;
      // After a withdrawal it reads again what may be open by now.
      this.#next = read.filter(({ n }) => !this.#open.has(n));
    }
    return this.#next[0];
  }

  #wakeAt(timeMs: number, nowMs: number): void {
    if (timeMs <= nowMs || timeMs >= this.#wakeMs) return;
    this.#clearTimer();
    this.#wakeMs = timeMs;
    const waitMs = Math.min(Math.ceil(timeMs - nowMs), wakeMsMax);
    this.#timer = setTimeout(() => {
      this.wake();
    }, waitMs).unref();
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakeMs = Infinity;
  }

  #begin(message: Message, receiver: Receiver): void {
    this.#lane = laneWithBegun(this.#lane);
    this.#version = receiver.seq;
    const open = this.#send(message, receiver).then(
      (isOver) => {
        this.#open.delete(message.n);
        if (!isOver) this.#putBack(message);
        this.wake();
      },
      (error: unknown) => {
        this.#isStopped = true;
        this.#open.delete(message.n);
        this.#parts.broken(error, this.#queue);
      },
    );
    this.#open.set(message.n, open);
  }

  /** Resolves to false for a message that was withdrawn. */
  async #send(message: Message, receiver: Receiver): Promise<boolean> {
    const { attempt, eventText, receivers, now } = this.#parts;
    const { n, logSeq } = message;
    const { shrinks: shrinksBefore } = this.#lane;
    const at = now();
    const text = eventText(logSeq);
    const signed = { id: text.id, body: eachBody(text, n), keys: receiver.keys(at) };
    const attempted = await attempt(receiver.hook, signed, {
      signal: this.#withdrawal.signal,
      mayBegin: () => receivers.find(this.#queue)?.seq === receiver.seq,
    });
    if (attempted.problem?.code === 'withdrawn') return false;
    const verdict = verdictOn(attempted.status);
    if (verdict.isGone) this.#goneVersion = receiver.seq;
    this.#lane = laneWithEnded(this.#lane, {
      receiver: verdict.receiver,
      shrinksBefore,
      retryAfterMs: attempted.retryAfterMs,
      nowMs: this.#parts.clockMs(),
      widthMax: this.#parts.settings().concurrency,
    });
    const record = attemptRecord(message, {
      ...{ at, attempted, verdict, attemptsMax: receiver.hook.retry_limit },
      ...{ retryMs: this.#parts.settings().retryMs, random: this.#parts.random() },
      clockMs: this.#parts.clockMs(),
    });
    // Room for the next one, while this one is being recorded.
    if (!receiver.hook.order) this.wake();
    await this.#record(message, record);
    this.#parts.ended({ receiver, n, record, verdict, event: text });
    return true;
  }

  /** As if it had never been taken. */
  #putBack({ n, before }: Message): void {
    this.#lane = { ...this.#lane, inFlight: this.#lane.inFlight - 1 };
    if (before !== undefined) return;
    this.#next = [];
    this.#readTo = Math.min(this.#readTo, n - 1);
  }

  /** Records an attempt, however long that takes: until it is, the message stays open. */
  async #record({ n, before }: Message, record: AttemptRecord): Promise<void> {
    const { deliveries, clockMs } = this.#parts;
    const recorded = { queue: this.#queue, n, record, wasDueMs: before?.dueMs };
    for (;;) {
      try {
        await deliveries.record(recorded, clockMs());
        this.#mayWait ||= record.dueMs !== undefined;
        return;
      } catch (error) {
        if (error instanceof Failure && error.code === 'conflict') {
          this.#parts.superseded();
          return;
        }
        if (this.#isStopped) return;
        // Nothing more is sent of which nothing could be written down.
        this.#holds += 1;
        await delay(recordAgainMs);
        this.#holds -= 1;
      }
    }
  }
}

function withdrawal(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
