import type { ToolUse } from '../../core/log/change.ts';
import type { LoggedDraft, Reads, Store } from '../../core/log/store.ts';
import { createExecute, type Execute } from '../../core/operations/execute.ts';
import type { Call, Operation } from '../../core/operations/operation.ts';
import { findClaim } from '../../core/operations/records/idempotency.ts';
import { Failure, failureFrom, type Problem } from '../../core/values/failure.ts';
import { now } from '../../core/values/clock.ts';
import { parseJson } from '../../core/values/json/parse.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import type { Caller } from '../../core/values/key.ts';
import { unknownVisitor } from '../rules/operations/preview.ts';
import { draftStore, openDraftNamed } from '../drafts/log/draft-store.ts';

/** The operations that a batch can have. */
export const batchNames = [
  'svc1.userinterface.insert',
  'svc1.userinterface.edit',
  'svc1.webhook.insert',
  'svc1.webhook.edit',
  'svc1.table.insert',
  'svc1.table.edit',
  'svc1.record.insert',
  'svc1.record.edit',
  'svc1.event.insert',
] as const;

/**
 * How long the operations of one batch may take: until they end, every other write of the folder
 * waits.
 */
const batchMsMax = 20_000;

/** A batch as data, which another thread can run. */
export interface BatchRequest {
  /** The JSON of its operations. */
  readonly operations: string;
  /** The author: the id of the key. */
  readonly by: string;
  readonly caller: Omit<Caller, 'apikey'>;
  readonly origin: string;
  readonly isStrict: boolean;
  readonly via?: ToolUse | undefined;
  readonly vk: string | undefined;
  readonly dry: boolean;
  /** The id of the draft that it changes instead of the live state. */
  readonly draft?: string;
}

/** What one operation did, or would do. */
export interface BatchResult {
  readonly a: string;
  readonly id?: string;
  readonly seq?: number;
  readonly changed?: readonly string[];
  readonly vk?: string;
  readonly replayed?: true;
  readonly secret?: string;
  readonly hooks?: number;
  readonly unknowns?: readonly string[];
  readonly problems?: readonly Problem[];
  readonly error?: { readonly code: string; readonly message: string; readonly field?: string };
}

/** The report of a batch, and the seq of its last change. */
export interface BatchReport {
  readonly report: {
    readonly done: boolean;
    readonly txn: string | null;
    readonly inserted: number;
    readonly edited: number;
    readonly unchanged: number;
    readonly failed: number;
    readonly results: readonly BatchResult[];
  };
  readonly seq: number;
}

interface BatchedOperation {
  readonly a: string;
  readonly v: JsonObject;
  readonly vk?: string;
}

/**
 * Runs a batch in a thread that does nothing else. `bind` gives the operations of batchNames the
 * store that they write to. Rejects with the failure of the first operation that fails, which a dry
 * run reports; with `too_large` after batchMsMax, by a clock in milliseconds.
 */
export async function runBatch(
  store: Store,
  request: BatchRequest,
  bind: (store: Store) => readonly Operation[],
  clockMs: () => number = () => performance.now(),
): Promise<BatchReport> {
  const operations = parseJson(request.operations) as readonly BatchedOperation[];
  const { dry } = request;
  const { result, seqOf } = await store.together(
    (inside) => runAll(inside, { request, operations, bind, clockMs }),
    () => !dry,
  );
  const results = result.results.map((one) =>
    one.seq === undefined ? one : { ...one, seq: seqOf(one.seq) },
  );
  const seq = seqOf(result.lastSeq);
  const txn = dry || result.lastSeq === 0 ? null : (store.change(seq)?.txn ?? null);
  const { inserted, edited, unchanged, failed } = countsOf(results);
  return { report: { done: !dry, txn, inserted, edited, unchanged, failed, results }, seq };
}

interface Whole {
  readonly results: readonly BatchResult[];
  /** The seq of the last change; 0 if nothing was written. */
  readonly lastSeq: number;
}

async function runAll(
  inside: Store,
  {
    request,
    operations,
    bind,
    clockMs,
  }: {
    readonly request: BatchRequest;
    readonly operations: readonly BatchedOperation[];
    readonly bind: (store: Store) => readonly Operation[];
    readonly clockMs: () => number;
  },
): Promise<Whole> {
  const { draft, dry } = request;
  const endMs = clockMs() + batchMsMax;
  const recorder = recordingStore(inside);
  const target =
    draft === undefined
      ? recorder.store
      : draftStore(recorder.store, openDraftNamed(inside, draft));
  const execute = executeFor(bind(target));
  const results: BatchResult[] = [];
  for (const [index, operation] of operations.entries()) {
    recorder.clear();
    if (clockMs() > endMs) throw tooSlow(index);
    try {
      const outcome = await runOne(execute, { request, operation, index });
      results.push({ a: operation.a, ...outcome, changed: changedBy(recorder.drafts()) });
    } catch (error) {
      const failure = placed(failureFrom(error), operation.a, index);
      if (!dry) throw failure;
      results.push({ a: operation.a, error: errorOf(failure) });
    }
  }
  requireWholeRepeat(target, request, results);
  return { results, lastSeq: recorder.lastSeq() };
}

/** The failure of a batch that has used up its time. */
function tooSlow(done: number): Failure {
  const message =
    `The first ${done} operations took ${batchMsMax / 1_000} seconds, in which no other write ` +
    'was possible. Nothing was written: send them as several batches.';
  return new Failure('too_large', message, { field: 'operations' });
}

function executeFor(operations: readonly Operation[]): Execute {
  const table = new Map(operations.map((one) => [one.name, one]));
  return createExecute(operations, {
    // The batch has counted as one call.
    keyRates: { count: () => undefined },
    inDraft(_draft, name) {
      const found = table.get(name);
      if (found === undefined) throw new TypeError(`${name} is not bound`);
      return found;
    },
  });
}

async function runOne(
  execute: Execute,
  {
    request,
    operation: { a, v, vk },
    index,
  }: {
    readonly request: BatchRequest;
    readonly operation: BatchedOperation;
    readonly index: number;
  },
): Promise<Omit<BatchResult, 'a' | 'changed'>> {
  const outcome = await execute.run(a, v, callOf(request, vk ?? placeVk(request.vk, index)));
  if (outcome.kind !== 'data') throw new TypeError(`${a} answers no data`);
  const data = outcome.data as JsonObject;
  if (data.done === false) throw unconfirmed(data);
  const { id, seq, secret, hooks, unknowns = [], problems = [] } = data as unknown as BatchResult;
  return {
    ...(id !== undefined && { id }),
    ...(typeof seq === 'number' && { seq }),
    ...(outcome.vk !== undefined && { vk: outcome.vk }),
    ...(outcome.replayed === true && { replayed: true }),
    ...(secret !== undefined && { secret }),
    ...(hooks !== undefined && { hooks }),
    ...(unknowns.length > 0 && { unknowns }),
    ...(problems.length > 0 && { problems }),
  };
}

/** The vk of an operation without one of its own. */
function placeVk(vk: string | undefined, index: number): string | undefined {
  return vk === undefined ? undefined : `${vk}#${index}`;
}

/** A change of a table that makes values of rows invalid has to be confirmed. */
function unconfirmed({ digest, invalid }: JsonObject): Failure {
  return new Failure(
    'precondition_failed',
    `The new schema makes values of ${JSON.stringify(invalid)} rows invalid. To carry the edit ` +
      `out all the same, add confirm: ${JSON.stringify(digest)}.`,
    { field: 'confirm' },
  );
}

function callOf(request: BatchRequest, vk: string | undefined): Call {
  const { caller, origin, isStrict, via, draft } = request;
  return {
    ...{ caller, origin, isStrict, vk, fields: {}, transport: 'http' },
    // A batch is sent with a key: no visitor has signed in.
    visitor: unknownVisitor(now()),
    qk: undefined,
    ...(via !== undefined && { via }),
    ...(draft !== undefined && { draft }),
    signal: () => new AbortController().signal,
  };
}

/** A store that remembers the drafts of the latest commit. */
function recordingStore(store: Store): {
  readonly store: Store;
  readonly clear: () => void;
  readonly drafts: () => readonly LoggedDraft[];
  readonly lastSeq: () => number;
} {
  let latest: readonly LoggedDraft[] = [];
  let last = 0;
  return {
    store: {
      ...store,
      commit: (author, decide) =>
        store.commit(author, (reads) => {
          const decision = decide(reads);
          latest = decision.drafts;
          return {
            ...decision,
            answer: (rows) => {
              last = rows.at(-1)?.seq ?? last;
              return decision.answer(rows);
            },
          };
        }),
    },
    clear: () => {
      latest = [];
    },
    drafts: () => latest,
    lastSeq: () => last,
  };
}

function changedBy([first]: readonly LoggedDraft[]): readonly string[] {
  if (first === undefined) return [];
  const { family, data } = first;
  const fields = family === 'draftchange' ? (data.data as JsonObject) : data;
  return Object.keys(fields);
}

/** The failure of an operation, with its place in the batch. */
function placed(failure: Failure, a: string, index: number): Failure {
  const { code, field, message } = failure;
  if (code === 'internal' || code === 'storage_full') return failure;
  const said = `Operation ${index} (${a}): ${message}`;
  // All operations are in the draft of the batch.
  if (field === 'draft') return failure.at(said, field);
  const inside = field === undefined || field === 'vk' ? field : `v.${field}`;
  const place = `operations.${index}`;
  return failure.at(said, inside === undefined ? place : `${place}.${inside}`);
}

function errorOf({ code, message, field }: Failure): NonNullable<BatchResult['error']> {
  return { code, message, ...(field !== undefined && { field }) };
}

/**
 * Throws `conflict` for a vk that was used for a batch with fewer or with more operations: each
 * operation alone has found its own request again.
 */
function requireWholeRepeat(
  reads: Pick<Reads, 'vkClaim'>,
  { vk, by, operations }: BatchRequest,
  results: readonly BatchResult[],
): void {
  if (vk === undefined) return;
  const own = results.filter((one, index) => one.vk === placeVk(vk, index));
  const repeated = own.filter(({ replayed }) => replayed === true).length;
  const next = `${vk}#${results.length}`;
  const request = { by, vk: next, requestHash: operations, formerHashes: [] };
  const isLonger = repeated > 0 && findClaim(reads, request) !== undefined;
  if (!isLonger && (repeated === 0 || repeated === own.length)) return;
  throw new Failure(
    'conflict',
    'This vk was used before for another batch. Send each batch with a vk of its own.',
    { field: 'vk' },
  );
}

function countsOf(
  results: readonly BatchResult[],
): Record<'inserted' | 'edited' | 'unchanged' | 'failed', number> {
  const counts = { inserted: 0, edited: 0, unchanged: 0, failed: 0 };
  for (const { a, changed = [], replayed, error } of results) {
    if (error !== undefined) counts.failed += 1;
    else if (replayed === true || changed.length === 0) counts.unchanged += 1;
    else if (a.endsWith('.insert')) counts.inserted += 1;
    else counts.edited += 1;
  }
  return counts;
}
