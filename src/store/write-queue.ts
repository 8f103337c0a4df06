import { Failure, stoppingFailure } from '../model/failure.ts';
import type { Databases } from './databases.ts';
import { storageFailure, type StoreCondition } from './queue.ts';

interface Waiting {
  readonly put: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes that need no decision: what is asked for while a transaction is being written goes into
 * the next one. A write that throws takes those of its transaction with it.
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
   * Resolves with what `put` returned when that is durable. Rejects with what a put has thrown, or
   * with the Failure `storage_full` or `unavailable`.
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

  /** Refuses further writes; resolves when those before have been answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Everything asked for in this event-loop turn goes into the first transaction.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0));
    this.#writing = undefined;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const results: unknown[] = [];
    // lmdb's errors have codes; what a put throws without one is a bug of it, or a Failure.
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
