import type { Worker } from 'node:cluster';
import { tokenWaitMs } from '../../modules/access/limits.ts';
import { TokenBuckets, type Taken, type TokenOrder } from '../../core/fair/token-buckets.ts';
import { PendingReplies } from './pending-replies.ts';
import type { TokensFromLeader, TokensFromWorker } from './worker-messages.ts';

/** The part of the leading process: it has the buckets of all workers, so that a rate is exact. */
export class LeaderTokens {
  readonly #buckets = new TokenBuckets({ monotonicMs: () => performance.now() });

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
  readonly #send: (message: TokensFromWorker) => void;
  /** The buckets of this worker, while the leading process does not reply. */
  readonly #own = new TokenBuckets({ monotonicMs: () => performance.now() });

  constructor(send: (message: TokensFromWorker) => void) {
    this.#send = send;
  }

  /** Takes a token; from its own buckets if the leading process does not reply in time. */
  async take(order: TokenOrder): Promise<Taken> {
    const taken = await this.#pending.request((request) => {
      this.#send({ kind: 'take-token', request, order });
    }, tokenWaitMs);
    return taken ?? this.#own.take(order);
  }

  /** Handles a reply of the leading process. */
  handle({ request, taken }: TokensFromLeader): void {
    this.#pending.resolve(request, taken);
  }
}
