import {
  type WriteStream,
  closeSync,
  createWriteStream,
  fstatSync,
  openSync,
  readSync,
} from 'node:fs';
import { KIB } from '../../core/values/units.ts';
import type { LineSink } from './access-log.ts';

/** The wait before a further attempt to open an access log file that cannot be written. */
const logFileRetryMs = 1_000;

/** Bytes of lines that may wait for an access log file, before further ones are dropped. */
const logFileWaitingBytesMax = 1024 * KIB;

/** Permissions of an access log file: its owner writes, its group reads. */
const logFileMode = 0o640;

/**
 * A log file, opened at the first line. After a rename (logrotate), lines go to the renamed file
 * until `reopen`. While the file cannot be written, `writableNeedDrain` is true, and every
 * `logFileRetryMs` a line tries to open it again.
 */
export class LogFile implements LineSink {
  readonly path: string;
  readonly #now: () => number;
  readonly #failed: (error: Error) => void;
  #stream: WriteStream | undefined;
  #retryAtMs = -Infinity;
  #isFailing = false;
  /** Streams that still write. */
  readonly #ending = new Set<Promise<unknown>>();

  /** `failed` is called for the first of several failures in a row. */
  constructor(
    path: string,
    { now, failed }: { readonly now: () => number; readonly failed: (error: Error) => void },
  ) {
    this.path = path;
    this.#now = now;
    this.#failed = failed;
  }

  get writableNeedDrain(): boolean {
    if (this.#stream === undefined) return this.#isFailing && this.#now() < this.#retryAtMs;
    return this.#stream.writableNeedDrain;
  }

  write(text: string): void {
    let begun = '';
    if (this.#stream === undefined) {
      // The end of a line may be missing since the disk was full.
      if (this.#isFailing && endsInLine(this.path)) begun = '\n';
      this.#stream = this.#open();
    }
    this.#stream.write(begun + text, (error) => {
      if (error === null || error === undefined) this.#isFailing = false;
    });
  }

  /** Resolves when all lines are written, or cannot be. */
  async end(): Promise<void> {
    this.reopen();
    await Promise.all(this.#ending);
  }

  /** Opens the file of this name again for the next lines. */
  reopen(): void {
    this.#stream?.end();
    this.#stream = undefined;
    this.#retryAtMs = -Infinity;
  }

  #open(): WriteStream {
    const stream = createWriteStream(this.path, {
      flags: 'a',
      mode: logFileMode,
      highWaterMark: logFileWaitingBytesMax,
    });
    const closed = new Promise((resolve) => stream.once('close', resolve));
    this.#ending.add(closed);
    void closed.then(() => this.#ending.delete(closed));
    stream.on('error', (error) => {
      if (this.#stream === stream) this.#stream = undefined;
      this.#retryAtMs = this.#now() + logFileRetryMs;
      if (!this.#isFailing) this.#failed(error);
      this.#isFailing = true;
    });
    return stream;
  }
}

/** Whether the last line of a file has no end; false for a file that cannot be read. */
function endsInLine(path: string): boolean {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const { size } = fstatSync(file);
    const last = Buffer.alloc(1);
    return size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && last.toString() !== '\n';
  } catch {
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
