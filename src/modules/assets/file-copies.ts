import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Failure } from '../../core/values/failure.ts';
import { syncPath } from '../upkeep/backup.ts';
import { errorReason } from '../../core/log/folder/data-folder.ts';
import { isDigest, type Asset } from './asset.ts';
import type { AssetFiles } from './asset-files.ts';

/** What was copied so far. */
interface CopiedFiles {
  readonly files: number;
  readonly bytes: number;
  /** The files that could not be copied, a sentence each. */
  readonly problems: readonly string[];
}

/** Called after each file, with what was copied so far. */
type ShowProgress = (copied: Omit<CopiedFiles, 'problems'>) => void;

/**
 * Copies the files of assets into a folder, each under its hash, which the copy must have. A file
 * that is there already is checked instead. Rejects with `unavailable` if the folder cannot be
 * written.
 */
export async function exportFiles(
  files: Pick<AssetFiles, 'path'>,
  assets: Iterable<Pick<Asset, 'name' | 'sha256'>>,
  { folder, show }: { readonly folder: string; readonly show: ShowProgress },
): Promise<CopiedFiles> {
  const [seen, problems] = [new Set<string>(), [] as string[]];
  let [count, bytes] = [0, 0];
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const { name, sha256 } of assets) {
      if (seen.has(sha256)) continue;
      seen.add(sha256);
      const target = join(folder, sha256);
      const isThere = (await digestOf(target)) === sha256;
      const found = isThere ? sha256 : await copyChecked(files.path(sha256), target, sha256);
      if (found !== sha256) {
        const what = found === undefined ? 'missing' : 'damaged';
        problems.push(`the file of ${name} (${sha256}) is ${what}`);
        continue;
      }
      count += 1;
      bytes += (await stat(target)).size;
      show({ files: count, bytes });
    }
    await syncPath(folder);
  } catch (error) {
    if (error instanceof Failure) throw error;
    const message = `${folder} cannot be written (${errorReason(error)})`;
    throw new Failure('unavailable', message, { cause: error });
  }
  return { files: count, bytes, problems };
}

/** A file of an export. */
export interface ExportedFile {
  readonly sha256: string;
  readonly path: string;
  readonly bytes: number;
}

/** The files of an export. Rejects with `not_found` if the folder cannot be read. */
export async function exportedFiles(folder: string): Promise<readonly ExportedFile[]> {
  const found: ExportedFile[] = [];
  try {
    for (const sha256 of (await readdir(folder)).filter(isDigest).sort()) {
      const path = join(folder, sha256);
      found.push({ sha256, path, bytes: (await stat(path)).size });
    }
    return found;
  } catch (error) {
    const message = `cannot read ${folder} (${errorReason(error)})`;
    throw new Failure('not_found', message, { cause: error });
  }
}

/**
 * Gives the files of an export to `put`, one after the other. A file that it refuses as
 * `unprocessable`, because its content has another hash, is a problem, and the rest follows.
 */
export async function importFiles(
  given: readonly ExportedFile[],
  put: (file: ExportedFile) => Promise<void>,
  show: ShowProgress,
): Promise<CopiedFiles> {
  const problems: string[] = [];
  let [files, bytes] = [0, 0];
  for (const file of given) {
    try {
      await put(file);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'unprocessable') throw error;
      problems.push(`the file ${file.sha256} is damaged`);
      continue;
    }
    files += 1;
    bytes += file.bytes;
    show({ files, bytes });
  }
  return { files, bytes, problems };
}

/** Puts a file of an export into the data folder, unless it is there. Rejects as AssetWriter. */
export async function putIntoFolder(files: AssetFiles, file: ExportedFile): Promise<void> {
  const { sha256, path, bytes } = file;
  const isThere = (await files.bytesOf(sha256)) === bytes && (await files.isSound(sha256));
  if (isThere) {
    // The rows that refer to it come next.
    await files.touch(sha256, Date.now());
    return;
  }
  const writer = await files.begin();
  try {
    for await (const chunk of createReadStream(path)) await writer.write(chunk as Buffer);
  } catch (error) {
    await writer.discard();
    throw error;
  }
  await writer.finish(sha256);
}

/**
 * Copies a file, which gets its name once it is whole and has its hash. Resolves to the hash of the
 * content; undefined if there is no file.
 */
async function copyChecked(
  source: string,
  target: string,
  sha256: string,
): Promise<string | undefined> {
  const incomplete = `${target}.incomplete`;
  const hash = createHash('sha256');
  try {
    await pipeline(
      createReadStream(source),
      async function* hashed(chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          hash.update(chunk);
          yield chunk;
        }
      },
      createWriteStream(incomplete, { mode: 0o600 }),
    );
    const found = hash.digest('hex');
    if (found !== sha256) return found;
    await syncPath(incomplete);
    await rename(incomplete, target);
    return found;
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && path === source) return undefined;
    throw error;
  } finally {
    await rm(incomplete, { force: true });
  }
}

/** The hash of a file; undefined if there is none. */
async function digestOf(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    return hash.digest('hex');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
