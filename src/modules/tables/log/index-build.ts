import type { Task } from '../../../core/background/tasks.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf } from '../../../core/log/encoding.ts';
import { backgroundPollMs } from '../../../core/log/limits.ts';
import type { LogPart, Reads, Store } from '../../../core/log/store.ts';
import type { IndexBuild, RowStep, TableCounts } from './reads.ts';
import type { Log } from '../../../core/report/log.ts';
import { comparedValue } from '../row.ts';
import { type TableIndexes, tableIndexes } from '../table.ts';
import {
  buildKey,
  indexKey,
  keyPrefix,
  packWord,
  prefixEnd,
  rowWords,
  searchIndex,
  wordKey,
} from './index-key.ts';
import { storedTables } from './family.ts';

/** How many rows are built between two lines of the log. */
const rowsPerReport = 100_000;

/** Rows that one transaction adds to an index that is being built: a request waits for it. */
export const indexBuildRowsMax = 2_000;

/** Builds the indexes of tables. */
interface IndexBuilder {
  /**
   * Builds indexes, a piece in each transaction, until all are complete or the signal aborts, and
   * reports each piece; several processes may do so at once. Rejects as Store.commit does.
   */
  build(
    signal: AbortSignal,
    report: (piece: IndexBuild & { readonly isComplete: boolean }) => void,
  ): Promise<void>;
}

/** The indexes of tables that are not complete. */
export const indexBuilder: LogPart<IndexBuilder> = {
  open: ({ databases, reads, queue }) => ({
    async build(signal, report) {
      while (!signal.aborted && databases.indexbuild.getKeysCount({ limit: 1 }) > 0) {
        const built = await queue.write(() => {
          const piece = nextPiece(databases, reads);
          return () => ({ result: piece && putPiece(databases, piece), bytes: 0 });
        });
        if (built !== undefined) report(built);
      }
    },
  }),
};

/** Completes all indexes. The caller runs it in a write transaction. */
export function completeIndexes(databases: Databases, reads: Reads): void {
  for (let piece; (piece = nextPiece(databases, reads)) !== undefined;) putPiece(databases, piece);
}

/** A step of a build: its writes, and the state after it. */
interface Piece {
  readonly build: IndexBuild;
  readonly isComplete: boolean;
  readonly write: (databases: Databases) => void;
}

/** Undefined if all indexes are complete: another process may have done it meanwhile. */
function nextPiece(databases: Databases, reads: Reads): Piece | undefined {
  const [build] = reads.of(storedTables).indexBuilds();
  if (build === undefined) return undefined;
  return build.phase === 'empty' ? emptied(databases, reads, build) : filled(reads, build);
}

function putPiece(
  databases: Databases,
  { build, isComplete, write }: Piece,
): IndexBuild & { readonly isComplete: boolean } {
  write(databases);
  const key = buildKey(build.table, build.index);
  if (isComplete) databases.indexbuild.removeSync(key);
  else databases.indexbuild.putSync(key, JSON.stringify(build));
  return { ...build, isComplete };
}

/** Removes some entries of an index; the last step begins to fill it, if the table still has it. */
function emptied(databases: Databases, reads: Reads, build: IndexBuild): Piece {
  const { table, index } = build;
  const isOfWords = index === searchIndex;
  const name = isOfWords ? 'rowword' : 'rowindex';
  const start = isOfWords ? keyPrefix(table) : keyPrefix(table, index);
  const range = { start, end: prefixEnd(start), limit: indexBuildRowsMax };
  const keys = [...databases[name].getKeys(range)].map((key) => Buffer.from(key));
  const isEmpty = keys.length < indexBuildRowsMax;
  const isWanted = hasIndex(indexesOf(reads, table), index);
  return {
    build: isEmpty && isWanted ? { ...build, phase: 'fill' } : build,
    isComplete: isEmpty && !isWanted,
    write() {
      for (const key of keys) databases[name].removeSync(key);
      if (isEmpty && isOfWords) countWords(databases, reads, table, { words: 0 });
    },
  };
}

/** Adds some rows to an index. */
function filled(reads: Reads, build: IndexBuild): Piece {
  const { table, index, after, done } = build;
  const rows = firstRows(reads.of(storedTables).rowsAfter(table, after));
  const { search, instants } = indexesOf(reads, table);
  const isComplete = rows.length < indexBuildRowsMax;
  return {
    build: { ...build, after: rows.at(-1)?.id ?? after, done: done + rows.length },
    isComplete,
    write(databases) {
      let words = 0;
      for (const { id, stored } of rows) {
        if (stored === undefined) continue;
        if (index !== searchIndex) {
          const value = comparedValue(stored.row[index], instants.has(index));
          databases.rowindex.putSync(indexKey(table, index, value, id), '');
          continue;
        }
        const { counts, length } = rowWords(stored.row, search);
        words += length;
        for (const [word, count] of counts) {
          databases.rowword.putSync(wordKey(table, word, id), packWord(count, length));
        }
      }
      if (words > 0) countWords(databases, reads, table, { more: words });
    },
  };
}

function firstRows(steps: Iterable<RowStep>): readonly RowStep[] {
  const rows: RowStep[] = [];
  for (const step of steps) {
    rows.push(step);
    if (rows.length === indexBuildRowsMax) break;
  }
  return rows;
}

function countWords(
  { tablecount }: Databases,
  reads: Reads,
  table: string,
  change: { readonly words: number } | { readonly more: number },
): void {
  if (reads.of(storedTables).table(table) === undefined) return;
  const counts = reads.of(storedTables).tableCounts(table);
  const words = 'words' in change ? change.words : counts.words + change.more;
  const after: TableCounts = { ...counts, words };
  tablecount.putSync(keyOf(table), JSON.stringify(after));
}

function indexesOf(reads: Reads, name: string): TableIndexes {
  return tableIndexes(reads.of(storedTables).table(name)?.table ?? {});
}

function hasIndex({ fields, search }: TableIndexes, index: string): boolean {
  return index === searchIndex ? search.length > 0 : fields.includes(index);
}

interface BuilderParts {
  readonly store: Pick<Store, 'part' | 'seq' | 'waitForRows'>;
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
  await store.part(indexBuilder).build(signal, (build) => {
    const { table, index, done, of, isComplete } = build;
    const name = index === '' ? `the text search of ${table}` : `the index ${index} of ${table}`;
    if (isComplete) log.info({ table, rows: done }, `Built ${name}.`);
    else if (reported !== name || done - rowsReported >= rowsPerReport) {
      log.info({ table, rows: done, of }, `Building ${name}.`);
      [reported, rowsReported] = [name, done];
    }
  });
}
