import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { inspect } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { newId, now } from '../model/clock.ts';
import { Failure, failureFrom, type FailureCode } from '../model/failure.ts';
import { largeWritesWaitingMax } from './limits.ts';
import { openStore } from '../store/open.ts';
import { createSecret } from '../webhooks/sign.ts';
import { runRevert, type RevertRequest, type RevertResult } from './records/invalidate.ts';
import { runImport, type ImportReport, type ImportRequest } from './transfer/import-operation.ts';

/** A write of many rows, and what it answers. */
interface LargeWrites {
  readonly revert: { readonly request: RevertRequest; readonly result: RevertResult };
  readonly import: { readonly request: ImportRequest; readonly result: ImportReport };
}

type Kind = keyof LargeWrites;

/** What the thread of this module is started with. */
interface Job<K extends Kind = Kind> {
  readonly largeWrite: {
    readonly kind: K;
    readonly folder: string;
    readonly request: LargeWrites[K]['request'];
  };
}

/** What the thread answers: a failure loses its class on the way. */
type Told =
  | { readonly result: LargeWrites[Kind]['result'] }
  | {
      readonly code: FailureCode;
      readonly message: string;
      readonly field: string | undefined;
      readonly cause: string | undefined;
    };

/**
 * Carries out a large invalidate or import in a thread of its own, with a store of its own on the
 * same folder, so that a hundred thousand rows delay no page. Rejects as runRevert and runImport
 * do, or with `unavailable` when several wait already.
 */
export async function writeInThread<K extends Kind>(
  folder: string,
  kind: K,
  request: LargeWrites[K]['request'],
): Promise<LargeWrites[K]['result']> {
  if (waiting >= largeWritesWaitingMax) {
    throw new Failure(
      'unavailable',
      'Several large imports or invalidates are under way; try again later.',
      { retryAfterSeconds: 10 },
    );
  }
  waiting += 1;
  // One after the other: each of them is worth a core and some memory.
  const mine = latest.then(() => runInThread<K>({ folder, kind, request }));
  latest = mine.then(ended, ended);
  return mine;
}

let waiting = 0;
let latest: Promise<void> = Promise.resolve();

function ended(): void {
  waiting -= 1;
}

async function runInThread<K extends Kind>(
  largeWrite: Job<K>['largeWrite'],
): Promise<LargeWrites[K]['result']> {
  const workerData: Job<K> = { largeWrite };
  const worker = new Worker(new URL(import.meta.url), { workerData });
  const [told] = (await once(worker, 'message')) as [Told];
  if ('result' in told) return told.result;
  const { code, message, field, cause } = told;
  throw new Failure(code, message, {
    ...(field !== undefined && { field }),
    ...(cause !== undefined && { cause: new Error(cause) }),
  });
}

async function work(job: Job['largeWrite']): Promise<Told> {
  const store = await openStore({ folder: job.folder, now, newId });
  try {
    const parts = { store, newId, newSecret: () => createSecret(randomBytes) };
    const result = isImport(job)
      ? await runImport(parts, job.request)
      : await runRevert(store, job.request as RevertRequest);
    return { result };
  } catch (thrown) {
    const { code, message, field, cause } = failureFrom(thrown);
    return { code, message, field, cause: cause === undefined ? undefined : inspect(cause) };
  } finally {
    await store.close();
  }
}

function isImport(job: Job['largeWrite']): job is Job<'import'>['largeWrite'] {
  return job.kind === 'import';
}

const job = workerData as Partial<Job> | null;
if (!isMainThread && job?.largeWrite !== undefined) {
  parentPort?.postMessage(await work(job.largeWrite));
}
