import { type Hash, createHash, randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { firstToGo } from '../../core/fair/shared-cache.ts';
import { undefinedIfMissing } from '../../core/http/content/file-errors.ts';
import { assetFolder } from '../../core/log/folder/data-folder.ts';
import { isDiskFull } from '../../core/log/folder/full-disk.ts';
import type { SharedFiles } from '../../core/log/shared/shared-log.ts';
import { Failure } from '../../core/values/failure.ts';
import { syncPath } from '../upkeep/backup.ts';
import { isDigest } from './asset.ts';
import { interruptedUploadMs } from './limits.ts';

/** Interrupted uploads that the server keeps; a further one replaces one of the key with most. */
export const interruptedUploadsMax = 64;

/** The first bytes of a file, by which the server knows images. */
const signatureBytes = 64;

/** Bytes of a file that are hashed at once. */
const hashedAtOnceBytes = 256 * 1024;

/** The folder of incomplete files, below that one: a file is renamed out of it when it is whole. */
const incoming = '.incoming';

/** The folder of variants of pictures: they are no assets, and can be made again. */
export const variantsFolder = '.variants';

/** The file whose time says when the keeper last looked through the folder. */
const lookedThrough = '.kept';

/** The names of its files: SHA-256 of the picture, width, version of the encoder, format. */
const variantFile = /^\.variants\/[0-9a-f]{64}-\d{1,9}-[\w.]{1,20}\.(?:avif|webp|jpeg|png)$/;

/** A file that was received as a whole, and is on the disk. */
export interface ReceivedFile {
  readonly sha256: string;
  readonly bytes: number;
  /** Its first bytes. */
  readonly head: Buffer;
}

/** An upload that can be continued, by the client that began it. */
interface NamedUpload {
  readonly owner: string;
  readonly name: string;
}

/** An open file; its owner closes the descriptor. */
interface OpenAsset {
  readonly descriptor: number;
  readonly bytes: number;
}

/** A file of the folder. */
interface StoredFile {
  readonly sha256: string;
  readonly bytes: number;
  /** When an asset last referred to it, in milliseconds since 1970. */
  readonly usedMs: number;
}

/** The files of assets in a data folder: each has the SHA-256 of its content as its name. */
export class AssetFiles {
  readonly folder: string;
  readonly #incoming: string;

  /** `data` is the absolute path of the data folder. */
  constructor(data: string) {
    this.folder = join(data, assetFolder);
    this.#incoming = join(this.folder, incoming);
  }

  /** The path of a file, or of a variant (variants.ts), whether it exists or not. */
  path(sha256: string): string {
    const isFile = isDigest(sha256) || variantFile.test(sha256);
    if (!isFile) throw new TypeError('not the SHA-256 of a file');
    return join(this.folder, sha256);
  }

  /**
   * Opens a file; undefined if there is none. Synchronous, as precompressed.ts explains. Throws
   * as undefinedIfMissing does.
   */
  open(sha256: string): OpenAsset | undefined {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
    const descriptor = undefinedIfMissing(() => openSync(this.path(sha256), flags));
    if (descriptor === undefined) return undefined;
    try {
      return { descriptor, bytes: fstatSync(descriptor).size };
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  /** The bytes of a file; undefined if there is none. */
  async bytesOf(sha256: string): Promise<number | undefined> {
    return (await stat(this.path(sha256)).catch(undefinedIfNone))?.size;
  }

  /** All files, in no particular order. */
  async *list(): AsyncGenerator<StoredFile, void, undefined> {
    for (const name of await namesIn(this.folder)) {
      if (!isDigest(name)) continue;
      const found = await stat(join(this.folder, name)).catch(undefinedIfNone);
      if (found === undefined) continue;
      yield { sha256: name, bytes: found.size, usedMs: found.mtimeMs };
    }
  }

  /** Notes that an asset refers to a file now. */
  async touch(sha256: string, nowMs: number): Promise<void> {
    await utimes(this.path(sha256), nowMs / 1000, nowMs / 1000).catch(undefinedIfNone);
  }

  /**
   * Removes a file that no asset has referred to since a time. An upload of the same file meanwhile
   * keeps it: the upload renames a new file to its place.
   */
  async remove(sha256: string, beforeMs: number): Promise<boolean> {
    await mkdir(this.#incoming, { recursive: true, mode: 0o700 });
    const aside = join(this.#incoming, privateName());
    await rename(this.path(sha256), aside);
    const { mtimeMs } = await stat(aside);
    if (mtimeMs >= beforeMs) {
      await rename(aside, this.path(sha256));
      return false;
    }
    await rm(aside, { force: true });
    return true;
  }

  /** Gives a file to the other nodes of a cluster. Rejects as SharedFiles.put. */
  async share(sha256: string, shared: Pick<SharedFiles, 'put'>): Promise<void> {
    const handle = await open(this.path(sha256));
    try {
      const { size } = await handle.stat();
      await shared.put(sha256, size, async (first, length) => {
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, first);
        return buffer.subarray(0, bytesRead);
      });
    } finally {
      await handle.close();
    }
  }

  /** When the folder was last looked through, in milliseconds since 1970; undefined for never. */
  async lookedThroughMs(): Promise<number | undefined> {
    return (await stat(join(this.folder, lookedThrough)).catch(undefinedIfNone))?.mtimeMs;
  }

  async noteLookedThrough(nowMs: number): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const path = join(this.folder, lookedThrough);
    await (await open(path, 'a', 0o600)).close();
    await utimes(path, nowMs / 1000, nowMs / 1000);
  }

  /** Reads a file and compares its content with its name. */
  async isSound(sha256: string): Promise<boolean> {
    const handle = await open(this.path(sha256));
    try {
      return (await digestOf(handle)) === sha256;
    } finally {
      await handle.close();
    }
  }

  /** Bytes that the server has of an interrupted upload; 0 if it has none. */
  async interruptedBytes(upload: NamedUpload | undefined): Promise<number> {
    if (upload === undefined) return 0;
    const found = await stat(join(this.#incoming, partName(upload))).catch(undefinedIfNone);
    return found?.size ?? 0;
  }

  /**
   * Begins to write a file. With `upload`, its beginning is kept if it is interrupted, and `first`
   * bytes of an earlier beginning are used. Rejects with `conflict` if there are fewer, and with
   * `storage_full`.
   */
  async begin(upload?: NamedUpload, first = 0): Promise<AssetWriter> {
    try {
      return await this.#begin(upload, first);
    } catch (error) {
      throw error instanceof Failure ? error : diskFailure(error);
    }
  }

  async #begin(upload: NamedUpload | undefined, first: number): Promise<AssetWriter> {
    await mkdir(this.#incoming, { recursive: true, mode: 0o700 });
    const path = join(this.#incoming, privateName());
    const part = upload === undefined ? undefined : join(this.#incoming, partName(upload));
    // Renaming gives the beginning to one writer only, also among several processes.
    if (first > 0 && part !== undefined) await rename(part, path).catch(undefinedIfNone);
    else if (part !== undefined) await rm(part, { force: true });
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const { size } = await handle.stat();
    // Another request may have what is missing here: an empty file must not take its place.
    const has = Math.min(size, first);
    const writer = new AssetWriter({ files: this, handle, path, part, first: has });
    if (size < first) {
      await writer.interrupt();
      throw new Failure(
        'conflict',
        `The server has ${size} bytes of this upload: continue with Content-Range: bytes ${size}-.`,
        { field: 'content-range' },
      );
    }
    if (size > first) await handle.truncate(first);
    return writer;
  }

  /** Removes what processes that have ended were writing, and interrupted uploads after a day. */
  async clean(nowMs: number): Promise<void> {
    for (const name of await namesIn(this.#incoming)) {
      const path = join(this.#incoming, name);
      const found = await stat(path).catch(undefinedIfNone);
      if (found === undefined) continue;
      const isOld = nowMs - found.mtimeMs > interruptedUploadMs;
      const pid = /^(\d+)-/.exec(name)?.[1];
      const isOrphan = pid !== undefined && !isRunning(Number(pid));
      if (isOld || isOrphan) await rm(path, { force: true });
    }
  }

  /** Puts a written file in its place. */
  async place(path: string, sha256: string): Promise<void> {
    await rename(path, this.path(sha256));
    await syncPath(this.folder);
  }

  /**
   * Removes interrupted uploads until there is room for another one: the oldest of the client that
   * has most, with the one that comes.
   */
  async makeRoom(forPart: string): Promise<void> {
    const names = (await namesIn(this.#incoming)).filter((name) => name.endsWith(partSuffix));
    let excess = names.length + 1 - interruptedUploadsMax;
    if (excess <= 0) return;
    const parts: { readonly owner: string; readonly path: string; readonly atMs: number }[] = [];
    for (const name of names) {
      const path = join(this.#incoming, name);
      const found = await stat(path).catch(undefinedIfNone);
      if (found === undefined) excess -= 1;
      else parts.push({ owner: ownerOf(name), path, atMs: found.mtimeMs });
    }
    let held = parts.toSorted((one, other) => one.atMs - other.atMs);
    const own = ownerOf(basename(forPart));
    for (; excess > 0; excess -= 1) {
      const first = firstToGo(held, own);
      if (first === undefined) return;
      held = held.filter((one) => one !== first);
      await rm(first.path, { force: true });
    }
  }
}

interface WriterParts {
  readonly files: AssetFiles;
  readonly handle: FileHandle;
  readonly path: string;
  /** Where its beginning is kept if it is interrupted. */
  readonly part: string | undefined;
  readonly first: number;
}

/** Writes one file. Exactly one of finish, interrupt and discard ends it. */
export class AssetWriter {
  readonly #parts: WriterParts;
  /** Undefined for a file whose beginning was written earlier. */
  readonly #hash: Hash | undefined;
  bytes: number;

  constructor(parts: WriterParts) {
    this.#parts = parts;
    this.bytes = parts.first;
    this.#hash = parts.first === 0 ? createHash('sha256') : undefined;
  }

  /** Writes on. Rejects with `storage_full`. */
  async write(chunk: Buffer): Promise<void> {
    try {
      for (let at = 0; at < chunk.length;) {
        const left = chunk.length - at;
        const { bytesWritten } = await this.#parts.handle.write(chunk, at, left, this.bytes);
        this.#hash?.update(chunk.subarray(at, at + bytesWritten));
        at += bytesWritten;
        this.bytes += bytesWritten;
      }
    } catch (error) {
      throw diskFailure(error);
    }
  }

  /**
   * Ends the file: it is on the disk under the name of its hash when this resolves. With `expected`
   * rejects with `unprocessable` for another hash, and discards the file.
   */
  async finish(expected?: string): Promise<ReceivedFile> {
    const { files, handle, path } = this.#parts;
    try {
      const sha256 = this.#hash?.digest('hex') ?? (await digestOf(handle));
      if (expected !== undefined && expected !== sha256) {
        throw new Failure(
          'unprocessable',
          `The content has the SHA-256 ${sha256} instead of ${expected}: send it again.`,
          { field: 'repr-digest' },
        );
      }
      const head = Buffer.alloc(Math.min(signatureBytes, this.bytes));
      await handle.read(head, 0, head.length, 0);
      await handle.sync();
      await handle.close();
      await files.place(path, sha256);
      return { sha256, bytes: this.bytes, head };
    } catch (error) {
      await this.discard();
      throw error instanceof Failure ? error : diskFailure(error);
    }
  }

  /** Removes what was written from a position on, before `interrupt`. Rejects as write does. */
  async takeBack(first: number): Promise<void> {
    try {
      await this.#parts.handle.truncate(first);
      this.bytes = first;
    } catch (error) {
      throw diskFailure(error);
    }
  }

  /** Ends the file early, and keeps its beginning if the upload has a name. */
  async interrupt(): Promise<void> {
    const { files, handle, path, part } = this.#parts;
    if (part === undefined || this.bytes === 0) {
      await this.discard();
      return;
    }
    await files.makeRoom(part);
    await handle.close();
    await rename(path, part);
  }

  /** Ends the file and removes it. */
  async discard(): Promise<void> {
    await this.#parts.handle.close().catch(() => undefined);
    await rm(this.#parts.path, { force: true });
  }
}

const partSuffix = '.part';

/** The file of an interrupted upload: its name begins with a digest of its owner. */
function partName({ owner, name }: NamedUpload): string {
  const whole = createHash('sha256')
    .update(JSON.stringify([owner, name]))
    .digest('hex');
  const whose = createHash('sha256').update(owner).digest('hex').slice(0, ownerDigits);
  return `${whose}_${whole}${partSuffix}`;
}

const ownerDigits = 16;

function ownerOf(part: string): string {
  return part.slice(0, ownerDigits);
}

/** A name that says which process writes the file. */
function privateName(): string {
  return `${process.pid}-${randomBytes(8).toString('hex')}`;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function digestOf(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(hashedAtOnceBytes);
  for (let position = 0; ;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(undefinedIfNone)) ?? [];
}

function undefinedIfNone(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

function diskFailure(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && !isDiskFull(error)) return error;
  const message = 'The disk has no room for this file.';
  return new Failure('storage_full', message, { cause: error });
}
