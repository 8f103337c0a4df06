import type { Change } from '../model/change.ts';
import type { StoredRule } from '../model/rule.ts';
import { claimKey, packClaim, type SeqClaim } from './claims.ts';
import { candidatePlace, type CandidatePlace } from './candidates.ts';
import type { Databases } from './databases.ts';
import { foldRule } from './fold.ts';
import { historyKey, historyPrefix, keyOf } from './key-bytes.ts';
import type { LoggedDraft, Reads } from './store.ts';
import { RecordPlanner, type PutRecord } from './write-records.ts';
import { afterRow, type Marks, type Transition, type Written } from './write-row.ts';

/** One change with what it does to the projections, ready to be put. */
interface Step {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  readonly rule: RuleTransition | undefined;
  /** Rows whose standing changes: seq, and the row that invalidates it or none any more. */
  readonly marks: Marks;
  /** Puts the state of a record that is no page rule. */
  readonly putRecord: PutRecord | undefined;
}

interface RuleTransition extends Transition<StoredRule> {
  /** Where the rule is found after it. */
  readonly place: CandidatePlace | undefined;
}

/** All that one decision writes. */
export interface WritePlan {
  readonly changes: readonly Change[];
  readonly steps: readonly Step[];
}

/** What a plan gives its changes besides their drafts. */
interface Transacted {
  readonly by: string;
  readonly txn: string;
  readonly dtu_txn: string;
  readonly dtu_stored: string;
  readonly firstSeq: number;
}

/**
 * Works out what a decision writes, without writing: everything that can be refused is refused
 * here, so that a decision is written as a whole or not at all. Throws Failures of candidatePlace,
 * and an Error for a change that cannot follow, which is a bug of the caller.
 */
export function planWrites(
  reads: Reads,
  drafts: readonly LoggedDraft[],
  { firstSeq, ...origin }: Transacted,
): WritePlan {
  // Drafts of one decision may be about the same record.
  const rules = new Map<string, Written<StoredRule>>();
  const records = new RecordPlanner(reads);
  const steps = drafts.map(({ family, id, action, data, vk }, index): Step => {
    const { by, txn, dtu_txn, dtu_stored } = origin;
    const seq = firstSeq + index;
    const change: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    const claim = vk && { ...vk, seq };
    if (family !== 'userinterface') {
      return { change, claim, rule: undefined, ...records.plan(change) };
    }
    const state = rules.get(id) ?? { stored: reads.rule(id), written: [] };
    const { stored: after, marks } = afterRow(reads, state, change, foldRule);
    const place = after && candidatePlace(after);
    rules.set(id, { stored: after, written: [...state.written, change] });
    const rule = { before: state.stored, after, place };
    return { change, claim, rule, marks, putRecord: undefined };
  });
  return { changes: steps.map(({ change }) => change), steps };
}

/**
 * Puts a plan into the log and the projections; to be called in a write transaction. Returns about
 * how many bytes it adds to that.
 */
export function putWrites(databases: Databases, { steps }: WritePlan): number {
  putTxn(databases, steps);
  // One database after the other, so that the pages of one tree are still at hand for the next row;
  // and each text lives no longer than it takes to put it.
  const bytes = putRows(databases, steps);
  const { mark, meta, vk } = databases;
  const newest = steps.at(-1)?.change.seq;
  if (newest !== undefined) meta.putSync('seq', String(newest));
  for (const { claim } of steps) {
    if (claim !== undefined) vk.putSync(claimKey(claim.vk), packClaim(claim));
  }
  for (const [seq, by] of steps.flatMap(({ marks }) => marks)) {
    if (by === undefined) mark.removeSync(seq);
    else mark.putSync(seq, String(by.seq));
  }
  const rules = steps.flatMap(({ rule }) => rule ?? []);
  for (const { change, rule } of steps) if (rule !== undefined) putRule(databases, change.id, rule);
  for (const rule of rules) putCandidate(databases, rule);
  for (const rule of rules) putEver(databases, rule);
  for (const { putRecord } of steps) putRecord?.(databases);
  return bytes;
}

function putRows({ log, history }: Databases, steps: readonly Step[]): number {
  let bytes = 0;
  for (const { change, rule } of steps) {
    const row = JSON.stringify(change);
    log.putSync(change.seq, row);
    bytes += rule === undefined ? row.length : 2 * row.length;
  }
  for (const { change } of steps) {
    history.putSync(historyKey(historyPrefix(change.id), change.seq), '1');
  }
  return bytes;
}

function putTxn({ txn }: Databases, steps: readonly Step[]): void {
  const [first, last] = [steps[0]?.change, steps.at(-1)?.change];
  if (first === undefined || last === undefined) return;
  txn.putSync(keyOf(first.txn), `${first.seq} ${last.seq}`);
}

function putRule({ rule }: Databases, id: string, { after }: RuleTransition): void {
  if (after === undefined) rule.removeSync(keyOf(id));
  else rule.putSync(keyOf(id), JSON.stringify(after));
}

function putCandidate(databases: Databases, { before, place }: RuleTransition): void {
  if (before !== undefined) {
    const { database, key, value } = candidatePlace(before);
    databases[database].removeSync(key, value);
  }
  if (place !== undefined) databases[place.database].putSync(place.key, place.value);
}

function putEver(databases: Databases, { after, place }: RuleTransition): void {
  if (after === undefined || place === undefined) return;
  databases[`ever${place.database}`].putSync(place.key, after.rule.id);
}
