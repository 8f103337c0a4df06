import { mkdirSync, realpathSync } from 'node:fs';
import { ABORT, open, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb';
import { OpeningLock } from './folder/opening-lock.ts';

/** An environment of this thread that can be written, and how often it is open. */
interface Writable {
  readonly lock: OpeningLock;
  users: number;
}

/** The writable environments of this process, by the real path of the folder. */
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
  mkdirSync(path, { recursive: true });
  const folder = realpathSync(path);
  const known = writable.get(folder);
  const lock = known?.lock ?? createLock(folder, readOnly);
  if (lock === undefined) return open(options);
  let environment: RootDatabase;
  try {
    // LMDB opens an environment once in a process.
    environment = known === undefined ? lock.alone(() => open(options)) : open(options);
  } catch (error) {
    if (known === undefined) lock.close();
    throw error;
  }
  const entry = known ?? { lock, users: 0 };
  entry.users += 1;
  writable.set(folder, entry);
  locks.set(environment, lock);
  const close = environment.close.bind(environment);
  let closing: Promise<void> | undefined;
  environment.close = () => {
    closing ??= (async () => {
      await lock.settled();
      entry.users -= 1;
      const isLast = entry.users === 0;
      if (isLast) writable.delete(folder);
      await close();
      locks.delete(environment);
      if (isLast) lock.close();
    })();
    return closing;
  };
  return environment;
}

/** The lock of a folder; undefined for a process that cannot write it, nor LMDB's lock file. */
function createLock(folder: string, readOnly: boolean): OpeningLock | undefined {
  try {
    return new OpeningLock(folder);
  } catch (error) {
    if (readOnly) return undefined;
    throw error;
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

/**
 * Runs `write` in a write transaction that stays open until its promise settles, and resolves with
 * its value when that is on the disk. Rolls back if it rejects, or `isKept` is false for the value.
 * All reads and writes of this thread meanwhile are part of the transaction, so only a thread that
 * does nothing else may call it.
 */
export async function transactHeld<T>(
  environment: RootDatabase,
  write: () => Promise<T>,
  isKept: (value: T) => boolean,
): Promise<T> {
  const lock = lockOf(environment);
  await lock.enter();
  try {
    let held: { readonly value: T } | undefined;
    await environment.transactionSync(async () => {
      held = { value: await write() };
      return isKept(held.value) ? undefined : ABORT;
    });
    if (held === undefined) throw new TypeError('the transaction has ended before its write');
    return held.value;
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
