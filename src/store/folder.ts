import { access, constants, lstat, mkdir, open, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure } from '../model/failure.ts';

const metaPages = 2;
const metaFlag = 0x08;
const magic = 0xbeefc0de;
const dataVersion = 2;
const noPage = 0xffff_ffff_ffff_ffffn;
/** A meta page of LMDB's data file is read up to here: its header, and MDB_meta as far as txnid. */
const metaBytes = 160;

/** Name of the file in the data folder that LMDB keeps everything in. */
export const dataFile = 'data.mdb';

/** Whether a folder holds data; false where there is no such folder. */
export async function holdsData(folder: string): Promise<boolean> {
  return stat(join(folder, dataFile)).then(
    ({ size }) => size > 0,
    () => false,
  );
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
 * Looks at the header of LMDB's file before the native library does, which a strange file may
 * crash. A missing or empty file is fine. Rejects with `unavailable`.
 */
export async function inspectDataFile(folder: string): Promise<void> {
  let file: FileHandle;
  try {
    file = await open(join(folder, dataFile), 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw folderFailure(folder, `cannot be written (${dataFile}: ${reasonOf(error)})`, error);
  }
  try {
    const { size } = await file.stat();
    if (size > 0 && !(await isWholeDatabase(file))) {
      throw folderFailure(folder, `holds a ${dataFile} that is damaged or not an LMDB database`);
    }
  } finally {
    await file.close();
  }
}

/** Why something failed, for the operator: the system's code, or the error's own words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : message;
}

/** Whether both meta pages are LMDB's, and the trees of the newest lie within the file. */
async function isWholeDatabase(file: FileHandle): Promise<boolean> {
  const first = await readMeta(file, 0);
  if (first === undefined || first.pageBytes < 512) return false;
  const second = await readMeta(file, first.pageBytes);
  if (second === undefined) return false;
  // Looked at last: a process that writes makes the file longer before it points at what is new.
  const { size } = await file.stat();
  if (size < first.pageBytes * metaPages) return false;
  const pages = BigInt(Math.floor(size / first.pageBytes));
  const newest = second.txnId > first.txnId ? second : first;
  return newest.roots.every((root) => root === noPage || root < pages);
}

interface Meta {
  readonly pageBytes: number;
  readonly roots: readonly bigint[];
  readonly txnId: bigint;
}

/** Reads struct MDB_meta of liblmdb's mdb.c as a 64-bit machine writes it. */
async function readMeta(file: FileHandle, position: number): Promise<Meta | undefined> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(metaBytes), 0, metaBytes, position);
  if (bytesRead < metaBytes || (buffer.readUInt16LE(18) & metaFlag) === 0) return undefined;
  if (buffer.readUInt32LE(24) !== magic) return undefined;
  if ((buffer.readUInt32LE(28) & 0xffff) !== dataVersion) return undefined;
  return {
    pageBytes: buffer.readUInt32LE(48),
    roots: [buffer.readBigUInt64LE(88), buffer.readBigUInt64LE(136)],
    txnId: buffer.readBigUInt64LE(152),
  };
}
