import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../../core/report/log.ts';
import { backgroundPollMs, indexBuildRetryMs } from '../../../core/log/limits.ts';
import type { Store } from '../../../core/log/store.ts';

type BuilderStore = Pick<Store, 'buildIndexes' | 'seq' | 'waitForRows'>;

/** Builds the indexes of tables in the background while a server runs. */
export class IndexBuilder {
  readonly #store: BuilderStore;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor({ store, log }: { readonly store: BuilderStore; readonly log: Log }) {
    this.#store = store;
    this.#log = log;
  }

  /** Continues what an earlier process has begun, and builds what later changes of tables need. */
  start(): void {
    this.#running ??= this.#run(this.#stopping.signal);
  }

  /** Resolves when nothing is written any more; another process continues. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        // A change during the build may need another one.
        const seq = this.#store.seq();
        await this.#build(signal);
        await this.#store.waitForRows(seq, signal, backgroundPollMs);
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#log.warn({ err: error }, 'Cannot build an index. Retrying in 5 s.');
        await delay(indexBuildRetryMs, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }

  async #build(signal: AbortSignal): Promise<void> {
    let [reported, rowsReported] = ['', 0];
    await this.#store.buildIndexes(signal, (build) => {
      const { table, index, done, of, isComplete } = build;
      const name = index === '' ? `the text search of ${table}` : `the index ${index} of ${table}`;
      if (isComplete) this.#log.info({ table, rows: done }, `Built ${name}.`);
      else if (reported !== name || done - rowsReported >= rowsPerReport) {
        this.#log.info({ table, rows: done, of }, `Building ${name}.`);
        [reported, rowsReported] = [name, done];
      }
    });
  }
}

/** How many rows are built between two lines of the log. */
const rowsPerReport = 100_000;
