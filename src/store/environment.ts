import { chownSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb';
import { Failure } from '../model/failure.ts';
import { openingLockFile } from './folder/data-folder.ts';
import { openingWaitMs } from './limits.ts';
import { isBusy, OpeningLock } from './opening-lock.ts';

/** An environment of this thread that can be written, and how often it is open. */
interface Writable {
  readonly lock: OpeningLock;
  users: number;
}

/** By the path of the folder. */
const writable = new Map<string, Writable>();
const locks = new WeakMap<RootDatabase, OpeningLock>();

/**
 * Opens the LMDB environment of a folder, while no other process writes to it. Throws what lmdb
 * throws, and `unavailable` if others write without a pause.
 */
export function openShared(
  options: RootDatabaseOptionsWithPath & { readonly path: string },
): RootDatabase {
  const { path, readOnly = false } = options;
  // A process that cannot write the folder cannot write LMDB's lock file.
  if (readOnly) return open(options);
  const known = writable.get(path);
  let lock = known?.lock;
  let environment: RootDatabase;
  try {
    lock ??= createLock(path);
    // LMDB opens an environment once in a process.
    environment = known === undefined ? lock.alone(() => open(options)) : open(options);
  } catch (error) {
    if (known === undefined) lock?.close();
    if (!isBusy(error)) throw error;
    const seconds = openingWaitMs / 1000;
    throw new Failure(
      'unavailable',
      `${path} cannot be opened: other processes have written to it for ${seconds} s without a pause`,
    );
  }
  const entry = known ?? { lock, users: 0 };
  entry.users += 1;
  writable.set(path, entry);
  locks.set(environment, lock);
  const close = environment.close.bind(environment);
  environment.close = async () => {
    await close();
    if (!locks.delete(environment)) return;
    entry.users -= 1;
    if (entry.users > 0) return;
    writable.delete(path);
    lock.close();
  };
  return environment;
}

function createLock(folder: string): OpeningLock {
  const path = join(folder, openingLockFile);
  const lock = new OpeningLock(path);
  if (process.getuid?.() === 0) giveToOwner(path, folder);
  return lock;
}

/** A file that a command of root has created must not keep the user of the server from it. */
function giveToOwner(path: string, folder: string): void {
  const { uid, gid } = statSync(folder);
  if (statSync(path).uid === uid) return;
  try {
    chownSync(path, uid, gid);
  } catch {
    // In a container, root may lack this right.
  }
}

/**
 * Runs `write` in a write transaction, and resolves with its value when that is on the disk. Rolls
 * back if it throws, or returns lmdb's ABORT.
 */
export async function transact<T>(environment: RootDatabase, write: () => T): Promise<T> {
  const lock = lockOf(environment);
  await lock.enter();
  try {
    // Only a child transaction is rolled back when something throws in it.
    return await environment.childTransaction(write);
  } finally {
    lock.leave();
  }
}

/** As `transact`, but synchronously. */
export function transactSync<T>(environment: RootDatabase, write: () => T): T {
  const lock = lockOf(environment);
  lock.enterSync();
  try {
    return environment.transactionSync(write);
  } finally {
    lock.leave();
  }
}

function lockOf(environment: RootDatabase): OpeningLock {
  const lock = locks.get(environment);
  if (lock === undefined) throw new Error('the environment is closed, or cannot be written');
  return lock;
}
