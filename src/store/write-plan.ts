import type { Change } from '../model/change.ts';
import type { StoredRule } from '../model/rule.ts';
import type { CandidatePlace } from './place-values.ts';
import type { SeqClaim } from './claims.ts';
import type { ReadyInsert } from './store.ts';
import type { PutRecord } from './write-records.ts';
import type { Marks, Transition } from './write-row.ts';

/** One change with what it does to the projections. */
interface PlannedStep {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  readonly rule: RuleTransition | undefined;
  /** Rows whose standing changes: seq, and the row that invalidates it or none any more. */
  readonly marks: Marks;
  /** Puts the state of a record that is no page rule. */
  readonly putRecord: PutRecord | undefined;
}

/** What one row of the log is made of; the texts of an insert that came ready are made last. */
export type WriteStep = PlannedStep | ReadyInsert;

/** A page rule before and after a step. */
interface RuleTransition extends Transition<StoredRule> {
  /** Where the rule is found after it. */
  readonly place: CandidatePlace | undefined;
}

/** What a plan gives its changes besides their drafts and seqs. */
export type Stamp = Pick<Change, 'dtu_txn' | 'dtu_stored' | 'by' | 'txn'>;

/** All that one decision writes. */
export interface WritePlan {
  readonly stamp: Stamp;
  readonly firstSeq: number;
  /** Of the drafts that did not come ready. */
  readonly changes: readonly Change[];
  readonly steps: readonly WriteStep[];
}
