import { Failure } from '../model/failure.ts';
import type { Databases } from './databases.ts';
import { storageFailure } from './queue.ts';

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
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(databases: Databases) {
    this.#databases = databases;
  }

  /** Resolves with what `put` returned when that is durable. Rejects with a Failure. */
  write<T>(put: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) {
        reject(new Failure('unavailable', 'The server is stopping.', { retryAfterSeconds: 1 }));
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
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      const results: unknown[] = [];
      try {
        await this.#databases.environment.childTransaction(() => {
          for (const { put } of batch) results.push(put());
        });
        for (const [at, { resolve }] of batch.entries()) resolve(results[at]);
      } catch (error) {
        const failure = error instanceof Failure ? error : await storageFailure(error);
        for (const { reject } of batch) reject(failure);
      }
    }
    this.#writing = undefined;
  }
}
