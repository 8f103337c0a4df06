import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { inspect } from 'node:util';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { Config } from '../../core/config/config.ts';
import { SharedLimit } from '../../core/fair/shared-limit.ts';
import type { Store } from '../../core/log/store.ts';
import { bindOperations } from '../../core/operations/operation.ts';
import type { WriteReport } from '../../core/operations/records/idempotency.ts';
import { runRevert } from '../../core/operations/records/invalidate.ts';
import type { RevertRequest } from '../../core/operations/records/revert.ts';
import { silentLog } from '../../core/report/log.ts';
import { newId, now } from '../../core/values/clock.ts';
import { Failure, type FailureCode, type Problem, failureFrom } from '../../core/values/failure.ts';
import { type BatchSettings, batched, createBatchParts } from '../../modules/batch/batch-parts.ts';
import { type BatchReport, type BatchRequest, runBatch } from '../../modules/batch/run-batch.ts';
import { revertedFamilies } from '../../modules/changes/invalidate-changes.ts';
import { draftStore, openDraftNamed } from '../../modules/drafts/log/draft-store.ts';
import { type PublishRequest, runPublish } from '../../modules/drafts/operations/publish.ts';
import { type UndoRequest, runUndo } from '../../modules/drafts/operations/undo.ts';
import {
  type ImportRequest,
  type ImportResult,
  runImport,
} from '../../modules/transfer/import-operation.ts';
import { createSecret } from '../../modules/webhooks/sign.ts';
import { openData } from '../open-data.ts';

/** Large invalidates and imports at the same time, those that wait, and how long. */
const largeWritesAtOnceMax = 2;
const largeWritesWaitingMax = 4;
const largeWriteWaitMs = 600_000;

/** The kinds of large writes. */
interface LargeWrites {
  readonly publish: { readonly request: PublishRequest; readonly result: WriteReport };
  readonly undo: { readonly request: UndoRequest; readonly result: WriteReport };
  readonly revert: { readonly request: RevertRequest; readonly result: WriteReport };
  readonly import: { readonly request: ImportRequest; readonly result: ImportResult };
  readonly batch: {
    readonly request: BatchRequest & { readonly settings: BatchSettings };
    readonly result: BatchReport;
  };
}

type Kind = keyof LargeWrites;

/** The data that the thread of this module gets at its start. */
interface Job<K extends Kind = Kind> {
  readonly largeWrite: {
    readonly kind: K;
    readonly folder: string;
    /** The cluster that the folder belongs to, if any. */
    readonly cluster: Config['cluster'];
    readonly request: LargeWrites[K]['request'];
  };
}

/** The message of the thread: a Failure would lose its class on the way. */
type Message =
  | { readonly result: LargeWrites[Kind]['result'] }
  | {
      readonly code: FailureCode;
      readonly message: string;
      readonly field: string | undefined;
      readonly problems: readonly Problem[] | undefined;
      readonly cause: string | undefined;
    };

/**
 * Runs a batch, or a large invalidate, import, publication or undo, in a thread of its own, with a
 * store of its own on the same folder, so that a hundred thousand rows delay no page. Rejects as
 * runRevert, runImport, runPublish, runUndo and runBatch do, or with `unavailable` if several wait
 * already.
 */
export async function writeInThread<K extends Kind>(
  { folder, cluster }: { readonly folder: string; readonly cluster: Config['cluster'] },
  kind: K,
  request: LargeWrites[K]['request'],
): Promise<LargeWrites[K]['result']> {
  return turns.run(request.by, () => runInThread<K>({ folder, cluster, kind, request }));
}

/**
 * Each takes a core and much memory. A caller has one of two places, so that nobody waits for the
 * whole write of another one; they commit one after the other.
 */
const turns = new SharedLimit({
  what: 'large imports, invalidates or publications',
  held: 'long',
  max: largeWritesAtOnceMax,
  waiting: { max: largeWritesWaitingMax, ms: largeWriteWaitMs },
  retryAfterSeconds: 10,
});

async function runInThread<K extends Kind>(
  largeWrite: Job<K>['largeWrite'],
): Promise<LargeWrites[K]['result']> {
  const workerData: Job<K> = { largeWrite };
  const worker = new Worker(new URL(import.meta.url), { workerData });
  const [message] = (await once(worker, 'message')) as [Message];
  if ('result' in message) return message.result;
  const { code, field, problems, cause } = message;
  throw new Failure(code, message.message, {
    ...(field !== undefined && { field }),
    ...(problems !== undefined && { problems }),
    ...(cause !== undefined && { cause: new Error(cause) }),
  });
}

async function work(job: Job['largeWrite']): Promise<Message> {
  const cluster = { settings: job.cluster, log: silentLog };
  let store: Store | undefined;
  try {
    store = await openData(job.folder, { cluster });
    return { result: await runWrite(store, job) };
  } catch (thrown) {
    const { code, message, field, problems, cause } = failureFrom(thrown);
    const inspected = cause === undefined ? undefined : inspect(cause);
    return { code, message, field, problems, cause: inspected };
  } finally {
    await store?.close();
  }
}

async function runWrite(
  store: Store,
  { kind, request }: Job['largeWrite'],
): Promise<LargeWrites[Kind]['result']> {
  if (kind === 'publish') return runPublish({ store, newId, now }, request as PublishRequest);
  if (kind === 'undo') return runUndo({ store }, request as UndoRequest);
  if (kind === 'batch') {
    const { settings, ...given } = request as LargeWrites['batch']['request'];
    return runBatch(store, given, (target) =>
      bindOperations(batched, createBatchParts(target, settings, newSecret)),
    );
  }
  const { draft } = request as RevertRequest | ImportRequest;
  const changed = draft === undefined ? store : draftStore(store, openDraftNamed(store, draft));
  if (kind === 'revert') return runRevert(changed, revertedFamilies, request as RevertRequest);
  const parts = { store: changed, newId, newSecret };
  return runImport(parts, request as ImportRequest);
}

function newSecret(): string {
  return createSecret(randomBytes);
}

const job = workerData as Partial<Job> | null;
if (!isMainThread && job?.largeWrite !== undefined) {
  parentPort?.postMessage(await work(job.largeWrite));
}
