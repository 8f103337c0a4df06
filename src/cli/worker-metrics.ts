import type { Worker } from 'node:cluster';
import type { Metric, ProcessMetrics } from '../observability/metrics.ts';
import { metricsWaitMs } from './limits.ts';
import type { MetricsFromLeader, MetricsFromWorker } from './worker-messages.ts';

/** Questions that wait for an answer by their number, for a while. */
class Waiting<Answer> {
  readonly #resolves = new Map<number, (answer: Answer | undefined) => void>();
  #latest = 0;

  /** Resolves to the answer; to undefined where none comes in time. */
  ask(send: (request: number) => void, waitMs: number): Promise<Answer | undefined> {
    this.#latest += 1;
    const request = this.#latest;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.answered(request, undefined);
      }, waitMs);
      this.#resolves.set(request, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      send(request);
    });
  }

  answered(request: number, answer: Answer | undefined): void {
    this.#resolves.get(request)?.(answer);
    this.#resolves.delete(request);
  }
}

/** The leading process' side: brings the metrics of all workers together. */
export class MetricsOfWorkers {
  readonly #waiting = new Waiting<readonly Metric[]>();

  /**
   * Takes a message of a worker about metrics; `workers` are all that run, with their numbers. One
   * that does not answer in time is left out.
   */
  async take(
    message: MetricsFromWorker,
    from: Worker,
    workers: ReadonlyMap<Worker, number>,
  ): Promise<void> {
    if (message.kind === 'told-metrics') {
      this.#waiting.answered(message.request, message.metrics);
      return;
    }
    const told = [...workers].map(async ([worker, number]) => {
      const metrics = await this.#waiting.ask((request) => {
        tellWorker(worker, { kind: 'tell-metrics', request });
      }, metricsWaitMs);
      return metrics === undefined ? [] : [{ name: `worker-${number}`, metrics }];
    });
    const processes = (await Promise.all(told)).flat();
    tellWorker(from, { kind: 'all-metrics', request: message.request, processes });
  }
}

function tellWorker(worker: Worker, message: MetricsFromLeader): void {
  if (worker.isConnected()) worker.send(message);
}

/** A worker's side: asks the leading process for the metrics of all. */
export class MetricsOfAll {
  readonly #waiting = new Waiting<readonly ProcessMetrics[]>();
  readonly #tell: (message: MetricsFromWorker) => void;
  readonly #own: () => readonly Metric[];

  constructor(parts: {
    readonly tell: (message: MetricsFromWorker) => void;
    readonly own: () => readonly Metric[];
  }) {
    this.#tell = parts.tell;
    this.#own = parts.own;
  }

  /** Resolves to the metrics of all processes; to its own where the leading one does not answer. */
  async gather(): Promise<readonly ProcessMetrics[]> {
    const all = await this.#waiting.ask((request) => {
      this.#tell({ kind: 'ask-metrics', request });
    }, 2 * metricsWaitMs);
    return all ?? [{ metrics: this.#own() }];
  }

  /** Takes a message of the leading process about metrics. */
  take(message: MetricsFromLeader): void {
    if (message.kind === 'all-metrics') {
      this.#waiting.answered(message.request, message.processes);
    } else {
      this.#tell({ kind: 'told-metrics', request: message.request, metrics: this.#own() });
    }
  }
}
