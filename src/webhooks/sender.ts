import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../model/failure.ts';
import { recordAgainMs, wakeMsMax } from '../model/limits.ts';
import type { AttemptRecord, Batch, Deliveries, QueueKey } from '../store/deliveries.ts';
import type { DeliveryAttempt, Attempted } from './attempt.ts';
import { attemptRecord } from './attempt-record.ts';
import type { EventText } from './body.ts';
import type { SteadyClock } from './clock.ts';
import {
  hasRoom,
  laneWithBegun,
  laneWithEnded,
  newLane,
  type ConcurrencyWindow,
} from './concurrency-window.ts';
import { bodyBytesAtMost, halvesOf, writeMessage, type HookMessage } from './message.ts';
import { endAll, newVersion, type OpenMessage, type Version } from './open.ts';
import { verdictOn } from './outcome.ts';
import type { Receiver, Receivers } from './receivers.ts';
import type { EndedAttempt, Report } from './reports.ts';
import type { Slots } from './slots.ts';
import type { Turns } from './turns.ts';
import { Upcoming, type Next } from './upcoming.ts';

/** What the sender of a hook stands on. */
export interface SenderParts {
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  readonly attempt: DeliveryAttempt;
  readonly eventText: (logSeq: number) => EventText;
  readonly clockMs: SteadyClock;
  /** The attempts of all senders together. */
  readonly slots: Slots;
  /** What all senders prepare together. */
  readonly turns: Turns;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  /** `[webhook]` of the ini file, as it is at that moment. */
  readonly settings: () => { readonly retryMs: readonly number[]; readonly concurrency: number };
  /** Acts on an attempt before it is recorded: after a crash rather twice than never. */
  readonly report: Report;
  /** Told of each attempt that was recorded. */
  readonly ended: (ended: EndedAttempt) => void;
  /** Told when this process may not write any more. */
  readonly superseded: () => void;
  /** Told of what must not happen: nothing of the hook is sent any more then. */
  readonly broken: (error: unknown, queue: QueueKey) => void;
}

/**
 * Sends the messages of one hook, as many at a time as its lane has room for. Nothing is kept of
 * what waits but the next few.
 */
export class Sender {
  readonly #queue: QueueKey;
  readonly #parts: SenderParts;
  readonly #upcoming: Upcoming;
  readonly #open = new Map<number, OpenMessage>();
  readonly #isOpen = (n: number): boolean => this.#open.has(n);
  #lane: ConcurrencyWindow = newLane;
  /** The message that was measured last. */
  #measured: { readonly n: number; readonly events: number; readonly bytes: number } | undefined;
  #version: Version | undefined;
  /** The version of the hook whose receiver is gone: that it is paused may not be stored yet. */
  #goneVersion: number | undefined;
  /** How many reasons there are to begin nothing for the time being. */
  #holds = 0;
  /** How many calls of settle are under way: each wakes the sender at its end. */
  #settling = 0;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires, by the steady clock. */
  #wakeMs = Infinity;

  constructor(queue: QueueKey, parts: SenderParts) {
    this.#queue = queue;
    this.#parts = parts;
    this.#upcoming = new Upcoming(queue, parts);
  }

  /**
   * Ends the sender if it is idle and has no state that a new one would lack. Returns whether it
   * ended: it never sends again then, whoever still holds it.
   */
  endIfIdle(): boolean {
    const { slots, turns } = this.#parts;
    const isSending = this.#open.size > 0 || this.#holds > 0 || this.#settling > 0;
    const isWaiting = this.#timer !== undefined || slots.isInLine(this) || turns.isWaiting(this);
    if (isSending || isWaiting || this.#lane.failures > 0) return false;
    this.#isStopped = true;
    return true;
  }

  /** Sends what may be sent: to be called whenever there may be more. */
  wake(): void {
    try {
      this.#sendNext();
    } catch (error) {
      this.#break(error);
    }
  }

  #sendNext(): void {
    this.#clearTimer();
    while (!this.#isStopped && this.#holds === 0) {
      const receiver = this.#parts.receivers.find(this.#queue);
      if (receiver === undefined || receiver.seq === this.#goneVersion) return;
      const version = this.#versionOf(receiver);
      if (receiver.hook.order && this.#open.size > 0) return;
      const nowMs = this.#parts.clockMs();
      const { hook } = receiver;
      const next = this.#upcoming.next(hook, nowMs, this.#isOpen, this.#open.size);
      if (!this.#advance(next, receiver, version, nowMs)) return;
    }
  }

  /** Tells that messages wait which did not: see wake. */
  wakeForDue(): void {
    this.#upcoming.expectDue();
    this.wake();
  }

  /**
   * Resolves once nothing is under way that the hook, as it is in the store, would not send: what
   * was begun may end for a while, and is withdrawn then. Sends what may be sent after that.
   */
  async settle(graceMs: number): Promise<void> {
    this.#settling += 1;
    const seq = this.#parts.receivers.find(this.#queue)?.seq;
    await endAll(
      [...this.#open.values()].filter(({ version }) => version.seq !== seq),
      graceMs,
    );
    this.#settling -= 1;
    this.wake();
  }

  /** Begins nothing any more; resolves when all that was begun has ended or was withdrawn. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    this.#clearTimer();
    await endAll([...this.#open.values()], graceMs);
  }

  #versionOf({ seq }: Receiver): Version {
    if (this.#version?.seq === seq) return this.#version;
    // Another one may want its events otherwise.
    if (this.#version !== undefined) this.#upcoming.reset();
    this.#version = newVersion(seq);
    return this.#version;
  }

  /** Does what comes next; false where that is nothing, or has to wait. */
  #advance(next: Next, receiver: Receiver, version: Version, nowMs: number): boolean {
    switch (next.kind) {
      case 'nothing':
        return false;
      case 'later':
        this.#wakeAt(next.atMs, nowMs);
        return false;
      case 'unread':
        this.#parts.turns.wakeLater(this);
        return false;
      case 'batch':
        this.#freeze(next.batch).catch((error: unknown) => {
          this.#break(error);
        });
        return false;
      case 'message': {
        const { message, isFirst, otherMs } = next;
        const widthMax = this.#parts.settings().concurrency;
        if (!hasRoom(this.#lane, { isFirst, nowMs, widthMax })) {
          const { heldUntilMs, restsUntilMs } = this.#lane;
          const restedMs = isFirst ? Math.min(restsUntilMs, otherMs) : 0;
          this.#wakeAt(Math.max(heldUntilMs, restedMs), nowMs);
          return false;
        }
        const bytes = this.#bytesOf(message);
        if (!this.#parts.slots.take(this, bytes)) return false;
        if (message.before === undefined) this.#upcoming.takeEvent();
        this.#begin(message, bytes, receiver, version);
        return true;
      }
    }
  }

  #wakeAt(timeMs: number, nowMs: number): void {
    if (timeMs <= nowMs || timeMs >= this.#wakeMs) return;
    this.#clearTimer();
    this.#wakeMs = timeMs;
    const waitMs = Math.min(Math.ceil(timeMs - nowMs), wakeMsMax);
    this.#timer = setTimeout(() => {
      this.#clearTimer();
      // Batches of many hooks may be due at the same time of the day.
      this.#parts.turns.wakeLater(this);
    }, waitMs).unref();
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakeMs = Infinity;
  }

  async #freeze(batch: Batch): Promise<void> {
    const { deliveries, now, clockMs } = this.#parts;
    const made = { at: new Date(now()).toISOString(), dueMs: Math.trunc(clockMs()) };
    this.#holds += 1;
    const isDone = await this.#written(() => deliveries.freeze(this.#queue, batch, made));
    this.#holds -= 1;
    if (!isDone) return;
    this.#upcoming.takeBatch();
    this.wake();
  }

  /** About how long the body of a message is, at most: kept, for it may wait for room. */
  #bytesOf({ n, logSeqs }: HookMessage): number {
    if (this.#measured?.n !== n || this.#measured.events !== logSeqs.length) {
      const bytes = bodyBytesAtMost(logSeqs, this.#parts.deliveries);
      this.#measured = { n, events: logSeqs.length, bytes };
    }
    return this.#measured.bytes;
  }

  #begin(message: HookMessage, bytes: number, receiver: Receiver, version: Version): void {
    this.#lane = laneWithBegun(this.#lane);
    const ended = this.#send(message, bytes, receiver, version).then(
      (isOver) => {
        this.#open.delete(message.n);
        if (!isOver) this.#putBack();
        this.wake();
      },
      (error: unknown) => {
        this.#open.delete(message.n);
        this.#break(error);
      },
    );
    this.#open.set(message.n, { version, ended });
  }

  /** Resolves to false for a message that was withdrawn. */
  async #send(
    message: HookMessage,
    bytes: number,
    receiver: Receiver,
    version: Version,
  ): Promise<boolean> {
    const { now, clockMs, settings, random } = this.#parts;
    const { hook } = receiver;
    const { shrinks: shrinksBefore } = this.#lane;
    const at = now();
    const { attempted, event } = await this.#attempt(message, receiver, version).finally(() => {
      this.#parts.slots.free(bytes);
    });
    if (attempted.problem?.code === 'withdrawn') return false;
    const verdict = verdictOn(attempted.status);
    if (verdict.isGone) this.#goneVersion = version.seq;
    const { concurrency: widthMax, retryMs } = settings();
    const { receiver: health } = verdict;
    const { retryAfterMs } = attempted;
    this.#lane = laneWithEnded(this.#lane, {
      ...{ receiver: health, shrinksBefore, retryAfterMs, nowMs: clockMs(), widthMax },
    });
    const split = verdict.isTooLarge ? halvesOf(message) : [];
    const record = attemptRecord(message, {
      ...{ at, attempted, verdict, attemptsMax: hook.retry_limit, isSplit: split.length > 0 },
      ...{ retryMs, random: random(), clockMs: clockMs() },
    });
    // Room for the next one, while this one is being recorded.
    if (!hook.order) this.wake();
    const ended = { receiver, n: message.n, record, verdict, event };
    await this.#parts.report(ended);
    await this.#record(message, record, split);
    this.#parts.ended(ended);
    return true;
  }

  async #attempt(
    message: HookMessage,
    receiver: Receiver,
    version: Version,
  ): Promise<{ readonly attempted: Attempted; readonly event: EventText }> {
    const { attempt, eventText, receivers, now } = this.#parts;
    const { id, body, event } = await writeMessage(message, receiver.hook.id, eventText);
    const signed = { id, body, keys: receiver.keys(now()) };
    const attempted = await attempt(receiver.hook, signed, {
      signal: version.withdrawal.signal,
      mayBegin: () => receivers.find(this.#queue)?.seq === version.seq,
    });
    return { attempted, event };
  }

  /** What must not happen has happened: nothing more is sent, and somebody has to know. */
  #break(error: unknown): void {
    this.#isStopped = true;
    this.#parts.broken(error, this.#queue);
  }

  /** As if a message had never been taken. */
  #putBack(): void {
    this.#lane = { ...this.#lane, inFlight: this.#lane.inFlight - 1 };
    this.#upcoming.reset();
  }

  /** Records an attempt: until it is, the message stays open. */
  async #record(
    message: HookMessage,
    record: AttemptRecord,
    split: readonly Batch[],
  ): Promise<void> {
    const { deliveries, clockMs } = this.#parts;
    const { n, dueMs: wasDueMs } = message;
    const recorded = { queue: this.#queue, n, record, wasDueMs, split };
    await this.#written(() => deliveries.record(recorded, clockMs()));
    if (record.dueMs !== undefined || split.length > 0) this.#upcoming.expectDue();
  }

  /** Writes, however long that takes; resolves to false where this process may not any more. */
  async #written(write: () => Promise<void>): Promise<boolean> {
    for (;;) {
      try {
        await write();
        return true;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (error.code === 'conflict') this.#parts.superseded();
        if (error.code === 'conflict' || this.#isStopped) return false;
        // Nothing more is sent of which nothing could be written down.
        this.#holds += 1;
        await delay(recordAgainMs);
        this.#holds -= 1;
      }
    }
  }
}
