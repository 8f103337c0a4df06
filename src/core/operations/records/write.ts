import { type Change, type ChangeAuthor, authorVia, mergeFields } from '../../log/change.ts';
import type { Decision, Reads, StoredVkClaim } from '../../log/store.ts';
import { Failure } from '../../values/failure.ts';
import { type JsonObject, isJsonObject } from '../../values/json/json.ts';
import {
  type Call,
  type OperationDefinition,
  type OperationResult,
  authorOf,
  defineOperation,
} from '../operation.ts';
import { requireNoMistakes } from '../problems.ts';
import {
  type FamilyCall,
  type RecordFamily,
  type RecordFields,
  type RecordParts,
  type StoredRecord,
  familyFor,
  fieldsSent,
  namedId,
} from './family.ts';
import { type RequestIdentity, hasDerivedVk, identifyRequest, isRecentTxn } from './idempotency.ts';
import { invalidateOperation } from './invalidate.ts';
import { listOperation } from './list.ts';
import { sentNames } from './placement.ts';
import { noSuchRecord, readOperation, recordEtag, recordView, shownMembers } from './read.ts';
import { ifSeqProperty, namingMembers, preferMember, recordSchemas, vkMember } from './schema.ts';

/**
 * insert of a family: adds a record. Refuses with `invalid` or `too_large` (the fields make no
 * record), or `conflict` (the vk was used for another request).
 */
export function insertOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, schema, summaries, part } = family;
  const schemas = recordSchemas(schema, part);
  return defineOperation({
    name: `svc1.${name}.insert`,
    scope: scopes.write,
    ...(family.tableDecides && { tableDecides: true, forPages: true }),
    effect: 'writes',
    inDrafts: true,
    summary: summaries?.insert ?? `Adds a ${noun}.`,
    input: {
      type: 'object',
      required: Object.keys(part?.members ?? {}),
      properties: { ...part?.members },
      additionalProperties: true,
    },
    fields: schemas.insert,
    envelope: { vk: vkMember, prefer: preferMember },
    output: schemas.inserted,
    etag: true,
    failures: ['conflict', ...(part === undefined ? [] : (['not_found'] as const))],
    run: (parts: Parts) => async (v, call) => {
      await family.prepare?.(call);
      const given: FamilyCall = { operation: 'insert', v, call };
      const now = familyFor(family, given, parts.store, parts);
      const values = fieldValues(now, v, call);
      const sent = fieldsSent(family, values);
      const request = requestOf(now, `${name}.insert`, { v, values: withoutNulls(values) }, call);
      const vk = call.vk ?? request.derivedVk;
      if (now.beforeWrite?.(sent, parts).isDiscarded === true) {
        return writeAnswer(now, parts, call, { ...pretended(now, parts, sent, call), sent, vk });
      }
      const written = await parts.store.commit(changeAuthorFor(now, call), (reads) => {
        const bound = familyFor(family, given, reads, parts, now);
        return insertDecision(bound, parts, call, { reads, sent, request, vk });
      });
      return writeAnswer(now, parts, call, { ...written, sent, vk });
    },
  });
}

function insertDecision<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  call: Call,
  insert: {
    readonly reads: Reads;
    readonly sent: JsonObject;
    readonly request: RequestIdentity;
    readonly vk: string;
  },
): Decision<Written<R>> {
  const { reads, sent, request, vk } = insert;
  const claim = request.earlier(reads, vk);
  // A derived vk identifies the record, not the request: it ends with the record.
  const { repeatsForMs = Infinity } = family;
  const isRepeat = (earlier: StoredVkClaim): boolean =>
    family.find(reads, earlier.id) !== undefined &&
    isRecentTxn(reads.change(earlier.seq)?.dtu_txn, parts.now(), repeatsForMs);
  if (claim !== undefined && (call.vk !== undefined || isRepeat(claim))) {
    return repeated(recordThen(family, reads, claim));
  }
  const data = family.place({ current: undefined, sent }, parts);
  requireValid(family, parts, call, { current: undefined, data, sent });
  const id = parts.newId();
  const more = family.onInsert?.(id, parts) ?? { drafts: [], members: {} };
  return {
    drafts: [
      { family: family.name, id, action: 'insert', data, vk: request.claim(vk) },
      ...more.drafts,
    ],
    answer: ([change]) => ({
      stored: folded(family, undefined, change),
      replayed: false,
      members: more.members,
    }),
  };
}

/** The result of an insert that is only to look done. */
function pretended<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  sent: JsonObject,
  call: Call,
): Written<R> {
  const data = family.place({ current: undefined, sent }, parts);
  requireValid(family, parts, call, { current: undefined, data, sent });
  const change = { seq: parts.store.seq() + 1, id: parts.newId(), action: 'insert', data };
  return { stored: family.fold(undefined, change as unknown as Change), replayed: false };
}

/** The author of a write: the one that the family names, else the key of the caller. */
function authorFor<Parts extends RecordParts, R extends RecordFields>(
  { author }: RecordFamily<Parts, R>,
  call: Call,
): string {
  return author ?? authorOf(call);
}

/** The author of a write as the log gets it. */
function changeAuthorFor<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  call: Call,
): ChangeAuthor {
  return authorVia(authorFor(family, call), call.via);
}

/** The identity of a request: a form and JSON with the same values are one request. */
function requestOf<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  name: string,
  { v, values }: { readonly v: JsonObject; readonly values: JsonObject },
  call: Call,
): RequestIdentity {
  // A vk that the caller has chosen distinguishes its request already.
  const identity = hasDerivedVk(call) ? family.identity : undefined;
  const by = authorFor(family, call);
  if (call.isText !== true) return identifyRequest(name, v, call, { by, identity });
  return identifyRequest(name, values, call, { by, identity, formerInput: v });
}

/** The input of a call; in place of the texts of a form or query, the values that they mean. */
function fieldValues<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  v: JsonObject,
  { isText }: Call,
): JsonObject {
  return isText === true ? (family.fromText?.(v) ?? v) : v;
}

/** The fields of an insert that have a value: browsers send empty inputs, too. */
function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/** The input of an edit, besides any fields. */
interface EditInput {
  id?: string;
  if_seq?: number;
  confirm?: string;
}

const ifSeq = { ...ifSeqProperty, nullable: true } as const;
const confirmProperty = {
  type: 'string',
  nullable: true,
  description: 'The digest of a report, to carry the edit out.',
} as const;

/**
 * edit of a family: changes the sent fields, null removes one. Refuses with `not_found`,
 * `precondition_failed` (the record is no longer at if_seq or If-Match), `invalid`, `too_large`,
 * or `conflict` (the vk).
 */
export function editOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, schema, summaries, ignored = [], part } = family;
  const schemas = recordSchemas(schema, part);
  const isReviewed = family.review !== undefined;
  // A caller may send a whole answer back.
  const ignoredNames = ['unknowns', 'problems', ...ignored];
  return defineOperation({
    name: `svc1.${name}.edit`,
    scope: scopes.write,
    ...(family.tableDecides && { tableDecides: true }),
    effect: 'writes',
    inDrafts: true,
    summary: summaries?.edit ?? `Changes the sent fields of a ${noun}; null removes one.`,
    input: {
      type: 'object',
      ...namingMembers(part),
      properties: {
        ...namingMembers(part).properties,
        if_seq: ifSeq,
        ...(isReviewed && { confirm: confirmProperty }),
      },
      additionalProperties: true,
    },
    fields: isReviewed ? withProperty(schemas.edit, { confirm: confirmProperty }) : schemas.edit,
    envelope: { vk: vkMember, prefer: preferMember },
    output: isReviewed ? { oneOf: [schemas.written, family.reviewSchema ?? {}] } : schemas.written,
    etag: true,
    failures: ['not_found', 'conflict', 'precondition_failed'],
    run: (parts: Parts) => async (v, call) => {
      await family.prepare?.(call);
      const given: FamilyCall = { operation: 'edit', v, call };
      const now = familyFor(family, given, parts.store, parts);
      const values = fieldValues(now, v as JsonObject, call);
      const {
        id: _id,
        if_seq: expected,
        ...members
      } = fieldsSent(family, values) as EditInput & JsonObject;
      const { confirm, ...unconfirmed } = members;
      const sent = Object.fromEntries(
        Object.entries(isReviewed ? unconfirmed : members).filter(
          ([one]) => !ignoredNames.includes(one),
        ),
      );
      now.beforeWrite?.(sent, parts);
      const request = requestOf(now, `${name}.edit`, { v, values }, call);
      const edit: RecordEdit<Parts, R> = {
        idIn: (bound, reads) => namedId(bound, v as JsonObject, reads),
        given,
        ifSeq: expected,
        sent,
        request,
      };
      return changeRecord(family, parts, call, edit, {
        dataOf(stored, bound) {
          const shown = shownMembers(bound, parts, stored, call.origin);
          return bound.place({ current: stored.record, sent, shown }, parts);
        },
        ...(isReviewed && { confirm: typeof confirm === 'string' ? confirm : '' }),
      });
    },
  });
}

/** A change of one record. */
interface RecordEdit<Parts extends RecordParts, R extends RecordFields> {
  /** The id of the record. */
  readonly idIn: (family: RecordFamily<Parts, R>, reads: Reads) => string;
  readonly given: FamilyCall;
  readonly ifSeq: number | undefined;
  /** The fields that `unknowns` and `problems` of the answer are about. */
  readonly sent: JsonObject;
  readonly request: RequestIdentity;
}

/** How a change of a record is made. */
interface RecordChange<Parts extends RecordParts, R extends RecordFields> {
  /** The data of the change. */
  readonly dataOf: (current: StoredRecord<R>, family: RecordFamily<Parts, R>) => JsonObject;
  /** The digest of a review; '' for none. Undefined if the change needs no review. */
  readonly confirm?: string;
}

/**
 * Changes a record in one transaction, and resolves when the change is in effect. Rejects as an
 * edit does.
 */
export async function changeRecord<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  call: Call,
  edit: RecordEdit<Parts, R>,
  { dataOf, confirm }: RecordChange<Parts, R>,
): Promise<OperationResult> {
  const { given, ifSeq: expected, sent, request, idIn } = edit;
  const { vk } = call;
  const now = familyFor(family, given, parts.store, parts);
  const currentOf = (bound: RecordFamily<Parts, R>, reads: Reads): StoredRecord<R> => {
    const id = idIn(bound, reads);
    const current = bound.find(reads, id);
    if (current === undefined) throw noSuchRecord(family, given.v.id);
    requireSeq(current.seq, expected, call.fields['if-match']);
    return current;
  };
  const isRepeated = vk !== undefined && request.earlier(parts.store, vk) !== undefined;
  let reviewedSeq: number | undefined;
  if (confirm !== undefined && !isRepeated && now.review !== undefined) {
    const current = currentOf(now, parts.store);
    const review = { current, data: dataOf(current, now), confirm: confirm || undefined, call };
    const report = await now.review(review, parts);
    if (report !== undefined) return { kind: 'data', data: report };
    reviewedSeq = current.seq;
  }
  const written = await parts.store.commit(
    changeAuthorFor(now, call),
    (reads): Decision<Written<R>> => {
      const bound = familyFor(family, given, reads, parts, now);
      const claim = vk === undefined ? undefined : request.earlier(reads, vk);
      if (claim !== undefined) return repeated(recordThen(bound, reads, claim));
      const current = currentOf(bound, reads);
      requireSeq(current.seq, reviewedSeq, undefined);
      const data = dataOf(current, bound);
      requireValid(bound, parts, call, { current: current.record, data, sent });
      if (Object.keys(data).length === 0 && vk === undefined) {
        return { drafts: [], answer: () => ({ stored: current, replayed: false }) };
      }
      const claimed = vk === undefined ? {} : { vk: request.claim(vk) };
      const { id } = current.record;
      return {
        drafts: [{ family: family.name, id, action: 'edit', data, ...claimed }],
        answer: ([change]) => ({ stored: folded(bound, current, change), replayed: false }),
      };
    },
  );
  await family.applied?.(written.stored.seq, parts);
  return writeAnswer(now, parts, call, { ...written, sent, vk });
}

function withProperty(schema: JsonObject, more: JsonObject): JsonObject {
  return { ...schema, properties: { ...(schema.properties as JsonObject), ...more } };
}

/** The result of a write. */
interface Written<R> {
  readonly stored: StoredRecord<R>;
  /** Whether an earlier request with the same vk wrote it. */
  readonly replayed: boolean;
  /** Further members of the answer. */
  readonly members?: JsonObject;
}

function repeated<R>(stored: StoredRecord<R>): Decision<Written<R>> {
  return { drafts: [], answer: () => ({ stored, replayed: true }) };
}

/** The record as an earlier request left it. Throws `conflict` if the caller may not see it. */
function recordThen<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  reads: Reads,
  { id: recordId, seq }: StoredVkClaim,
): StoredRecord<R> {
  const stored = family.findAt(reads, recordId, seq);
  if (stored !== undefined) return stored;
  if (family.hadRecord === undefined) throw new TypeError(`${recordId} was never inserted`);
  throw new Failure('conflict', 'This vk was used before. Send each request with its own.', {
    field: 'vk',
  });
}

function folded<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  before: StoredRecord<R> | undefined,
  change: Change | undefined,
): StoredRecord<R> {
  if (change === undefined) throw new TypeError('the store logged no change');
  return family.fold(before, change);
}

/** In strict mode, throws `invalid` for a write with a mistake in it. */
function requireValid<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  call: Call,
  write: { readonly current: R | undefined; readonly data: JsonObject; readonly sent: JsonObject },
): void {
  if (call.isStrict !== true) return;
  const { current = {}, data, sent } = write;
  const after = mergeFields(current, data) as unknown as R;
  // Values of other fields that wait because of this write count, too.
  const moved = data._unknowns_ === undefined ? [] : sentNames({ _unknowns_: data._unknowns_ });
  requireNoMistakes(call, family.problems(after, namesOf(sentNames(sent), moved), parts));
}

/** Names without repetitions: those of the first list come first. */
function namesOf(first: readonly string[], others: readonly string[]): readonly string[] {
  return others.length === 0 ? first : [...new Set([...first, ...others])];
}

function writeAnswer<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  call: Call,
  write: Written<R> & { readonly sent: JsonObject; readonly vk: string | undefined },
): OperationResult {
  const { stored, replayed, members, sent, vk } = write;
  const { record } = stored;
  const view = recordView(family, parts, stored, call.origin, sent);
  const waiting = record._unknowns_ ?? {};
  // The view has only those that the caller may see.
  const seen = isJsonObject(view._unknowns_) ? Object.keys(view._unknowns_) : [];
  const names = namesOf(sentNames(sent), seen);
  const unknowns = [
    ...names.filter((name) => Object.hasOwn(waiting, name)),
    ...(family.unknownMembers?.(record, names) ?? []),
  ];
  const problems = [
    ...family.problems(record, names, parts),
    ...(replayed ? [] : (family.afterWrite?.({ stored, names, call }, parts) ?? [])),
  ];
  return {
    kind: 'data',
    data: {
      ...view,
      ...members,
      unknowns,
      problems,
    },
    etag: recordEtag(family, parts, stored, call.origin),
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  };
}

/** Throws `precondition_failed` if a record does not have the seq that a caller expects. */
function requireSeq(seq: number, ifSeq: number | undefined, ifMatch: string | undefined): void {
  // RFC 9110 §13.1.1 for If-Match; if_seq is the same condition inside the envelope.
  const tags = ifMatch?.split(',').map((tag) => tag.trim());
  const isOfSeq = (tag: string): boolean => tag === `"${seq}"` || tag.startsWith(`"${seq}-`);
  const matches = tags === undefined || tags.includes('*') || tags.some(isOfSeq);
  if (matches && (ifSeq === undefined || ifSeq === seq)) return;
  throw new Failure(
    'precondition_failed',
    `The record has changed and is at seq ${seq} now. Read it again before you edit it.`,
    { field: matches ? 'if_seq' : 'If-Match' },
  );
}

/** The operations of a record family (docs/design/records.md): insert, edit, read and others. */
export function recordOperations<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): readonly OperationDefinition<Parts>[] {
  return [
    insertOperation(family),
    editOperation(family),
    readOperation(family),
    listOperation(family),
    invalidateOperation(family),
  ];
}
