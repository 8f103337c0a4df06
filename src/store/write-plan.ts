import type { Change } from '../model/change.ts';
import type { StoredRule } from '../model/rule.ts';
import type { CandidatePlace } from './place-values.ts';
import type { SeqClaim } from './claims.ts';
import type { ReadyInsert } from './store.ts';
import type { PutRecord } from './write-records.ts';
import type { Marks, Transition } from './write-row.ts';

/** One change with its effects on the projections. */
interface PlannedStep {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  readonly rule: RuleTransition | undefined;
  /** Rows that the change invalidates or restores: seq, and the row that invalidates it, if any. */
  readonly marks: Marks;
  /** Puts the state of a record that is not a page rule. */
  readonly putRecord: PutRecord | undefined;
}

/** The source of one row of the log; the texts of a prepared insert are made last. */
export type WriteStep = PlannedStep | ReadyInsert;

/** A page rule before and after a step. */
interface RuleTransition extends Transition<StoredRule> {
  /** The place of the rule in the index after the step. */
  readonly place: CandidatePlace | undefined;
}

/** The fields that a plan adds to its changes besides their drafts and seqs. */
export type Stamp = Pick<Change, 'dtu_txn' | 'dtu_stored' | 'by' | 'txn'>;

/** All writes of one decision. */
export interface WritePlan {
  readonly stamp: Stamp;
  readonly firstSeq: number;
  /** The changes of the drafts that were not prepared. */
  readonly changes: readonly Change[];
  readonly steps: readonly WriteStep[];
}
