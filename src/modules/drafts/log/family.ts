import { type DraftsReads, createDraftsReads } from './drafts-reads.ts';
import { type Change, mergeFields } from '../../../core/log/change.ts';
import { keyOf } from '../../../core/log/encoding.ts';
import type { FamilyProjection, ReadFamily } from '../../../core/log/store.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { instantsVersion } from '../../tables/log/family.ts';
import { tablesWithInstants } from '../../tables/log/upgrade.ts';
import { type DraftPreview, type DraftSchedule, type SiteDraft, draftStateKey } from '../draft.ts';
import { putDraftStates } from './draft-reads.ts';
import { refreshDraftedRows, refreshDrafts } from './refresh-drafts.ts';

/** The first layout with the states of drafts. */
const statesVersion = 11;

const draft: FamilyProjection<SiteDraft> = {
  stored: (reads, id) => reads.of(storedDrafts).draft(id),
  fold: foldDraft,
  plan({ entries }, { id }, { before, after }) {
    const [former, name] = [before?.name, after?.name];
    if (former !== undefined && former !== name) entries.remove('draftname', keyOf(former));
    // The name leads to an ended draft until another one gets it.
    if (name !== undefined && former !== name) entries.put('draftname', keyOf(name), id);
    if (before !== undefined && before.state !== after?.state) {
      entries.remove('draftstate', draftStateKey(before));
    }
    if (after !== undefined && before?.state !== after.state) {
      entries.put('draftstate', draftStateKey(after), '');
    }
    entries.state('draft', keyOf(id), after);
  },
};

/** The drafts, and what open ones change of other records. */
export const storedDrafts: ReadFamily<DraftsReads> = {
  records: { draft },
  reads: (databases) => createDraftsReads(databases),
  afterPut: refreshDrafts,
  upgrade(databases, former, families) {
    if (former < statesVersion) putDraftStates(databases);
    if (former >= instantsVersion) return;
    refreshDraftedRows(databases, families, tablesWithInstants(databases));
  },
};

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
function foldDraft(before: SiteDraft | undefined, change: Change): SiteDraft {
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
    ...(mergeFields(before as unknown as JsonObject, fields) as unknown as SiteDraft),
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
