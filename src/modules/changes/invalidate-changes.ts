import { storedHooks } from '../webhooks/log/family.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { foldKey } from '../../core/log/key-family.ts';
import type { Store } from '../../core/log/store.ts';
import { authorOf, type Call, defineOperation } from '../../core/operations/operation.ts';
import {
  type WriteReport,
  keyedRequest,
  reportResult,
} from '../../core/operations/records/idempotency.ts';
import {
  confirmedMembers,
  isSmall,
  revertFailures,
  revertOutput,
  runRevert,
} from '../../core/operations/records/invalidate.ts';
import {
  type Folding,
  type RevertReader,
  type RevertRequest,
  revertReader,
} from '../../core/operations/records/revert.ts';
import { vkMember } from '../../core/operations/records/schema.ts';
import { Failure } from '../../core/values/failure.ts';
import { canWrite, hasScope } from '../../core/values/key.ts';
import { type RuleParts, ruleFamily, rulePlacing } from '../rules/operations/rule-family.ts';
import { tableFamily } from '../tables/operations/table-family.ts';
import { rowFamily } from '../tables/rows/row-family.ts';
import { hookFamily } from '../webhooks/operations/hook-family.ts';
import { deliveriesPart } from '../webhooks/log/delivery-log.ts';

/** Keys: an undone insert revokes its key, and a revocation is for good. */
const keyFolding: Folding = {
  name: 'key',
  noun: 'key',
  scopes: { write: 'admin' },
  fold(_before, change) {
    const { hash: _hash, ...record } = foldKey(undefined, change) ?? {};
    return { record, seq: change.seq, insertedSeq: change.seq };
  },
  isRevertible: (reads, { action, id, data }) =>
    action === 'insert' && !('session' in data) && reads.key(id) !== undefined,
};

/** The families whose changes an undo takes back. */
export const revertedFamilies: readonly Folding[] = [
  tableFamily,
  ruleFamily,
  hookFamily,
  rowFamily,
  keyFolding,
];

/** The parts that change.invalidate needs. */
interface UndoParts extends Pick<RuleParts, 'engines' | 'accessNames'> {
  readonly store: Store;
  /** Runs a large undo in another thread. Rejects as runRevert does. */
  readonly revertInThread: (request: RevertRequest) => Promise<WriteReport>;
}

/**
 * svc1.change.invalidate: takes back all that a transaction has changed, over all families, in one
 * transaction (docs/design/history.md#undo). Its dry run, digest and vk are those of the families'
 * invalidate; it needs the scopes that these need. What has happened for good stays, and is named.
 */
export const invalidateChanges = defineOperation({
  name: 'svc1.change.invalidate',
  scope: undefined,
  effect: 'writes',
  inDrafts: true,
  summary:
    'Reverts all that a transaction has changed, of every family; without confirm it only ' +
    'reports that.',
  input: {
    type: 'object',
    required: ['txn'],
    properties: {
      txn: {
        type: 'string',
        description: 'The transaction: of a batch, an import, a publication.',
      },
      ...confirmedMembers,
    },
  },
  envelope: { vk: vkMember },
  output: revertOutput,
  failures: [...revertFailures, 'unauthenticated', 'forbidden'],
  run: (parts: UndoParts) => async (v, call) => {
    const { store } = parts;
    const { txn, except, confirm } = v;
    const { bounds } = call.caller;
    requireWriting(call);
    const seqs = store.txnSeqs(txn);
    if (seqs === undefined) throw noSuchTransaction();
    const by = authorOf(call);
    const request: RevertRequest = {
      selection: {
        families: familiesFor(call),
        ...{ id: undefined, txn, by: undefined, seqs },
        ...(except !== undefined && { except }),
        ...(bounds && { within: { userinterface: { bounds: bounds as JsonObject } } }),
      },
      ...{ confirm, by, via: call.via, placing: rulePlacing(parts) },
      ...{ reader: revertReader(call.caller), writer: writerOf(call) },
      request: confirm === undefined ? undefined : keyedRequest('change.invalidate', v, call),
    };
    const hooksBefore = store.of(storedHooks).hooksStamp();
    const isInline = isSmall(store, request.selection);
    const done = await (isInline
      ? runRevert(store, revertedFamilies, request)
      : parts.revertInThread(request));
    store.refresh();
    // After the answer, no delivery is sent as a hook was before.
    if (store.of(storedHooks).hooksStamp() !== hooksBefore) {
      await store.part(deliveriesPart).waitUntilApplied(Number(done.report.seq));
    }
    return reportResult(done, request.request);
  },
});

/** Keys are for people: no automated tool revokes one. */
function familiesFor({ via }: Call): RevertRequest['selection']['families'] {
  const names = revertedFamilies.map(({ name }) => name);
  return via === undefined ? names : names.filter((name) => name !== 'key');
}

/** The rights of a caller: in a draft, the scope `draft` is enough where `design` is needed. */
function writerOf({ caller, draft }: Call): RevertReader {
  const { scopes, ...others } = revertReader(caller);
  const mayDesign = draft !== undefined && hasScope(caller, 'draft');
  return { ...others, scopes: mayDesign ? new Set([...scopes, 'design'] as const) : scopes };
}

/** Throws `unauthenticated` or `forbidden` for a caller who may write nothing at all. */
function requireWriting({ caller }: Call): void {
  if (caller.keyId === undefined) {
    const how = 'svc1.change.invalidate needs an API key: send it as apikey or as bearer token.';
    throw new Failure('unauthenticated', how);
  }
  if (canWrite(caller)) return;
  const message =
    'This key may change nothing. Use one with the scopes for what the transaction has changed.';
  throw new Failure('forbidden', message, { field: 'txn' });
}

function noSuchTransaction(): Failure {
  return new Failure('not_found', 'There is no transaction with this id.', { field: 'txn' });
}
