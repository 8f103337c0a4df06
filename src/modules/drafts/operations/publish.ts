import { viewOfDraft } from '../log/draft-reads.ts';
import type { Config } from '../../../core/config/config.ts';
import { type RevertibleFamily, type ToolUse, isRevertible } from '../../../core/log/change.ts';
import { eventDraft, ownEvent } from '../../../core/log/events/event.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { authorise } from '../../../core/operations/execute.ts';
import { type Call, authorOf, defineOperation } from '../../../core/operations/operation.ts';
import {
  type KeyedRequest,
  type WriteReport,
  commitOnce,
  keyedRequest,
  namedFirst,
  reportResult,
} from '../../../core/operations/records/idempotency.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import {
  type Reader,
  differingNames,
  fieldVersions,
} from '../../../core/operations/records/shown.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { StaticInput } from '../../../core/values/json/static.ts';
import { type Scope, hasScope, keyEndMs } from '../../../core/values/key.ts';
import { type NamedMoment, parseNamedMoment } from '../../../core/values/time.ts';
import { type ReportReader, draftSeen, openDraftSeen, reportReader } from '../bounds.ts';
import { type SiteDraft, draftStates, waitingSchedule } from '../draft.ts';
import { openDraftNamed } from '../log/draft-store.ts';
import { type DraftParts, draftProperty, scheduleSchema } from './drafts.ts';
import { momentCharactersMax, publishInlineRecordsMax, publishListedMax } from './limits.ts';
import {
  type ConflictResolution,
  type DraftedVersions,
  type PublishPlan,
  familiesOf,
  labelOf,
  planPublish,
  requireConfirmed,
} from './publish-plan.ts';
import { requirePublishedRows, versionsShown } from './row-access.ts';
import { storedDrafts } from '../log/family.ts';
import { storedTables } from '../../tables/log/family.ts';

/** A publication as data, which another thread can run. */
export interface PublishRequest {
  /** The id of the draft. */
  readonly draft: string;
  /** The digest of the report to carry out; undefined for a report. */
  readonly confirm: string | undefined;
  /** The later time at which it is to be published. */
  readonly at?: NamedMoment | undefined;
  /** The seq of the schedule that it carries out. */
  readonly schedule?: number;
  readonly resolve: Readonly<Record<string, ConflictResolution>>;
  /** The resolution of the conflicts that `resolve` does not name. */
  readonly others: ConflictResolution | undefined;
  readonly by: string;
  readonly via?: ToolUse | undefined;
  readonly reader: ReportReader;
  readonly request: KeyedRequest | undefined;
  /** Whether it needs an approval by a key that has not changed the draft. */
  readonly needsApproval: boolean;
}

/** The parts that publish needs. */
interface PublishParts extends DraftParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly config: Pick<Config, 'review'>;
  /** Publishes a large draft in another thread. Rejects as runPublish does. */
  readonly publishInThread: (request: PublishRequest) => Promise<WriteReport>;
}

/** The scopes that publish the records of each family, or undo that; of rows, row-access.ts. */
export const writeScopes: Readonly<Record<Exclude<RevertibleFamily, 'record'>, Scope>> = {
  userinterface: 'publish',
  webhook: 'webhook',
  table: 'admin',
};

const count = (description: string): JsonObject => ({ type: 'integer', description });
const text = { type: 'string' } as const;
const resolution = { type: 'string', enum: ['draft', 'live'] } as const;

const changeSchema: JsonObject = {
  title: 'DraftedChange',
  type: 'object',
  required: ['family', 'id', 'becomes', 'fields'],
  properties: {
    family: text,
    id: text,
    label: { ...text, description: 'The path of a page rule, or the name of another record.' },
    becomes: { type: 'string', enum: ['inserted', 'changed', 'removed', 'same'] },
    fields: {
      type: 'object',
      description: 'Each field that differs; of a long value only the start.',
      additionalProperties: {
        type: 'object',
        required: ['live', 'draft'],
        properties: { base: {}, live: {}, draft: {} },
      },
    },
    problem: { ...text, description: 'Why the draft cannot change the live record.' },
  },
};

const reportSchema: JsonObject = {
  title: 'PublishReport',
  type: 'object',
  required: [
    ...['done', 'records', 'inserted', 'changed', 'removed', 'changes', 'conflicts'],
    ...['conflicting', 'unresolved', 'unlisted', 'needs_approval', 'approved_by', 'digest'],
  ],
  properties: {
    done: { const: false },
    records: count('Records that the draft changes.'),
    inserted: count('Records that would be new.'),
    changed: count('Records that would change.'),
    removed: count('Records that would be deleted.'),
    changes: { type: 'array', items: changeSchema },
    conflicts: {
      type: 'array',
      items: changeSchema,
      description:
        'Records that were changed live since the draft first did, with three versions of each ' +
        'field: base is the live one of then.',
    },
    conflicting: count('Number of these records.'),
    unresolved: count('Those without a resolution: nothing is published while there is one.'),
    unlisted: count('Number of records that are counted and not listed.'),
    needs_approval: { type: 'boolean', description: 'Whether the server demands an approval.' },
    approved_by: {
      type: 'array',
      items: text,
      description: 'Ids of the keys that have approved it as it is now, and have not changed it.',
    },
    digest: { ...text, description: 'Send it as confirm to publish.' },
    scheduled: {
      ...scheduleSchema,
      description: 'The time at which it is published; only after a call with at and confirm.',
    },
  },
};

/** The schema of what a publication, or the undo of one, has changed. */
export const publishDoneSchema: JsonObject = {
  title: 'PublishDone',
  type: 'object',
  required: ['done', 'txn', 'seq', 'records', 'families'],
  properties: {
    done: { const: true },
    txn: { ...text, description: 'The transaction: invalidate of each family can revert it.' },
    seq: { type: 'integer', description: 'Seq of its last row.' },
    records: count('Records that have changed.'),
    families: { type: 'array', items: text, description: 'Their families.' },
  },
};

const publishInput = {
  type: 'object',
  required: ['draft'],
  properties: {
    draft: draftProperty,
    confirm: { ...text, nullable: true, description: 'The digest of a report, to publish.' },
    at: {
      ...{ ...text, nullable: true, maxLength: momentCharactersMax },
      description:
        'A later time: a date-time with an offset, or the local time of time_zone, such as ' +
        '2026-12-01T08:00.',
    },
    time_zone: {
      ...{ ...text, nullable: true, maxLength: momentCharactersMax },
      description: 'The time zone of at, such as Europe/Berlin.',
    },
    resolve: {
      type: 'object',
      nullable: true,
      required: [],
      additionalProperties: resolution,
      description:
        'The resolution of conflicts by the ids of their records: draft puts the fields of the ' +
        'draft on top of the live ones, live keeps the live record.',
    },
    others: {
      ...text,
      nullable: true,
      enum: ['draft', 'live', null] as unknown as readonly ConflictResolution[],
      description: 'The resolution of all other conflicts.',
    },
  },
} as const;

type PublishInput = StaticInput<typeof publishInput>;

/**
 * draft.publish: makes the changes of a draft live, in one transaction. Without `confirm` it only
 * reports them, with a digest. Refuses with `precondition_failed` if the effect differs from the
 * report, with `conflict` while a conflict has no resolution. With `at`, it does so at that time,
 * and takes no changes until then; `invalid` for a time that has passed.
 */
export const publishDraft = defineOperation({
  name: 'svc1.draft.publish',
  scope: 'publish',
  effect: 'writes',
  summary:
    'Makes the changes of a draft live, all or none, now or at a time; without confirm it only ' +
    'reports them.',
  input: publishInput,
  envelope: { vk: vkMember },
  output: { oneOf: [reportSchema, publishDoneSchema] },
  failures: ['not_found', 'conflict', 'precondition_failed'],
  run: (parts: PublishParts) => async (v, call) => {
    const { store } = parts;
    // The report shows the draft.
    authorise({ name: 'svc1.draft.publish', scope: 'read' }, call.caller);
    const needsApproval = parts.config.review.required;
    const at = laterMoment(parts, v, call);
    const request = { ...publishRequest(store, v, call), needsApproval, at };
    const isLarge = hasMoreRecords(store, request.draft);
    const done = await (isLarge ? parts.publishInThread(request) : runPublish(parts, request));
    return reportResult(done, request.request);
  },
});

/** The time of a schedule; undefined for none. Throws `invalid` for one that has passed. */
function laterMoment(
  { store, now }: Pick<PublishParts, 'store' | 'now'>,
  { at, time_zone: zone }: PublishInput,
  { caller }: Call,
): NamedMoment | undefined {
  if (at === undefined) {
    if (zone === undefined) return undefined;
    throw new Failure('invalid', 'A time zone needs a time: add at.', { field: 'time_zone' });
  }
  const moment = parseNamedMoment(at, zone);
  const nowMs = now();
  if (Date.parse(moment.at) <= nowMs) {
    const message = `${at} has passed: it is ${new Date(nowMs).toISOString()} now.`;
    throw new Failure('invalid', message, { field: 'at' });
  }
  // At its time, the key must still be valid and have the scopes.
  if (caller.keyId === undefined) {
    throw new Failure('forbidden', 'A schedule needs a key: it counts as long as that is valid.');
  }
  const key = store.key(caller.keyId);
  if (key !== undefined && keyEndMs(key) <= Date.parse(moment.at)) {
    const message = `Your key ends at ${key.until ?? ''}, before that: schedule it with another.`;
    throw new Failure('invalid', message, { field: 'at' });
  }
  return moment;
}

/** Throws `not_found`, and `forbidden` for a caller who may not write all families of the draft. */
function publishRequest(
  store: Store,
  v: PublishInput,
  call: Call,
): Omit<PublishRequest, 'needsApproval'> {
  const reader = reportReader(call.caller);
  const draft = draftSeen({ store, reads: store }, v.draft, reader);
  requireFamilies(store, draft, call.caller);
  const by = authorOf(call);
  const { confirm, resolve = {}, others } = v;
  const keyed = confirm === undefined ? undefined : keyedRequest('draft.publish', { ...v }, call);
  return { draft: draft.id, confirm, resolve, others, by, via: call.via, reader, request: keyed };
}

/** Throws `forbidden` for a caller who may not write all that a draft changes. */
export function requireFamilies(
  store: Store,
  draft: SiteDraft,
  caller: Parameters<typeof hasScope>[0],
): void {
  const families = familiesOf(store, draft);
  for (const family of families) {
    if (family === 'record') continue;
    const scope = isRevertible(family) ? writeScopes[family] : 'admin';
    if (hasScope(caller, scope)) continue;
    const message = `The draft changes records of ${family}: publishing needs the scope ${scope}.`;
    throw new Failure('forbidden', message, { field: 'draft' });
  }
  if (!families.has('record')) return;
  const given = { caller, what: 'publishing' };
  requirePublishedRows(store.view(viewOfDraft(draft)), draftedRows(store, draft), given);
}

/** The rows that a draft changes. */
function* draftedRows(
  store: Store,
  draft: SiteDraft,
): Generator<{ readonly id: string; readonly action: 'insert' | 'edit' }> {
  for (const { family, id } of store.of(storedDrafts).draftRecords(draft)) {
    if (family !== 'record') continue;
    yield { id, action: store.of(storedTables).row(id) === undefined ? 'insert' : 'edit' };
  }
}

/** Whether another thread publishes a draft, because it is large. */
export function hasMoreRecords(store: Store, id: string): boolean {
  const draft = store.of(storedDrafts).draft(id);
  if (draft === undefined) return false;
  const records = store.of(storedDrafts).draftRecords(draft)[Symbol.iterator]();
  let count = 0;
  while (count <= publishInlineRecordsMax && records.next().done !== true) count += 1;
  records.return?.();
  return count > publishInlineRecordsMax;
}

type RunParts = Pick<PublishParts, 'store' | 'newId' | 'now'>;

/**
 * Publishes a draft, schedules that, or reports what it would change. Rejects as draft.publish
 * does; for a schedule that is no longer the one of the draft, with `not_found`.
 */
export async function runPublish(parts: RunParts, request: PublishRequest): Promise<WriteReport> {
  const { confirm, at } = request;
  if (confirm === undefined) {
    const report = plannedReport(request, planned(parts.store, parts.store, request), parts.store);
    return { report, replayed: false };
  }
  return at === undefined
    ? publishNow(parts, { ...request, confirm })
    : schedule(parts, { ...request, confirm, at });
}

/** The plan of a request on the reads of its transaction. */
function planned(
  store: Store,
  live: Reads,
  { draft: id, reader, resolve, others }: PublishRequest,
): PublishPlan {
  const draft = openDraftSeen({ store, reads: live }, id, reader);
  return planPublish({ live, inDraft: store.view(viewOfDraft(draft)), draft }, (record) =>
    Object.hasOwn(resolve, record) ? resolve[record] : others,
  );
}

function plannedReport(
  { draft, needsApproval, reader }: PublishRequest,
  plan: PublishPlan,
  reads: Reads,
): JsonObject {
  const approvedBy = [...approvers(openDraftNamed(reads, draft), plan)];
  return {
    ...reportOf(plan, reads, reader),
    needs_approval: needsApproval,
    approved_by: approvedBy,
  };
}

function publishNow(
  { store, newId, now }: RunParts,
  given: PublishRequest & { readonly confirm: string },
): Promise<WriteReport> {
  const { draft: id, by, needsApproval } = given;
  const decide = (live: Reads, claim: Pick<LoggedDraft, 'vk'>): Decision<JsonObject> => {
    requireSchedule(live, given);
    const plan = planned(store, live, given);
    // Conflicts first at its time: their message names the records that have changed meanwhile.
    if (given.schedule !== undefined) requireResolved(plan, given);
    requireConfirmed(plan.digest, given.confirm);
    const approved = approvers(openDraftNamed(live, id), plan).length > 0;
    if (needsApproval && !approved) throw unapproved();
    requireResolved(plan, given);
    const changes = plan.drafts();
    const { name } = openDraftNamed(live, id);
    const event = ownEvent('draft.published', { id, name, by, records: changes.length }, now());
    const ended = { family: 'draft', id, action: 'edit', data: { state: published } } as const;
    return {
      drafts: [...changes, { ...ended, ...claim }, eventDraft(newId(), event)],
      answer: doneRows,
    };
  };
  return commitOnce(store, given, { again: doneThen, decide });
}

/** Throws `not_found` if a request carries out a schedule that is not that of the draft. */
function requireSchedule(live: Reads, { draft: id, schedule: seq }: PublishRequest): void {
  if (seq === undefined) return;
  const draft = live.of(storedDrafts).draft(id);
  if (draft !== undefined && waitingSchedule(draft)?.seq === seq) return;
  throw new Failure('not_found', 'The draft is not scheduled any more.', { field: 'draft' });
}

/** Writes when a draft is to be published. */
function schedule(
  { store }: RunParts,
  given: PublishRequest & { readonly confirm: string; readonly at: NamedMoment },
): Promise<WriteReport> {
  const { draft: id, confirm, at, resolve, others } = given;
  const again = (live: Reads): JsonObject => {
    const { state, txn = '' } = live.of(storedDrafts).draft(id) ?? {};
    return state === 'open'
      ? scheduledReport(plannedReport(given, planned(store, live, given), live), at)
      : doneReport(live, txn);
  };
  const decide = (live: Reads, claim: Pick<LoggedDraft, 'vk'>): Decision<JsonObject> => {
    const plan = planned(store, live, given);
    requireConfirmed(plan.digest, confirm);
    requireResolved(plan, given);
    const work = { digest: confirm, resolve, ...(others !== undefined && { others }) };
    const data = { schedule: { ...at, ...work } };
    const report = scheduledReport(plannedReport(given, plan, live), at);
    return {
      drafts: [{ family: 'draft', id, action: 'edit', data, ...claim }],
      answer: () => report,
    };
  };
  return commitOnce(store, given, { again, decide });
}

function scheduledReport(report: JsonObject, at: NamedMoment): JsonObject {
  return { ...report, scheduled: { ...at } };
}

const published = draftStates[1];

/** The keys that have approved a draft as it is now, and have not changed it. */
function approvers(
  { approvals = [] }: SiteDraft,
  { newest, authors }: PublishPlan,
): readonly string[] {
  const counted = approvals.filter(({ by, seq }) => seq > newest && !authors.has(by));
  return counted.map(({ by }) => by);
}

function unapproved(): Failure {
  return new Failure(
    'conflict',
    'The draft needs an approval by a key that has not changed it, since its last change. ' +
      'Ask for draft.approve.',
    { field: 'draft' },
  );
}

/** Throws `conflict`, with the records, while a conflict has no resolution. */
function requireResolved(
  { records, unresolved }: PublishPlan,
  { resolve, others }: PublishRequest,
): void {
  if (unresolved === 0) return;
  const isOpen = ({ id, isConflict }: DraftedVersions): boolean =>
    isConflict && others === undefined && !Object.hasOwn(resolve, id);
  const open = records.filter(isOpen);
  const named = open.map(({ family, id, live, draft, base }) => {
    // Not every publisher may read the name of a row.
    const label = family === 'record' ? undefined : labelOf(live ?? draft ?? base);
    return `${label ?? id} (${id})`;
  });
  throw new Failure(
    'conflict',
    `Nothing is published: ${namedFirst(named)} changed live since the draft did. ` +
      'Resolve each with resolve, or all with others.',
    { field: 'resolve' },
  );
}

type Row = Pick<NonNullable<ReturnType<Reads['change']>>, 'family' | 'id' | 'txn' | 'seq'>;

/** The report of a transaction: the records of its rows that have changed, and all its rows. */
export function doneOf(changed: readonly Row[], all: readonly Row[]): JsonObject {
  return {
    done: true,
    txn: all[0]?.txn ?? '',
    seq: all.at(-1)?.seq ?? 0,
    records: changed.length,
    families: [...new Set(changed.map(({ family }) => family))],
  };
}

function doneRows(rows: readonly Row[]): JsonObject {
  return doneOf(
    rows.filter(({ family }) => isRevertible(family)),
    rows,
  );
}

/** The report of a publication, or of the undo of one, that an earlier request has made. */
export function doneThen(reads: Reads, seq: number): JsonObject {
  return doneReport(reads, reads.change(seq)?.txn ?? '');
}

function doneReport(reads: Reads, txn: string): JsonObject {
  const { first, last } = reads.txnSeqs(txn) ?? { first: 1, last: 0 };
  const seqs = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return doneRows(seqs.flatMap((seq) => reads.change(seq) ?? []));
}

/** The report of a dry run: counts of everything, and details of the first records. */
function reportOf(
  { records, unresolved, digest, inDraft }: PublishPlan,
  live: Reads,
  reader: Reader,
): JsonObject {
  const counted = (becomes: DraftedVersions['becomes']): number =>
    records.filter((record) => record.becomes === becomes).length;
  const conflicts = records.filter(({ isConflict }) => isConflict);
  const shown = (all: typeof records): JsonObject[] =>
    all
      .slice(0, publishListedMax)
      .map((one) => shownChange([inDraft, live], reader, one) as JsonObject);
  return {
    done: false,
    records: records.length,
    inserted: counted('inserted'),
    changed: counted('changed'),
    removed: counted('removed'),
    changes: shown(records),
    conflicts: shown(conflicts),
    conflicting: conflicts.length,
    unresolved,
    unlisted: Math.max(0, records.length - publishListedMax),
    digest,
  };
}

/** A record with the fields that differ between its versions, as a reader sees them. */
export function shownChange(
  states: readonly [inDraft: Reads, live: Reads],
  reader: Reader,
  record: DraftedVersions,
): Pick<DraftedVersions, 'family' | 'id' | 'becomes' | 'problem'> & {
  readonly label?: string;
  readonly fields: JsonObject;
} {
  const { family, id, becomes, isConflict, problem } = record;
  const show = versionsShown(states, reader, record);
  const [live, draft, base] = [show(record.live), show(record.draft), show(record.base)];
  const names = [...differingNames(live, draft), ...(isConflict ? differingNames(base, live) : [])];
  const label = labelOf(show(record.live ?? record.draft ?? record.base));
  return {
    ...{ family, id, becomes },
    ...(label !== undefined && { label }),
    fields: fieldVersions(names, { ...(isConflict && { base }), live, draft }),
    ...(problem !== undefined && { problem }),
  };
}
