import type { Change, ChangeAuthor } from '../../../core/log/change.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { rowInsert, type OutboxClaim } from '../log/outbox.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import type { Call, Operation, OperationResult } from '../../../core/operations/operation.ts';
import { familyFor } from '../../../core/operations/records/family.ts';
import { isRecentTxn } from '../../../core/operations/records/idempotency.ts';
import { insertOperation } from '../../../core/operations/records/write.ts';
import { rowFamily, type RowParts } from '../../tables/rows/row-family.ts';
import { outboxPart } from '../log/outbox-entries.ts';
import { withReads } from '../../../core/log/reads.ts';
import { storedTables } from '../../tables/log/family.ts';

const insertRow = insertOperation(rowFamily);

/**
 * Makes the run of record.insert at a counter: it decides as usual, by the rows that the counter
 * has, and puts the row into the outbox instead of the log (docs/design/nodes.md#outbox).
 */
export function queueRows(parts: RowParts, now: () => number): Operation['run'] {
  return async (v, call) => {
    let isRepeated = false;
    const { repeatsForMs = Infinity } = familyFor(
      rowFamily,
      { operation: 'insert', v: v as JsonObject, call },
      parts.store,
      parts,
    );
    const repeats = { isKeyed: call.vk !== undefined, forMs: repeatsForMs, nowMs: now() };
    const commit = async <T>(
      author: ChangeAuthor,
      decide: (reads: Reads) => Decision<T>,
    ): Promise<T> => {
      const by = typeof author === 'string' ? author : author.by;
      const outbox = parts.store.part(outboxPart);
      let answer: (() => T) | undefined;
      await outbox.put((earlier) => {
        // The copy of the log may have the row before the outbox forgets its entry; the key of the
        // row is no conflict with a repeat of the request that inserted it.
        const of = withReads(parts.store, storedTables, { rowIdByKey: () => undefined });
        let { drafts, answer: answerOf } = decide({ ...parts.store, of });
        let [draft] = drafts;
        const taken = earlierEntry(draft?.vk && earlier(draft.vk.vk), repeats);
        if (taken !== undefined && taken.requestHash !== draft?.vk?.requestHash) throw otherVk();
        isRepeated = taken !== undefined;
        if (!isRepeated) {
          ({ drafts, answer: answerOf } = decide(parts.store));
          [draft] = drafts;
        }
        const made = draft && { ...draft, id: taken?.id ?? draft.id };
        const dtu_txn = new Date(now()).toISOString();
        answer = () => answerOf(made === undefined ? [] : [provisional(made, { by, dtu_txn })]);
        if (made === undefined || isRepeated) return undefined;
        const { id, data, vk } = made;
        return { id, a: rowInsert, v: data, by, dtu_txn, ...(vk !== undefined && { vk }) };
      });
      if (answer === undefined) throw new TypeError('the outbox made no decision');
      return answer();
    };
    const taken = insertRow.run({ ...parts, store: { ...parts.store, commit } });
    return withoutSeq(await taken(v, call), isRepeated);
  };
}

/**
 * Stores a row that a node took, once; resolves to its seq. Rejects as record.insert does for the
 * key of the node.
 */
export async function storeTakenRow(
  parts: RowParts,
  { id, v, dtu_txn }: { readonly id: string; readonly v: JsonObject; readonly dtu_txn: string },
  call: Call,
): Promise<number> {
  const commit: Store['commit'] = (author, decide) =>
    parts.store.commit(author, (reads) => ({ ...decide(reads), dtu_txn }));
  const store = { ...parts.store, commit };
  const insert = insertRow.run({ ...parts, store, newId: () => id });
  const outcome = await insert(v, { ...call, vk: `outbox:${id}`, isStrict: false });
  const { seq } = (outcome.kind === 'data' ? outcome.data : {}) as { readonly seq?: number };
  return seq ?? 0;
}

/**
 * The request that a row repeats: any one with its vk, or without a vk the one that waits in the
 * outbox, as the log has the others.
 */
function earlierEntry(
  claim: OutboxClaim | undefined,
  repeats: { readonly isKeyed: boolean; readonly forMs: number; readonly nowMs: number },
): OutboxClaim | undefined {
  const { isKeyed, forMs, nowMs } = repeats;
  if (claim === undefined || isKeyed) return claim;
  return claim.seq === null && isRecentTxn(claim.dtu_txn, nowMs, forMs) ? claim : undefined;
}

/** The change as the centre will log it, without its seq. */
function provisional(
  { family, id, action, data }: LoggedDraft,
  { by, dtu_txn }: { readonly by: string; readonly dtu_txn: string },
): Change {
  return { seq: 0, dtu_txn, dtu_stored: dtu_txn, by, txn: '', family, id, action, data };
}

/** The answer about a row that the log does not have yet. */
function withoutSeq(outcome: OperationResult, isRepeated: boolean): OperationResult {
  if (outcome.kind !== 'data' || outcome.replayed === true) return outcome;
  const { etag: _etag, ...rest } = outcome;
  const data = { ...(outcome.data as object), seq: null };
  return { ...rest, data, ...(isRepeated && { replayed: true }) };
}

function otherVk(): Failure {
  return new Failure(
    'conflict',
    'This vk was used before for another request. Send each request with a vk of its own.',
    { field: 'vk' },
  );
}
