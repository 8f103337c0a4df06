import { setTimeout as delay } from 'node:timers/promises';
import { isAborted } from '../../../core/background/retry-loop.ts';
import type { Task } from '../../../core/background/tasks.ts';
import { backgroundPollMs } from '../../../core/log/limits.ts';
import type { LoggedDraft, Store } from '../../../core/log/store.ts';
import { examinedRecords } from '../../../core/operations/records/list.ts';
import type { Log } from '../../../core/report/log.ts';
import { rowTable } from '../rows/compiled-tables.ts';
import type { StoredTable } from '../table.ts';
import { rowCorrection } from './schema-change.ts';
import { storedTables } from '../log/family.ts';

/**
 * Rows that are checked in one turn of the event loop, and moved by at most one transaction; a long
 * row counts as several.
 */
export const rowsCheckedAtOnce = 100;

/** The progress of a check of the rows of a table. */
export interface RowCheckProgress {
  readonly table: string;
  readonly checked: number;
  readonly of: number;
  readonly moved: number;
}

/** Checks the rows of tables with a changed schema, in the background. */
export interface RowChecks {
  readonly task: Task;
  progress(): readonly RowCheckProgress[];
}

/** The author of the changes that bring rows in line with a schema. */
export const rowChecksAuthor = 'server';

/**
 * Makes the checks of a process. A table records that its rows need a check (`rows_pending`), so a
 * check continues after a crash; checking a row twice has no effect.
 */
export function createRowChecks({
  store,
  log,
}: {
  readonly store: Store;
  readonly log: Log;
}): RowChecks {
  const running = new Map<string, RowCheckProgress>();
  return {
    task: {
      name: 'row_checks',
      title: 'The check of rows after a change of a schema',
      run: (signal, well) => checkTables({ store, log, running, signal }, well),
    },
    progress: () => [...running.values()],
  };
}

interface CheckParts {
  readonly store: Store;
  readonly log: Log;
  readonly running: Map<string, RowCheckProgress>;
  readonly signal: AbortSignal;
}

async function checkTables(parts: CheckParts, well: () => void): Promise<void> {
  const { store, signal } = parts;
  let seen = -1;
  while (!signal.aborted) {
    store.refresh();
    const seq = store.seq();
    if (seq !== seen) {
      const pending = [...store.of(storedTables).tablesAfter('')].filter(
        ({ table }) => table.rows_pending,
      );
      for (const stored of pending) await checkRows(stored, parts);
      seen = seq;
    }
    well();
    await store.waitForRows(seen, signal, backgroundPollMs);
  }
}

/** Checks all rows of a table, unless its definition changes meanwhile: then it begins again. */
async function checkRows(stored: StoredTable, parts: CheckParts): Promise<void> {
  const { store, log, running, signal } = parts;
  const { id, name } = stored.table;
  const of = store.of(storedTables).tableCounts(name).rows;
  let [checked, moved, last] = [0, 0, ''];
  try {
    for (;;) {
      running.set(name, { table: name, checked, of, moved });
      const slice = nextRows(parts, stored, last);
      checked += slice.checked;
      last = slice.last;
      if (slice.ids.length > 0) {
        const written = await correctRows(parts, stored, slice.ids);
        if (written === undefined) return;
        moved += written;
      } else await delay(0);
      if (isAborted(signal)) return;
      if (slice.isEnd) break;
    }
    await store.commit(rowChecksAuthor, (reads) => {
      const isSame = reads.of(storedTables).tableById(id)?.seq === stored.seq;
      const draft: LoggedDraft = {
        family: 'table',
        id,
        action: 'edit',
        data: { rows_pending: null },
      };
      return { drafts: isSame ? [draft] : [], answer: () => undefined };
    });
    const values = { table: name, rows: checked, moved };
    log.info(values, `Checked the rows of the table ${name} by its new schema.`);
  } finally {
    running.delete(name);
  }
}

/** The next rows that need a correction, of a bounded number of rows. */
function nextRows(
  { store }: CheckParts,
  stored: StoredTable,
  after: string,
): {
  readonly ids: readonly string[];
  readonly last: string;
  readonly checked: number;
  readonly isEnd: boolean;
} {
  const table = rowTable(store, stored);
  const ids: string[] = [];
  let [last, checked, examined] = [after, 0, 0];
  for (const step of store.of(storedTables).rowsAfter(stored.table.name, after)) {
    last = step.id;
    checked += 1;
    const correction = step.stored === undefined ? {} : rowCorrection(step.stored.row, table);
    if (Object.keys(correction).length > 0) ids.push(step.id);
    examined += examinedRecords(step.size);
    if (examined >= rowsCheckedAtOnce) return { ids, last, checked, isEnd: false };
  }
  return { ids, last, checked, isEnd: true };
}

/** Corrects rows in one transaction; undefined if the definition is another one by now. */
function correctRows(
  { store }: CheckParts,
  stored: StoredTable,
  ids: readonly string[],
): Promise<number | undefined> {
  return store.commit(rowChecksAuthor, (reads) => {
    const now = reads.of(storedTables).table(stored.table.name);
    if (now?.seq !== stored.seq) return { drafts: [], answer: () => undefined };
    const table = rowTable(reads, now);
    const drafts = ids.flatMap((id): readonly LoggedDraft[] => {
      const row = reads.of(storedTables).row(id)?.row;
      const data = row === undefined ? {} : rowCorrection(row, table);
      return Object.keys(data).length > 0 ? [{ family: 'record', id, action: 'edit', data }] : [];
    });
    return { drafts, answer: () => drafts.length };
  });
}
