import { candidatePlace, candidateValue, type CandidatePlace } from './candidates.ts';
import { claimKey, packClaim, type SeqClaim } from './claims.ts';
import type { Databases } from './databases.ts';
import { historyKey, historyPrefix, keyOf } from './key-bytes.ts';
import type { ReadyStep, Stamp, Step, WritePlan } from './write-plan.ts';

/**
 * Puts a plan into the log and the projections; to be called in a write transaction. Returns about
 * how many bytes it adds to that.
 */
export function putWrites(databases: Databases, plan: WritePlan): number {
  const { stamp, steps } = plan;
  const [first, last] = [steps[0], steps.at(-1)];
  if (first === undefined || last === undefined) return 0;
  databases.txn.putSync(keyOf(stamp.txn), `${first.seq} ${last.seq}`);
  databases.meta.putSync('seq', String(last.seq));
  // One database after the other, so that the pages of one tree are still at hand for the next row;
  // and each text lives no longer than it takes to put it.
  const bytes = putRows(databases, plan);
  for (const step of steps) putClaim(databases, step);
  for (const step of steps) putRule(databases, step);
  for (const step of steps) putCandidate(databases, step);
  for (const step of steps) putEver(databases, step);
  for (const step of steps) putOthers(databases, step);
  return bytes;
}

function putRows({ log, history }: Databases, { stamp, steps }: WritePlan): number {
  const middle = readyMiddle(stamp);
  let bytes = 0;
  for (const step of steps) {
    const row = 'insert' in step ? readyRow(step, middle) : JSON.stringify(step.change);
    log.putSync(step.seq, row);
    bytes += 'insert' in step || step.rule !== undefined ? 2 * row.length : row.length;
  }
  for (const step of steps) {
    history.putSync(historyKey(historyPrefix(idOf(step)), step.seq), '1');
  }
  return bytes;
}

function putClaim({ vk }: Databases, step: Step): void {
  const claim = claimOf(step);
  if (claim !== undefined) vk.putSync(claimKey(claim.vk), packClaim(claim));
}

function putRule({ rule }: Databases, step: Step): void {
  if ('insert' in step) rule.putSync(keyOf(step.insert.id), readyText(step));
  else if (step.rule?.after !== undefined) {
    rule.putSync(keyOf(step.change.id), JSON.stringify(step.rule.after));
  } else if (step.rule !== undefined) rule.removeSync(keyOf(step.change.id));
}

function putCandidate(databases: Databases, step: Step): void {
  if ('change' in step && step.rule?.before !== undefined) {
    const { database, key, value } = candidatePlace(step.rule.before);
    databases[database].removeSync(key, value);
  }
  const place = placeAfter(step);
  if (place !== undefined) databases[place.database].putSync(place.key, place.value);
}

function putEver(databases: Databases, step: Step): void {
  const place = 'insert' in step ? step.insert.ready : step.rule?.place;
  if (place !== undefined) databases[`ever${place.database}`].putSync(place.key, idOf(step));
}

/** Marks of rows, and records that are no page rules: few changes have them. */
function putOthers(databases: Databases, step: Step): void {
  if ('insert' in step) return;
  for (const [seq, by] of step.marks) {
    if (by === undefined) databases.mark.removeSync(seq);
    else databases.mark.putSync(seq, String(by.seq));
  }
  step.putRecord?.(databases);
}

function idOf(step: Step): string {
  return 'insert' in step ? step.insert.id : step.change.id;
}

function claimOf(step: Step): SeqClaim | undefined {
  if ('change' in step) return step.claim;
  const { vk, requestHash } = step.insert.vk;
  return { vk, requestHash, seq: step.seq };
}

/** Where the rule of a step is found after it. */
function placeAfter(step: Step): CandidatePlace | undefined {
  if ('change' in step) return step.rule?.place;
  const { database, key, traits } = step.insert.ready;
  const value = candidateValue(step.insert.id, { seq: step.seq, insertedSeq: step.seq }, traits);
  return { database, key, value };
}

/** What stands between seq and id in the rows of inserts that came ready. */
function readyMiddle(stamp: Stamp): string {
  const { dtu_txn, dtu_stored, by, txn } = stamp;
  const middle = { dtu_txn, dtu_stored, by, txn, family: 'userinterface' };
  return JSON.stringify(middle).slice(1, -1);
}

/** The Change of an insert that came ready, as JSON with its members in their order. */
function readyRow({ seq, insert: { id, ready } }: ReadyStep, middle: string): string {
  return `{"seq":${seq},${middle},"id":"${id}","action":"insert","data":${ready.text}}`;
}

/** The StoredRule of an insert that came ready, as JSON with its members in their order. */
function readyText({ seq, insert: { id, ready } }: ReadyStep): string {
  return `{"rule":{"id":"${id}",${ready.text.slice(1)},"seq":${seq},"insertedSeq":${seq}}`;
}
