import { createHash } from 'node:crypto';
import type { HistoryRow, RevertibleFamily } from '../../log/change.ts';
import type { Reads } from '../../log/store.ts';
import { Failure } from '../../values/failure.ts';
import type { Json, JsonObject } from '../../values/json/json.ts';
import {
  type Call,
  type OperationDefinition,
  type OperationResult,
  defineOperation,
} from '../operation.ts';
import {
  type FamilyCall,
  type RecordFamily,
  type RecordFields,
  type RecordParts,
  type StoredRecord,
  familyFor,
  findRecord,
  namedId,
} from './family.ts';
import { namedAuthor } from '../keys/author-name.ts';
import { historyCharactersMax } from './limits.ts';
import { asOfProperty, seqOfMoment } from './moment.ts';
import { historyQuery, historyRows, namingMembers, recordSchemas } from './schema.ts';
import { type ShowFields, shownTo } from './shown.ts';

const historyRowsDefault = 100;
const historyRowsMax = 1_000;

/** Characters of an unknown id that a failure repeats. */
const shownIdCharactersMax = 80;

interface ReadInput {
  id?: string;
  limit?: number;
  before?: number;
  as_of?: string;
}

/**
 * read of a family: the whole record, now or at a moment of the past, or with `qk=history` its
 * rows, newest first. Refuses with `not_found`.
 */
export function readOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, schema, summaries, part } = family;
  const naming = namingMembers(part);
  const input = {
    type: 'object',
    required: naming.required,
    // A key names a row by the field that its table decides.
    ...(part !== undefined && { additionalProperties: true }),
    properties: {
      ...naming.properties,
      limit: { type: 'integer', minimum: 1, maximum: historyRowsMax, nullable: true },
      before: {
        type: 'integer',
        minimum: 1,
        nullable: true,
        description: 'Only for a history: rows before this seq.',
      },
      as_of: asOfProperty,
    },
  } as const;
  return defineOperation({
    name: `svc1.${name}.read`,
    scope: scopes.read,
    ...(family.tableDecides && { tableDecides: true }),
    effect: 'reads',
    inDrafts: true,
    summary: summaries?.read ?? `Reads a ${noun}, or its history (qk=history), newest row first.`,
    input,
    envelope: { qk: historyQuery },
    output: { oneOf: [recordSchemas(schema).record, historyRows] },
    etag: true,
    failures: ['not_found'],
    run: (parts: Parts) => {
      const read = (v: ReadInput, call: Call): OperationResult => {
        const { store } = parts;
        const { as_of: asOf } = v;
        const given: FamilyCall = { operation: 'read', v: v as JsonObject, call, input };
        const bound = familyFor(family, given, store, parts);
        const id = namedId(bound, v as JsonObject, store);
        const show = shownTo(bound, [store], call.caller);
        if (isHistoryRead(call.qk, v)) {
          const isKnown = bound.hadRecord?.(store, id) ?? true;
          const isShown = isKnown ? bound.shownRows?.(store, id) : undefined;
          const nameOf = (by: string) => namedAuthor(store, by, call.caller);
          const shown = { show, isShown, nameOf };
          const history = isKnown ? historyView(store, name, { ...v, id }, shown) : undefined;
          if (history === undefined) throw noSuchRecord(family, v.id);
          return { kind: 'data', data: history };
        }
        const seq = asOf === undefined ? undefined : seqOfMoment(store, 'as_of', asOf);
        const found = findRecord(bound, store, { id, seq });
        if (found === undefined) throw noSuchRecord(family, v.id);
        const stored = seq === undefined ? found : shownRecord(found, show);
        return {
          kind: 'data',
          data: recordView(bound, parts, stored, call.origin),
          etag: recordEtag(bound, parts, stored, call.origin),
        };
      };
      return (v, call) => {
        const waiting = family.prepare?.(call);
        return waiting === undefined ? read(v, call) : waiting.then(() => read(v, call));
      };
    },
  });
}

/** A record of the past as a reader sees it. */
export function shownRecord<R extends RecordFields>(
  stored: StoredRecord<R>,
  show: ShowFields,
): StoredRecord<R> {
  const { record } = stored;
  const fields = show(record.id, record as unknown as JsonObject);
  return { ...stored, record: fields as unknown as R };
}

/**
 * The failure for an input that names no record. `id` is that of the input: the id that belongs to
 * its key may be of a record that the caller may not see.
 */
export function noSuchRecord({ noun }: { readonly noun: string }, id?: Json): Failure {
  if (typeof id !== 'string') {
    return new Failure('not_found', `There is no ${noun} with this key.`, {});
  }
  const shown = JSON.stringify(id.slice(0, shownIdCharactersMax));
  return new Failure('not_found', `There is no ${noun} ${shown}.`, { field: 'id' });
}

/** A record as a reader sees it: its fields, those that the server adds, and its seq. */
export function recordView<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  stored: StoredRecord<R>,
  origin: string,
  written?: JsonObject,
): JsonObject {
  const { record } = stored;
  const view = family.view?.(record, written) ?? (record as unknown as JsonObject);
  return { ...view, ...shownMembers(family, parts, stored, origin) };
}

/** The members that a reader sees besides the fields of a record. */
export function shownMembers<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  { record, seq }: StoredRecord<R>,
  origin: string,
): JsonObject {
  return { ...family.serverFields?.(record, parts, origin, seq), seq };
}

/**
 * The strong validator of a record as recordView shows it: its seq and, if the server adds fields,
 * a digest of these. If-Match compares the seq alone.
 */
export function recordEtag<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  { record, seq }: StoredRecord<R>,
  origin: string,
): string {
  const added = family.serverFields?.(record, parts, origin, seq) ?? {};
  if (Object.keys(added).length === 0) return `"${seq}"`;
  const digest = createHash('sha256').update(JSON.stringify(added)).digest('base64url');
  return `"${seq}-${etagOfDigest(digest).slice(1)}`;
}

/** The strong validator that a digest of the data makes. */
export function etagOfDigest(digest: string): string {
  return `"${digest.slice(0, etagCharacters)}"`;
}

const etagCharacters = 27;

/** Throws `invalid` for another query kind, and for a history with `as_of`. */
function isHistoryRead(qk: string | undefined, { as_of: asOf }: ReadInput): boolean {
  if (qk === undefined) return false;
  if (qk !== 'history') throw new Failure('invalid', 'qk can only be history.', { field: 'qk' });
  if (asOf === undefined) return true;
  throw new Failure('invalid', 'A history takes before, not as_of.', { field: 'as_of' });
}

/**
 * A page of the history of a record, newest row first (docs/design/history.md#history-rows), with
 * the start of the next page; undefined if there never was such a record. A page may have fewer
 * rows than `limit` and still have a next one.
 */
function historyView(
  store: Pick<Reads, 'history'>,
  name: RevertibleFamily,
  { id, limit, before }: ReadInput & { readonly id: string },
  {
    show,
    isShown = () => true,
    nameOf,
  }: {
    readonly show: ShowFields;
    readonly isShown: ((seq: number) => boolean) | undefined;
    readonly nameOf: (by: string) => JsonObject;
  },
): { readonly rows: readonly object[]; readonly next: number | null } | undefined {
  const rows = store.history(name, id, {
    before,
    limit: limit ?? historyRowsDefault,
    characters: historyCharactersMax,
  });
  // A record may have rows, but none below `before`.
  const [first] = rows.length > 0 ? rows : store.history(name, id, newestRow);
  if (first === undefined) return undefined;
  const last = rows.at(-1);
  // The first row of every record is its insert.
  const next = last === undefined || last.action === 'insert' ? null : last.seq;
  const seen = rows.filter(({ seq }) => isShown(seq));
  return { rows: seen.map((row) => rowView(id, row, { show, nameOf })), next };
}

/** The page of a history that has only its newest row. */
export const newestRow = { before: undefined, limit: 1 } as const;

/** A row of a history; the data of an invalidated row has another name. */
function rowView(
  id: string,
  { data, invalidated, seq, txn, by, ...rest }: HistoryRow,
  { show, nameOf }: { readonly show: ShowFields; readonly nameOf: (by: string) => object },
): object {
  const row = { seq, txn, by, ...nameOf(by), ...rest };
  const shown = { id, ...show(id, data) };
  return invalidated === undefined
    ? { ...row, data: shown }
    : { ...row, invalidated, data_invalidated: shown };
}
