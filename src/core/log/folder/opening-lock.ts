import {
  accessSync,
  closeSync,
  constants,
  fchownSync,
  lstatSync,
  openSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { Failure, type FailureCode } from '../../values/failure.ts';
import { openingLockFile, waitingLockFile } from './data-folder.ts';
import { holderAdvice, otherHolder } from './lock-holder.ts';

/**
 * A lock of a file that several processes share, or one has alone. Node has no file locks, so this
 * is the lock of an SQLite database (https://sqlite.org/lockingv3.html), which never gets a table:
 * the system releases it when a process ends.
 */
export class FileLock {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #statements;
  #waitMs: number | undefined;

  /** Creates a missing file. Throws `unavailable` if it cannot be used. */
  constructor(path: string, waitMs: number) {
    this.#path = path;
    try {
      prepareFile(path);
      const database = new DatabaseSync(path);
      this.#database = database;
      this.#wait(waitMs);
      // A journal in a file would cost a file for each lock.
      database.exec('PRAGMA journal_mode = MEMORY');
      const prepare = (sql: string) => database.prepare(sql);
      this.#statements = {
        begin: prepare('BEGIN'),
        alone: prepare('BEGIN EXCLUSIVE'),
        read: prepare('SELECT 1 FROM sqlite_schema'),
        // A commit would write the first page of an empty database, and wait for the disk.
        end: prepare('ROLLBACK'),
      };
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /**
   * Shares the lock, and waits for that synchronously; false if another process has it alone.
   * Throws what SQLite throws: a Failure would tell clients the path.
   */
  share(waitMs: number): boolean {
    const { begin, read, end } = this.#statements;
    this.#wait(waitMs);
    begin.run();
    try {
      read.get();
      return true;
    } catch (error) {
      end.run();
      if (isBusy(error)) return false;
      throw error;
    }
  }

  /** Takes the lock alone, and waits for that synchronously; false if others have it. */
  takeAlone(waitMs: number): boolean {
    try {
      this.#wait(waitMs);
      this.#statements.alone.run();
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw this.#failure(error);
    }
  }

  release(): void {
    this.#statements.end.run();
  }

  close(): void {
    this.#database.close();
  }

  /** Sets how long SQLite waits for the lock. */
  #wait(ms: number): void {
    if (ms === this.#waitMs) return;
    this.#database.exec(`PRAGMA busy_timeout = ${ms}`);
    this.#waitMs = ms;
  }

  #failure(cause: unknown): Failure {
    const { message, errcode = 0 } = cause as Error & { readonly errcode?: number };
    const code: FailureCode = resultCode(errcode) === sqliteFull ? 'storage_full' : 'unavailable';
    return new Failure(code, `${this.#path} cannot be locked (${message})`, { cause });
  }
}
const sqliteBusy = 5;
const sqliteFull = 13;

/** How long a process that opens the data waits until the others pause writing. */
const openingWaitMs = 30_000;

/** How long a change waits for another process that opens the data, before it is refused. */
export const enterWaitMs = 10_000;

/** How long the write transactions of a process may overlap before it pauses for others to open. */
export const writingMsMax = 20;

/** How often a writer looks whether another process has opened the data, at least. */
const enterRetryMsMax = 25;

/**
 * The lock of an LMDB environment that keeps all processes from writing while one opens it
 * (docs/design/history.md#opening-beside-writers).
 */
export class OpeningLock {
  readonly #folder: string;
  readonly #enterWaitMs: number;
  readonly #monotonicMs: () => number;
  /** Writers share it; a process that opens has it alone. */
  readonly #writing: FileLock;
  /**
   * A process that waits to open has it alone. Writers look at it, because SQLite lets the threads
   * of one process share `#writing` again and again.
   */
  readonly #waiting: FileLock;
  #writers = 0;
  #lookedAt = 0;
  #sharedAt = 0;
  #written = Promise.withResolvers<undefined>();
  /** Lets writers enter in the order of their calls. */
  #entering: Promise<unknown> = Promise.resolve();

  /**
   * Throws `unavailable` if the folder cannot be written. `waitMs`: how long a writer waits for a
   * process that opens. `monotonicMs`: a clock that never goes back, in milliseconds.
   */
  constructor(folder: string, waitMs = enterWaitMs, monotonicMs = () => performance.now()) {
    this.#folder = folder;
    this.#enterWaitMs = waitMs;
    this.#monotonicMs = monotonicMs;
    this.#writing = new FileLock(join(folder, openingLockFile), openingWaitMs);
    this.#waiting = new FileLock(join(folder, waitingLockFile), openingWaitMs);
  }

  /** Runs `open` while nobody else writes. Throws `unavailable` if others write for too long. */
  alone<T>(open: () => T): T {
    if (!this.#waiting.takeAlone(openingWaitMs)) throw this.#busy();
    try {
      if (!this.#writing.takeAlone(openingWaitMs)) throw this.#busy();
      try {
        return open();
      } finally {
        this.#writing.release();
      }
    } finally {
      this.#waiting.release();
    }
  }

  /**
   * Resolves when the caller may write; `leave` follows. Rejects with `unavailable` if another
   * process opens the environment for too long: it may be stopped, and nobody can write safely
   * before it goes on or ends.
   */
  async enter(): Promise<void> {
    const until = this.#monotonicMs() + this.#enterWaitMs;
    const entered = this.#entering.then(() => this.#enter(until));
    this.#entering = entered.catch(() => undefined);
    await entered;
  }

  /** As `enter`, but waits synchronously. Throws `unavailable` if others open for too long. */
  enterSync(): void {
    if (this.#writers === 0) {
      if (!this.#writing.share(openingWaitMs)) throw this.#busy();
      this.#shared();
    }
    this.#writers += 1;
  }

  leave(): void {
    this.#writers -= 1;
    if (this.#writers > 0) return;
    this.#writing.release();
    this.#written.resolve(undefined);
  }

  /** Resolves when those who have called `enter` before have left. */
  async settled(): Promise<void> {
    await this.#entering;
    if (this.#writers > 0) await this.#written.promise;
  }

  close(): void {
    this.#writing.close();
    this.#waiting.close();
  }

  async #enter(until: number): Promise<void> {
    // A process that opens needs a moment in which nobody writes.
    while (this.#writers > 0 && this.#monotonicMs() - this.#sharedAt > writingMsMax) {
      await this.#written.promise;
    }
    for (let waitMs = 1; this.#writers === 0 && !this.#tryShare(); waitMs *= 2) {
      if (this.#monotonicMs() > until) throw this.#closed();
      await delay(Math.min(waitMs, enterRetryMsMax));
    }
    this.#writers += 1;
  }

  #tryShare(): boolean {
    if (this.#monotonicMs() - this.#lookedAt > writingMsMax) {
      if (!this.#waiting.share(0)) return false;
      this.#waiting.release();
      this.#lookedAt = this.#monotonicMs();
    }
    if (!this.#writing.share(0)) return false;
    this.#shared();
    return true;
  }

  #shared(): void {
    this.#sharedAt = this.#monotonicMs();
    this.#written = Promise.withResolvers();
  }

  /** The failure of a process that cannot open. */
  #busy(): Failure {
    const advice = this.#advice();
    const others = `other processes write to ${this.#folder}, or open it, without a pause`;
    return new Failure('unavailable', advice ?? `${others}: try again`, { retryAfterSeconds: 10 });
  }

  /** The failure of a writer, for clients, who get no path; its cause is for the log. */
  #closed(): Failure {
    const reason = this.#advice() ?? `another process opens ${this.#folder} and does not finish`;
    return new Failure(
      'unavailable',
      'Nothing was stored: another process opens the data and does not finish. Try again.',
      { retryAfterSeconds: 10, cause: new Error(reason) },
    );
  }

  #advice(): string | undefined {
    const holder = otherHolder(lockFilesOf(this.#folder));
    return holder === undefined ? undefined : holderAdvice(holder, this.#folder);
  }
}

/**
 * Says which stopped process keeps all others from writing to the environment of a folder, and what
 * to do about it; undefined if none does.
 */
export function stoppedOpener(folder: string): string | undefined {
  const holder = otherHolder(lockFilesOf(folder));
  return holder?.isStopped === true ? holderAdvice(holder, folder) : undefined;
}

function lockFilesOf(folder: string): readonly string[] {
  return [openingLockFile, waitingLockFile].map((name) => join(folder, name));
}

/**
 * Creates a missing lock file, which belongs to the user of its folder also if root creates it.
 * Throws if it is no file of its own, or cannot be written: SQLite would lock it without effect.
 */
function prepareFile(path: string): void {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  try {
    const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      giveToOwner(file, dirname(path));
    } finally {
      // Nobody has locked the new file: closing a descriptor releases the locks of the process.
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const found = lstatSync(path);
    if (!found.isFile() || found.nlink > 1) {
      throw new Error('it is not a file of its own', { cause: error });
    }
    accessSync(path, constants.R_OK | constants.W_OK);
  }
}

function giveToOwner(file: number, folder: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(folder);
  try {
    if (uid !== 0) fchownSync(file, uid, gid);
  } catch {
    // In a container, root may lack this right: another user then gets EACCES.
  }
}

/** https://sqlite.org/rescode.html: an extended code has its primary one in the last byte. */
function resultCode(errcode: number): number {
  return errcode % 256;
}

function isBusy(error: unknown): boolean {
  return resultCode((error as { readonly errcode?: number }).errcode ?? 0) === sqliteBusy;
}
