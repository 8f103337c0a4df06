import type { Change } from '../change.ts';
import { Failure } from '../../values/failure.ts';
import type { Databases } from '../databases.ts';
import { storedJson } from '../encoding.ts';
import type { LoggedDraft, Reads } from '../store.ts';
import { planWrites, type WritePlan } from './write-plan.ts';
import { putWrites } from './write-puts.ts';

/** A row of a log that this one copies, as text and parsed. */
export interface CopiedRow {
  readonly text: string;
  readonly change: Change;
}

/** Parses rows. Throws `conflict` for rows that do not follow the newest row of this log. */
export function copiedRows(texts: readonly string[], newest: number): readonly CopiedRow[] {
  const rows = texts.map((text) => ({ text, change: storedJson(text) as Change }));
  requireNext(rows, newest);
  return rows;
}

function requireNext(rows: readonly CopiedRow[], newest: number): void {
  const wrong = rows.findIndex(({ change }, at) => change.seq !== newest + 1 + at);
  if (wrong === -1) return;
  const { seq } = rows[wrong]?.change ?? { seq: 0 };
  throw new Failure('conflict', `Change ${seq} does not follow change ${newest + wrong}.`);
}

/**
 * Puts the rows of some transactions, one transaction after the other. The caller runs it in a
 * write transaction. Returns their size.
 */
export function putCopiedRows(
  databases: Databases,
  reads: Reads,
  rows: readonly CopiedRow[],
): number {
  let bytes = 0;
  for (const ofTransaction of transactionsOf(rows)) {
    bytes += putWrites(databases, planCopy(reads, ofTransaction));
  }
  return bytes;
}

/** Divides rows by their transactions, and where a row is missing between them. */
export function* transactionsOf(rows: readonly CopiedRow[]): Iterable<readonly CopiedRow[]> {
  let start = 0;
  for (let end = 1; end <= rows.length; end += 1) {
    const [before, next] = [rows[end - 1]?.change, rows[end]?.change];
    if (next?.txn === before?.txn && next?.seq === (before?.seq ?? 0) + 1) continue;
    yield rows.slice(start, end);
    start = end;
  }
}

/** Plans the writes of the rows of one transaction. Throws as planWrites does. */
export function planCopy(reads: Reads, rows: readonly CopiedRow[]): WritePlan {
  const [first] = rows;
  if (first === undefined) throw new Error('a transaction has rows');
  const { seq: firstSeq, txn, by, via, dtu_txn, dtu_stored } = first.change;
  return planWrites(reads, draftsOf(rows), {
    ...{ firstSeq, txn, by, dtu_txn, dtu_stored, isCopy: true },
    ...(via !== undefined && { via }),
  });
}

function draftsOf(rows: readonly CopiedRow[]): readonly LoggedDraft[] {
  return rows.map(({ text, change: { family, id, action, data } }) => {
    return { family, id, action, data, text };
  });
}
