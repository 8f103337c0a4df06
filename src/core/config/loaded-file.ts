import { open, stat } from 'node:fs/promises';

/** How long a loaded file is used before the disk is checked for a change. */
const loadedFileTrustMs = 1_000;

/**
 * A value that is read from a file on first use, and again after the file has changed. If the file
 * becomes unusable, the previous value stays.
 */
export class LoadedFile<T> {
  readonly #file: string;
  readonly #bytesMax: number;
  readonly #read: (bytes: Buffer) => T;
  readonly #now: () => number;
  readonly #failed: (error: unknown) => void;
  #value: T | undefined;
  #version = '';
  #checkedMs = -Infinity;
  #pending: Promise<void> | undefined;

  /**
   * `failed` is called when `read` throws or the file cannot be read, once for each version of the
   * file. `now` is in milliseconds.
   */
  constructor({
    file,
    bytesMax,
    read,
    now,
    failed,
  }: {
    readonly file: string;
    readonly bytesMax: number;
    readonly read: (bytes: Buffer) => T;
    readonly now: () => number;
    readonly failed: (error: unknown) => void;
  }) {
    this.#file = file;
    this.#bytesMax = bytesMax;
    this.#read = read;
    this.#now = now;
    this.#failed = failed;
  }

  /** Undefined until the file has been read for the first time. */
  get value(): T | undefined {
    return this.#value;
  }

  /** Checks whether the file has changed; undefined if that was done a moment ago. */
  prepare(): Promise<void> | undefined {
    if (this.#pending !== undefined) return this.#pending;
    const ageMs = this.#now() - this.#checkedMs;
    if (ageMs >= 0 && ageMs < loadedFileTrustMs) return undefined;
    this.#pending = this.#check().finally(() => {
      this.#checkedMs = this.#now();
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #check(): Promise<void> {
    let read: VersionedBytes | undefined;
    try {
      read = await this.#readChanged();
    } catch (error) {
      // Tried again at the next check: the process may have had no file descriptor left.
      if (this.#version !== unreadable) this.#failed(error);
      this.#version = unreadable;
      return;
    }
    if (read === undefined) return;
    this.#version = read.version;
    try {
      if (read.bytes === undefined) {
        throw new Error(`${this.#file} is over ${this.#bytesMax} bytes`);
      }
      this.#value = this.#read(read.bytes);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The content of the file; undefined if it has not changed. Rejects if it cannot be read. */
  async #readChanged(): Promise<VersionedBytes | undefined> {
    const { ino, size, mtimeMs } = await stat(this.#file);
    const version = `${ino} ${size} ${mtimeMs}`;
    if (version === this.#version) return undefined;
    const isTooLarge = size > this.#bytesMax;
    return { version, bytes: isTooLarge ? undefined : await readBytes(this.#file, this.#bytesMax) };
  }
}

/** A version of a file; without bytes if it is too large. */
interface VersionedBytes {
  readonly version: string;
  readonly bytes: Buffer | undefined;
}

const unreadable = 'unreadable';

/** The content of a file, cut at a length: the file may grow while it is read. */
async function readBytes(path: string, bytesMax: number): Promise<Buffer> {
  await using file = await open(path);
  const bytes = await file.readFile();
  return bytes.subarray(0, bytesMax);
}
