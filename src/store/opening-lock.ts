import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { enterRetryMs, openingWaitMs, writingMsMax } from './limits.ts';

/**
 * The lock of an LMDB environment that keeps all processes from writing while one opens it
 * (docs/design/history.md#opening-beside-writers). Writers share it. Node has no file locks, so
 * this is the lock of an empty SQLite database (https://sqlite.org/lockingv3.html): the system
 * releases it when a process ends.
 */
export class OpeningLock {
  readonly #database: DatabaseSync;
  readonly #statements;
  #waitMs: number | undefined;
  #writers = 0;
  #sharedAt = 0;
  #written = Promise.withResolvers<undefined>();
  /** Lets writers enter in the order of their calls. */
  #entering: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    const database = new DatabaseSync(path);
    this.#database = database;
    this.#wait(openingWaitMs);
    const prepare = (sql: string) => database.prepare(sql);
    this.#statements = {
      begin: prepare('BEGIN'),
      read: prepare('SELECT 1 FROM sqlite_schema'),
      end: prepare('COMMIT'),
    };
  }

  /** Runs `open` while no other process writes. Throws SQLITE_BUSY if they write for too long. */
  alone<T>(open: () => T): T {
    this.#wait(openingWaitMs);
    this.#database.exec('BEGIN EXCLUSIVE');
    try {
      return open();
    } finally {
      this.#statements.end.run();
    }
  }

  /** Resolves when the caller may write; `leave` follows. */
  async enter(): Promise<void> {
    const entered = this.#entering.then(() => this.#enter());
    this.#entering = entered.catch(() => undefined);
    await entered;
  }

  /** As `enter`, but waits synchronously; throws if another process opens for too long. */
  enterSync(): void {
    if (this.#writers === 0) {
      this.#wait(openingWaitMs);
      this.#share();
    }
    this.#writers += 1;
  }

  leave(): void {
    this.#writers -= 1;
    if (this.#writers > 0) return;
    this.#statements.end.run();
    this.#written.resolve(undefined);
  }

  close(): void {
    this.#database.close();
  }

  async #enter(): Promise<void> {
    // A process that opens needs a moment in which nobody writes.
    while (this.#writers > 0 && performance.now() - this.#sharedAt > writingMsMax) {
      await this.#written.promise;
    }
    while (this.#writers === 0 && !this.#tryShare()) await delay(enterRetryMs);
    this.#writers += 1;
  }

  #tryShare(): boolean {
    this.#wait(0);
    try {
      this.#share();
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    }
  }

  #share(): void {
    this.#statements.begin.run();
    try {
      this.#statements.read.get();
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
    this.#sharedAt = performance.now();
    this.#written = Promise.withResolvers();
  }

  /** Sets how long SQLite waits for the lock, synchronously. */
  #wait(ms: number): void {
    if (ms === this.#waitMs) return;
    this.#database.exec(`PRAGMA busy_timeout = ${ms}`);
    this.#waitMs = ms;
  }
}

/** Whether another process has the lock: SQLITE_BUSY, https://sqlite.org/rescode.html */
export function isBusy(error: unknown): boolean {
  return ((error as { readonly errcode?: number }).errcode ?? 0) % 256 === 5;
}
