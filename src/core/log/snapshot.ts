import type { Database, Transaction } from 'lmdb';
import { stoppingFailure } from '../values/failure.ts';
import type { Databases } from './databases.ts';

/** The options of lmdb's ranges. */
type RangeOptions = Readonly<Record<string, unknown>>;

/** The reads of lmdb that the projections use, each in a transaction. */
interface TransactionReads {
  get(key: unknown, options: object): string | undefined;
  doesExist(key: unknown, version: undefined, options: object): boolean;
  getBinaryFast(key: unknown, options: object): Buffer | undefined;
  getValues(key: unknown, options: object): Iterable<unknown>;
  getRange(options: object): Iterable<unknown>;
  getKeys(options: object): Iterable<unknown>;
  getKeysCount(options: object): number;
}

/**
 * The snapshots of an LMDB environment: reads of one state in any number of turns of the event
 * loop. LMDB reuses no page that a snapshot needs, so none outlives the read that it is for.
 */
export class Snapshots {
  readonly #databases: Databases;
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(databases: Databases) {
    this.#databases = databases;
  }

  /** Runs `read` on the databases as they are now; rejects as it does. */
  async run<T>(read: (databases: Databases) => Promise<T>): Promise<T> {
    const transaction = this.#databases.environment.useReadTransaction();
    const cursors = new Set<Iterator<unknown>>();
    const running = (async () => read(this.#databasesIn({ transaction, cursors })))();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      for (const cursor of cursors) cursor.return?.();
      transaction.done();
    }
  }

  /** Lets all reads of snapshots fail with `unavailable`; resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }

  #databasesIn(snapshot: Pick<SnapshotParts, 'transaction' | 'cursors'>): Databases {
    // LMDB would read memory that is no longer there.
    const requireOpen = (): void => {
      if (this.#isClosed) throw stoppingFailure();
    };
    const made = Object.entries(this.#databases).map(([name, database]: [string, Database]) =>
      name === 'environment'
        ? [name, database]
        : [name, new SnapshotDatabase(database, { ...snapshot, requireOpen })],
    );
    return Object.fromEntries(made) as Databases;
  }
}

interface SnapshotParts {
  readonly transaction: Transaction;
  /** Those that are open: they must not outlive the transaction. */
  readonly cursors: Set<Iterator<unknown>>;
  /** Throws once the environment closes. */
  readonly requireOpen: () => void;
}

/** A database as it is in one read transaction. */
class SnapshotDatabase {
  readonly #live: TransactionReads;
  readonly #in: { readonly transaction: Transaction };
  readonly #cursors: Set<Iterator<unknown>>;
  readonly #requireOpen: () => void;

  constructor(live: Database, { transaction, cursors, requireOpen }: SnapshotParts) {
    this.#live = live;
    this.#in = { transaction };
    this.#cursors = cursors;
    this.#requireOpen = requireOpen;
  }

  get(key: unknown): string | undefined {
    this.#requireOpen();
    return this.#live.get(key, this.#in);
  }

  doesExist(key: unknown): boolean {
    this.#requireOpen();
    return this.#live.doesExist(key, undefined, this.#in);
  }

  getBinaryFast(key: unknown): Buffer | undefined {
    this.#requireOpen();
    return this.#live.getBinaryFast(key, this.#in);
  }

  getValues(key: unknown, options: RangeOptions = {}): Iterable<unknown> {
    return this.#each(() => this.#live.getValues(key, { ...options, ...this.#in }));
  }

  getRange(options: RangeOptions = {}): Iterable<unknown> {
    return this.#each(() => this.#live.getRange({ ...options, ...this.#in }));
  }

  getKeys(options: RangeOptions = {}): Iterable<unknown> {
    return this.#each(() => this.#live.getKeys({ ...options, ...this.#in }));
  }

  getKeysCount(options: RangeOptions = {}): number {
    this.#requireOpen();
    return this.#live.getKeysCount({ ...options, ...this.#in });
  }

  *#each(range: () => Iterable<unknown>): Generator {
    this.#requireOpen();
    const cursor = range()[Symbol.iterator]();
    this.#cursors.add(cursor);
    try {
      for (let entry = cursor.next(); entry.done !== true; entry = cursor.next()) {
        yield entry.value;
        this.#requireOpen();
      }
    } finally {
      if (this.#cursors.delete(cursor)) cursor.return?.();
    }
  }
}
