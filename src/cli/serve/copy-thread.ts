import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Failure, type FailureCode } from '../../core/values/failure.ts';
import type { Store } from '../../core/log/store.ts';
import { createCentralClient } from '../../modules/nodes/central-client.ts';
import { copyRows, type CopyInThread, type FollowingNode } from '../../modules/nodes/copy-rows.ts';
import { openData } from '../open-data.ts';

/** The work of a thread: it copies from a centre into the data of a folder. */
interface CopyJob {
  readonly folder: string;
  readonly central: { readonly url: string; readonly apikey: string };
  readonly node: FollowingNode;
}

/** The message of the thread at its end: a Failure would lose its class on the way. */
type Outcome = { readonly code: FailureCode; readonly message: string } | undefined;

/**
 * Copies rows into the data of a folder in a thread of its own, with a store of its own, so that a
 * large transaction delays no visitor. Rejects as copyRows does; ends early when the signal aborts.
 */
export const copyInThread: CopyInThread = async (parts, folder, signal) => {
  const { central, node } = parts;
  const { client, apikey } = central;
  const copyJob: CopyJob = { folder, central: { url: client.url, apikey }, node };
  const worker = new Worker(new URL(import.meta.url), { workerData: { copyJob } });
  const stop = (): void => {
    worker.postMessage('stop');
  };
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const exited = once(worker, 'exit');
  try {
    const outcomes: Outcome[] = [];
    worker.on('message', (message: Outcome) => outcomes.push(message));
    await exited;
    const [failure] = outcomes;
    if (failure !== undefined) throw new Failure(failure.code, failure.message);
  } finally {
    signal.removeEventListener('abort', stop);
  }
};

async function work({ folder, central, node }: CopyJob): Promise<void> {
  const stopped = new AbortController();
  const stop = (): void => {
    stopped.abort();
  };
  parentPort?.once('message', stop);
  let store: Store | undefined;
  try {
    store = await openData(folder);
    const client = createCentralClient(central.url, store);
    const { apikey } = central;
    await copyRows({ store, node, central: { client, apikey } }, stopped.signal);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    parentPort?.postMessage({ code: error.code, message: error.message } satisfies Outcome);
  } finally {
    await store?.close();
    // An open port keeps the thread running.
    parentPort?.close();
  }
}

const { copyJob } = (workerData ?? {}) as { readonly copyJob?: CopyJob };
if (!isMainThread && copyJob !== undefined) await work(copyJob);
