import { type FileHandle, access, constants, lstat, mkdir, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure } from '../../values/failure.ts';
import { type PageCheck, checkPages, newestTransaction } from './page-check.ts';

/**
 * Pages of the data file that are checked before it is opened: all of a file up to 1 MiB; of a
 * larger file the upper levels of its trees.
 */
export const openCheckPagesMax = 256;

/** How often the check is repeated while another process writes. */
const openCheckAttemptsMax = 5;

/** Name of the LMDB data file in the data folder. */
export const dataFile = 'data.mdb';
/** Name of LMDB's lock file, which coordinates its processes. */
export const lockFile = 'lock.mdb';
/** Name of the file that writers share, and that a process which opens has alone: OpeningLock. */
export const openingLockFile = 'opening.lock';
/** Name of the file that a process has alone while it waits to open. */
export const waitingLockFile = 'opening-wait.lock';

/** Name of the folder with the files of assets, below the data folder. */
export const assetFolder = 'assets';

/** Whether a folder holds data, damaged or not; false if the folder does not exist. */
export async function holdsData(folder: string): Promise<boolean> {
  return stat(join(folder, dataFile)).then(
    () => true,
    () => false,
  );
}

/** Whether an existing data folder and its data can be written. */
export async function isWritable(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.W_OK);
    await (await open(join(folder, dataFile), 'r+')).close();
    return true;
  } catch {
    return false;
  }
}

/** Makes a Failure about the data folder, as one line for the operator. */
export function folderFailure(folder: string, what: string, cause?: unknown): Failure {
  return new Failure('unavailable', `the data folder ${folder} ${what}`, { cause });
}

/**
 * Creates the data folder if it is missing, readable by the owner alone, and checks that it can be
 * written. Rejects with `unavailable`.
 */
export async function prepareFolder(folder: string): Promise<void> {
  try {
    await makeFolder(folder, 0o700);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const isFile = await stat(folder).then(
      (found) => !found.isDirectory(),
      () => false,
    );
    if (isFile) throw folderFailure(folder, 'is a file, not a folder', error);
    const link = await deadLink(folder);
    if (link !== undefined) {
      throw folderFailure(
        folder,
        `cannot be created: the target of the link ${link} does not exist`,
        error,
      );
    }
    throw folderFailure(folder, `cannot be written (${errorReason(error)})`, error);
  }
}

/**
 * Creates a folder and its missing parents. Rejects with the system's error. Node's own `recursive`
 * loops for ever if mkdir returns ENOENT inside an existing folder, as below /proc.
 */
export async function makeFolder(folder: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(folder, { mode });
  } catch (error) {
    if (await isFolder(folder)) return;
    const { code } = error as NodeJS.ErrnoException;
    const parent = dirname(folder);
    if (code !== 'ENOENT' || parent === folder || (await isFolder(parent))) throw error;
    await makeFolder(parent, mode);
    await mkdir(folder, { mode }).catch(async (again: unknown) => {
      if (!(await isFolder(folder))) throw again;
    });
  }
}

/** The part of a path that is a dangling symbolic link; undefined if there is none. */
async function deadLink(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  const parent = dirname(path);
  if (found === undefined) return parent === path ? undefined : deadLink(parent);
  const isDead = found.isSymbolicLink() && !(await stat(path).catch(() => undefined));
  return isDead ? path : undefined;
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/**
 * Checks LMDB's file before the native library opens it, because some damage makes the library end
 * the process. It checks the first pages only, so that opening a large file takes no longer. A
 * missing file is valid; an empty one is not, because LMDB would start a new database. Rejects with
 * `unavailable`.
 */
export async function inspectDataFile(
  folder: string,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): Promise<PageCheck> {
  let file: FileHandle;
  try {
    file = await open(join(folder, dataFile), readOnly ? 'r' : 'r+');
  } catch (error) {
    if (isMissing(error)) return { damage: undefined, isComplete: true };
    const what = readOnly ? 'read' : 'written';
    throw folderFailure(folder, `cannot be ${what} (${dataFile}: ${errorReason(error)})`, error);
  }
  try {
    const { size } = await file.stat();
    if (size === 0) throw folderFailure(folder, `holds an empty ${dataFile}; ${restoreHint}`);
    if (newestTransaction(file.fd) === undefined) {
      throw folderFailure(folder, `holds a ${dataFile} that is damaged or not an LMDB database`);
    }
    const check = checkWhileWritten(file.fd);
    if (check.damage !== undefined) throw damageFailure(folder, check.damage);
    return check;
  } finally {
    await file.close();
  }
}

/** Advice for a damaged data file. */
const restoreHint =
  'put a backup in its place, or move it away: the server then starts without data';

/** Makes a Failure for a data file with a damaged page. */
export function damageFailure(folder: string, damage: string): Failure {
  return folderFailure(folder, `holds a ${dataFile} that is damaged (${damage}); ${restoreHint}`);
}

/**
 * Another process may reuse pages while this one reads them, because the check registers no reader.
 * So damage counts only if no transaction was committed meanwhile.
 */
function checkWhileWritten(fd: number): PageCheck {
  for (let attempt = 0; attempt < openCheckAttemptsMax; attempt += 1) {
    const before = newestTransaction(fd);
    const check = checkPages(fd, { pagesMax: openCheckPagesMax });
    if (check.damage === undefined || newestTransaction(fd) === before) return check;
  }
  return { damage: undefined, isComplete: false };
}

/** Whether an error means that the file does not exist. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** The reason of an error for the operator: its system code, or its message. */
export function errorReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : message;
}
