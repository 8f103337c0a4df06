import { isRevertible } from '../change.ts';
import { putLast, type Databases } from '../databases.ts';
import { historyKeyOf, keyOf } from '../encoding.ts';
import { packClaim } from '../claims.ts';
import type { DataTexts } from './planned-entries.ts';
import type { PlannedStep, WritePlan } from './write-plan.ts';

/**
 * Puts a plan into the log and the projections. The caller runs it in a write transaction. Returns
 * an estimate of the bytes that it adds to the transaction.
 */
export function putWrites(databases: Databases, plan: WritePlan): number {
  const { stamp, firstSeq, steps, families } = plan;
  if (steps.length === 0) return 0;
  const newest = firstSeq + steps.length - 1;
  databases.txn.putSync(keyOf(stamp.txn), `${firstSeq} ${newest}`);
  databases.meta.putSync('seq', String(newest));
  // One database after the other, so that the pages of one tree stay in the CPU cache for the next
  // row, and each text lives only until it is put.
  const bytes = putRows(databases, plan);
  putHistory(databases, plan);
  putClaims(databases, plan);
  plan.entries.write(databases);
  const changes = steps.map(({ change }) => change);
  for (const { afterPut } of families) afterPut?.(databases, families, changes);
  return bytes;
}

function putRows({ log }: Databases, { firstSeq, steps, texts }: WritePlan): number {
  let [seq, bytes] = [firstSeq, 0];
  for (const step of steps) {
    const row = textOf(step, texts);
    putLast(log, seq, row);
    bytes += isRevertible(step.change.family) ? 2 * row.length : row.length;
    seq += 1;
  }
  return bytes;
}

function textOf({ change, text }: PlannedStep, texts: DataTexts): string {
  if (text !== undefined) return text;
  const { family, action, data } = change;
  const hasTexts = family === 'record' || family === 'userinterface';
  if (!hasTexts || action !== 'insert') return JSON.stringify(change);
  // The record has the same fields, so their text is made once.
  const head = JSON.stringify({ ...change, data: undefined });
  return `${head.slice(0, -1)},"data":${texts.of(data)}}`;
}

function putHistory({ history }: Databases, { steps }: WritePlan): void {
  for (const { change } of steps) {
    const key = historyKeyOf(change.id, change.seq);
    if (change.action === 'insert') putLast(history, key, '1');
    else history.putSync(key, '1');
  }
}

function putClaims({ vk }: Databases, { steps }: WritePlan): void {
  for (const { claim } of steps) {
    if (claim !== undefined) vk.putSync(...packClaim(claim));
  }
}
