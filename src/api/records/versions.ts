import type { ShowFields } from '../rules/former-secrets.ts';
import type { HistoryRow, RevertibleFamily } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { JsonObject } from '../../model/json.ts';
import { historyCharactersMax, historyRowsDefault, historyRowsMax } from '../rules/limits.ts';
import type { Reads, StoredVkClaim, VkClaim } from '../../store/store.ts';
import { claimName, earlierClaim, requestHashOf } from './idempotency.ts';
import { asOfProperty } from './moment.ts';
import { authorOf, type Call } from '../operation.ts';

/** The input of a read: the record by its id, as it is or was, or its history. */
export interface ReadInput {
  id: string;
  limit?: number;
  before?: number;
  as_of?: string;
}

/** JSON Schema of the input of a read. */
export const readInput = {
  type: 'object',
  required: ['id'],
  properties: {
    id: { type: 'string' },
    limit: { type: 'integer', minimum: 1, maximum: historyRowsMax, nullable: true },
    before: {
      type: 'integer',
      minimum: 1,
      nullable: true,
      description: 'Of a history: only rows before this seq.',
    },
    as_of: asOfProperty,
  },
} as const;

/** JSON Schema of the input of an edit: any fields beside these. */
export const editInput = {
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'string' }, if_seq: { type: 'integer', nullable: true } },
  additionalProperties: true,
} as const;

/** The page of a history that has its newest row alone. */
export const newestRow = { before: undefined, limit: 1 } as const;

/**
 * Whether a read asks for the history. Throws `invalid` for another query kind, and for a history
 * as of a moment.
 */
export function asksForHistory(qk: string | undefined, { as_of: asOf }: ReadInput): boolean {
  if (qk === undefined) return false;
  if (qk !== 'history') throw new Failure('invalid', 'qk can only be history.', { field: 'qk' });
  if (asOf === undefined) return true;
  throw new Failure('invalid', 'A history is read with before, not with as_of.', {
    field: 'as_of',
  });
}

/**
 * A page of the history of a record, newest first (docs/design/history.md#the-change-log), with
 * where the next one starts; undefined where there never was one. A page may be short of `limit`
 * and still have a next one.
 */
export function historyView(
  store: Pick<Reads, 'history'>,
  family: RevertibleFamily,
  { id, limit, before }: ReadInput,
  show: ShowFields = (_id, fields) => fields,
): { readonly rows: readonly object[]; readonly next: number | null } | undefined {
  const rows = store.history(family, id, {
    before,
    limit: limit ?? historyRowsDefault,
    characters: historyCharactersMax,
  });
  // A record may have rows, and none below `before`.
  const [first] = rows.length > 0 ? rows : store.history(family, id, newestRow);
  if (first === undefined) return undefined;
  const last = rows.at(-1);
  // Every record begins with its insert.
  const next = last === undefined || last.action === 'insert' ? null : last.seq;
  return { rows: rows.map((row) => rowView(id, row, show)), next };
}

/**
 * A row as the history shows it: what was invalidated stands under another name
 * (docs/design/history.md#the-change-log).
 */
function rowView(id: string, { data, invalidated, ...row }: HistoryRow, show: ShowFields): object {
  const shown = { id, ...show(id, data) };
  return invalidated === undefined
    ? { ...row, data: shown }
    : { ...row, invalidated, data_invalidated: shown };
}

/**
 * How a request is known again, with what it wrote when it came first
 * (docs/design/history.md#idempotency-and-concurrency).
 */
export function idempotency(
  name: string,
  v: JsonObject,
  call: Call,
): {
  readonly requestHash: string;
  /** What is remembered of the request under its vk. */
  readonly claim: (vk: string) => VkClaim;
  /** What an earlier request with a vk wrote. Throws `conflict` where that was another request. */
  readonly earlier: (reads: Reads, vk: string) => StoredVkClaim | undefined;
} {
  const by = authorOf(call);
  const ifMatch = call.fields['if-match'];
  const requestHash = requestHashOf(ifMatch === undefined ? [name, v] : [name, v, ifMatch]);
  return {
    requestHash,
    claim: (vk) => ({ vk: claimName({ by, vk, requestHash }), requestHash }),
    earlier: (reads, vk) => earlierClaim(reads, { by, vk, requestHash }),
  };
}

/** Throws `precondition_failed` where a record is not at the seq that a caller counts on. */
export function requireSeq(
  seq: number,
  ifSeq: number | undefined,
  ifMatch: string | undefined,
): void {
  // RFC 9110 §13.1.1 for If-Match; if_seq says the same inside the envelope.
  const tags = ifMatch?.split(',').map((tag) => tag.trim());
  const isOfSeq = (tag: string): boolean => tag === `"${seq}"` || tag.startsWith(`"${seq}-`);
  const matches = tags === undefined || tags.includes('*') || tags.some(isOfSeq);
  if (matches && (ifSeq === undefined || ifSeq === seq)) return;
  throw new Failure(
    'precondition_failed',
    `The record has moved on to seq ${seq}; read it again before editing.`,
    { field: matches ? 'if_seq' : 'If-Match' },
  );
}
