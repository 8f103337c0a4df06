import { viewOfDraft } from '../log/draft-reads.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { isRevertible } from '../../../core/log/change.ts';
import type { WorkTurns } from '../../../core/fair/turns.ts';
import type { Reads, Store } from '../../../core/log/store.ts';
import type { DraftedRecordName } from '../log/drafts-reads.ts';
import type { Caller } from '../../../core/values/key.ts';
import type { SiteDraft } from '../draft.ts';
import { openDraftSeen } from '../bounds.ts';
import { listRowsDefault } from '../../../core/operations/limits.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { turnsOf } from '../../../core/operations/turns.ts';
import { digestProperty, draftProperty } from './drafts.ts';
import { draftRowsMax } from './limits.ts';
import { shownChange } from './publish.ts';
import { digestInTurns, versionsIn } from './publish-plan.ts';
import { mayReadRecord } from './row-access.ts';
import { storedDrafts } from '../log/family.ts';

const text = { type: 'string' } as const;

const changedRecord = {
  type: 'object',
  required: ['family', 'id', 'becomes', 'fields', 'conflict'],
  properties: {
    family: text,
    id: text,
    label: { ...text, description: 'The path of a page rule, or the name of a record.' },
    becomes: { type: 'string', enum: ['inserted', 'changed', 'removed', 'same'] },
    fields: { type: 'object', description: 'Each field that differs, live and drafted.' },
    conflict: {
      type: 'boolean',
      description: 'Whether the record was changed live since the draft first did.',
    },
    problem: { ...text, description: 'Why the draft cannot change the live record.' },
  },
} as const;

const draftChanges = {
  title: 'DraftChanges',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: { type: 'array', items: changedRecord },
    next: { type: ['string', 'null'], description: 'The after of the next page.' },
    digest: digestProperty,
  },
} as const;

type DraftChanges = StaticOutput<typeof draftChanges>;
type ChangedRecord = DraftChanges['rows'][number];

/** draft.changes: the records that a draft changes, with their live and their drafted fields. */
export const listDraftChanges = defineOperation({
  name: 'svc1.draft.changes',
  scope: 'read',
  effect: 'reads',
  summary: 'The records that an open draft changes, with the fields that differ.',
  input: {
    type: 'object',
    required: ['draft'],
    properties: {
      draft: draftProperty,
      after: { ...text, nullable: true, description: 'The next of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: draftRowsMax, nullable: true },
    },
  },
  output: draftChanges,
  failures: ['not_found', 'conflict'],
  run:
    ({ store }: { readonly store: Store }) =>
    async (v, call) => {
      const draft = openDraftSeen({ store, reads: store }, v.draft, call.caller);
      const turns = turnsOf(call);
      await turns.next();
      const data = await store.inSnapshot(
        (inDraft) =>
          readChanges(inDraft, { ...v, draft }, { live: store, caller: call.caller, turns }),
        viewOfDraft(draft),
      );
      return { kind: 'data', data };
    },
});

async function readChanges(
  inDraft: Reads,
  {
    draft,
    after,
    limit = listRowsDefault,
  }: {
    readonly draft: SiteDraft;
    readonly after?: string | undefined;
    readonly limit?: number | undefined;
  },
  {
    live,
    caller,
    turns,
  }: { readonly live: Reads; readonly caller: Caller; readonly turns: WorkTurns },
): Promise<DraftChanges> {
  const digest = after === undefined ? await digestInTurns(inDraft, draft, turns) : undefined;
  const seen = digest === undefined ? {} : { digest };
  const rows: ChangedRecord[] = [];
  let last: DraftedRecordName | undefined;
  const place = after === undefined ? after : placeOf(after);
  for (const record of inDraft.of(storedDrafts).draftRecords(draft, place)) {
    if (turns.isOver()) await turns.next();
    const { family, id } = record;
    if (!isRevertible(family) || !mayReadRecord(inDraft, caller, { family, id })) continue;
    if (rows.length >= limit) {
      return { rows, next: last === undefined ? null : `${last.family} ${last.id}`, ...seen };
    }
    const versions = versionsIn(inDraft, record);
    rows.push({ ...shownChange([inDraft, live], caller, versions), conflict: versions.isConflict });
    last = { family, id };
  }
  return { rows, next: null, ...seen };
}

/** The record behind which a page begins: any text is a place. */
function placeOf(after: string): DraftedRecordName {
  const space = after.indexOf(' ');
  const family = after.slice(0, Math.max(0, space)) as DraftedRecordName['family'];
  return { family: isRevertible(family) ? family : 'userinterface', id: after.slice(space + 1) };
}
