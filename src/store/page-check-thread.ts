import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { checkPages, type PageCheck } from './page-check.ts';

/** The workerData of this module. */
interface Job {
  readonly pageCheck: { readonly file: string };
}

/**
 * Checks all pages of a data file in a worker thread, because reading them blocks on the disk.
 * Resolves to an incomplete check if the signal aborts; rejects with the system's error.
 */
export async function checkInThread(file: string, signal: AbortSignal): Promise<PageCheck> {
  const job: Job = { pageCheck: { file } };
  const worker = new Worker(new URL(import.meta.url), { workerData: job });
  try {
    const [check] = (await once(worker, 'message', { signal })) as [PageCheck];
    return check;
  } catch (error) {
    if (signal.aborted) return { damage: undefined, isComplete: false };
    throw error;
  } finally {
    await worker.terminate();
  }
}

function work({ file }: Job['pageCheck']): PageCheck {
  const fd = openSync(file, 'r');
  try {
    return checkPages(fd);
  } finally {
    closeSync(fd);
  }
}

const job = workerData as Partial<Job> | null;
if (!isMainThread && job?.pageCheck !== undefined) parentPort?.postMessage(work(job.pageCheck));
