import { hash } from 'node:crypto';
import type { RevertibleFamily } from '../../../core/log/change.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import { authorise } from '../../../core/operations/execute.ts';
import { authorOf, defineOperation } from '../../../core/operations/operation.ts';
import {
  type WriteReport,
  commitOnce,
  keyedRequest,
  namedFirst,
  reportResult,
} from '../../../core/operations/records/idempotency.ts';
import { invalidateInlineRowsMax } from '../../../core/operations/records/limits.ts';
import {
  type Folding,
  type RecordRevert,
  planRevert,
  revertDrafts,
} from '../../../core/operations/records/revert.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import {
  type Reader,
  differingNames,
  fieldVersions,
} from '../../../core/operations/records/shown.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { type Caller, hasScope } from '../../../core/values/key.ts';
import { draftSeen, reportReader } from '../bounds.ts';
import { type DraftParts, draftProperty } from './drafts.ts';
import { publishListedMax } from './limits.ts';
import { labelOf } from './publish-plan.ts';
import {
  type PublishRequest,
  doneOf,
  doneThen,
  publishDoneSchema,
  writeScopes,
} from './publish.ts';
import { draftedFamilies, requirePublishedRows, versionsShown } from './row-access.ts';

/** How a record that was changed since the publication is resolved. */
type UndoResolution = 'undo' | 'live';

/** An undo as data, which another thread can run. */
export interface UndoRequest extends Pick<
  PublishRequest,
  'draft' | 'confirm' | 'by' | 'via' | 'reader' | 'request'
> {
  readonly resolve: Readonly<Record<string, UndoResolution>>;
  /** The resolution of the conflicts that `resolve` does not name. */
  readonly others: UndoResolution | undefined;
}

/** The parts that undo needs. */
interface UndoParts extends DraftParts {
  /** Undoes a large publication in another thread. Rejects as runUndo does. */
  readonly undoInThread: (request: UndoRequest) => Promise<WriteReport>;
}

const families = Object.keys(draftedFamilies) as readonly RevertibleFamily[];
const foldings = Object.values(draftedFamilies);

const count = (description: string): JsonObject => ({ type: 'integer', description });
const text = { type: 'string' } as const;

const undoneSchema: JsonObject = {
  title: 'UndoneChange',
  type: 'object',
  required: ['family', 'id', 'becomes', 'fields'],
  properties: {
    family: text,
    id: text,
    label: { ...text, description: 'The path of a page rule, or the name of another record.' },
    becomes: { ...text, enum: ['gone', 'restored', 'changed', 'same'] },
    fields: {
      type: 'object',
      description: 'Each field that differs; of a long value only the start.',
      additionalProperties: {
        type: 'object',
        required: ['live', 'undone'],
        properties: { published: {}, live: {}, undone: {} },
      },
    },
  },
};

const reportSchema: JsonObject = {
  title: 'UndoReport',
  type: 'object',
  required: [
    ...['done', 'records', 'gone', 'restored', 'changed', 'changes', 'conflicts', 'conflicting'],
    ...['unresolved', 'unlisted', 'digest'],
  ],
  properties: {
    done: { const: false },
    records: count('Records that would change.'),
    gone: count('Records that would be deleted: the draft has inserted them.'),
    restored: count('Deleted records that would exist again.'),
    changed: count('Records that would have other fields.'),
    changes: { type: 'array', items: undoneSchema },
    conflicts: {
      type: 'array',
      items: undoneSchema,
      description:
        'Records that were changed since, with three versions of each field: as published, live ' +
        'now, and after the undo, which leaves the fields of later changes.',
    },
    conflicting: count('Number of these records.'),
    unresolved: count('Those without a resolution: nothing is undone while there is one.'),
    unlisted: count('Number of records that are counted and not listed.'),
    digest: { ...text, description: 'Send it as confirm to undo it.' },
  },
};

const undoInput = {
  type: 'object',
  required: ['draft'],
  properties: {
    draft: draftProperty,
    confirm: { ...text, nullable: true, description: 'The digest of a report, to undo it.' },
    resolve: {
      type: 'object',
      nullable: true,
      required: [],
      additionalProperties: { type: 'string', enum: ['undo', 'live'] },
      description:
        'The resolution of conflicts by the ids of their records: undo takes back what the draft ' +
        'has changed, live keeps the live record.',
    },
    others: {
      ...text,
      nullable: true,
      enum: ['undo', 'live', null] as unknown as readonly UndoResolution[],
      description: 'The resolution of all other conflicts.',
    },
  },
} as const;

/**
 * draft.undo: takes the publication of a draft back, in one transaction of all families. Without
 * `confirm` it only reports that, with a digest. Refuses with `precondition_failed` if the effect
 * differs from the report, with `conflict` while a record that was changed since has no resolution.
 */
export const undoDraft = defineOperation({
  name: 'svc1.draft.undo',
  scope: 'publish',
  effect: 'writes',
  summary:
    'Undoes the publication of a draft, all or nothing; without confirm it only reports that.',
  input: undoInput,
  envelope: { vk: vkMember },
  output: { oneOf: [reportSchema, publishDoneSchema] },
  failures: ['not_found', 'conflict', 'precondition_failed'],
  run: (parts: UndoParts) => async (v, call) => {
    const { store } = parts;
    // The report shows what is live.
    authorise({ name: 'svc1.draft.undo', scope: 'read' }, call.caller);
    const reader = reportReader(call.caller);
    const { id, txn } = publishedDraft(store, store, { draft: v.draft, reader });
    requireFamilies(store, txn, call.caller);
    const request = {
      ...{ draft: id, confirm: v.confirm, by: authorOf(call), via: call.via, reader },
      ...{ resolve: v.resolve ?? {}, others: v.others },
      request: v.confirm === undefined ? undefined : keyedRequest('draft.undo', { ...v }, call),
    };
    const { first, last } = store.txnSeqs(txn) ?? noSeqs;
    const isLarge = last - first >= invalidateInlineRowsMax;
    const done = await (isLarge ? parts.undoInThread(request) : runUndo(parts, request));
    return reportResult(done, request.request);
  },
});

const noSeqs = { first: 1, last: 0 };

/** The draft and its transaction. Throws `not_found`, and `conflict` for one that is not live. */
function publishedDraft(
  store: Store,
  reads: Reads,
  { draft: name, reader }: Pick<UndoRequest, 'draft' | 'reader'>,
): { readonly id: string; readonly txn: string } {
  const { id, txn, state } = draftSeen({ store, reads }, name, reader);
  if (state === 'published' && txn !== undefined) return { id, txn };
  const message = `The draft is ${state}: only the publication of a draft can be undone.`;
  throw new Failure('conflict', message, { field: 'draft' });
}

/** Throws `forbidden` for a caller who may not write all that a transaction has changed. */
function requireFamilies(reads: Reads, txn: string, caller: Caller): void {
  const { first, last } = reads.txnSeqs(txn) ?? noSeqs;
  const changed = new Set<string>();
  const rows: { readonly id: string; readonly action: 'edit' }[] = [];
  for (let seq = first; seq <= last; seq += 1) {
    const { family = '', id } = reads.change(seq) ?? {};
    changed.add(family);
    if (family === 'record' && id !== undefined) rows.push({ id, action: 'edit' });
  }
  requirePublishedRows(reads, rows, { caller, what: 'an undo' });
  for (const family of families) {
    if (family === 'record' || !changed.has(family)) continue;
    const scope = writeScopes[family];
    if (hasScope(caller, scope)) continue;
    const message = `The draft has changed records of ${family}: an undo needs the scope ${scope}.`;
    throw new Failure('forbidden', message, { field: 'draft' });
  }
}

/** A record that an undo changes. */
interface UndoneRecord extends RecordRevert {
  readonly family: RevertibleFamily;
}

interface UndoPlan {
  readonly txn: string;
  readonly records: readonly UndoneRecord[];
  /** Lower-case hex SHA-256, which differs if the effect does. */
  readonly digest: string;
}

/** Undoes a publication, or reports what that would change. Rejects as draft.undo does. */
export async function runUndo(
  { store }: Pick<UndoParts, 'store'>,
  given: UndoRequest,
): Promise<WriteReport> {
  const { confirm } = given;
  if (confirm === undefined) {
    const report = reportOf(store, planUndo(store, store, given), given);
    return { report, replayed: false };
  }
  const decide = (reads: Reads, claim: Pick<LoggedDraft, 'vk'>): Decision<JsonObject> => {
    const plan = planUndo(store, reads, given);
    if (plan.digest !== confirm) {
      const message = 'The data has changed since the report. Look at a new one, and confirm that.';
      throw new Failure('precondition_failed', message, { field: 'confirm' });
    }
    requireResolved(plan, given);
    const undone = plan.records.filter((one) => resolutionOf(one, given) !== 'live');
    if (undone.length === 0) throw nothingLeft();
    const { reverts, after } = revertDrafts(reads, undone, foldings);
    const [first, ...others] = reverts;
    return {
      drafts: first === undefined ? [] : [{ ...first, ...claim }, ...others, ...after],
      answer: (rows) => doneOf(rows.slice(0, undone.length), rows),
    };
  };
  return commitOnce(store, given, { again: doneThen, decide });
}

function nothingLeft(): Failure {
  return new Failure('conflict', 'Nothing of this publication is left to undo.', {
    field: 'draft',
  });
}

/** The plan of an undo on the reads of its transaction. Writes nothing. */
function planUndo(store: Store, reads: Reads, given: UndoRequest): UndoPlan {
  const { id, txn } = publishedDraft(store, reads, given);
  const { bounds } = given.reader;
  const selection = {
    ...{ families, id: undefined, txn, by: undefined, seqs: reads.txnSeqs(txn) ?? noSeqs },
    ...(bounds && { within: { userinterface: { bounds: bounds as JsonObject } } }),
  };
  const { records, digest } = planRevert(reads, { selection }, foldings);
  return { txn, records: records as readonly UndoneRecord[], digest: hash('sha256', id + digest) };
}

/** How a record is resolved; undefined for a conflict without a resolution. */
function resolutionOf(
  { id, conflicts }: UndoneRecord,
  { resolve, others }: Pick<UndoRequest, 'resolve' | 'others'>,
): UndoResolution | undefined {
  if (conflicts.length === 0) return 'undo';
  return Object.hasOwn(resolve, id) ? resolve[id] : others;
}

function requireResolved({ records }: UndoPlan, given: UndoRequest): void {
  const open = records.filter((one) => resolutionOf(one, given) === undefined);
  if (open.length === 0) return;
  const named = open.map(({ id, path }) => `${path ?? id} (${id})`);
  throw new Failure(
    'conflict',
    `Nothing is undone: ${namedFirst(named)} changed since the publication. Resolve each ` +
      'with resolve, or all with others.',
    { field: 'resolve' },
  );
}

/** The report of a dry run: counts of everything, and details of the first records. */
function reportOf(
  reads: Reads,
  { txn, records, digest }: UndoPlan,
  given: UndoRequest,
): JsonObject {
  const counted = (becomes: RecordRevert['becomes']): number =>
    records.filter((record) => record.becomes === becomes).length;
  const conflicts = records.filter((record) => record.conflicts.length > 0);
  const last = reads.txnSeqs(txn)?.last ?? 0;
  const shown = (all: readonly UndoneRecord[]): JsonObject[] =>
    all
      .slice(0, publishListedMax)
      .map((one) => shownRecord(reads, one, { reader: given.reader, last }));
  return {
    done: false,
    records: records.length,
    ...{ gone: counted('gone'), restored: counted('restored'), changed: counted('changed') },
    changes: shown(records),
    conflicts: shown(conflicts),
    conflicting: conflicts.length,
    unresolved: conflicts.filter((one) => resolutionOf(one, given) === undefined).length,
    unlisted: Math.max(0, records.length - publishListedMax),
    digest,
  };
}

/** A record with the fields that differ: live now and undone, of a conflict also as published. */
function shownRecord(
  reads: Reads,
  { family, id, becomes, then: after, conflicts }: UndoneRecord,
  { reader, last }: { readonly reader: Reader; readonly last: number },
): JsonObject {
  const rows = reads.rows(family, id);
  const show = versionsShown([reads], reader, { family, id });
  const live = show(fieldsAfter(rows, family));
  const isConflict = conflicts.length > 0;
  const then = rows.filter(({ seq }) => seq <= last);
  const published = isConflict ? show(fieldsAfter(then, family)) : live;
  const { id: _id, ...undone } = show(after ?? {});
  const names = [...differingNames(live, undone), ...differingNames(published, live)];
  const label = labelOf({ ...undone, ...live });
  return {
    ...{ family, id, becomes },
    ...(label !== undefined && { label }),
    fields: fieldVersions(names, { ...(isConflict && { published }), live, undone }),
  };
}

function fieldsAfter(rows: ReturnType<Reads['rows']>, family: RevertibleFamily): JsonObject {
  const { stored } = foldRows<ReturnType<Folding['fold']>>(rows, (before, change) =>
    draftedFamilies[family].fold(before, change),
  );
  const { id: _id, ...fields } = (stored?.record ?? {}) as JsonObject;
  return fields;
}
