import { Histogram, type Metric } from '../../core/report/metrics.ts';

/** The most hooks with their own label in the metrics of queues. */
const hooksMeasuredMax = 200;

/** In seconds. The bounds above 15 s are for deliveries that waited for a retry. */
const bounds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 60, 600,
];

/** The unfinished deliveries of a hook. */
export interface HookQueue {
  readonly hook: string;
  /** Deliveries that wait or are in flight. */
  readonly pending: number;
  /** Age of the oldest event among them; 0 if there are none. */
  readonly oldestMs: number;
}

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
