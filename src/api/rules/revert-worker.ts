import { once } from 'node:events';
import { inspect } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { newId, now } from '../../model/clock.ts';
import { Failure, failureFrom, type FailureCode } from '../../model/failure.ts';
import { revertsWaitingMax } from '../../model/limits.ts';
import { openStore } from '../../store/open.ts';
import { runRevert, type RevertRequest, type RevertResult } from './invalidate.ts';

/** What a worker of this module is started with. */
interface Job {
  readonly revert: { readonly folder: string; readonly request: RevertRequest };
}

/** What it answers: a failure loses its class on the way. */
type Told =
  | { readonly result: RevertResult }
  | {
      readonly code: FailureCode;
      readonly message: string;
      readonly field: string | undefined;
      readonly cause: string | undefined;
    };

/**
 * Carries out a large invalidate in a thread of its own, with a store of its own on the same
 * folder, so that a hundred thousand rows keep nobody waiting for a page. Rejects as runRevert
 * does.
 */
export async function revertInThread(
  folder: string,
  request: RevertRequest,
): Promise<RevertResult> {
  if (waiting >= revertsWaitingMax) {
    throw new Failure('unavailable', 'Several large invalidates are under way; try again later.', {
      retryAfterSeconds: 10,
    });
  }
  waiting += 1;
  // One after the other: each of them is worth a core and some memory.
  const mine = latest.then(() => runInThread(folder, request));
  latest = mine.then(ended, ended);
  return mine;
}

let waiting = 0;
let latest: Promise<void> = Promise.resolve();

function ended(): void {
  waiting -= 1;
}

async function runInThread(folder: string, request: RevertRequest): Promise<RevertResult> {
  const job: Job = { revert: { folder, request } };
  const worker = new Worker(new URL(import.meta.url), { workerData: job });
  const [told] = (await once(worker, 'message')) as [Told];
  if ('result' in told) return told.result;
  const { code, message, field, cause } = told;
  throw new Failure(code, message, {
    ...(field !== undefined && { field }),
    ...(cause !== undefined && { cause: new Error(cause) }),
  });
}

async function work({ folder, request }: Job['revert']): Promise<Told> {
  const store = await openStore({ folder, now, newId });
  try {
    return { result: await runRevert(store, request) };
  } catch (thrown) {
    const { code, message, field, cause } = failureFrom(thrown);
    return { code, message, field, cause: cause === undefined ? undefined : inspect(cause) };
  } finally {
    await store.close();
  }
}

const job = workerData as Partial<Job> | null;
if (!isMainThread && job?.revert !== undefined) parentPort?.postMessage(await work(job.revert));
