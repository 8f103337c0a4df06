import { isRevertible, type Change } from '../../model/change.ts';
import { putLast, type Databases } from '../databases.ts';
import { historyKeyOf, keyOf } from '../encoding.ts';
import { claimKey, packClaim, type SeqClaim } from '../projections/claims.ts';
import { putIndexEntry, type IndexEntry } from '../projections/index-entries.ts';
import { indexValue } from '../projections/rule-index.ts';
import { refreshDrafts } from '../drafts/refresh-drafts.ts';
import type { DraftedRecordName, PreparedInsert } from '../store.ts';
import type { DataTexts } from './data-texts.ts';
import type { ChangeStamp, PlannedStep, WriteStep, WritePlan } from './write-plan.ts';

/**
 * Puts a plan into the log and the projections. The caller runs it in a write transaction. Returns
 * an estimate of the bytes that it adds to the transaction.
 */
export function putWrites(databases: Databases, plan: WritePlan): number {
  const { stamp, firstSeq, steps } = plan;
  if (steps.length === 0) return 0;
  const newest = firstSeq + steps.length - 1;
  databases.txn.putSync(keyOf(stamp.txn), `${firstSeq} ${newest}`);
  databases.meta.putSync('seq', String(newest));
  // One database after the other, so that the pages of one tree stay in the CPU cache for the next
  // row, and each text lives only until it is put.
  const bytes = putRows(databases, plan);
  putHistory(databases, plan);
  putClaims(databases, plan);
  putPreparedRules(databases, plan);
  putPreparedPlaces(databases, plan);
  plan.entries.write(databases);
  refreshDrafts(databases, changesOf(steps));
  return bytes;
}

function changesOf(steps: readonly WriteStep[]): readonly (Change | DraftedRecordName)[] {
  return steps.map((step) => {
    return 'change' in step ? step.change : { family: 'userinterface', id: step.id };
  });
}

function putRows({ log }: Databases, { stamp, firstSeq, steps, texts }: WritePlan): number {
  let middle: string | undefined;
  let [seq, bytes] = [firstSeq, 0];
  for (const step of steps) {
    const row =
      'prepared' in step
        ? preparedRow(step, seq, (middle ??= preparedMiddle(stamp)))
        : textOf(step, texts);
    putLast(log, seq, row);
    bytes += 'prepared' in step || isRevertible(step.change.family) ? 2 * row.length : row.length;
    seq += 1;
  }
  return bytes;
}

function textOf({ change, text }: PlannedStep, texts: DataTexts): string {
  if (text !== undefined) return text;
  const { family, action, data } = change;
  if (family !== 'record' || action !== 'insert') return JSON.stringify(change);
  // The row has the same fields, so their text is made once.
  const head = JSON.stringify({ ...change, data: undefined });
  return `${head.slice(0, -1)},"data":${texts.of(data)}}`;
}

function putHistory({ history }: Databases, { firstSeq, steps }: WritePlan): void {
  let seq = firstSeq;
  for (const step of steps) {
    const key = historyKeyOf(idOf(step), seq);
    if ('prepared' in step || step.change.action === 'insert') putLast(history, key, '1');
    else history.putSync(key, '1');
    seq += 1;
  }
}

function putClaims({ vk }: Databases, { firstSeq, steps }: WritePlan): void {
  let seq = firstSeq;
  for (const step of steps) {
    const claim = 'prepared' in step ? claimOf(step, seq) : step.claim;
    if (claim !== undefined) vk.putSync(claimKey(claim.vk), packClaim(claim));
    seq += 1;
  }
}

function putPreparedRules({ rule }: Databases, { firstSeq, steps }: WritePlan): void {
  let seq = firstSeq;
  for (const step of steps) {
    if ('prepared' in step) putLast(rule, keyOf(step.id), preparedText(step, seq));
    seq += 1;
  }
}

/** Puts the places of prepared rules into the current and the historical index. */
function putPreparedPlaces(databases: Databases, { firstSeq, steps }: WritePlan): void {
  let seq = firstSeq;
  for (const step of steps) {
    if ('prepared' in step) {
      const place = placeOf(step, seq);
      putIndexEntry(databases, place);
      databases[`ever${place.database}`].putSync(place.key, step.id);
    }
    seq += 1;
  }
}

function idOf(step: WriteStep): string {
  return 'prepared' in step ? step.id : step.change.id;
}

function claimOf({ vk }: PreparedInsert, seq: number): SeqClaim | undefined {
  return vk && { vk: vk.vk, requestHash: vk.requestHash, seq };
}

function placeOf({ id, prepared }: PreparedInsert, seq: number): IndexEntry {
  const { database, key, traits } = prepared;
  return { database, key, value: indexValue(id, { seq, insertedSeq: seq }, traits) };
}

/** The part of the row of a prepared insert between seq and id. */
function preparedMiddle({ dtu_txn, dtu_stored, by, txn }: ChangeStamp): string {
  const middle = { dtu_txn, dtu_stored, by, txn, family: 'userinterface' };
  return JSON.stringify(middle).slice(1, -1);
}

/** The Change of a prepared insert, as JSON with its members in their order. */
function preparedRow({ id, prepared, text }: PreparedInsert, seq: number, middle: string): string {
  if (text !== undefined) return text;
  const own = `"id":${JSON.stringify(id)},"action":"insert"`;
  return `{"seq":${seq},${middle},${own},"data":${prepared.text}}`;
}

/** The StoredRule of a prepared insert, as JSON with its members in their order. */
function preparedText({ id, prepared }: PreparedInsert, seq: number): string {
  const rule = `{"id":${JSON.stringify(id)},${prepared.text.slice(1)}`;
  return `{"rule":${rule},"seq":${seq},"insertedSeq":${seq}}`;
}
