import {
  accessSync,
  closeSync,
  constants,
  fchownSync,
  lstatSync,
  openSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Failure, type FailureCode } from '../../values/failure.ts';

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

const sqliteBusy = 5;
const sqliteFull = 13;

function isBusy(error: unknown): boolean {
  return resultCode((error as { readonly errcode?: number }).errcode ?? 0) === sqliteBusy;
}
