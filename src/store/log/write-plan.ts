import type { Change } from '../../model/change.ts';
import { hookOfSecret, type HookSecret, type StoredHook } from '../../model/hook.ts';
import type { ApiKey } from '../../model/key.ts';
import type { StoredRule } from '../../model/rule.ts';
import type { Databases } from '../databases.ts';
import { keyOf } from '../encoding.ts';
import type { SeqClaim } from '../projections/claims.ts';
import type { IndexEntry } from '../projections/index-entries.ts';
import { indexEntryOf } from '../projections/rule-index.ts';
import type { LoggedDraft, Reads, PreparedInsert } from '../store.ts';
import {
  foldHook,
  foldKey,
  foldRows,
  foldRule,
  foldSecret,
  type ApplyChange,
  type Folded,
} from './fold.ts';

/** One change with its effects on the projections. */
export interface PlannedStep {
  readonly change: Change;
  readonly claim: SeqClaim | undefined;
  readonly rule: RuleTransition | undefined;
  /** Rows that the change invalidates or restores: seq, and the row that invalidates it, if any. */
  readonly marks: Marks;
  /** Puts the state of a record that is not a page rule. */
  readonly putRecord: PutRecord | undefined;
  /** The row as it is stored, if it is a copy. */
  readonly text?: string | undefined;
}

/** The source of one row of the log; the texts of a prepared insert are made last. */
export type WriteStep = PlannedStep | PreparedInsert;

/** A page rule before and after a step. */
interface RuleTransition extends Transition<StoredRule> {
  /** The place of the rule in the index after the step. */
  readonly place: IndexEntry | undefined;
}

/** The fields that a plan adds to its changes besides their drafts and seqs. */
export type ChangeStamp = Pick<Change, 'dtu_txn' | 'dtu_stored' | 'by' | 'txn'>;

/** All writes of one decision. */
export interface WritePlan {
  readonly stamp: ChangeStamp;
  readonly firstSeq: number;
  /** The changes of the drafts that were not prepared. */
  readonly changes: readonly Change[];
  readonly steps: readonly WriteStep[];
}

/**
 * Plans the writes of a decision without writing. All checks happen here, so that a decision is
 * written as a whole or not at all; a caller with prepared drafts calls roomFailure first. Throws
 * Failures of indexEntryOf and roomFailure, and an Error for a change that cannot follow, which
 * is a bug of the caller.
 */
export function planWrites(
  reads: Reads,
  drafts: readonly (LoggedDraft | PreparedInsert)[],
  { firstSeq, ...stamp }: ChangeStamp & { readonly firstSeq: number },
): WritePlan {
  // Several drafts of one decision may concern the same record.
  const rules = new Map<string, WrittenRow<StoredRule>>();
  const places = new PlannedPlaces(reads);
  const records = new RecordPlanner(reads);
  const steps = drafts.map((draft, index): WriteStep => {
    if ('prepared' in draft) return draft;
    const seq = firstSeq + index;
    const { dtu_txn, dtu_stored, by, txn } = stamp;
    const { family, id, action, data, vk, text } = draft;
    const change: Change = { seq, dtu_txn, dtu_stored, by, txn, family, id, action, data };
    const claim = vk && { ...vk, seq };
    if (family !== 'userinterface') {
      return { change, claim, text, rule: undefined, ...records.plan(change) };
    }
    const state = rules.get(id) ?? { stored: reads.rule(id), written: [] };
    const { stored: after, marks } = afterRow(reads, state, change, foldRule);
    const place = after && indexEntryOf(after);
    places.move(state.stored && indexEntryOf(state.stored), place);
    rules.set(id, { stored: after, written: [...state.written, change] });
    const rule = { before: state.stored, after, place };
    return { change, claim, text, rule, marks, putRecord: undefined };
  });
  const changes = steps.flatMap((step) => ('change' in step ? step.change : []));
  return { stamp, firstSeq, steps, changes };
}

/** Counts the rules that one decision adds to each place. */
class PlannedPlaces {
  readonly #reads: Reads;
  readonly #more = new Map<string, number>();

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Moves a rule to another place. Throws `too_large` if that has no room. */
  move(from: IndexEntry | undefined, to: IndexEntry | undefined): void {
    const [left, reached] = [from, to].map((place) => place && nameOf(place));
    if (left === reached) return;
    if (to !== undefined && reached !== undefined) {
      const planned = this.#more.get(reached) ?? 0;
      const failure = this.#reads.roomFailure(to, planned);
      if (failure !== undefined) throw failure;
      this.#more.set(reached, planned + 1);
    }
    if (left !== undefined) this.#more.set(left, (this.#more.get(left) ?? 0) - 1);
  }
}

function nameOf({ database, key }: IndexEntry): string {
  return `${database} ${key.toString('latin1')}`;
}

/** A record before and after a change; undefined if it does not exist. */
interface Transition<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** A record in the middle of a decision, with the rows that the decision has added to it. */
interface WrittenRow<S> {
  readonly stored: S | undefined;
  readonly written: readonly Change[];
}

/** Seqs of rows, each with the row that invalidates it, if any. */
type Marks = readonly (readonly [number, Change | undefined])[];

/** Most rows follow from the state before them; an invalidate needs all rows of its record. */
function afterRow<S extends { readonly seq: number; readonly insertedSeq: number }>(
  reads: Reads,
  { stored, written }: WrittenRow<S>,
  change: Change,
  apply: ApplyChange<S>,
): { readonly stored: S | undefined; readonly marks: Marks } {
  if (change.action !== 'invalidate') return { stored: apply(stored, change), marks: [] };
  const rows = [...reads.rows(change.family, change.id), ...written];
  const [before, after] = [foldRows(rows, apply), foldRows([...rows, change], apply)];
  return { stored: after.stored, marks: marksBetween(before, after) };
}

function marksBetween(
  before: Pick<Folded<never>, 'invalidated'>,
  after: Pick<Folded<never>, 'invalidated'>,
): Marks {
  const seqs = new Set([...before.invalidated.keys(), ...after.invalidated.keys()]);
  return [...seqs]
    .filter((seq) => before.invalidated.get(seq)?.seq !== after.invalidated.get(seq)?.seq)
    .map((seq) => [seq, after.invalidated.get(seq)] as const);
}

/** Puts the new state of a record. The caller runs it in a write transaction. */
type PutRecord = (databases: Databases) => void;

interface RecordPlan {
  readonly marks: Marks;
  readonly putRecord: PutRecord | undefined;
}

/** Plans the effects of one decision on records that are not page rules. */
class RecordPlanner {
  readonly #reads: Reads;
  // Several changes of one decision may concern the same record.
  readonly #keys = new Map<string, ApiKey | undefined>();
  readonly #hooks = new Map<string, WrittenRow<StoredHook>>();
  readonly #secrets = new Map<string, HookSecret | undefined>();

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Plans the next change. Throws an Error if it cannot follow, which is a bug of the caller. */
  plan(change: Change): RecordPlan {
    switch (change.family) {
      case 'key':
        return { marks: [], putRecord: this.#key(change) };
      case 'secret':
        return { marks: [], putRecord: this.#secret(change) };
      case 'webhook':
        return this.#hook(change);
      case 'event':
      case 'replay':
      case 'purge':
        return { marks: [], putRecord: undefined };
      case 'userinterface':
        throw new TypeError('page rules are planned elsewhere');
      default:
        // A row of a newer version, in a copy of its log.
        return { marks: [], putRecord: undefined };
    }
  }

  #key(change: Change): PutRecord {
    const { id } = change;
    const before = this.#keys.has(id) ? this.#keys.get(id) : this.#reads.key(id);
    const after = foldKey(before, change);
    this.#keys.set(id, after);
    return (databases) => {
      putKey(databases, id, { before, after });
    };
  }

  #secret(change: Change): PutRecord {
    const hookId = hookOfSecret(change.id);
    const known = this.#secrets.has(hookId);
    const before = known ? this.#secrets.get(hookId) : this.#reads.hookSecret(hookId);
    const after = foldSecret(before, change);
    this.#secrets.set(hookId, after);
    return ({ hooksecret, meta }) => {
      if (after === undefined) hooksecret.removeSync(keyOf(hookId));
      else hooksecret.putSync(keyOf(hookId), JSON.stringify(after));
      putHooksStamp(meta, change);
    };
  }

  #hook(change: Change): RecordPlan {
    const { id } = change;
    const state = this.#hooks.get(id) ?? { stored: this.#reads.hook(id), written: [] };
    const { stored: after, marks } = afterRow(this.#reads, state, change, foldHook);
    this.#hooks.set(id, { stored: after, written: [...state.written, change] });
    return {
      marks,
      putRecord: (databases) => {
        putHook(databases, id, { before: state.stored, after });
        putHooksStamp(databases.meta, change);
      },
    };
  }
}

/** Includes the transaction, because another change can get the seq of a rolled-back one. */
export function putHooksStamp(
  meta: Databases['meta'],
  { seq, txn }: Pick<Change, 'seq' | 'txn'>,
): void {
  meta.putSync('hooks', `${seq} ${txn}`);
}

function putKey(
  { key, keyhash }: Databases,
  id: string,
  { before, after }: Transition<ApiKey>,
): void {
  if (before !== undefined) keyhash.removeSync(keyOf(before.hash));
  if (after === undefined) {
    key.removeSync(keyOf(id));
    return;
  }
  key.putSync(keyOf(id), JSON.stringify(after));
  keyhash.putSync(keyOf(after.hash), id);
}

function putHook(
  { hook, hooktype }: Databases,
  id: string,
  { before, after }: Transition<StoredHook>,
): void {
  for (const type of before?.hook.event ?? []) hooktype.removeSync(keyOf(type), id);
  if (after === undefined) {
    hook.removeSync(keyOf(id));
    return;
  }
  hook.putSync(keyOf(id), JSON.stringify(after));
  for (const type of after.hook.event) hooktype.putSync(keyOf(type), id);
}
