import { viewOfDraft } from '../log/draft-reads.ts';
import { leavesRoom } from '../../../core/fair/shared-limit.ts';
import { eventDraft, ownEvent } from '../../../core/log/events/event.ts';
import type { LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { authorise } from '../../../core/operations/execute.ts';
import { listRowsDefault } from '../../../core/operations/limits.ts';
import { authorName } from '../../../core/operations/keys/author-name.ts';
import {
  type Call,
  type OperationResult,
  authorOf,
  changeAuthorOf,
  defineOperation,
} from '../../../core/operations/operation.ts';
import { identifyRequest } from '../../../core/operations/records/idempotency.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import { readInTurns, turnsOf } from '../../../core/operations/turns.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { type Caller, hasScope } from '../../../core/values/key.ts';
import { draftSeen, isSeenInTurns, openDraftSeen } from '../bounds.ts';
import { type DraftSchedule, type SiteDraft, draftStates } from '../draft.ts';
import { noSuchDraft, requireUnscheduled } from '../log/draft-store.ts';
import { draftRowsMax } from './limits.ts';
import { requireSeen } from './publish-plan.ts';
import { storedDrafts } from '../log/family.ts';

/** Open drafts at the same time. */
const openDraftsMax = 1_000;

/** Characters of the name of a draft, and of its comment. */
const draftNameCharactersMax = 128;
const draftCommentCharactersMax = 10_000;

/** Comments on a draft, and characters of each. */
const draftNotesMax = 200;
const draftNoteCharactersMax = 4_000;

/** The parts that the operations on drafts need. */
export interface DraftParts {
  readonly store: Store;
  readonly newId: () => string;
}

interface ReviewParts extends DraftParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const text = { type: 'string' } as const;

/** The name of a draft: one line of text that is no id. */
const nameSchema = {
  ...text,
  minLength: 1,
  maxLength: draftNameCharactersMax,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
} as const;
const commentSchema = { ...text, nullable: true, maxLength: draftCommentCharactersMax } as const;

/** The input field that names a draft. */
export const draftProperty = { ...text, description: 'The name or the id of a draft.' };

/** The output field with which a reviewer approves what an answer shows. */
export const digestProperty = {
  ...text,
  description:
    'The state of the draft, for the confirm of approve: on the first page, of a draft that is ' +
    'not large; the report of publish always has it.',
} as const;

const byName = {
  ...text,
  description: 'Name of the key, for the scopes draft, publish and admin.',
};
const note = {
  at: { ...text, format: 'date-time' },
  by: { ...text, description: 'Id of the key.' },
  by_name: byName,
} as const;
const noteSchema = { type: 'object', required: ['at', 'by'], properties: note } as const;

/** The schema of the time at which a draft is published. */
export const scheduleSchema = {
  type: 'object',
  required: ['at'],
  properties: {
    at: { ...text, format: 'date-time' },
    time_zone: { ...text, description: 'The time zone in which it was named.' },
    by: { ...text, description: 'Id of the key that scheduled it.' },
    failed: {
      type: 'object',
      required: ['at', 'reason'],
      properties: { at: { ...text, format: 'date-time' }, reason: text },
      description: 'When it has failed, and why. It is not tried again.',
    },
  },
} as const;

const draftSchema = {
  title: 'Draft',
  type: 'object',
  required: ['id', 'name', 'state', 'created', 'by', 'seq'],
  properties: {
    id: text,
    name: text,
    comment: text,
    state: { type: 'string', enum: draftStates },
    created: { ...text, format: 'date-time' },
    by: { ...text, description: 'Id of the key that made it.' },
    by_name: byName,
    closed: { ...text, format: 'date-time', description: 'When it was published or discarded.' },
    closed_by: { ...text, description: 'Id of the key that did it.' },
    txn: { ...text, description: 'The transaction that published it, for an undo.' },
    comments: {
      type: 'array',
      items: { ...noteSchema, required: ['at', 'by', 'text'], properties: { ...note, text } },
    },
    submitted: { ...noteSchema, description: 'When it was submitted for review last.' },
    approvals: {
      type: 'array',
      description: 'The latest one of each key; it covers the changes before its seq.',
      items: {
        ...noteSchema,
        required: ['at', 'by', 'seq'],
        properties: { ...note, seq: { type: 'integer' } },
      },
    },
    schedule: { ...scheduleSchema, description: 'When it is published, if that is scheduled.' },
    previews: {
      type: 'array',
      description: 'The links that show it.',
      items: {
        type: 'object',
        required: ['id', 'expires'],
        properties: { id: text, expires: { ...text, format: 'date-time' } },
      },
    },
    seq: { type: 'integer', description: 'Position of its newest change in the log.' },
  },
} as const;

type ShownDraft = StaticOutput<typeof draftSchema>;

/** draft.insert: makes an empty draft. Refuses with `conflict` for the name of an open one. */
export const insertDraft = defineOperation({
  name: 'svc1.draft.insert',
  scope: 'draft',
  effect: 'writes',
  summary: 'Makes a draft: a named set of changes that is not live.',
  input: {
    type: 'object',
    required: ['name'],
    properties: { name: nameSchema, comment: commentSchema },
  },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['conflict'],
  run:
    ({ store, newId }: DraftParts) =>
    (v, call) =>
      writeDraft(store, { name: 'draft.insert', v, call }, (reads) => {
        requireFreeName(reads, v.name);
        requireRoom(reads, authorOf(call));
        const { name, comment } = v;
        const data = comment === undefined ? { name } : { name, comment };
        return { id: newId(), action: 'insert', data };
      }),
});

/** draft.edit: changes the name or the comment of an open draft. */
export const editDraft = defineOperation({
  name: 'svc1.draft.edit',
  scope: 'draft',
  effect: 'writes',
  summary: 'Changes the name or the comment of an open draft.',
  input: {
    type: 'object',
    required: ['draft'],
    properties: {
      draft: draftProperty,
      name: { ...nameSchema, nullable: true },
      comment: commentSchema,
    },
  },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['not_found', 'conflict'],
  run:
    ({ store }: DraftParts) =>
    (v, call) =>
      writeDraft(store, { name: 'draft.edit', v, call }, (reads) => {
        const { id, name: former } = openDraftSeen({ store, reads }, v.draft, call.caller);
        const { name, comment } = v;
        if (name !== undefined && name !== former) requireFreeName(reads, name);
        const data = {
          ...(name !== undefined && { name }),
          ...(comment !== undefined && { comment }),
        };
        return { id, action: 'edit', data };
      }),
});

/** draft.invalidate: discards an open draft. Its changes stay in the log. */
export const invalidateDraft = defineOperation({
  name: 'svc1.draft.invalidate',
  scope: 'draft',
  effect: 'writes',
  summary: 'Discards an open draft with all its changes; nothing live changes.',
  input: { type: 'object', required: ['draft'], properties: { draft: draftProperty } },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['not_found', 'conflict'],
  run:
    ({ store }: DraftParts) =>
    (v, call) =>
      writeDraft(store, { name: 'draft.invalidate', v, call }, (reads) => {
        const draft = openDraftSeen({ store, reads }, v.draft, call.caller);
        requireUnscheduled(draft);
        return { id: draft.id, action: 'invalidate', data: {} };
      }),
});

/** draft.comment: adds a comment to an open draft. Refuses with `conflict` past the limit. */
export const commentDraft = defineOperation({
  name: 'svc1.draft.comment',
  scope: 'draft',
  effect: 'writes',
  summary: 'Adds a comment to an open draft, for all who read it.',
  input: {
    type: 'object',
    required: ['draft', 'text'],
    properties: {
      draft: draftProperty,
      text: { ...text, minLength: 1, maxLength: draftNoteCharactersMax },
    },
  },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['not_found', 'conflict'],
  run: (parts: DraftParts) => (v, call) =>
    writeDraft(parts.store, { name: 'draft.comment', v, call }, (reads) => {
      const { store } = parts;
      const { id, comments = [] } = openDraftSeen({ store, reads }, v.draft, call.caller);
      if (comments.length < draftNotesMax) return { id, action: 'edit', data: { note: v.text } };
      throw new Failure('conflict', `A draft has at most ${draftNotesMax} comments.`);
    }),
});

/** draft.submit: says that a draft is ready for review. */
export const submitDraft = defineOperation({
  name: 'svc1.draft.submit',
  scope: 'draft',
  effect: 'writes',
  summary: 'Says that a draft is ready for review; hooks get the event draft.submitted.',
  input: { type: 'object', required: ['draft'], properties: { draft: draftProperty } },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['not_found', 'conflict'],
  run: (parts: ReviewParts) => (v, call) =>
    writeDraft(parts.store, { name: 'draft.submit', v, call }, (reads) => {
      const { store } = parts;
      const { id, name } = openDraftSeen({ store, reads }, v.draft, call.caller);
      const event = { id, name, by: authorOf(call) };
      return {
        ...{ id, action: 'edit', data: { submitted: true } },
        more: [reviewEvent(parts, 'draft.submitted', event)],
      };
    }),
});

/**
 * draft.approve: approves a draft in the state that its digest names. A later change needs another
 * approval, and that of a key which has changed the draft does not count. Refuses with `conflict`
 * if the draft is in another state by now.
 */
export const approveDraft = defineOperation({
  name: 'svc1.draft.approve',
  scope: 'publish',
  effect: 'writes',
  summary:
    'Approves a draft as it was seen; it does not count from a key that has changed the draft.',
  input: {
    type: 'object',
    required: ['draft', 'confirm'],
    properties: {
      draft: draftProperty,
      confirm: {
        ...text,
        description: 'The digest that changes, compare, or a report of publish showed.',
      },
    },
  },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['not_found', 'conflict'],
  run: (parts: ReviewParts) => (v, call) => {
    // Nobody approves what they may not see.
    authorise({ name: 'svc1.draft.approve', scope: 'read' }, call.caller);
    return writeDraft(parts.store, { name: 'draft.approve', v, call }, (reads) => {
      const { store } = parts;
      const draft = openDraftSeen({ store, reads }, v.draft, call.caller);
      const { id, name } = draft;
      requireSeen({ inDraft: store.view(viewOfDraft(draft)), draft }, v.confirm);
      const event = { id, name, by: authorOf(call) };
      return {
        ...{ id, action: 'edit', data: { approved: true } },
        more: [reviewEvent(parts, 'draft.approved', event)],
      };
    });
  },
});

/** draft.unschedule: removes the schedule of a draft, also one that has failed. */
export const unscheduleDraft = defineOperation({
  name: 'svc1.draft.unschedule',
  scope: 'publish',
  effect: 'writes',
  summary: 'Removes the schedule of a draft: it is not published at that time, and takes changes.',
  input: { type: 'object', required: ['draft'], properties: { draft: draftProperty } },
  envelope: { vk: vkMember },
  output: draftSchema,
  failures: ['not_found', 'conflict'],
  run: (parts: DraftParts) => (v, call) =>
    writeDraft(parts.store, { name: 'draft.unschedule', v, call }, (reads) => {
      const { store } = parts;
      const { id, schedule } = openDraftSeen({ store, reads }, v.draft, call.caller);
      if (schedule !== undefined) return { id, action: 'edit', data: { schedule: null } };
      throw new Failure('conflict', 'The draft is not scheduled.', { field: 'draft' });
    }),
});

function reviewEvent(
  { newId, now }: Pick<ReviewParts, 'newId' | 'now'>,
  type: 'draft.submitted' | 'draft.approved',
  data: { readonly id: string; readonly name: string; readonly by: string },
): LoggedDraft {
  return eventDraft(newId(), ownEvent(type, data, now()));
}

/** draft.read: one draft. */
export const readDraft = defineOperation({
  name: 'svc1.draft.read',
  scope: 'read',
  effect: 'reads',
  summary: 'One draft, also one that was published or discarded.',
  input: { type: 'object', required: ['draft'], properties: { draft: draftProperty } },
  output: draftSchema,
  failures: ['not_found'],
  run:
    ({ store }: Pick<DraftParts, 'store'>) =>
    async ({ draft: name }, call) => {
      const { caller } = call;
      const draft = store.of(storedDrafts).draft(name) ?? store.of(storedDrafts).draftNamed(name);
      const parts = { store, reads: store };
      if (draft === undefined || !(await isSeenInTurns(parts, draft, caller, turnsOf(call)))) {
        throw noSuchDraft(name);
      }
      return { kind: 'data', data: draftView(draft, { reads: store, caller }) };
    },
});

/** draft.list: the drafts, in the order in which they were made. */
export const listDrafts = defineOperation({
  name: 'svc1.draft.list',
  scope: 'read',
  effect: 'reads',
  summary: 'The drafts that are open, or those of another state, the oldest first.',
  input: {
    type: 'object',
    properties: {
      state: {
        ...text,
        nullable: true,
        enum: [...draftStates, null] as unknown as readonly SiteDraft['state'][],
      },
      scheduled: { type: 'boolean', nullable: true, description: 'Only those with a schedule.' },
      after: { ...text, nullable: true, description: 'The next of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: draftRowsMax, nullable: true },
    },
  },
  output: {
    title: 'DraftList',
    type: 'object',
    required: ['rows', 'next'],
    properties: {
      rows: { type: 'array', items: draftSchema },
      next: { type: ['string', 'null'], description: 'The after of the next page.' },
    },
  },
  run:
    ({ store }: Pick<DraftParts, 'store'>) =>
    async ({ state = 'open', scheduled = false, after, limit = listRowsDefault }, call) => {
      const { caller } = call;
      const data = await readInTurns({ store }, call, async (then, turns) => {
        const rows: ShownDraft[] = [];
        for (const draft of then.store.of(storedDrafts).draftsIn(state, after)) {
          if (turns.isOver()) await turns.next();
          if (scheduled && draft.schedule === undefined) continue;
          const parts = { store, reads: then.store };
          if (!(await isSeenInTurns(parts, draft, caller, turns))) continue;
          if (rows.length === limit) return { rows, next: rows.at(-1)?.id ?? null };
          rows.push(draftView(draft, { reads: then.store, caller }));
        }
        return { rows, next: null };
      });
      return { kind: 'data', data };
    },
});

/** A draft as a reader sees it. */
function draftView(
  { insertedSeq: _insertedSeq, previews, schedule, ...draft }: SiteDraft,
  { reads, caller }: { readonly reads: Reads; readonly caller: Caller },
): ShownDraft {
  const shown = previews?.map(({ id, expires }) => ({ id, expires }));
  // Those who work on drafts together know each other by name.
  const mayKnow = hasScope(caller, 'draft') || hasScope(caller, 'publish');
  const named = <Note extends { readonly by: string }>(note: Note): Note => {
    const name = mayKnow ? authorName(reads, note.by) : undefined;
    return name === undefined ? note : { ...note, by_name: name };
  };
  const { comments, submitted, approvals } = draft;
  return {
    ...named(draft),
    ...(comments && { comments: comments.map(named) }),
    ...(submitted && { submitted: named(submitted) }),
    ...(approvals && { approvals: approvals.map(named) }),
    ...(schedule && { schedule: shownSchedule(schedule) }),
    ...(shown && { previews: shown }),
  };
}

function shownSchedule({ at, time_zone: zone, by, failed }: DraftSchedule): ShownDraft['schedule'] {
  return { at, ...(zone !== undefined && { time_zone: zone }), by, ...(failed && { failed }) };
}

/** A change of a draft itself, decided in its transaction. */
interface DraftWrite {
  readonly id: string;
  readonly action: 'insert' | 'edit' | 'invalidate';
  readonly data: JsonObject;
  /** Further changes of the same transaction. */
  readonly more?: readonly LoggedDraft[];
}

async function writeDraft(
  store: Store,
  { name, v, call }: { readonly name: string; readonly v: object; readonly call: Call },
  decide: (reads: Reads) => DraftWrite,
): Promise<OperationResult<ShownDraft>> {
  const { vk } = call;
  const request = identifyRequest(name, v as JsonObject, call);
  const written = await store.commit(changeAuthorOf(call), (reads) => {
    const earlier = vk === undefined ? undefined : request.earlier(reads, vk);
    if (earlier !== undefined) {
      return { drafts: [], answer: () => ({ id: earlier.id, replayed: true }) };
    }
    const { id, action, data, more = [] } = decide(reads);
    const claimed = vk === undefined ? {} : { vk: request.claim(vk) };
    return {
      drafts: [{ family: 'draft', id, action, data, ...claimed }, ...more],
      answer: () => ({ id, replayed: false }),
    };
  });
  store.refresh();
  return {
    kind: 'data',
    data: draftView(draftSeen({ store, reads: store }, written.id, { keyId: undefined }), {
      ...{ reads: store, caller: call.caller },
    }),
    ...(vk !== undefined && { vk }),
    ...(written.replayed && { replayed: true }),
  };
}

function requireFreeName(reads: Reads, name: string): void {
  // An id would name another draft than the name.
  if (
    reads.of(storedDrafts).draftNamed(name)?.state !== 'open' &&
    reads.of(storedDrafts).draft(name) === undefined
  )
    return;
  throw new Failure('conflict', `There is a draft ${JSON.stringify(name)} already.`, {
    field: 'name',
  });
}

/** Requires room for one more draft of a key: it may have no more than is left for others. */
function requireRoom(reads: Reads, author: string): void {
  let [held, all] = [0, 0];
  for (const { by } of reads.of(storedDrafts).draftsIn('open')) {
    all += 1;
    if (by === author) held += 1;
  }
  if (leavesRoom({ held, all, max: openDraftsMax })) return;
  const whose = all < openDraftsMax ? `${held} open drafts of this key` : `${all} open drafts`;
  const message = `There are ${whose}, which is the limit. Publish or discard one.`;
  throw new Failure('conflict', message);
}
