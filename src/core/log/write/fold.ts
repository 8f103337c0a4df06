import { mergeFields, type Change, type RevertibleFamily } from '../change.ts';
import type { DraftPreview, DraftSchedule, SiteDraft } from '../../../modules/drafts/draft.ts';
import { purgedValue } from '../former-headers.ts';
import type { Hook, HookSecret, StoredHook } from '../../../modules/webhooks/hook.ts';
import type { JsonObject } from '../../values/json/json.ts';
import type { ApiKey } from '../../values/key.ts';
import type { Row, StoredRow } from '../../../modules/tables/row.ts';
import type { Rule, StoredRule } from '../../../modules/rules/rule.ts';
import type { StoredTable, TableDefinition } from '../../../modules/tables/table.ts';

/** A record with its place in the log. */
interface Placed {
  readonly seq: number;
  readonly insertedSeq: number;
}

/** Applies one insert or edit to a record. */
export type ApplyChange<S extends Placed> = (before: S | undefined, change: Change) => S;

/** The fold of the rows of one record. */
export interface Folded<S extends Placed> {
  /** The record after its newest row; undefined if no insert of it counts. */
  readonly stored: S | undefined;
  /** Seqs of the rows that do not count, each with the row that invalidated it. */
  readonly invalidated: ReadonlyMap<number, Change>;
}

/**
 * Folds all rows of a record, oldest first (docs/design/history.md#the-change-log): a row that an
 * invalidate names does not count, unless that invalidate is invalidated itself.
 */
export function foldRows<S extends Placed>(
  rows: readonly Change[],
  apply: ApplyChange<S>,
): Folded<S> {
  const invalidated = new Map<number, Change>();
  for (const row of rows.toReversed()) {
    if (row.action !== 'invalidate' || invalidated.has(row.seq)) continue;
    for (const seq of rowsNamed(row)) invalidated.set(seq, row);
  }
  let stored: S | undefined;
  for (const row of rows) {
    if (row.action === 'invalidate' || invalidated.has(row.seq)) continue;
    // A record without a valid insert cannot be edited.
    if (row.action === 'insert' || stored !== undefined) stored = apply(stored, row);
  }
  const newest = rows.at(-1);
  return { stored: stored && newest && { ...stored, seq: newest.seq }, invalidated };
}

/** The record of each family as it is stored. */
export interface StoredOf {
  readonly userinterface: StoredRule;
  readonly webhook: StoredHook;
  readonly table: StoredTable;
  readonly record: StoredRow;
}

/** The seqs that an invalidate names. */
export function rowsNamed({ seq, data }: Change): readonly number[] {
  const { rows } = data;
  if (!Array.isArray(rows)) throw new Error(`change ${seq} invalidates no rows`);
  return rows.filter((row) => typeof row === 'number' && row < seq) as number[];
}

/**
 * Applies an insert or edit to a page rule: an insert holds all fields, an edit is merged into
 * them. Throws for a change that cannot follow, which is a bug.
 */
export function foldRule(before: StoredRule | undefined, change: Change): StoredRule {
  const rule = recordAfter(before?.rule, change, ruleFields);
  const { seq } = change;
  return { rule: rule as unknown as Rule, seq, insertedSeq: before?.insertedSeq ?? seq };
}

/** Applies an insert or edit to a hook, as for a page rule. */
export function foldHook(before: StoredHook | undefined, change: Change): StoredHook {
  const hook = recordAfter(before?.hook, change, hookFields);
  const { seq } = change;
  return { hook: hook as unknown as Hook, seq, insertedSeq: before?.insertedSeq ?? seq };
}

/** Applies an insert or edit to a table, as for a page rule. */
export function foldTable(before: StoredTable | undefined, change: Change): StoredTable {
  const table = recordAfter(before?.table, change, tableFields);
  const { seq } = change;
  const stored = { table: table as unknown as TableDefinition, seq };
  return { ...stored, insertedSeq: before?.insertedSeq ?? seq };
}

/** Applies an insert or edit to a row of a table, as for a page rule. */
export function foldRow(before: StoredRow | undefined, change: Change): StoredRow {
  const row = recordAfter(before?.row, change, rowFields);
  const { seq } = change;
  return { row: row as unknown as Row, seq, insertedSeq: before?.insertedSeq ?? seq };
}

/** How an insert or edit of a family changes a record. */
export function applyOf<F extends RevertibleFamily>(family: F): ApplyChange<StoredOf[F]> {
  return foldOf[family];
}

const foldOf: { readonly [F in RevertibleFamily]: ApplyChange<StoredOf[F]> } = {
  userinterface: foldRule,
  webhook: foldHook,
  table: foldTable,
  record: foldRow,
};

/**
 * Applies a change of a hook's secret: the previous secret signs too until the given time, unless
 * it was purged. Undefined if this node did not get the secret (docs/design/nodes.md).
 */
export function foldSecret(
  before: HookSecret | undefined,
  { data }: Change,
): HookSecret | undefined {
  if (data.secret === undefined) return undefined;
  const { secret, until } = data as unknown as HookSecret;
  if (before === undefined || until === undefined || before.secret === purgedValue) {
    return { secret };
  }
  return { secret, previous: before.secret, until };
}

/** Applies a change to a key, as for page rules; an invalidate revokes it. */
export function foldKey(before: ApiKey | undefined, change: Change): ApiKey | undefined {
  const { id, action, data } = change;
  switch (action) {
    case 'insert':
      if (before !== undefined) throw new Error(`${id} is inserted already`);
      return { id, ...data } as unknown as ApiKey;
    case 'edit':
      if (before === undefined) throw new Error(`${id} cannot be edited, it does not exist`);
      return mergeFields(before as unknown as JsonObject, data) as unknown as ApiKey;
    case 'invalidate':
      return undefined;
  }
}

/** The data of an edit of a draft. */
type DraftEdit = JsonObject & {
  readonly state?: SiteDraft['state'];
  /** A comment. */
  readonly note?: string;
  readonly submitted?: true;
  readonly approved?: true;
  /** A new preview, or the id of one that ends. */
  readonly preview?: DraftPreview & JsonObject;
  readonly revoked?: string;
  /** A new schedule; null removes it. */
  readonly schedule?: (Omit<DraftSchedule, 'by' | 'seq' | 'failed'> & JsonObject) | null;
  /** Why the schedule has failed. */
  readonly failed?: string;
};

/** Applies a change to a draft, which ends by an edit of its state; an invalidate discards it. */
export function foldDraft(before: SiteDraft | undefined, change: Change): SiteDraft {
  const { id, seq, action, data, by, txn, dtu_txn: at } = change;
  if (action === 'insert') {
    if (before !== undefined) throw new Error(`${id} is inserted already`);
    const { name, comment } = data as Pick<SiteDraft, 'name' | 'comment'>;
    const given = comment === undefined ? { name } : { name, comment };
    return { id, ...given, state: 'open', created: at, by, seq, insertedSeq: seq };
  }
  if (before === undefined) throw new Error(`${id} cannot be edited, it does not exist`);
  if (action === 'invalidate') {
    const { schedule: _schedule, ...unscheduled } = before;
    return { ...unscheduled, state: 'discarded', closed: at, closed_by: by, seq };
  }
  const { state = before.state, note, submitted, approved, ...more } = data as DraftEdit;
  const { preview, revoked, schedule, failed, ...fields } = more;
  const { comments = [], approvals = [], previews = [] } = before;
  const merged = {
    ...(mergeFields(asJson(before), fields) as unknown as SiteDraft),
    ...(note !== undefined && { comments: [...comments, { at, by, text: note }] }),
    ...(submitted === true && { submitted: { at, by } }),
    ...(approved === true && {
      approvals: [...approvals.filter((one) => one.by !== by), { at, by, seq }],
    }),
    // Those that have ended by then are forgotten.
    ...(preview !== undefined && {
      previews: [...previews.filter(({ expires }) => expires > at), preview],
    }),
    ...(revoked !== undefined && { previews: previews.filter(({ id: one }) => one !== revoked) }),
  };
  const { schedule: former, ...unscheduled } = merged;
  if (state !== before.state) {
    return { ...unscheduled, state, closed: at, closed_by: by, txn, seq };
  }
  const next = schedule === undefined ? former : schedule && { ...schedule, by, seq };
  if (next === undefined || next === null) return { ...unscheduled, seq };
  const failure = failed === undefined ? {} : { failed: { at, reason: failed } };
  return { ...unscheduled, schedule: { ...next, ...failure }, seq };
}

/** The fields that every record must have. */
const ruleFields = ['origin', 'path', 'kind'] as const;
const hookFields = ['url', 'method'] as const;
const tableFields = ['name'] as const;
const rowFields = ['table'] as const;

function recordAfter(
  before: { readonly id: string } | undefined,
  { id, action, data }: Change,
  needed: readonly string[],
): JsonObject {
  if (action === 'insert' && before !== undefined) throw new Error(`${id} is inserted already`);
  if (action !== 'insert' && before === undefined) {
    throw new Error(`${id} cannot be edited, it does not exist`);
  }
  const fields = action === 'insert' ? data : mergeFields(fieldsOf(before), data);
  for (const name of needed) {
    if (typeof fields[name] !== 'string') throw new Error(`${id} has no ${name}`);
  }
  return { id, ...fields };
}

function fieldsOf(record: object | undefined): JsonObject {
  const { id: _id, ...fields } = asJson(record ?? {});
  return fields;
}

function asJson(record: object): JsonObject {
  return record as JsonObject;
}
