import type { Worker } from 'node:cluster';
import {
  type Taken,
  TokenBuckets,
  type TokenCounter,
  type TokenOrder,
} from '../../core/fair/token-buckets.ts';
import { PendingReplies } from './pending-replies.ts';
import type {
  CountedByLeader,
  CountedByWorker,
  TokensFromLeader,
  TokensFromWorker,
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
