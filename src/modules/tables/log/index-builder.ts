import type { Task } from '../../../core/background/tasks.ts';
import type { Log } from '../../../core/report/log.ts';
import { backgroundPollMs } from '../../../core/log/limits.ts';
import type { Store } from '../../../core/log/store.ts';

interface BuilderParts {
  readonly store: Pick<Store, 'buildIndexes' | 'seq' | 'waitForRows'>;
  readonly log: Log;
}

/**
 * Builds the indexes of tables while a server runs: continues what an earlier process has begun,
 * and builds what later changes of tables need.
 */
export function indexBuilding(parts: BuilderParts): Task {
  const { store } = parts;
  return {
    name: 'index_builder',
    title: 'The building of indexes',
    async run(signal, well) {
      while (!signal.aborted) {
        // A change during the build may need another one.
        const seq = store.seq();
        await buildIndexes(parts, signal);
        well();
        await store.waitForRows(seq, signal, backgroundPollMs);
      }
    },
  };
}

async function buildIndexes({ store, log }: BuilderParts, signal: AbortSignal): Promise<void> {
  let [reported, rowsReported] = ['', 0];
  await store.buildIndexes(signal, (build) => {
    const { table, index, done, of, isComplete } = build;
    const name = index === '' ? `the text search of ${table}` : `the index ${index} of ${table}`;
    if (isComplete) log.info({ table, rows: done }, `Built ${name}.`);
    else if (reported !== name || done - rowsReported >= rowsPerReport) {
      log.info({ table, rows: done, of }, `Building ${name}.`);
      [reported, rowsReported] = [name, done];
    }
  });
}

/** How many rows are built between two lines of the log. */
const rowsPerReport = 100_000;
