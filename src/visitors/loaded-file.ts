import { open, stat } from 'node:fs/promises';
import { loadedFileTrustMs } from './limits.ts';

/**
 * What is made of a file, for those who ask for it: read when it is first needed, and again when
 * the file has changed. What cannot be used changes nothing: the former value stays.
 */
export class LoadedFile<T> {
  readonly #file: string;
  readonly #bytesMax: number;
  readonly #read: (bytes: Buffer) => T;
  readonly #now: () => number;
  readonly #failed: (error: unknown) => void;
  #value: T | undefined;
  #version = '';
  #lookedMs = -Infinity;
  #pending: Promise<void> | undefined;

  /**
   * `read` may throw; `failed` is told of that, and of a file that cannot be read, once for each
   * state of the file. `now` gives milliseconds.
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

  /** Undefined before the file could be used for the first time. */
  get value(): T | undefined {
    return this.#value;
  }

  /** Looks whether the file has changed; undefined where that was done a moment ago. */
  prepare(): Promise<void> | undefined {
    if (this.#pending !== undefined) return this.#pending;
    const ageMs = this.#now() - this.#lookedMs;
    if (ageMs >= 0 && ageMs < loadedFileTrustMs) return undefined;
    this.#pending = this.#look().finally(() => {
      this.#lookedMs = this.#now();
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #look(): Promise<void> {
    let version = 'unreadable';
    try {
      const { ino, size, mtimeMs } = await stat(this.#file);
      version = `${ino} ${size} ${mtimeMs}`;
      if (version === this.#version) return;
      if (size > this.#bytesMax) throw new Error(`${this.#file} is over ${this.#bytesMax} bytes`);
      this.#value = this.#read(await readBytes(this.#file, this.#bytesMax));
    } catch (error) {
      if (version !== this.#version) this.#failed(error);
    } finally {
      this.#version = version;
    }
  }
}

/** The content of a file, cut at a length: it may grow while it is being read. */
async function readBytes(path: string, bytesMax: number): Promise<Buffer> {
  await using file = await open(path);
  const bytes = await file.readFile();
  return bytes.subarray(0, bytesMax);
}
