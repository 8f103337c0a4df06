import type { Worker } from 'node:cluster';
import type { BackgroundTasks, ProcessState } from '../../core/background/tasks.ts';
import {
  type Taken,
  TokenBuckets,
  type TokenCounter,
  type TokenOrder,
} from '../../core/fair/token-buckets.ts';
import {
  type CountedByLeader,
  type CountedByWorker,
  type MetricsFromLeader,
  type MetricsFromWorker,
  PendingReplies,
  type TokensFromLeader,
  type TokensFromWorker,
} from './worker-messages.ts';

/** How long a worker waits for the process that has the buckets of all workers. */
const tokenWaitMs = 2_000;
const monotonicMs = (): number => performance.now();

/** The part of the leading process: it has the buckets of all workers, so that a rate is exact. */
export class LeaderTokens {
  readonly #buckets = new TokenBuckets({ monotonicMs });
  readonly #counts = new TokenBuckets({ monotonicMs });

  /** Counts a token of a worker, and tells the workers that have to know. */
  count({ order, tokens }: CountedByWorker, from: Worker, all: Iterable<Worker>): void {
    const fullMs = this.#counts.charge(order, tokens);
    const isUsedUp = fullMs > (order.burst - 1) * order.intervalMs;
    const counted: CountedByLeader = { kind: 'counted-token', order, fullMs };
    for (const one of isUsedUp ? all : [from]) if (one.isConnected()) one.send(counted);
  }

  /** Takes a token for a worker. */
  handle({ request, order }: TokensFromWorker, from: Worker): void {
    const taken = this.#buckets.take(order);
    const answer: TokensFromLeader = { kind: 'token', request, taken };
    if (from.isConnected()) from.send(answer);
  }
}

/** The part of a worker: asks the leading process for tokens. */
export class WorkerTokens {
  readonly #pending = new PendingReplies<Taken>();
  readonly #send: (message: TokensFromWorker | CountedByWorker) => void;
  /** The buckets of this worker, while the leading process does not reply. */
  readonly #own = new TokenBuckets({ monotonicMs });
  /** What the leading process has counted, as far as this worker knows. */
  readonly #counts = new TokenBuckets({ monotonicMs });
  readonly counter: TokenCounter = {
    take: (order) => {
      const taken = this.#counts.take(order);
      if (taken.isTaken) this.#send({ kind: 'count-token', order, tokens: 1 });
      return taken;
    },
    giveBack: (order) => {
      this.#counts.giveBack(order);
      this.#send({ kind: 'count-token', order, tokens: -1 });
    },
  };

  constructor(send: (message: TokensFromWorker | CountedByWorker) => void) {
    this.#send = send;
  }

  /** Takes a token; from its own buckets if the leading process does not reply in time. */
  async take(order: TokenOrder): Promise<Taken> {
    const taken = await this.#pending.request((request) => {
      this.#send({ kind: 'take-token', request, order });
    }, tokenWaitMs);
    return taken ?? this.#own.take(order);
  }

  /** Handles what the leading process has counted. */
  handleCounted({ order, fullMs }: CountedByLeader): void {
    this.#counts.adopt(order, fullMs);
  }

  /** Handles a reply of the leading process. */
  handle({ request, taken }: TokensFromLeader): void {
    this.#pending.resolve(request, taken);
  }
}

/** How long a process waits for the metrics of the others that share its port. */
const metricsWaitMs = 1_000;

/** The part of the leading process: collects the metrics of all processes. */
export class LeaderMetrics {
  readonly #pending = new PendingReplies<ProcessState>();
  readonly #tasks: Pick<BackgroundTasks, 'metrics' | 'states'>;

  /** `tasks` are those of the leading process itself. */
  constructor(tasks: Pick<BackgroundTasks, 'metrics' | 'states'>) {
    this.#tasks = tasks;
  }

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
      this.#pending.resolve(message.request, message.own);
      return;
    }
    const replies = [...workers].map(async ([worker, number]) => {
      const own = await this.#pending.request((request) => {
        sendToWorker(worker, { kind: 'get-metrics', request });
      }, metricsWaitMs);
      return own === undefined ? [] : [{ ...own, name: `worker-${number}` }];
    });
    const tasks = this.#tasks;
    const leader = { name: 'leader', metrics: tasks.metrics(), tasks: tasks.states() };
    const processes = [...(await Promise.all(replies)).flat(), leader];
    sendToWorker(from, { kind: 'all-metrics', request: message.request, processes });
  }
}

function sendToWorker(worker: Worker, message: MetricsFromLeader): void {
  if (worker.isConnected()) worker.send(message);
}

/** The part of a worker: requests the metrics of all processes from the leading one. */
export class WorkerMetrics {
  readonly #pending = new PendingReplies<readonly ProcessState[]>();
  readonly #send: (message: MetricsFromWorker) => void;
  #own: () => ProcessState;

  constructor(parts: {
    readonly send: (message: MetricsFromWorker) => void;
    readonly own: () => ProcessState;
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
  async gather(): Promise<readonly ProcessState[]> {
    const all = await this.#pending.request((request) => {
      this.#send({ kind: 'get-all-metrics', request });
    }, 2 * metricsWaitMs);
    return all ?? [this.#own()];
  }

  /** Handles a message of the leading process about metrics. */
  handle(message: MetricsFromLeader): void {
    if (message.kind === 'all-metrics') {
      this.#pending.resolve(message.request, message.processes);
    } else {
      this.#send({ kind: 'own-metrics', request: message.request, own: this.#own() });
    }
  }
}
