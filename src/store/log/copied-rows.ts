import type { Change } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { Rule } from '../../model/rule.ts';
import type { Databases } from '../databases.ts';
import { storedJson } from '../encoding.ts';
import { rulePlace } from '../projections/rule-index.ts';
import type { LoggedDraft, PreparedInsert, Reads } from '../store.ts';
import { planWrites } from './write-plan.ts';
import { putWrites } from './write-puts.ts';

/** A row of a log that this one copies, as text and parsed. */
interface CopiedRow {
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
  // The other node has found room for its rules.
  const unlimited: Reads = { ...reads, roomFailure: () => undefined };
  let bytes = 0;
  for (let at = 0; at < rows.length;) {
    const first = rows[at]?.change;
    if (first === undefined) return bytes;
    const { seq: firstSeq, txn, by, dtu_txn, dtu_stored } = first;
    let end = at + 1;
    while (rows[end]?.change.txn === txn) end += 1;
    const drafts = draftsOf(rows.slice(at, end));
    const plan = planWrites(unlimited, drafts, { firstSeq, txn, by, dtu_txn, dtu_stored });
    bytes += putWrites(databases, plan);
    at = end;
  }
  return bytes;
}

/** Inserts of page rules, of which most logs consist, need no look-up of the record before them. */
function draftsOf(rows: readonly CopiedRow[]): readonly (LoggedDraft | PreparedInsert)[] {
  const isPlain = rows.every(
    ({ change: { family, action } }) => family === 'userinterface' && action === 'insert',
  );
  return rows.map(({ text, change: { family, id, action, data } }) => {
    if (!isPlain) return { family, id, action, data, text };
    const rule = { ...(data as unknown as Omit<Rule, 'id'>), id };
    return { id, text, prepared: { ...rulePlace(rule), text: JSON.stringify(data) } };
  });
}
