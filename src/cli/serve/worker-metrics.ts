import type { Worker } from 'node:cluster';
import type { Metric, ProcessMetrics } from '../../core/report/metrics.ts';
import { PendingReplies } from './pending-replies.ts';
import type { MetricsFromLeader, MetricsFromWorker } from './worker-messages.ts';

/** How long a process waits for the metrics of the others that share its port. */
const metricsWaitMs = 1_000;

/** The part of the leading process: collects the metrics of all workers. */
export class LeaderMetrics {
  readonly #pending = new PendingReplies<readonly Metric[]>();

  /**
   * Handles a message of a worker about metrics; `workers` are all running workers with their
   * numbers. A worker that does not reply in time is left out.
   */
  async handle(
    message: MetricsFromWorker,
    from: Worker,
    workers: ReadonlyMap<Worker, number>,
  ): Promise<void> {
    if (message.kind === 'own-metrics') {
      this.#pending.resolve(message.request, message.metrics);
      return;
    }
    const replies = [...workers].map(async ([worker, number]) => {
      const metrics = await this.#pending.request((request) => {
        sendToWorker(worker, { kind: 'get-metrics', request });
      }, metricsWaitMs);
      return metrics === undefined ? [] : [{ name: `worker-${number}`, metrics }];
    });
    const processes = (await Promise.all(replies)).flat();
    sendToWorker(from, { kind: 'all-metrics', request: message.request, processes });
  }
}

function sendToWorker(worker: Worker, message: MetricsFromLeader): void {
  if (worker.isConnected()) worker.send(message);
}

/** The part of a worker: requests the metrics of all processes from the leading one. */
export class WorkerMetrics {
  readonly #pending = new PendingReplies<readonly ProcessMetrics[]>();
  readonly #send: (message: MetricsFromWorker) => void;
  #own: () => readonly Metric[];

  constructor(parts: {
    readonly send: (message: MetricsFromWorker) => void;
    readonly own: () => readonly Metric[];
  }) {
    this.#send = parts.send;
    this.#own = parts.own;
  }

  /** Replies with the metrics of this moment from now on: a stop closes what they count. */
  freeze(): void {
    const last = this.#own();
    this.#own = () => last;
  }

  /**
   * Resolves to the metrics of all processes, or only its own if the leading one does not reply.
   */
  async gather(): Promise<readonly ProcessMetrics[]> {
    const all = await this.#pending.request((request) => {
      this.#send({ kind: 'get-all-metrics', request });
    }, 2 * metricsWaitMs);
    return all ?? [{ metrics: this.#own() }];
  }

  /** Handles a message of the leading process about metrics. */
  handle(message: MetricsFromLeader): void {
    if (message.kind === 'all-metrics') {
      this.#pending.resolve(message.request, message.processes);
    } else {
      this.#send({ kind: 'own-metrics', request: message.request, metrics: this.#own() });
    }
  }
}
