import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../model/failure.ts';
import type { Node } from '../model/hook.ts';
import {
  deliveryClaimMs,
  deliveryIdlePollMs,
  deliveryPollMs,
  deliverySettleMs,
  deliveryTidyMs,
} from '../model/limits.ts';
import type { Log } from '../observability/log.ts';
import type { Metric } from '../observability/metrics.ts';
import type { QueueKey } from '../store/deliveries.ts';
import type { FolderClaim } from '../store/lock.ts';
import type { Store } from '../store/store.ts';
import type { DeliveryAttempt } from './attempt.ts';
import type { EventText } from './body.ts';
import { createSteadyClock } from './clock.ts';
import { rememberEventTexts } from './event-texts.ts';
import { wokenAtOnceMax } from './limits.ts';
import { HookMetrics, type HookQueue } from './metrics.ts';
import { Receivers } from './receivers.ts';
import type { EndedAttempt, Report } from './reports.ts';
import { Retention } from './retention.ts';
import { Sender, type SenderParts } from './sender.ts';
import { Slots } from './slots.ts';
import { Turns } from './turns.ts';

/** What the ini file says of deliveries, as it is in force. */
interface DeliverySettings {
  readonly retryMs: readonly number[];
  readonly concurrency: number;
  readonly retentionMs: number;
  readonly node: Node;
}

/** What delivering stands on. */
interface DelivererParts {
  readonly store: Store;
  readonly attempt: DeliveryAttempt;
  readonly settings: () => DeliverySettings;
  /** Claims the deliveries of the data folder; rejects with `conflict` while another has them. */
  readonly claim: () => Promise<FolderClaim>;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  /** Acts on each attempt, before it is recorded; never rejects. */
  readonly report: Report;
}

/**
 * Delivers the webhooks of a data folder in the background (docs/design/webhooks.md#deliveries):
 * follows the log, puts each event into the queues of its hooks, and has a sender for each hook
 * with something in its queue. Of several processes on a folder one does it; where that ends,
 * another takes over. Without hooks it does nothing but look for one now and then.
 */
export class Deliverer {
  readonly #parts: DelivererParts;
  readonly #receivers: Receivers;
  readonly #eventText: (logSeq: number) => EventText;
  readonly #metrics = new HookMetrics();
  readonly #senders = new Map<QueueKey, Sender>();
  readonly #stopped = new AbortController();
  #turn = new AbortController();
  #running: Promise<void> | undefined;
  #settled: Promise<void> = Promise.resolve();
  /** The state of the hooks up to which the log was read, and when, by the steady clock. */
  #stamp: string | undefined;
  #dispatchedMs = -Infinity;
  #graceMs = 0;
  #delivers = false;
  /** What was said last of why nothing is delivered. */
  #said = '';

  constructor(parts: DelivererParts) {
    this.#parts = parts;
    this.#receivers = new Receivers(parts.store);
    this.#eventText = rememberEventTexts((logSeq) => parts.store.deliveries.event(logSeq));
  }

  /** Begins; what goes wrong stands in the log. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Lets what is under way end, withdraws it after the grace; resolves when all is recorded. */
  async stop(graceMs: number): Promise<void> {
    this.#graceMs = graceMs;
    this.#stopped.abort();
    await this.#running;
  }

  /** What has become of deliveries; of the queues, where this process is the one that delivers. */
  metrics(): readonly Metric[] {
    return this.#metrics.metrics(this.#delivers ? this.#queues() : []);
  }

  *#queues(): Iterable<HookQueue> {
    const { store, now } = this.#parts;
    for (const queue of store.deliveries.busy()) {
      const { queued, waiting } = store.deliveries.depth(queue);
      const oldest = store.deliveries.oldest(queue)?.stored_at;
      const oldestMs = oldest === undefined ? 0 : Math.max(0, now() - Date.parse(oldest));
      yield { hook: this.#receivers.hookId(queue), pending: queued + waiting, oldestMs };
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        if (await this.#isNeeded()) await this.#claimAndDeliver();
      } catch (error) {
        // That another process delivers is as it should be.
        const isHeld = error instanceof Failure && error.code === 'conflict';
        if (!isHeld && String(error) !== this.#said) {
          this.#said = String(error);
          this.#parts.log.error({ err: error }, 'no webhooks are delivered; it is tried again');
        }
        await this.#pause(deliveryClaimMs);
      }
    }
  }

  /** Whether there was ever a hook; resolves when there is, or when this is to stop. */
  async #isNeeded(): Promise<boolean> {
    const { store } = this.#parts;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      if (store.hooksStamp() !== undefined) return true;
      await store.grown(store.seq(), signal, deliveryIdlePollMs);
    }
    return false;
  }

  async #claimAndDeliver(): Promise<void> {
    const { store, claim, log } = this.#parts;
    const held = await claim();
    try {
      await store.deliveries.begin();
      this.#turn = new AbortController();
      log.debug({}, 'this process delivers the webhooks');
      this.#delivers = true;
      this.#said = '';
      await this.#deliver(AbortSignal.any([this.#stopped.signal, this.#turn.signal]));
    } finally {
      this.#delivers = false;
      await this.#stopSenders();
      await store.deliveries.end().catch(() => undefined);
      await held.release();
    }
  }

  /** Follows the log until the signal aborts. Rejects when the store cannot be written. */
  async #deliver(signal: AbortSignal): Promise<void> {
    const { store, now, monotonicMs, settings, log } = this.#parts;
    const { deliveries } = store;
    const lastMs = deliveries.clockMs();
    const clockMs = createSteadyClock({ now, monotonicMs, lastMs });
    const turns = new Turns();
    const parts: SenderParts = {
      ...this.#parts,
      deliveries,
      clockMs,
      slots: new Slots(turns),
      turns,
      receivers: this.#receivers,
      eventText: this.#eventText,
      ended: (ended) => {
        this.#count(ended);
      },
      superseded: () => {
        this.#turn.abort();
      },
      broken: (error, queue) => {
        const hook = this.#receivers.hookId(queue);
        log.error({ err: error, hook }, 'a webhook cannot be delivered');
      },
    };
    const retention = new Retention({
      ...parts,
      log,
      retentionMs: () => settings().retentionMs,
      signal,
    });
    await retention.begin(lastMs);
    try {
      await this.#wakeAll(deliveries.busy(), parts, signal);
      await this.#follow(parts, retention, signal);
    } finally {
      await retention.end();
    }
  }

  async #follow(parts: SenderParts, retention: Retention, signal: AbortSignal): Promise<void> {
    const { store } = this.#parts;
    const { deliveries, clockMs } = parts;
    let tidiedMs = clockMs();
    this.#stamp = undefined;
    while (!signal.aborted) {
      const hasHooks = store.counts().hooks > 0;
      const upTo = await this.#dispatch(hasHooks, parts, signal);
      if (clockMs() - tidiedMs > deliveryTidyMs) {
        this.#forgetIdle();
        tidiedMs = clockMs();
      }
      retention.look();
      if (deliveries.isReplaying()) {
        const { queue } = await deliveries.replaySome(clockMs());
        if (queue !== undefined) this.#senderOf(queue, parts).wakeForDue();
        continue;
      }
      await store.grown(upTo, signal, hasHooks ? deliveryPollMs : deliveryIdlePollMs);
    }
  }

  /** Puts what is new in the log into the queues; resolves to the seq up to which it looked. */
  async #dispatch(hasHooks: boolean, parts: SenderParts, signal: AbortSignal): Promise<number> {
    const { store, settings } = this.#parts;
    // In this order: what the stamp tells of is in the log by then.
    const stamp = store.hooksStamp();
    const newest = store.seq();
    const hasChanged = stamp !== this.#stamp;
    const nowMs = parts.clockMs();
    // Without hooks it is enough to go over the log now and then.
    const isIdle = !hasHooks && !hasChanged && nowMs - this.#dispatchedMs < deliveryIdlePollMs;
    if (isIdle) return newest;
    this.#dispatchedMs = nowMs;
    const { upTo, grown, changed, hasSkipped } = await store.deliveries.dispatch(settings().node);
    if (upTo >= newest) this.#stamp = stamp;
    if (hasSkipped && hasChanged) {
      // Of the hooks that were changed there, nobody has read which they are.
      this.#settle(upTo, new Set([...changed, ...this.#senders.keys()]), parts);
    } else if (changed.size > 0) {
      this.#settle(upTo, changed, parts);
    }
    await this.#wakeAll(grown, parts, signal);
    return upTo;
  }

  #count({ record: { outcome, ms }, event }: EndedAttempt): void {
    this.#metrics.attempted(outcome, ms);
    const isCompleted = outcome === 'completed' || outcome === 'completed_404';
    // A clock that was put back does not make an event one of the future.
    if (isCompleted) this.#metrics.completed(Math.max(0, this.#parts.now() - event.storedMs));
  }

  /** Has the senders of queues send what they have; others have their turn in between. */
  async #wakeAll(
    queues: Iterable<QueueKey>,
    parts: SenderParts,
    signal: AbortSignal,
  ): Promise<void> {
    let woken = 0;
    for (const queue of queues) {
      if (signal.aborted) return;
      this.#senderOf(queue, parts).wake();
      woken += 1;
      if (woken % wokenAtOnceMax === 0) await nextTurn();
    }
  }

  #senderOf(queue: QueueKey, parts: SenderParts): Sender {
    const known = this.#senders.get(queue);
    if (known !== undefined) return known;
    const sender = new Sender(queue, parts);
    this.#senders.set(queue, sender);
    return sender;
  }

  /**
   * Hooks have changed: what is under way for them ends, and then those know who wait for that. One
   * that was paused or gone may have something to send: its sender is there before anything is
   * waited for, so that nobody makes a second one in the meantime.
   */
  #settle(upTo: number, changed: ReadonlySet<QueueKey>, parts: SenderParts): void {
    const settling = [...changed].map(async (queue) => {
      const isSentTo = this.#receivers.find(queue) !== undefined;
      const sender = isSentTo ? this.#senderOf(queue, parts) : this.#senders.get(queue);
      await sender?.settle(deliverySettleMs);
    });
    this.#settled = Promise.all([this.#settled, ...settling])
      .then(() => parts.deliveries.settle(upTo))
      .catch((error: unknown) => {
        if (!(error instanceof Failure)) this.#parts.log.error({ err: error }, 'cannot settle');
      });
  }

  #forgetIdle(): void {
    for (const [queue, sender] of this.#senders) {
      if (sender.endIfIdle()) this.#senders.delete(queue);
    }
  }

  async #stopSenders(): Promise<void> {
    const senders = [...this.#senders.values()];
    this.#senders.clear();
    await Promise.all(senders.map((sender) => sender.stop(this.#graceMs)));
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopped.signal, ref: false }).catch(() => undefined);
  }
}
