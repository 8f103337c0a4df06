import { setTimeout as delay } from 'node:timers/promises';
import type { Release } from '../../core/fair/shared-limit.ts';
import { Failure } from '../../core/values/failure.ts';
import type { AttemptLimiter, TurnBudget } from './attempt-limiter.ts';
import type { AttemptResult, DeliveryAttempt } from './attempt.ts';
import {
  type ConcurrencyWindow,
  hasRoom,
  initialWindow,
  windowAfterEnd,
  windowAfterStart,
} from './concurrency-window.ts';
import type { AttemptRecord, Batch, Deliveries, QueueKey } from './log/deliveries.ts';
import {
  type EventText,
  type HookMessage,
  bodyBytesAtMost,
  halvesOf,
  writeMessage,
} from './message.ts';
import type { Receiver, Receivers } from './receivers.ts';
import type { FinishedAttempt, Report } from './reports.ts';
import { type SteadyClock, attemptRecord, retrySchedule, verdictOn } from './retry.ts';
import {
  MessagesInFlight,
  type Next,
  UpcomingMessages,
  type Version,
  newVersion,
} from './upcoming-messages.ts';

/** The longest timer; longer waits consist of several. */
const wakeMsMax = 3_600_000;

/** How long after a failure to record an attempt the sender tries again. */
const recordAgainMs = 1_000;

export interface SenderParts {
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  readonly attempt: DeliveryAttempt;
  readonly eventText: (logSeq: number) => EventText;
  readonly clockMs: SteadyClock;
  /** Limits the attempts of all senders together. */
  readonly limiter: AttemptLimiter;
  /** Limits the bytes that all senders prepare in one turn of the event loop. */
  readonly turnBudget: TurnBudget;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  /** The current `[webhook]` settings of the ini file. */
  readonly settings: () => { readonly retryMs: readonly number[]; readonly concurrency: number };
  /**
   * Called before an attempt is recorded, so that a crash repeats a report instead of losing it.
   */
  readonly report: Report;
  /** Called after an attempt is recorded. */
  readonly ended: (ended: FinishedAttempt) => void;
  /** Called when another process has taken over the deliveries. */
  readonly superseded: () => void;
}

/**
 * Sends the messages of one hook, as many at a time as its concurrency window allows. It holds only
 * the next few messages in memory.
 */
export class Sender {
  readonly #queue: QueueKey;
  readonly #parts: SenderParts;
  readonly #upcoming: UpcomingMessages;
  readonly #inFlight = new MessagesInFlight();
  #window: ConcurrencyWindow = initialWindow;
  /** The size of the message that was measured last. */
  #measured: { readonly n: number; readonly events: number; readonly bytes: number } | undefined;
  #version: Version | undefined;
  /** The version of the hook whose receiver answered 410. The pause may not be stored yet. */
  #goneVersion: number | undefined;
  /** While above 0, the sender begins no attempts: it waits for a write. */
  #holds = 0;
  /** The number of running calls of settle; each wakes the sender at its end. */
  #settling = 0;
  #isStopped = false;
  readonly #over = Promise.withResolvers<undefined>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires, by the steady clock. */
  #wakeMs = Infinity;

  constructor(queue: QueueKey, parts: SenderParts) {
    this.#queue = queue;
    this.#parts = parts;
    this.#upcoming = new UpcomingMessages(queue, parts);
  }

  /**
   * Resolves when the sender has stopped. Rejects at the first unexpected error: it then begins no
   * attempts any more, and another sender has to take its place.
   */
  get over(): Promise<unknown> {
    return this.#over.promise;
  }

  /**
   * Ends the sender if it is idle and has no state that a new one would lack. Returns whether it
   * ended; an ended sender never sends again.
   */
  endIfIdle(): boolean {
    const { limiter, turnBudget } = this.#parts;
    // One that broke keeps its place until the next one takes it.
    if (this.#isStopped) return false;
    const isSending = this.#inFlight.size > 0 || this.#holds > 0 || this.#settling > 0;
    const isWaiting =
      this.#timer !== undefined || limiter.isQueued(this) || turnBudget.isWaiting(this);
    if (isSending || isWaiting || this.#window.failures > 0) return false;
    this.#isStopped = true;
    this.#over.resolve(undefined);
    return true;
  }

  /** Sends all messages that may be sent now. Called whenever there may be more of them. */
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
      if (receiver.hook.order && !this.#mayBeginNext()) return;
      const nowMs = this.#parts.clockMs();
      const { hook } = receiver;
      const next = this.#upcoming.next(hook, nowMs, this.#inFlight);
      if (!this.#advance(next, receiver, version, nowMs)) return;
    }
  }

  /**
   * Whether a hook with `order` may send its next message: after the receiver has accepted the ones
   * before. Their records may still be on their way to the disk, which is slow in a cluster.
   */
  #mayBeginNext(): boolean {
    const { size, areCompleted } = this.#inFlight;
    return areCompleted && size < this.#parts.settings().concurrency;
  }

  /** Wakes the sender after a replay has made messages due. */
  wakeForDue(): void {
    this.#upcoming.expectDue();
    this.wake();
  }

  /**
   * Ends the attempts that began with an older version of the hook: waits up to graceMs, then
   * cancels them. Then wakes the sender.
   */
  async settle(graceMs: number): Promise<void> {
    this.#settling += 1;
    await this.#inFlight.end(graceMs, this.#parts.receivers.find(this.#queue)?.seq);
    this.#settling -= 1;
    this.wake();
  }

  /** Begins no further attempts. Waits up to graceMs for those in flight, then cancels them. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    this.#clearTimer();
    await this.#inFlight.end(graceMs);
    this.#over.resolve(undefined);
  }

  #versionOf({ seq }: Receiver): Version {
    if (this.#version?.seq === seq) return this.#version;
    // The new version may batch or order its events differently.
    if (this.#version !== undefined) this.#upcoming.reset();
    this.#version = newVersion(seq);
    return this.#version;
  }

  /** Performs the next step; returns false if there is none or it has to wait. */
  #advance(next: Next, receiver: Receiver, version: Version, nowMs: number): boolean {
    switch (next.kind) {
      case 'nothing':
        return false;
      case 'later':
        this.#wakeAt(next.atMs, nowMs);
        return false;
      case 'unread':
        this.#parts.turnBudget.wakeLater(this);
        return false;
      case 'batch':
        this.#freeze(next.batch).catch((error: unknown) => {
          this.#break(error);
        });
        return false;
      case 'message': {
        const { message, isFirst, otherMs } = next;
        const widthMax = this.#parts.settings().concurrency;
        if (!hasRoom(this.#window, { isFirst, nowMs, widthMax })) {
          const { retryAfterUntilMs, pausedUntilMs } = this.#window;
          const pauseEndsMs = isFirst ? Math.min(pausedUntilMs, otherMs) : 0;
          this.#wakeAt(Math.max(retryAfterUntilMs, pauseEndsMs), nowMs);
          return false;
        }
        const bytes = this.#bytesOf(message);
        const { host } = new URL(receiver.hook.url);
        const release = this.#parts.limiter.acquire(this, bytes, host);
        if (release === undefined) return false;
        if (message.before === undefined) this.#upcoming.takeEvent();
        this.#begin(message, release, receiver, version);
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
      this.#parts.turnBudget.wakeLater(this);
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
    const isDone = await this.#written(() => deliveries.storeBatch(this.#queue, batch, made));
    this.#holds -= 1;
    if (!isDone) return;
    this.#upcoming.takeBatch();
    this.wake();
  }

  /** An upper estimate of the body length, cached because the message may wait for a slot. */
  #bytesOf({ n, logSeqs }: HookMessage): number {
    if (this.#measured?.n !== n || this.#measured.events !== logSeqs.length) {
      const bytes = bodyBytesAtMost(logSeqs, this.#parts.deliveries);
      this.#measured = { n, events: logSeqs.length, bytes };
    }
    return this.#measured.bytes;
  }

  #begin(message: HookMessage, release: Release, receiver: Receiver, version: Version): void {
    this.#window = windowAfterStart(this.#window);
    const ended = this.#send(message, release, receiver, version).then(
      (isOver) => {
        this.#inFlight.delete(message.n);
        if (!isOver) this.#putBack();
        this.wake();
      },
      (error: unknown) => {
        this.#inFlight.delete(message.n);
        this.#break(error);
      },
    );
    this.#inFlight.add(message.n, { version, ended });
  }

  /** Resolves to false if the attempt was cancelled. */
  async #send(
    message: HookMessage,
    release: Release,
    receiver: Receiver,
    version: Version,
  ): Promise<boolean> {
    const { now, clockMs, settings, random } = this.#parts;
    const { hook } = receiver;
    const { shrinks: shrinksBefore } = this.#window;
    const at = now();
    const { result, event } = await this.#attempt(message, receiver, version).finally(release);
    if (result.problem?.code === 'cancelled') return false;
    // A receiver has no message that it did not take, whatever it says.
    const verdict = verdictOn(result.problem?.code === 'unsent' ? undefined : result.status);
    if (verdict.isGone) this.#goneVersion = version.seq;
    const { concurrency: widthMax, retryMs: standardMs } = settings();
    const { receiver: health } = verdict;
    const { retryAfterMs } = result;
    this.#window = windowAfterEnd(this.#window, {
      ...{ receiver: health, shrinksBefore, retryAfterMs, nowMs: clockMs(), widthMax },
    });
    const split = verdict.isTooLarge ? halvesOf(message) : [];
    const record = attemptRecord(message, {
      ...{
        at,
        result,
        hookSeq: version.seq,
        verdict,
        attemptsMax: hook.retry_limit,
        isSplit: split.length > 0,
      },
      ...{
        retryMs: retrySchedule(hook, standardMs),
        random: random(),
        clockMs: clockMs(),
      },
    });
    // The next attempt can begin while this one is being recorded.
    const isCompleted = record.outcome === 'completed' || record.outcome === 'completed_404';
    if (isCompleted) this.#inFlight.complete(message.n);
    this.wake();
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
  ): Promise<{ readonly result: AttemptResult; readonly event: EventText }> {
    const { attempt, eventText, receivers, now } = this.#parts;
    const { id, body, event } = await writeMessage(message, receiver.hook.id, eventText);
    const signed = { id, body, keys: receiver.keys(now()) };
    const result = await attempt(receiver.hook, signed, {
      signal: version.cancellation.signal,
      mayBegin: () => receivers.find(this.#queue)?.seq === version.seq,
    });
    return { result, event };
  }

  /** Stops the sender after an unexpected error. */
  #break(error: unknown): void {
    this.#isStopped = true;
    this.#clearTimer();
    this.#over.reject(error);
  }

  /** Undoes the start of an attempt that was cancelled. */
  #putBack(): void {
    this.#window = { ...this.#window, inFlight: this.#window.inFlight - 1 };
    this.#upcoming.reset();
  }

  /** Records an attempt. The message stays open until the record is stored. */
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

  /** Retries a write until it succeeds; resolves to false if another process has taken over. */
  async #written(write: () => Promise<void>): Promise<boolean> {
    for (;;) {
      try {
        await write();
        return true;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (error.code === 'conflict') this.#parts.superseded();
        if (error.code === 'conflict' || this.#isStopped) return false;
        // The sender begins no attempts while it cannot record them.
        this.#holds += 1;
        await delay(recordAgainMs);
        this.#holds -= 1;
      }
    }
  }
}
