import type { RootDatabase } from 'lmdb';
import { Failure, stoppingFailure } from '../../values/failure.ts';
import { writeErrorOf } from '../folder/full-disk.ts';
import { commitBatchBytesMax, commitBatchMax } from '../limits.ts';
import { transact } from '../environment.ts';

/** Whether a store accepts changes. */
export interface StoreCondition {
  /** The Failure that refuses changes; undefined while the data is intact. */
  refusal: Failure | undefined;
}

/** A write transaction, and how many writes it has processed, the current one included. */
export interface BatchPosition {
  readonly taken: number;
}

/**
 * Decides about a write inside the write transaction, and returns the function that writes. Only
 * its own write fails if it throws, because nothing is written yet. It gets the same object as the
 * other writes of its transaction.
 */
type DecideWrite<T> = (batch: BatchPosition) => PutWrite<T>;

/** Writes, and returns an estimate of the bytes that it adds to the transaction. */
type PutWrite<T> = () => { readonly result: T; readonly bytes: number };

/** A waiting write, without the type of its result. */
interface WaitingWrite {
  readonly decide: DecideWrite<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs the writes of a store in order of arrival: one write transaction takes all waiting writes,
 * and answers them when it is on the disk; meanwhile the next batch collects.
 */
export class WriteQueue {
  readonly #environment: RootDatabase;
  readonly #condition: StoreCondition;
  readonly #written: () => void;
  #waiting: WaitingWrite[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  /** `written` is called after each transaction that is on the disk. */
  constructor(
    environment: RootDatabase,
    condition: StoreCondition,
    written: () => void = () => undefined,
  ) {
    this.#environment = environment;
    this.#condition = condition;
    this.#written = written;
  }

  /** The number of writes that are not answered yet. */
  get length(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves with the result of a write once it is durable. Rejects with the error that `decide`
   * threw, or, if the transaction fails, with the Failure `storage_full` or `unavailable` or the
   * bug of a put.
   */
  write<T>(decide: DecideWrite<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed || this.#condition.refusal !== undefined) {
        reject(this.#condition.refusal ?? stoppingFailure());
        return;
      }
      this.#waiting.push({
        decide,
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
    // All writes of this turn of the event loop go into the first batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#writeBatch();
    this.#writing = undefined;
  }

  async #writeBatch(): Promise<void> {
    const batch: Batch = { position: { taken: 0 }, results: [], bug: undefined };
    try {
      await transact(this.#environment, () => {
        this.#decideAndPut(batch);
      });
    } catch (error) {
      const { taken } = batch.position;
      const reason = batch.bug ?? (await storageFailure(error));
      // A transaction that cannot begin fails all writes.
      const failed = taken === 0 ? this.#waiting.length : taken;
      for (const { reject } of this.#waiting.splice(0, failed)) reject(reason);
      return;
    }
    this.#waiting.splice(0, batch.position.taken);
    for (const { resolve, result } of batch.results) resolve(result);
    this.#written();
  }

  #decideAndPut(batch: Batch): void {
    const { position } = batch;
    let batchBytes = 0;
    for (const { decide, resolve, reject } of this.#waiting) {
      if (position.taken >= commitBatchMax || batchBytes >= commitBatchBytesMax) return;
      position.taken += 1;
      let put: PutWrite<unknown>;
      try {
        put = decide(position);
      } catch (error) {
        reject(error);
        continue;
      }
      try {
        const { result, bytes } = put();
        batch.results.push({ resolve, result });
        batchBytes += bytes;
      } catch (error) {
        // The errors of lmdb have codes.
        if ((error as { code?: unknown }).code === undefined) batch.bug = error;
        throw error;
      }
    }
  }
}

interface Batch {
  readonly position: { taken: number };
  readonly results: { readonly resolve: (result: unknown) => void; readonly result: unknown }[];
  /** An error of a put that is neither from lmdb nor a Failure. */
  bug: unknown;
}

/** The error with which the writes of a failed transaction reject. */
export async function storageFailure(error: unknown): Promise<Failure> {
  const cause = await writeErrorOf(error);
  if (cause instanceof Failure) return cause;
  return new Failure('unavailable', 'The change could not be stored.', {
    retryAfterSeconds: 1,
    cause,
  });
}
