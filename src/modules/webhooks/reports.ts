import type { Emit } from '../../core/log/events/emit.ts';
import { errorDetected } from '../../core/log/events/event.ts';
import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { Histogram, type Metric } from '../../core/report/metrics.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Hook } from './hook.ts';
import type { AttemptRecord } from './log/deliveries.ts';
import type { EventText } from './message.ts';
import type { Receiver } from './receivers.ts';
import type { Verdict } from './retry.ts';
import { rowLogPart } from '../nodes/log/open-row-log.ts';
import { storedHooks } from './log/family.ts';

/** The most hooks with their own label in the metrics of queues. */
const hooksMeasuredMax = 200;

/** In seconds. The bounds above 15 s are for deliveries that waited for a retry. */
const bounds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 60, 600,
];

/** Counts the attempts and outcomes of webhook deliveries. */
export class HookMetrics {
  readonly #attempts = new Map<string, number>();
  readonly #durations = new Histogram(bounds);
  readonly #latencies = new Histogram(bounds);

  /** Counts an attempt by its outcome. */
  result(outcome: string, ms: number): void {
    this.#attempts.set(outcome, (this.#attempts.get(outcome) ?? 0) + 1);
    this.#durations.observe(ms / 1000);
  }

  /** Counts a completed delivery by the age of its event, or of its oldest event. */
  completed(ageMs: number): void {
    this.#latencies.observe(ageMs / 1000);
  }

  /**
   * The counts so far, and the lengths of the queues. The longest queues have a label of their own;
   * the hook `others` stands for the sum of the rest, so that the number of series is bounded.
   */
  metrics(queues: Iterable<HookQueue>): readonly Metric[] {
    const measured = boundedQueues(queues);
    return [
      {
        name: 'waymark_webhook_pending',
        type: 'gauge',
        help: 'Unfinished deliveries, by hook.',
        samples: measured.map(({ hook, pending }) => ({ labels: { hook }, value: pending })),
      },
      {
        name: 'waymark_webhook_oldest_seconds',
        type: 'gauge',
        help: 'Age of the oldest undelivered event, by hook.',
        samples: measured.map(({ hook, oldestMs }) => ({
          labels: { hook },
          value: oldestMs / 1000,
        })),
      },
      {
        name: 'waymark_webhook_attempts_total',
        type: 'counter',
        help: 'Delivery attempts, by outcome.',
        samples: [...this.#attempts].map(([outcome, value]) => ({ labels: { outcome }, value })),
      },
      {
        name: 'waymark_webhook_attempt_duration_seconds',
        type: 'histogram',
        help: 'Duration of delivery attempts.',
        samples: this.#durations.samples({}),
      },
      {
        name: 'waymark_webhook_latency_seconds',
        type: 'histogram',
        help: 'Time from an event to the response that completed its delivery.',
        samples: this.#latencies.samples({}),
      },
    ];
  }
}

/** The author of the changes that the deliverer makes. */
const author = 'deliverer';

/** A finished attempt, for reports and metrics. */
export interface FinishedAttempt {
  readonly receiver: Receiver;
  readonly n: number;
  readonly record: AttemptRecord;
  readonly verdict: Verdict;
  /** The message's first event. */
  readonly event: EventText;
}

/** Reports a finished attempt: pauses the hook or raises an event. Never rejects. */
export type Report = (ended: FinishedAttempt) => Promise<void>;

/**
 * Makes a Report. It pauses a hook whose receiver answered 410
 * (docs/design/webhooks.md#deliveries), and raises an `error.detected` for a delivery that was
 * given up, at most once a minute for a hook. It logs both.
 */
export function createReports({
  store,
  emit,
  log,
}: {
  readonly store: Store;
  readonly emit: Emit;
  readonly log: Log;
}): Report {
  return async ({ receiver: { hook }, n, record, verdict, event }) => {
    const fields = { hook: hook.id, seq: n, attempt: record.attempt, status: record.status };
    const unstored = (error: unknown): void => {
      if (error instanceof Failure && error.code === 'unavailable') return;
      log.error({ err: error, ...fields }, 'Cannot store the outcome of a webhook delivery.');
    };
    if (verdict.isGone) {
      const isPaused = await pause(store, hook).catch(async (error: unknown) => {
        const isCopy = store.part(rowLogPart).identity().follows !== undefined;
        if (!isCopy) {
          unstored(error);
          return undefined;
        }
        // Only the centre can pause it.
        const message = `The receiver of the hook ${hook.id} answered 410 (Gone): pause the hook.`;
        const gone = { code: 'receiver_gone', message, id: hook.id, seq: n };
        await emit('error.detected', gone, { about: hook.id });
        return undefined;
      });
      if (isPaused === true) {
        log.warn(
          fields,
          'The webhook is paused: its receiver answered 410 (Gone). Resume it to deliver again.',
        );
      }
    }
    if (record.outcome !== 'exhausted') return;
    const givenUp = 'Gave up a webhook delivery after its last attempt. A replay sends it again.';
    log.warn({ ...fields, err: record.error }, givenUp);
    // A failed delivery of an error.detected raises no other one: that could repeat forever.
    if (event.type === errorDetected) return;
    const reason = record.error ?? `status ${record.status ?? ''}`;
    const cause = `after ${record.tries} attempts: ${reason}`;
    const message = `Delivery ${n} of the hook was given up ${cause}`;
    const error = { code: 'delivery_exhausted', message, id: hook.id, seq: n };
    await emit('error.detected', error, { about: hook.id });
  };
}

/** Pauses a hook, unless it is already paused or its URL has changed. */
function pause(store: Store, { id, url }: Hook): Promise<boolean> {
  return store.commit(author, (reads) => {
    const now = reads.of(storedHooks).hook(id)?.hook;
    const isMeant = now?.active === true && now.url === url;
    const draft = { family: 'webhook', id, action: 'edit', data: { active: false } } as const;
    return { drafts: isMeant ? [draft] : [], answer: () => isMeant };
  });
}

/** The unfinished deliveries of a hook. */
export interface HookQueue {
  readonly hook: string;
  /** Deliveries that wait or are in flight. */
  readonly pending: number;
  /** Age of the oldest event among them; 0 if there are none. */
  readonly oldestMs: number;
}

function boundedQueues(queues: Iterable<HookQueue>): readonly HookQueue[] {
  const all = [...queues];
  if (all.length <= hooksMeasuredMax) return all;
  all.sort((one, other) => other.pending - one.pending || (one.hook < other.hook ? -1 : 1));
  const others = all.slice(hooksMeasuredMax);
  return [
    ...all.slice(0, hooksMeasuredMax),
    {
      hook: 'others',
      pending: others.reduce((sum, { pending }) => sum + pending, 0),
      oldestMs: others.reduce((oldest, { oldestMs }) => Math.max(oldest, oldestMs), 0),
    },
  ];
}
