import { Failure, stoppingFailure } from '../../model/failure.ts';
import type { Databases } from '../databases.ts';
import { storageFailure, type StoreCondition } from './commit.ts';

interface Waiting {
  readonly put: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Queues writes that need no decision. Writes that arrive during a transaction go into the next
 * one. If a write throws, all writes of its transaction fail.
 */
export class WriteQueue {
  readonly #databases: Databases;
  readonly #condition: StoreCondition;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(databases: Databases, condition: StoreCondition) {
    this.#databases = databases;
    this.#condition = condition;
  }

  /**
   * Resolves with the result of `put` once it is durable. Rejects with the error that a put threw,
   * or with the Failure `storage_full` or `unavailable`.
   */
  write<T>(put: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed || this.#condition.refusal !== undefined) {
        reject(this.#condition.refusal ?? stoppingFailure());
        return;
      }
      this.#waiting.push({
        put,
        reject,
        resolve: (result) => {
          resolve(result as T);
        },
      });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Refuses further writes; resolves when the earlier ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // All writes of this turn of the event loop go into the first transaction.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0));
    this.#writing = undefined;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const results: unknown[] = [];
    // lmdb's errors have codes; an error without one is a bug of a put, or a Failure.
    const thrown: unknown[] = [];
    try {
      await this.#databases.environment.childTransaction(() => {
        try {
          for (const { put } of batch) results.push(put());
        } catch (error) {
          if ((error as { code?: unknown }).code === undefined) thrown.push(error);
          throw error;
        }
      });
      for (const [at, { resolve }] of batch.entries()) resolve(results[at]);
    } catch (error) {
      const isStorage = thrown.length === 0 && !(error instanceof Failure);
      const reason = isStorage ? await storageFailure(error) : error;
      for (const { reject } of batch) reject(reason);
    }
  }
}
