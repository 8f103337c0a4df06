import { mergeFields, type Change } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Decision, Reads, StoredVkClaim } from '../../store/store.ts';
import {
  authorOf,
  defineOperation,
  type Call,
  type OperationDefinition,
  type OperationResult,
} from '../operation.ts';
import { requireNoMistakes } from '../problems.ts';
import type { RecordFamily, RecordFields, RecordParts, StoredRecord } from './family.ts';
import { identifyRequest, type RequestIdentity } from './idempotency.ts';
import { sentNames } from './placement.ts';
import { recordEtag, noSuchRecord, recordView, shownMembers } from './read.ts';
import { ifSeqProperty, preferMember, recordSchemas, vkMember } from './schema.ts';

/**
 * insert of a family: adds a record. Refuses with `invalid` or `too_large` (the fields make no
 * record), or `conflict` (the vk was used for another request).
 */
export function insertOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, schema, summaries } = family;
  const schemas = recordSchemas(schema);
  return defineOperation<Parts, JsonObject>({
    name: `svc1.${name}.insert`,
    scope: scopes.write,
    effect: 'writes',
    summary: summaries?.insert ?? `Adds a ${noun}.`,
    input: { type: 'object', required: [], additionalProperties: true },
    fields: schemas.insert,
    envelope: { vk: vkMember, prefer: preferMember },
    output: schemas.inserted,
    etag: true,
    failures: ['conflict'],
    run: (parts) => async (sent, call) => {
      const request = identifyRequest(`${name}.insert`, sent, call);
      const vk = call.vk ?? request.derivedVk;
      const written = await parts.store.commit(authorOf(call), (reads): Decision<Written<R>> => {
        const claim = request.earlier(reads, vk);
        // A derived vk stands for the record, not for the request: it ends with the record.
        if (claim !== undefined && (call.vk !== undefined || family.find(reads, claim.id))) {
          return repeated(recordThen(family, reads, claim));
        }
        const isText = call.isText === true;
        const data = family.place({ current: undefined, sent, isText }, parts);
        requireValid(family, parts, call, { current: undefined, data, sent });
        const id = parts.newId();
        const more = family.onInsert?.(id, parts) ?? { drafts: [], members: {} };
        return {
          drafts: [
            { family: name, id, action: 'insert', data, vk: request.claim(vk) },
            ...more.drafts,
          ],
          answer: ([change]) => ({
            stored: folded(family, undefined, change),
            replayed: false,
            members: more.members,
          }),
        };
      });
      return writeAnswer(family, parts, call, { ...written, sent, vk });
    },
  });
}

/** The input of an edit, besides any fields. */
interface EditInput {
  id: string;
  if_seq?: number;
}

const id = { type: 'string' } as const;
const ifSeq = { ...ifSeqProperty, nullable: true } as const;

/**
 * edit of a family: changes the sent fields, null removes one. Refuses with `not_found`,
 * `precondition_failed` (the record is no longer at if_seq or If-Match), `invalid`, `too_large`,
 * or `conflict` (the vk).
 */
export function editOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, schema, summaries, ignored = [] } = family;
  const schemas = recordSchemas(schema);
  // A caller may send a whole answer back.
  const ignoredNames = ['unknowns', 'problems', ...ignored];
  return defineOperation<Parts, EditInput>({
    name: `svc1.${name}.edit`,
    scope: scopes.write,
    effect: 'writes',
    summary: summaries?.edit ?? `Changes the sent fields of a ${noun}; null removes one.`,
    input: {
      type: 'object',
      required: ['id'],
      properties: { id, if_seq: ifSeq },
      additionalProperties: true,
    },
    fields: schemas.edit,
    envelope: { vk: vkMember, prefer: preferMember },
    output: schemas.written,
    etag: true,
    failures: ['not_found', 'conflict', 'precondition_failed'],
    run: (parts) => (v, call) => {
      const { id: recordId, if_seq: expected, ...members } = v as EditInput & JsonObject;
      const sent = Object.fromEntries(
        Object.entries(members).filter(([one]) => !ignoredNames.includes(one)),
      );
      const request = identifyRequest(`${name}.edit`, { ...v }, call);
      const edit = { id: recordId, ifSeq: expected, sent, request };
      return changeRecord(family, parts, call, edit, (stored) => {
        const shown = shownMembers(family, parts, stored, call.origin);
        const isText = call.isText === true;
        return family.place({ current: stored.record, sent, shown, isText }, parts);
      });
    },
  });
}

/** A change of one record. */
interface RecordEdit {
  readonly id: string;
  readonly ifSeq: number | undefined;
  /** The fields that `unknowns` and `problems` of the answer are about. */
  readonly sent: JsonObject;
  readonly request: RequestIdentity;
}

/**
 * Changes a record in one transaction, and resolves when the change is in effect. `dataOf` returns
 * the data of the change. Rejects as an edit does.
 */
export async function changeRecord<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  call: Call,
  edit: RecordEdit,
  dataOf: (current: StoredRecord<R>) => JsonObject,
): Promise<OperationResult> {
  const { id: recordId, ifSeq: expected, sent, request } = edit;
  const { vk } = call;
  const written = await parts.store.commit(authorOf(call), (reads): Decision<Written<R>> => {
    const claim = vk === undefined ? undefined : request.earlier(reads, vk);
    if (claim !== undefined) return repeated(recordThen(family, reads, claim));
    const current = family.find(reads, recordId);
    if (current === undefined) throw noSuchRecord(family, recordId);
    requireSeq(current.seq, expected, call.fields['if-match']);
    const data = dataOf(current);
    requireValid(family, parts, call, { current: current.record, data, sent });
    if (Object.keys(data).length === 0 && vk === undefined) {
      return { drafts: [], answer: () => ({ stored: current, replayed: false }) };
    }
    const claimed = vk === undefined ? {} : { vk: request.claim(vk) };
    return {
      drafts: [{ family: family.name, id: recordId, action: 'edit', data, ...claimed }],
      answer: ([change]) => ({ stored: folded(family, current, change), replayed: false }),
    };
  });
  await family.applied?.(written.stored.seq, parts);
  return writeAnswer(family, parts, call, { ...written, sent, vk });
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

/** The record as an earlier request left it. */
function recordThen<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  reads: Reads,
  { id: recordId, seq }: StoredVkClaim,
): StoredRecord<R> {
  const stored = family.findAt(reads, recordId, seq);
  if (stored === undefined) throw new TypeError(`${recordId} was never inserted`);
  return stored;
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
  requireNoMistakes(call, family.problems(after, sentNames(sent), parts));
}

function writeAnswer<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  call: Call,
  write: Written<R> & { readonly sent: JsonObject; readonly vk: string | undefined },
): OperationResult {
  const { stored, replayed, members, sent, vk } = write;
  const { record } = stored;
  const names = sentNames(sent);
  const waiting = record._unknowns_ ?? {};
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
    data: { ...recordView(family, parts, stored, call.origin), ...members, unknowns, problems },
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
