import type { Change } from '../../model/change.ts';
import { changeInDraft, type SiteDraft } from '../../model/draft.ts';
import type { Databases } from '../databases.ts';
import { draftEnd, draftEntryKey, draftPrefix, layerPrefix } from '../drafts/draft-entries.ts';
import { DraftLayer } from '../drafts/refresh-drafts.ts';
import { historyKeyOf, keyOf } from '../encoding.ts';
import { foldDraft } from '../log/fold.ts';
import { draftRecordKey } from '../projections/drafts-reads.ts';
import type { DraftedRecord, Difference, TableCounts } from '../store.ts';
import type { EntryCheck } from './verify-entries.ts';
import { cannotFold, isText, rowOf, type VerifiedDatabases } from './verify-records.ts';

/** Compares a draft with the fold of its rows, and its entries with those of its records. */
export function* verifyDraft(
  { databases }: VerifiedDatabases,
  id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  let folded: SiteDraft | undefined;
  try {
    for (const row of rows) folded = foldDraft(folded, row);
  } catch (error) {
    yield cannotFold(id, error);
    return;
  }
  if (!isText(databases.draft.get(keyOf(id)), folded)) {
    yield { database: 'draft', what: `${id} differs from the fold of its rows` };
  }
  if (folded?.state !== 'open') return;
  if (databases.draftname.get(keyOf(folded.name)) !== id) {
    yield { database: 'draftname', what: `${id} is missing under its name` };
  }
  yield* verifyEntries(databases, folded);
}

/** Each entry of a draft is one of its records, of a history, or of the size of a table. */
function* verifyEntries(databases: Databases, draft: SiteDraft): Iterable<Difference> {
  const { draftentry, draftrecord } = databases;
  const { insertedSeq } = draft;
  const counted = (start: Buffer, end: Buffer) => draftentry.getKeysCount({ start, end });
  const all = counted(draftPrefix(insertedSeq), draftEnd(insertedSeq));
  const sizes = layerPrefix(insertedSeq, 'tablecount');
  const history = layerPrefix(insertedSeq, 'history');
  const others = counted(sizes, layerPrefix(insertedSeq, 'indexbuild'));
  const ofHistory = counted(history, draftEnd(insertedSeq));
  const ofRecords = new DraftLayer(databases, draft).entryCount();
  if (all !== others + ofHistory + ofRecords) {
    yield { database: 'draftentry', what: `${draft.id} has entries of no record, or too few` };
  }
  const expected = new Map<string, TableCounts>();
  const range = { start: draftPrefix(insertedSeq), end: draftEnd(insertedSeq) };
  for (const { value } of draftrecord.getRange(range)) {
    const { table, counts } = JSON.parse(value) as { table?: string; counts?: TableCounts };
    if (table === undefined || counts === undefined) continue;
    const sum = expected.get(table) ?? { rows: 0, words: 0 };
    expected.set(table, { rows: sum.rows + counts.rows, words: sum.words + counts.words });
  }
  for (const [table, counts] of expected) {
    const key = draftEntryKey(insertedSeq, 'tablecount', { key: keyOf(table), value: '' });
    const text = draftentry.get(key)?.slice(1);
    const isEmpty = counts.rows === 0 && counts.words === 0;
    if (isText(text, isEmpty ? undefined : counts)) continue;
    yield { database: 'draftentry', what: `${draft.id} has another size of the table ${table}` };
  }
}

/** Compares what a draft changes of a record with the fold of the rows. */
export function* verifyDraftedRecord(
  { databases }: VerifiedDatabases,
  _id: string,
  rows: readonly Change[],
): Iterable<Difference> {
  const inside = rows.flatMap((row) => changeInDraft(row) ?? []);
  const [first] = inside;
  const draft = first && draftIn(databases, first.draft);
  if (first === undefined || draft?.state !== 'open') return;
  const { family, id } = first.change;
  const problem = new DraftLayer(databases, draft).problemOf({ family, id });
  if (problem !== undefined) {
    yield { database: 'draftrecord', what: `${id} of the draft ${draft.id} ${problem}` };
  }
  for (const { change } of inside) {
    const entry = { key: historyKeyOf(id, change.seq), value: '' };
    const key = draftEntryKey(draft.insertedSeq, 'history', entry);
    if (databases.draftentry.doesExist(key)) continue;
    yield { database: 'draftentry', what: `change ${change.seq} is not in the history of ${id}` };
  }
}

function draftIn({ draft }: Databases, id: string): SiteDraft | undefined {
  const text = draft.get(keyOf(id));
  return text === undefined ? undefined : (JSON.parse(text) as SiteDraft);
}

/** Checks that each entry of a draft belongs to one that is open. */
export const draftChecks = {
  draft(databases, key, value) {
    const { id, insertedSeq } = JSON.parse(value) as SiteDraft;
    const row = rowOf(databases, insertedSeq);
    const isOwn = keyOf(id).equals(key) && row?.family === 'draft' && row.id === id;
    return isOwn ? undefined : 'is not in the log';
  },
  draftname(databases, key, id) {
    const draft = draftIn(databases, id);
    const isOwn = draft !== undefined && keyOf(draft.name).equals(key);
    return isOwn ? undefined : `refers to ${id}, which is no draft of this name`;
  },
  draftentry: (databases, key) => draftProblem(databases, key),
  draftrecord(databases, key, value) {
    const { family, id } = JSON.parse(value) as DraftedRecord;
    const draft = new DataView(key.buffer, key.byteOffset).getUint32(0);
    const isOwn = draftRecordKey(draft, family, id).equals(key);
    return isOwn ? draftProblem(databases, key) : `contains the record ${id}`;
  },
  drafttouch(databases, key) {
    return draftProblem(databases, key.subarray(key.length - draftPrefix(0).length));
  },
} as const satisfies Readonly<Record<string, EntryCheck>>;

function draftProblem(databases: Databases, key: Uint8Array): string | undefined {
  const seq = new DataView(key.buffer, key.byteOffset).getUint32(0);
  const row = rowOf(databases, seq);
  const draft = row?.family === 'draft' ? draftIn(databases, row.id) : undefined;
  const isOpen = draft?.state === 'open' && draft.insertedSeq === seq;
  return isOpen ? undefined : 'belongs to no open draft';
}
