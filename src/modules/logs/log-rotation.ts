import { rename, stat } from 'node:fs/promises';

/** How often the server looks whether an access log file has to be rotated. */
const logRotationCheckMs = 1_000;

/** When a file of the access log is rotated, and what is kept. */
export interface RotationSettings {
  /** Absolute path of the file; undefined for a log without one. */
  readonly file?: string | undefined;
  /** The size from which the file is rotated. */
  readonly rotateBytes?: number | undefined;
  /** The age from which the file is rotated. */
  readonly rotateAgeMs?: number | undefined;
  /** How many rotated files are kept, by default 1: `file.1` is the newest. */
  readonly rotateKeep?: number | undefined;
}

/** The surroundings of a rotation. */
interface RotationParts {
  readonly settings: () => RotationSettings;
  /** Makes every process that writes the file open it again. */
  readonly reopen: () => void;
  /** Gets the first of several failures in a row. */
  readonly failed: (error: Error) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Rotates the file of the access log. One process does so for all that write it: it renames the
 * file, and they go on in the renamed one until they have opened the new one, so no line is lost or
 * mixed. The file is checked again only after `logRotationCheckMs`, which is time to open it.
 */
export class LogRotation {
  readonly #parts: RotationParts;
  readonly #timer: NodeJS.Timeout;
  #checking: Promise<void> | undefined;
  #isFailing = false;
  /** When the file of this inode was first seen, for file systems that do not know its birth. */
  #seen: { readonly ino: number; readonly atMs: number } | undefined;

  constructor(parts: RotationParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => {
      void this.check();
    }, logRotationCheckMs).unref();
  }

  /** Rotates the file if it is due; resolves when that is done. It never rejects. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Rotates nothing any more; resolves when a rotation that has begun is done. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#checking;
  }

  async #check(): Promise<void> {
    const { settings, reopen, failed } = this.#parts;
    const { file, rotateBytes, rotateAgeMs, rotateKeep = 1 } = settings();
    if (file === undefined || (rotateBytes ?? rotateAgeMs) === undefined) return;
    try {
      const found = await stat(file).catch(unlessMissing);
      if (found === undefined || !found.isFile() || found.size === 0) return;
      const ageMs = this.#parts.now() - this.#bornMs(found);
      const isDue = found.size >= (rotateBytes ?? Infinity) || ageMs >= (rotateAgeMs ?? Infinity);
      if (!isDue) return;
      await shift(file, rotateKeep);
      this.#isFailing = false;
      reopen();
    } catch (error) {
      if (!this.#isFailing) failed(error as Error);
      this.#isFailing = true;
    }
  }

  #bornMs({ ino, birthtimeMs }: { readonly ino: number; readonly birthtimeMs: number }): number {
    if (birthtimeMs > 0) return birthtimeMs;
    if (this.#seen?.ino !== ino) this.#seen = { ino, atMs: this.#parts.now() };
    return this.#seen.atMs;
  }
}

/** Renames `file` to `file.1`, that to `file.2`, and so on; the oldest of `keep` is replaced. */
async function shift(file: string, keep: number): Promise<void> {
  let free = 1;
  while (free < keep && (await stat(`${file}.${free}`).catch(unlessMissing)) !== undefined) {
    free += 1;
  }
  for (let at = free; at > 1; at -= 1) await rename(`${file}.${at - 1}`, `${file}.${at}`);
  await rename(file, `${file}.1`);
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
