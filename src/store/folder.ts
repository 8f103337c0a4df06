import { access, constants, lstat, mkdir, open, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure } from '../model/failure.ts';
import { openCheckAttemptsMax, openCheckPagesMax } from './limits.ts';
import { checkPages, newestTransaction, type PageCheck } from './page-check.ts';

/** Name of the file in the data folder that LMDB keeps everything in. */
export const dataFile = 'data.mdb';
/** Name of the file by which LMDB's processes know of each other. */
export const lockFile = 'lock.mdb';

/** Whether a folder holds data, be it damaged; false where there is no such folder. */
export async function holdsData(folder: string): Promise<boolean> {
  return stat(join(folder, dataFile)).then(
    () => true,
    () => false,
  );
}

/** Whether a data folder that is there, and the data in it, can be written. */
export async function isWritable(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.W_OK);
    await (await open(join(folder, dataFile), 'r+')).close();
    return true;
  } catch {
    return false;
  }
}

/** A Failure that tells the operator what is wrong with the data folder, in one line. */
export function folderFailure(folder: string, what: string, cause?: unknown): Failure {
  return new Failure('unavailable', `the data folder ${folder} ${what}`, { cause });
}

/**
 * Makes sure that the data folder is there, made for the owner alone where it was missing, and that
 * files can be written in it. Rejects with `unavailable`.
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
      throw folderFailure(folder, `cannot be made: the link ${link} leads nowhere`, error);
    }
    throw folderFailure(folder, `cannot be written (${reasonOf(error)})`, error);
  }
}

/**
 * Makes a folder and those that it stands in, where they are missing. Rejects with the system's
 * error. Node's own `recursive` tries for ever where a folder is there and mkdir says ENOENT of
 * what is to be made in it, as below /proc.
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

/** The part of a path that is a link to nothing; undefined where there is none. */
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
 * Looks at LMDB's file before the native library does, which ends the process at some damage: at
 * its first pages, so that opening takes no longer for much data. A missing file is fine; an empty
 * one is not, for LMDB would begin anew. Rejects with `unavailable`.
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
    throw folderFailure(folder, `cannot be ${what} (${dataFile}: ${reasonOf(error)})`, error);
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

/** What is to be done about a damaged data file. */
const restoreHint =
  'put a backup in its place, or move it away and the server begins without any data';

/** A Failure for a data file with a damaged page. */
export function damageFailure(folder: string, damage: string): Failure {
  return folderFailure(folder, `holds a ${dataFile} that is damaged (${damage}); ${restoreHint}`);
}

/**
 * A process that writes uses pages again that nobody reads, and nothing tells it that this one
 * does: what looks like damage counts only where no transaction was committed in the meantime.
 */
function checkWhileWritten(fd: number): PageCheck {
  for (let attempt = 0; attempt < openCheckAttemptsMax; attempt += 1) {
    const before = newestTransaction(fd);
    const check = checkPages(fd, { pagesMax: openCheckPagesMax });
    if (check.damage === undefined || newestTransaction(fd) === before) return check;
  }
  return { damage: undefined, isComplete: false };
}

/** Whether the system says that there is no such file. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** Why something failed, for the operator: the system's code, or the error's own words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : message;
}
