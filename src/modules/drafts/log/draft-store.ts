import { viewOfDraft } from './draft-reads.ts';
import { unfollowedParts } from '../../../core/log/part.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { planWrites } from '../../../core/log/write/write-plan.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import {
  type SiteDraft,
  changeInDraft,
  draftChangeId,
  draftVk,
  isDrafted,
  waitingSchedule,
} from '../draft.ts';
import { storedDrafts } from './family.ts';

/**
 * Changes of one record in one draft. Each change of the live record applies them again, in the
 * write transaction: 1,000 take some tens of milliseconds.
 */
export const draftChangesMax = 1_000;

/**
 * The store of an open draft: its reads see the draft on top of the live state, and its commits
 * write into the draft. A commit rejects with `conflict` once the draft is no longer open, and with
 * `invalid` for a change that no draft can have.
 */
export function draftStore(store: Store, draft: SiteDraft): Store {
  const view = viewOfDraft(draft);
  const reads = store.view(view);
  return {
    ...store,
    ...reads,
    inSnapshot: (read) => store.inSnapshot(read, view),
    // No delivery follows a change in a draft.
    part: unfollowedParts(store),
    commit: (author, decide) =>
      store.commit(author, (live) => {
        requireOpen(live, draft);
        const decision = decide(reads);
        for (const { id } of decision.drafts) requireRoom(live, draft, id);
        return decisionInDraft(reads, draft, decision);
      }),
  };
}

/** The open draft of a name or an id. Throws `not_found`, or `conflict` for one that has ended. */
export function openDraftNamed(reads: Pick<Reads, 'of'>, name: string): SiteDraft {
  const draft = reads.of(storedDrafts).draftNamed(name) ?? reads.of(storedDrafts).draft(name);
  if (draft === undefined) throw noSuchDraft(name);
  if (draft.state !== 'open') throw hasEnded(draft);
  return draft;
}

/** The failure for a name or id that no draft has. */
export function noSuchDraft(name: string): Failure {
  const message = `There is no draft ${JSON.stringify(name.slice(0, 80))}. draft.list has all.`;
  return new Failure('not_found', message, { field: 'draft' });
}

function requireOpen(reads: Reads, { id }: SiteDraft): void {
  const draft = reads.of(storedDrafts).draft(id);
  if (draft?.state !== 'open') throw hasEnded(draft);
  requireUnscheduled(draft);
}

/** Throws `conflict` for a record that a draft has changed as often as it may. */
function requireRoom(reads: Reads, draft: SiteDraft, id: string): void {
  if (reads.of(storedDrafts).draftChangesOf(draft, id) < draftChangesMax) return;
  throw new Failure(
    'conflict',
    `The draft has changed this record ${draftChangesMax} times, which is the most. Publish the ` +
      'draft, and go on in a new one.',
    { field: 'draft' },
  );
}

/**
 * Throws `conflict` for a draft that waits for its time: what is published then is what was
 * confirmed.
 */
export function requireUnscheduled(draft: SiteDraft): void {
  const schedule = waitingSchedule(draft);
  if (schedule === undefined) return;
  throw new Failure(
    'conflict',
    `The draft is scheduled for ${schedule.at}. Ask for draft.unschedule first, then change it.`,
    { field: 'draft' },
  );
}

function hasEnded(draft: SiteDraft | undefined): Failure {
  const message = `The draft was ${draft?.state ?? 'discarded'}: it takes no changes any more.`;
  return new Failure('conflict', message, { field: 'draft' });
}

/** A decision as the log gets it: each change is a row of the family `draftchange`. */
function decisionInDraft<T>(reads: Reads, draft: SiteDraft, decision: Decision<T>): Decision<T> {
  const { drafts: given, answer, dtu_txn } = decision;
  const stamp = { by: '', txn: '', dtu_txn: '', dtu_stored: '' };
  // The plan is not put: it refuses what the live state would refuse.
  const plan = planWrites(reads, given, { firstSeq: reads.seq() + 1, ...stamp });
  const drafts = given.map((one, at) => draftedChange(draft, one, plan.changes[at]?.data));
  return {
    drafts,
    answer: (rows) => answer(rows.flatMap((row) => changeInDraft(row)?.change ?? [])),
    ...(dtu_txn !== undefined && { dtu_txn }),
  };
}

function draftedChange(
  { id: draft }: SiteDraft,
  { family, id, action, vk, ...given }: LoggedDraft,
  data: JsonObject = given.data,
): LoggedDraft {
  if (!isDrafted(family)) {
    throw new Failure('invalid', 'A draft cannot have this change. Make it without draft.', {
      field: 'draft',
    });
  }
  const claim = vk && { ...vk };
  const inside = { draft, family, id, data, ...(claim !== undefined && { vk: claim }) };
  return {
    family: 'draftchange',
    id: draftChangeId(draft, id),
    action,
    data: inside,
    ...(claim !== undefined && { vk: { ...claim, vk: draftVk(draft, claim.vk) } }),
  };
}
