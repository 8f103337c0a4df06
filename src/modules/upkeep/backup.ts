import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { chmod, copyFile, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../../core/values/failure.ts';
import { openDatabases, openEnvironment, type Databases } from '../../core/log/databases.ts';
import { transactSync } from '../../core/log/environment.ts';
import { removeMember } from '../../core/log/shared/shared-place.ts';
import {
  assetFolder,
  dataFile,
  lockFile,
  openingLockFile,
  waitingLockFile,
  makeFolder,
  errorReason,
} from '../../core/log/folder/data-folder.ts';
import { checkInThread } from '../../core/log/folder/page-check.ts';

/** The content of a backup. */
export interface Backup {
  /** Seq of its newest change. */
  readonly seq: number;
  /** Size of its data file in bytes. */
  readonly bytes: number;
  /** The files of its assets, and their bytes together. */
  readonly files: number;
  readonly fileBytes: number;
  /** The names of those whose content has another hash than their name. */
  readonly damagedFiles: readonly string[];
}

/** The destination of a backup. If the signal aborts, the backup stops and leaves no files. */
interface BackupParts {
  /** Absolute path of the data folder, whose files of assets are copied, too. */
  readonly folder: string;
  /** Absolute path of a folder that is empty or does not exist. */
  readonly target: string;
  readonly signal: AbortSignal | undefined;
  /** Called after each copied file of assets, with their number and bytes so far. */
  readonly copied?: ((files: number, bytes: number) => void) | undefined;
}

/**
 * Copies a snapshot of the data while other processes may write. It writes a draft and renames it,
 * so that the destination is always complete. Rejects with `conflict` for a folder that is not
 * empty, with `unavailable` for a folder that cannot be written and for damaged data, and with the
 * reason of the signal if that aborts.
 */
export async function backUp(
  { environment }: Databases,
  { folder, target, signal, copied }: BackupParts,
): Promise<Backup> {
  const isThere = await isEmptyFolder(target);
  const name = `.${basename(target)}.${process.pid}.incomplete`;
  // An existing folder may be the root of a file system, so the draft lies inside it.
  const draft = join(isThere ? target : dirname(target), name);
  try {
    await makeFolder(dirname(draft));
    await mkdir(draft, { mode: 0o700 });
    await environment.backup(draft, false);
    signal?.throwIfAborted();
    const file = join(draft, dataFile);
    await chmod(file, 0o600);
    const seq = await completeCopy(draft);
    await syncPath(file);
    await requireSound(draft, signal);
    const to = join(draft, assetFolder);
    const files = await copyFiles(join(folder, assetFolder), to, { signal, copied });
    // The data comes last: without it, the folder is no backup.
    if (isThere && files.count > 0)
      await rename(join(draft, assetFolder), join(target, assetFolder));
    if (isThere) await rename(file, join(target, dataFile));
    else await rename(draft, target);
    await syncPath(isThere ? target : dirname(target));
    const { size } = await stat(join(target, dataFile));
    const { count, bytes, damaged } = files;
    return { seq, bytes: size, files: count, fileBytes: bytes, damagedFiles: damaged };
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (error instanceof Failure) throw error;
    throw new Failure('unavailable', `${target} cannot be written (${errorReason(error)})`, {
      cause: error,
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Copies the files of assets, each of which has its SHA-256 as its name; none if the folder does
 * not exist. They never change, and those that the copied data refers to were there before it was
 * copied. A file with another hash is copied, too: it may be better than none.
 */
async function copyFiles(
  from: string,
  to: string,
  { signal, copied }: Pick<BackupParts, 'signal' | 'copied'>,
): Promise<{
  readonly count: number;
  readonly bytes: number;
  readonly damaged: readonly string[];
}> {
  const entries = await readdir(from, { withFileTypes: true }).catch(noneIfMissing);
  // Not what the server notes there for itself.
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  const names = files.map(({ name }) => name);
  const damaged: string[] = [];
  let [count, bytes] = [0, 0];
  for (const name of names) {
    signal?.throwIfAborted();
    if (count === 0) await mkdir(to, { mode: 0o700 });
    // It shares its blocks with the original where the file system can.
    const isCopied = await copyFile(
      join(from, name),
      join(to, name),
      constants.COPYFILE_FICLONE,
    ).then(() => true, isGone);
    if (!isCopied) continue;
    await syncPath(join(to, name));
    count += 1;
    bytes += (await stat(join(to, name))).size;
    if ((await digestOf(join(to, name))) !== name) damaged.push(name);
    copied?.(count, bytes);
  }
  if (count > 0) await syncPath(to);
  return { count, bytes, damaged };
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function noneIfMissing(error: unknown): [] {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
  throw error;
}

/** A file that nothing refers to any more may be removed meanwhile. */
function isGone(error: unknown): false {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
  throw error;
}

/** Whether an empty folder exists; false if the path does not exist. */
async function isEmptyFolder(target: string): Promise<boolean> {
  let entries: readonly string[];
  try {
    entries = await readdir(target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new Failure('unavailable', `${target} cannot be read (${errorReason(error)})`, {
      cause: error,
    });
  }
  if (entries.length === 0) return true;
  throw new Failure('conflict', `${target} is not empty: give the backup an empty or new folder`);
}

/** Checks the copy; rejects with `unavailable` if it is damaged. */
async function requireSound(folder: string, signal = new AbortController().signal): Promise<void> {
  const { damage } = await checkInThread(join(folder, dataFile), signal);
  signal.throwIfAborted();
  if (damage === undefined) return;
  throw new Failure('unavailable', `the data is damaged and cannot be backed up: ${damage}`);
}

/**
 * Opens the copy to check that it can be read, and makes it another member of a cluster than the
 * folder that was copied; returns the seq of its newest change.
 */
async function completeCopy(folder: string): Promise<number> {
  const environment = openEnvironment(folder);
  try {
    return transactSync(environment, () => {
      const copied = openDatabases(environment);
      removeMember(copied);
      return Number(copied.meta.get('seq') ?? 0);
    });
  } finally {
    await environment.close();
    const locks = [lockFile, openingLockFile, waitingLockFile];
    await Promise.all(locks.map((name) => rm(join(folder, name), { force: true })));
  }
}

/**
 * Syncs a file or a folder to the disk. Not on Windows: LMDB writes copies through there, and
 * folders cannot be synced.
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
