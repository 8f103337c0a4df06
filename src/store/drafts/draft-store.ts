import { isDrafted, type SiteDraft } from '../../model/draft.ts';
import { changeInDraft, draftChangeId, draftVk } from '../../model/draft.ts';
import type { Change } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { JsonObject } from '../../model/json.ts';
import { planWrites } from '../log/write-plan.ts';
import type { Decision, LoggedDraft, PreparedInsert, Reads, Store, VkClaim } from '../store.ts';

/**
 * The store of an open draft: its reads see the draft on top of the live state, and its commits
 * write into the draft. A commit rejects with `conflict` once the draft is no longer open, and with
 * `invalid` for a change that no draft can have.
 */
export function draftStore(store: Store, draft: SiteDraft): Store {
  const reads = store.inDraft(draft);
  return {
    ...store,
    ...reads,
    // No delivery follows a change in a draft.
    deliveries: { ...store.deliveries, waitUntilApplied: () => Promise.resolve() },
    commit: (by, decide) =>
      store.commit(by, (live) => {
        requireOpen(live, draft);
        return decisionInDraft(reads, draft, decide(reads));
      }),
  };
}

/** The open draft of a name or an id. Throws `not_found`, or `conflict` for one that has ended. */
export function openDraftNamed(
  reads: Pick<Reads, 'draft' | 'draftNamed'>,
  name: string,
): SiteDraft {
  const draft = reads.draftNamed(name) ?? reads.draft(name);
  if (draft === undefined) {
    const message = `There is no draft ${JSON.stringify(name.slice(0, 80))}. draft.list has all.`;
    throw new Failure('not_found', message, { field: 'draft' });
  }
  if (draft.state !== 'open') throw hasEnded(draft);
  return draft;
}

function requireOpen(reads: Reads, { id }: SiteDraft): void {
  const draft = reads.draft(id);
  if (draft?.state !== 'open') throw hasEnded(draft);
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
  let next = 0;
  const drafts = given.map((one): LoggedDraft => {
    if ('prepared' in one) return preparedChange(draft, one);
    const change = plan.changes[next];
    next += 1;
    return draftedChange(draft, one, change?.data ?? one.data);
  });
  const isPrepared = given.map((one) => 'prepared' in one);
  return {
    drafts,
    answer: (rows) => answer(rows.flatMap((row, at) => insideOf(row, isPrepared[at] === true))),
    ...(dtu_txn !== undefined && { dtu_txn }),
  };
}

/** The change that a row makes in its draft; none for one that was prepared. */
function insideOf(row: Change, isPrepared: boolean): readonly Change[] {
  const inside = changeInDraft(row);
  return isPrepared || inside === undefined ? [] : [inside.change];
}

function preparedChange(draft: SiteDraft, { id, prepared, vk }: PreparedInsert): LoggedDraft {
  const data = JSON.parse(prepared.text) as JsonObject;
  return draftedChange(draft, { family: 'userinterface', id, action: 'insert', data, vk }, data);
}

function draftedChange(
  { id: draft }: SiteDraft,
  { family, id, action, vk }: Omit<LoggedDraft, 'vk'> & { readonly vk?: VkClaim | undefined },
  data: JsonObject,
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
