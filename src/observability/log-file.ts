import { createWriteStream, type WriteStream } from 'node:fs';
import type { LineSink } from './access.ts';
import { logFileMode, logFileRetryMs } from './limits.ts';

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
    this.#stream ??= this.#open();
    this.#stream.write(text, (error) => {
      if (error === null || error === undefined) this.#isFailing = false;
    });
  }

  /** Opens the file of this name again for the next lines. */
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
