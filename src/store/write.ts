import type { Change } from '../model/change.ts';
import type { Key } from '../model/key.ts';
import type { StoredRule } from '../model/rule.ts';
import { claimKey, packClaim, type SeqClaim } from './claims.ts';
import { candidatePlace, type CandidatePlace } from './candidates.ts';
import type { Databases } from './databases.ts';
import { foldKey, foldRows, foldRule, type Folded } from './fold.ts';
import { historyKey, historyPrefix, keyOf } from './key-bytes.ts';
import type { LoggedDraft, Reads } from './store.ts';

/** One change with what it does to the projections, ready to be put. */
interface Step {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  readonly rule: RuleTransition | undefined;
  /** Rows whose standing changes: seq, and the row that invalidates it or none any more. */
  readonly marks: readonly (readonly [number, Change | undefined])[];
  readonly key: Transition<Key> | undefined;
}

interface Transition<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
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
  const rules = new Map<string, RuleState>();
  const keys = new Map<string, Key | undefined>();
  const steps = drafts.map(({ family, id, action, data, vk }, index): Step => {
    const { by, txn, dtu_txn, dtu_stored } = origin;
    const seq = firstSeq + index;
    const change: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    const claim = vk && { ...vk, seq };
    if (family === 'key') {
      const before = keys.has(id) ? keys.get(id) : reads.key(id);
      const after = foldKey(before, change);
      keys.set(id, after);
      return { change, claim, rule: undefined, marks: [], key: { before, after } };
    }
    const state = rules.get(id) ?? { stored: reads.rule(id), written: [] };
    const { stored: after, marks } = afterRow(reads, state, change);
    const place = after && candidatePlace(after);
    rules.set(id, { stored: after, written: [...state.written, change] });
    const rule = { before: state.stored, after, place };
    return { change, claim, rule, marks, key: undefined };
  });
  return { changes: steps.map(({ change }) => change), steps };
}

/** A page rule in the middle of a decision, with the rows that the decision has added to it. */
interface RuleState {
  readonly stored: StoredRule | undefined;
  readonly written: readonly Change[];
}

/** Most rows follow from the state before them; an invalidate is told by all rows of its record. */
function afterRow(
  reads: Reads,
  { stored, written }: RuleState,
  change: Change,
): { readonly stored: StoredRule | undefined; readonly marks: Step['marks'] } {
  if (change.action !== 'invalidate') return { stored: foldRule(stored, change), marks: [] };
  const rows = [...reads.rows(change.id), ...written];
  const [before, after] = [foldRows(rows), foldRows([...rows, change])];
  return { stored: after.stored, marks: marksBetween(before, after) };
}

function marksBetween(before: Folded, after: Folded): Step['marks'] {
  const seqs = new Set([...before.invalidated.keys(), ...after.invalidated.keys()]);
  return [...seqs]
    .filter((seq) => before.invalidated.get(seq)?.seq !== after.invalidated.get(seq)?.seq)
    .map((seq) => [seq, after.invalidated.get(seq)] as const);
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
  for (const { change, key } of steps) if (key !== undefined) putKey(databases, change.id, key);
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

function putKey({ key, keyhash }: Databases, id: string, { before, after }: Transition<Key>): void {
  if (before !== undefined) keyhash.removeSync(keyOf(before.hash));
  if (after === undefined) {
    key.removeSync(keyOf(id));
    return;
  }
  key.putSync(keyOf(id), JSON.stringify(after));
  keyhash.putSync(keyOf(after.hash), id);
}
