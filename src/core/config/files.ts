import { constants } from 'node:fs';
import { access, open, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type { Refused } from './values.ts';

/** Checks that a path is a readable folder; otherwise, says why not as the end of a sentence. */
export async function checkFolder(path: string): Promise<Refused | undefined> {
  return refusalOf(async () => {
    if (!(await stat(path)).isDirectory()) return { refused: 'is not a folder' };
    await access(path, constants.R_OK | constants.X_OK);
    return undefined;
  });
}

/** Checks that a path is a readable file; otherwise, says why not as the end of a sentence. */
export async function checkFile(path: string): Promise<Refused | undefined> {
  return refusalOf(async () => {
    if (!(await stat(path)).isFile()) return { refused: 'is not a file' };
    await access(path, constants.R_OK);
    return undefined;
  });
}

/** Checks that a path is a program that can be run; otherwise, says why not. */
export async function checkProgram(path: string): Promise<Refused | undefined> {
  const refused = await checkFile(path);
  if (refused !== undefined) return refused;
  return access(path, constants.X_OK).then(
    () => undefined,
    () => ({ refused: 'is not executable: `chmod +x` it' }),
  );
}

/**
 * Reads a file of UTF-8 text of at most `bytesMax` bytes, without its BOM. If it cannot be read,
 * `refused` says why as the end of a sentence, and `line` is that of the first byte that is not
 * UTF-8.
 */
export async function readText(
  path: string,
  { bytesMax }: { readonly bytesMax: number },
): Promise<{ readonly text: string } | (Refused & { readonly line?: number })> {
  return refusalOf(async () => {
    // Checked before it is opened: opening a named pipe would wait for its writer.
    const refused = await checkFile(path);
    if (refused !== undefined) return refused;
    const bytes = await readBytes(path, bytesMax + 1);
    if (bytes.length > bytesMax) return { refused: `is larger than ${bytesMax} bytes` };
    return decodeText(bytes);
  });
}

/** Whether `symlinks` of a mount allows a file to be served; the root itself may be a link. */
export async function checkSymlinks(
  root: string,
  below: string,
  symlinks: 'within' | 'deny' | 'follow',
): Promise<Refused | undefined> {
  const way = relative(await realpath(root), await realpath(join(root, below)));
  if (symlinks === 'deny' && way !== below.replaceAll('/', sep)) {
    return { refused: 'is a symbolic link, which `symlinks = deny` does not allow' };
  }
  if (symlinks === 'within' && (way === '..' || way.startsWith(`..${sep}`))) {
    return { refused: 'is a symbolic link to a file outside `root`' };
  }
  return undefined;
}

async function readBytes(path: string, bytesMax: number): Promise<Buffer> {
  await using file = await open(path);
  const bytes = Buffer.alloc(bytesMax);
  let length = 0;
  while (length < bytesMax) {
    const { bytesRead } = await file.read(bytes, length, bytesMax - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

function decodeText(
  bytes: Buffer,
): { readonly text: string } | (Refused & { readonly line: number }) {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    const loose = bytes.toString('utf8');
    const line = loose.slice(0, loose.indexOf('\ufffd')).split(/\r\n|\n|\r/).length;
    return { refused: 'is not UTF-8 text', line };
  }
}

async function refusalOf<T>(check: () => Promise<T>): Promise<T | Refused> {
  try {
    return await check();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
    return { refused: reasonOf(error), ...(!isMissing && { isUnread: true }) };
  }
}

function reasonOf(error: unknown): string {
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'does not exist',
    ENOTDIR: 'does not exist',
    EACCES: 'cannot be read by this user',
    EPERM: 'cannot be read by this user',
    ELOOP: 'is a symbolic link that leads back to itself',
    ENAMETOOLONG: 'has a name that is too long',
    ERR_INVALID_ARG_VALUE: 'is not a file name',
  };
  return reasons[code] ?? `cannot be read (${code})`;
}
