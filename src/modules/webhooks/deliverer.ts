import { pause } from '../../core/background/retry-loop.ts';
import type { BackgroundTasks, RunningTask } from '../../core/background/tasks.ts';
import { eventLoop } from '../../core/fair/turns.ts';
import type { FolderClaim } from '../../core/log/folder/folder-claim.ts';
import { backgroundPollMs } from '../../core/log/limits.ts';
import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import type { Metric } from '../../core/report/metrics.ts';
import { Failure } from '../../core/values/failure.ts';
import { AttemptLimiter, TurnBudget } from './attempt-limiter.ts';
import type { DeliveryAttempt } from './attempt.ts';
import type { Node } from './hook.ts';
import type { QueueKey } from './log/deliveries.ts';
import { type EventText, cacheEventTexts } from './message.ts';
import { Receivers } from './receivers.ts';
import { type FinishedAttempt, HookMetrics, type HookQueue, type Report } from './reports.ts';
import { Retention } from './retention.ts';
import { createSteadyClock } from './retry.ts';
import { Sender, type SenderParts } from './sender.ts';
import { deliveriesPart } from './log/delivery-log.ts';
import { storedHooks } from './log/family.ts';

/** How often the log is checked for changes by other processes: with hooks, and without any. */
const deliveryPollMs = 10;
const deliveryIdlePollMs = backgroundPollMs;

/** How often a process that does not deliver checks whether another one still does. */
const deliveryClaimMs = 1_000;

/** How often the deliverer drops its state of hooks that have nothing to send. */
export const deliveryTidyMs = 5_000;

/** How long attempts in flight may last after their hook was changed or deleted. */
const deliverySettleMs = 1_000;

/** The `[webhook]` and `[node]` settings that are in force. */
interface DeliverySettings {
  readonly retryMs: readonly number[];
  readonly concurrency: number;
  readonly retentionMs: number;
  readonly node: Node;
}

interface DelivererParts {
  readonly store: Store;
  readonly attempt: DeliveryAttempt;
  readonly settings: () => DeliverySettings;
  /**
   * Claims the deliveries of the data folder; rejects with `conflict` while another process does.
   */
  readonly claim: () => Promise<FolderClaim>;
  readonly log: Log;
  readonly tasks: Pick<BackgroundTasks, 'start'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  /** Acts on each attempt, before it is recorded; never rejects. */
  readonly report: Report;
}

/**
 * Delivers the webhooks of a data folder in the background (docs/design/webhooks.md#deliveries):
 * follows the log, puts each event into the queues of its hooks, and keeps a sender for each hook
 * whose queue is not empty. If several processes share a folder, one delivers; when it ends,
 * another takes over. Without hooks the deliverer only polls for a first hook.
 */
export class Deliverer {
  readonly #parts: DelivererParts;
  readonly #receivers: Receivers;
  readonly #eventText: (logSeq: number) => EventText;
  readonly #metrics = new HookMetrics();
  readonly #senders = new Map<QueueKey, { sender: Sender; readonly task: RunningTask }>();
  #turn = new AbortController();
  #running: RunningTask | undefined;
  #settled: Promise<void> = Promise.resolve();
  /** The hooksStamp of the last dispatch, and the time of that dispatch on the steady clock. */
  #stamp: string | undefined;
  #dispatchedMs = -Infinity;
  #graceMs = 0;
  #delivers = false;

  constructor(parts: DelivererParts) {
    this.#parts = parts;
    this.#receivers = new Receivers(parts.store);
    this.#eventText = cacheEventTexts((logSeq) => parts.store.part(deliveriesPart).event(logSeq));
  }

  /** Starts delivering. Errors go to the log. */
  start(): void {
    this.#running ??= this.#parts.tasks.start({
      name: 'webhook_delivery',
      title: 'Webhook delivery',
      run: (signal, well) => this.#run(signal, well),
    });
  }

  /**
   * Waits up to graceMs for attempts in flight, then cancels them; resolves when all are recorded.
   */
  async stop(graceMs: number): Promise<void> {
    this.#graceMs = graceMs;
    await this.#running?.stop();
  }

  /** The metrics of attempts; with those of the queues if this process delivers. */
  metrics(): readonly Metric[] {
    return this.#metrics.metrics(this.#delivers ? this.#queues() : []);
  }

  *#queues(): Iterable<HookQueue> {
    const { store, now } = this.#parts;
    for (const queue of store.part(deliveriesPart).nonEmptyQueues()) {
      const { queued, waiting } = store.part(deliveriesPart).depth(queue);
      const oldest = store.part(deliveriesPart).oldest(queue)?.stored_at;
      const oldestMs = oldest === undefined ? 0 : Math.max(0, now() - Date.parse(oldest));
      yield { hook: this.#receivers.hookId(queue), pending: queued + waiting, oldestMs };
    }
  }

  async #run(signal: AbortSignal, well: () => void): Promise<void> {
    while (!signal.aborted) {
      if (!(await this.#isNeeded(signal))) return;
      try {
        await this.#claimAndDeliver(signal, well);
      } catch (error) {
        // `conflict` means that another process delivers, which is normal.
        if (!(error instanceof Failure) || error.code !== 'conflict') throw error;
        well();
        await pause(deliveryClaimMs, signal);
      }
    }
  }

  /** Waits for a first hook: resolves to true when there is or was one, to false at a stop. */
  async #isNeeded(signal: AbortSignal): Promise<boolean> {
    const { store } = this.#parts;
    while (!signal.aborted) {
      if (store.of(storedHooks).hooksStamp() !== undefined) return true;
      await store.waitForRows(store.seq(), signal, deliveryIdlePollMs);
    }
    return false;
  }

  async #claimAndDeliver(signal: AbortSignal, well: () => void): Promise<void> {
    const { store, claim, log } = this.#parts;
    const held = await claim();
    try {
      await store.part(deliveriesPart).begin();
      this.#turn = new AbortController();
      log.debug({}, 'This process delivers the webhooks.');
      this.#delivers = true;
      well();
      await this.#deliver(AbortSignal.any([signal, this.#turn.signal]));
    } finally {
      this.#delivers = false;
      await this.#stopSenders();
      await store
        .part(deliveriesPart)
        .end()
        .catch(() => undefined);
      await held.release();
    }
  }

  /** Follows the log until the signal aborts. Rejects when the store cannot be written. */
  async #deliver(signal: AbortSignal): Promise<void> {
    const { store, now, monotonicMs, settings, log } = this.#parts;
    const deliveries = store.part(deliveriesPart);
    const lastMs = deliveries.clockMs();
    const clockMs = createSteadyClock({ now, monotonicMs, lastMs });
    const turnBudget = new TurnBudget();
    const parts: SenderParts = {
      ...this.#parts,
      deliveries,
      clockMs,
      limiter: new AttemptLimiter(turnBudget),
      turnBudget,
      receivers: this.#receivers,
      eventText: this.#eventText,
      ended: (ended) => {
        this.#count(ended);
      },
      superseded: () => {
        this.#turn.abort();
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
      await this.#wakeAll(deliveries.nonEmptyQueues(), parts, signal);
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
        const { queue } = await deliveries.continueReplay(clockMs());
        if (queue !== undefined) this.#senderOf(queue, parts).wakeForDue();
        continue;
      }
      await store.waitForRows(upTo, signal, hasHooks ? deliveryPollMs : deliveryIdlePollMs);
    }
  }

  /** Puts new events of the log into the queues; resolves to the last seq that it read. */
  async #dispatch(hasHooks: boolean, parts: SenderParts, signal: AbortSignal): Promise<number> {
    const { store, settings } = this.#parts;
    // The stamp is read first, so that the log already has the changes that it covers.
    const stamp = store.of(storedHooks).hooksStamp();
    const newest = store.seq();
    const nowMs = parts.clockMs();
    // Without hooks, reading the log once per deliveryIdlePollMs is enough.
    const isRecent = nowMs - this.#dispatchedMs < deliveryIdlePollMs;
    const isIdle = !hasHooks && stamp === this.#stamp && isRecent;
    if (isIdle) return newest;
    this.#dispatchedMs = nowMs;
    const { upTo, grown, changed, hasSkipped } = await store
      .part(deliveriesPart)
      .dispatch(settings().node);
    // Hooks may also have changed since the stamp was read.
    const hasChanged = store.of(storedHooks).hooksStamp() !== this.#stamp;
    if (upTo >= newest) this.#stamp = stamp;
    if (hasSkipped && hasChanged) {
      // The skipped part was not read, so any hook may have changed in it.
      this.#settle(upTo, new Set([...changed, ...this.#senders.keys()]), parts);
    } else if (changed.size > 0) {
      this.#settle(upTo, changed, parts);
    } else if (hasChanged && upTo >= newest) {
      // The node has received the secret or the header values of a hook whose events wait for them.
      await this.#wakeAll(store.part(deliveriesPart).nonEmptyQueues(), parts, signal);
    }
    await this.#wakeAll(grown, parts, signal);
    return upTo;
  }

  #count({ record: { outcome, ms }, event }: FinishedAttempt): void {
    this.#metrics.result(outcome, ms);
    const isCompleted = outcome === 'completed' || outcome === 'completed_404';
    // After the system time was set back, an event can seem to lie in the future.
    if (isCompleted) this.#metrics.completed(Math.max(0, this.#parts.now() - event.storedMs));
  }

  /** Wakes the senders of queues, and yields to the event loop between groups of them. */
  async #wakeAll(
    queues: Iterable<QueueKey>,
    parts: SenderParts,
    signal: AbortSignal,
  ): Promise<void> {
    const turns = eventLoop.turns('webhooks');
    for (const queue of queues) {
      if (signal.aborted) return;
      this.#senderOf(queue, parts).wake();
      if (turns.isOver()) await turns.next();
    }
  }

  #senderOf(queue: QueueKey, parts: SenderParts): Sender {
    const known = this.#senders.get(queue);
    if (known !== undefined) return known.sender;
    let sender = new Sender(queue, parts);
    let hasBroken = false;
    const task = this.#parts.tasks.start({
      name: 'webhook_sender',
      title: `The delivery to the webhook ${this.#receivers.hookId(queue)}`,
      run: async (_signal, well) => {
        if (hasBroken) sender = this.#replaceSender(queue, parts, well);
        try {
          await sender.over;
        } catch (error) {
          hasBroken = true;
          // What it has sent is recorded, or sent again by the next one.
          await sender.stop(0);
          throw error;
        }
      },
    });
    this.#senders.set(queue, { sender, task });
    return sender;
  }

  /** Puts another sender into the place of one that broke. */
  #replaceSender(queue: QueueKey, parts: SenderParts, well: () => void): Sender {
    const sender = new Sender(queue, {
      ...parts,
      ended: (ended) => {
        well();
        parts.ended(ended);
      },
    });
    const place = this.#senders.get(queue);
    if (place !== undefined) place.sender = sender;
    sender.wake();
    return sender;
  }

  /**
   * Ends the attempts in flight of changed hooks, then records that the changes are in effect. A
   * hook that was resumed may have messages to send. Its sender is created before the first await,
   * so that no other caller creates a second one meanwhile.
   */
  #settle(upTo: number, changed: ReadonlySet<QueueKey>, parts: SenderParts): void {
    const settling = [...changed].map(async (queue) => {
      const isSentTo = this.#receivers.find(queue) !== undefined;
      const sender = isSentTo ? this.#senderOf(queue, parts) : this.#senders.get(queue)?.sender;
      await sender?.settle(deliverySettleMs);
    });
    this.#settled = Promise.all([this.#settled, ...settling])
      .then(() => parts.deliveries.markApplied(upTo))
      .catch((error: unknown) => {
        if (error instanceof Failure) return;
        this.#parts.log.error({ err: error }, 'Cannot record that changed webhooks are in effect.');
      });
  }

  #forgetIdle(): void {
    for (const [queue, { sender }] of this.#senders) {
      if (sender.endIfIdle()) this.#senders.delete(queue);
    }
  }

  async #stopSenders(): Promise<void> {
    const senders = [...this.#senders.values()];
    this.#senders.clear();
    await Promise.all(
      senders.flatMap(({ sender, task }) => [sender.stop(this.#graceMs), task.stop()]),
    );
  }
}
