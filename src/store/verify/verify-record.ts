import type { Change, Family } from '../../model/change.ts';
import { historyPrefix } from '../encoding.ts';
import type { Difference } from '../store.ts';
import { verifyDraft, verifyDraftedRecord } from './verify-drafts.ts';
import {
  rowOf,
  verifyHook,
  verifyKey,
  verifyRule,
  verifySecret,
  type VerifiedDatabases,
} from './verify-records.ts';
import { verifyTable, verifyTableRow } from './verify-rows.ts';

/** Compares the projections of one record with the fold of its rows, oldest first. */
type VerifyFamily = (
  verified: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
) => Iterable<Difference>;

/** The families that have projections. */
const families: Readonly<Partial<Record<Family, VerifyFamily>>> = {
  userinterface: verifyRule,
  key: verifyKey,
  webhook: verifyHook,
  secret: verifySecret,
  table: verifyTable,
  record: verifyTableRow,
  draft: verifyDraft,
  draftchange: verifyDraftedRecord,
};

/**
 * Compares every projection of one record, with the seqs of its history, with the fold of its rows.
 */
export function* verifyRecord(
  verified: VerifiedDatabases,
  { prefix, seqs }: { readonly prefix: Buffer; readonly seqs: readonly number[] },
): Iterable<Difference> {
  const rows: Change[] = [];
  for (const seq of seqs) {
    const row = rowOf(verified.databases, seq);
    if (row !== undefined && historyPrefix(row.id).equals(prefix)) rows.push(row);
    else yield { database: 'history', what: `change ${seq} is in the history of another record` };
  }
  const [first] = rows;
  if (first === undefined) return;
  for (const [family, ofFamily] of Map.groupBy(rows, (row) => row.family)) {
    yield* families[family]?.(verified, first.id, ofFamily) ?? [];
  }
}
