import { chmod, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../model/failure.ts';
import { openDatabases, openEnvironment, type Databases } from './databases.ts';
import { dataFile, lockFile, makeFolder, reasonOf } from './folder.ts';
import { checkInThread } from './page-check-thread.ts';
import { createReads } from './reads.ts';
import type { Backup } from './store.ts';

/** Where a backup goes; given up, without a trace, when the signal is aborted. */
interface BackupParts {
  /** Absolute path of a folder that is empty or not there yet. */
  readonly target: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Copies the data as it is at one moment, while it is written: beside its place first, so that what
 * stands there is whole. Rejects with `conflict` for a folder that is not empty, with `unavailable`
 * for one that cannot be written and for data that is damaged, with what the signal says when that
 * is aborted.
 */
export async function backUp(
  { environment }: Databases,
  { target, signal }: BackupParts,
): Promise<Backup> {
  const isThere = await isEmptyFolder(target);
  const name = `.${basename(target)}.${process.pid}.incomplete`;
  // In a folder that is there: it may be the root of a file system, which has no beside.
  const draft = join(isThere ? target : dirname(target), name);
  try {
    await makeFolder(dirname(draft));
    await mkdir(draft, { mode: 0o700 });
    await environment.backup(draft, false);
    signal?.throwIfAborted();
    const file = join(draft, dataFile);
    await chmod(file, 0o600);
    await syncPath(file);
    await requireSound(draft, signal);
    const seq = await newestSeq(draft);
    if (isThere) await rename(file, join(target, dataFile));
    else await rename(draft, target);
    await syncPath(isThere ? target : dirname(target));
    return { seq, bytes: (await stat(join(target, dataFile))).size };
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (error instanceof Failure) throw error;
    throw new Failure('unavailable', `${target} cannot be written (${reasonOf(error)})`, {
      cause: error,
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Whether an empty folder is there; false where nothing is. */
async function isEmptyFolder(target: string): Promise<boolean> {
  let entries: readonly string[];
  try {
    entries = await readdir(target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new Failure('unavailable', `${target} cannot be read (${reasonOf(error)})`, {
      cause: error,
    });
  }
  if (entries.length === 0) return true;
  throw new Failure('conflict', `${target} is not empty; a backup wants a folder of its own`);
}

/** A copy of a damaged file is no backup. Rejects with `unavailable` then. */
async function requireSound(folder: string, signal = new AbortController().signal): Promise<void> {
  const { damage } = await checkInThread(join(folder, dataFile), signal);
  signal.throwIfAborted();
  if (damage === undefined) return;
  throw new Failure(
    'unavailable',
    `the data is damaged, and a copy of it would be no backup: ${damage}`,
  );
}

/** Opens a copy, as whoever needs it will: the seq of its newest change. */
async function newestSeq(folder: string): Promise<number> {
  const environment = openEnvironment(folder);
  try {
    return createReads(environment.transactionSync(() => openDatabases(environment))).seq();
  } finally {
    await environment.close();
    await rm(join(folder, lockFile), { force: true });
  }
}

/**
 * Waits until a file, or the list of a folder, is on the disk. On Windows, LMDB writes a copy
 * through, and folders cannot be synced.
 */
export async function syncPath(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
