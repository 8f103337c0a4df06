import type { Log } from '../observability/log.ts';
import { indexBuildPollMs } from './limits.ts';
import type { Store } from './store.ts';

/** Builds the indexes of tables in the background while a server runs. */
export class IndexBuilder {
  readonly #store: Pick<Store, 'buildIndexes'>;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor({ store, log }: { readonly store: Pick<Store, 'buildIndexes'>; readonly log: Log }) {
    this.#store = store;
    this.#log = log;
  }

  /** Continues what an earlier process has begun, and builds what later changes of tables need. */
  start(): void {
    this.#work();
    this.#timer = setInterval(() => {
      this.#work();
    }, indexBuildPollMs).unref();
  }

  /** Resolves when nothing is written any more; another process continues. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#running;
  }

  #work(): void {
    this.#running ??= this.#build().finally(() => {
      this.#running = undefined;
    });
  }

  async #build(): Promise<void> {
    let [reported, rowsReported] = ['', 0];
    try {
      await this.#store.buildIndexes(this.#stopping.signal, (build) => {
        const { table, index, done, of, isComplete } = build;
        const name =
          index === '' ? `the text search of ${table}` : `the index ${index} of ${table}`;
        if (isComplete) this.#log.info({ table, rows: done }, `Built ${name}.`);
        else if (reported !== name || done - rowsReported >= rowsPerReport) {
          this.#log.info({ table, rows: done, of }, `Building ${name}.`);
          [reported, rowsReported] = [name, done];
        }
      });
    } catch (error) {
      this.#log.warn({ err: error }, 'Cannot build an index. The server tries again.');
    }
  }
}

/** How many rows are built between two lines of the log. */
const rowsPerReport = 100_000;
