import type { Databases } from '../databases.ts';
import type { WriteQueue } from '../write/write-queue.ts';

/** Writes into the databases of the deliverer. It may run several times: only the last counts. */
export type PutDelivery<T> = (databases: Databases) => T;

/** Makes the writes of the deliverer durable: in this data folder, or in a log of several nodes. */
export interface DeliveryWriter {
  /**
   * Runs `decide` in a write transaction, and then the function that it returns. Rejects with what
   * `decide` throws, or with a Failure of storage.
   */
  write<T>(decide: () => PutDelivery<T>): Promise<T>;
}

/** The writer of a single machine. */
export function createLocalDeliveryWriter(databases: Databases, queue: WriteQueue): DeliveryWriter {
  return {
    write: (decide) =>
      queue.write(() => {
        const put = decide();
        return () => ({ result: put(databases), bytes: 0 });
      }),
  };
}
