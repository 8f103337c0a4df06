import { createWriteStream, type WriteStream } from 'node:fs';
import type { LineSink } from './access.ts';
import { logFileMode, logFileRetryMs } from './limits.ts';

/**
 * A file that lines are appended to, opened with the first of them. A file that was renamed is
 * written to until `reopen` (logrotate). While the file cannot be written, `writableNeedDrain` is
 * true, and opening it is tried again every `logFileRetryMs`.
 */
export class LogFile implements LineSink {
  readonly path: string;
  readonly #now: () => number;
  readonly #failed: (error: Error) => void;
  #stream: WriteStream | undefined;
  #retryAtMs = -Infinity;
  #isFailing = false;

  /** `failed` is called once for a failure, and again for one after the file could be written. */
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
    this.#stream ??= this.#open();
    this.#stream.write(text, (error) => {
      if (error === null || error === undefined) this.#isFailing = false;
    });
  }

  /** Writes what comes next to the file that has the name then. */
  reopen(): void {
    this.#stream?.end();
    this.#stream = undefined;
    this.#retryAtMs = -Infinity;
  }

  #open(): WriteStream {
    const stream = createWriteStream(this.path, { flags: 'a', mode: logFileMode });
    stream.on('error', (error) => {
      if (this.#stream === stream) this.#stream = undefined;
      this.#retryAtMs = this.#now() + logFileRetryMs;
      if (!this.#isFailing) this.#failed(error);
      this.#isFailing = true;
    });
    return stream;
  }
}
