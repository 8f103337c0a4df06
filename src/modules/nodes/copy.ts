import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { retryUntilAborted } from '../../core/background/retry-loop.ts';
import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure, stoppingFailure } from '../../core/values/failure.ts';
import { type CopyInThread, type CopyParts, copyMissing, readCentralEnd } from './copy-rows.ts';
import { centralRetry } from './limits.ts';
import { completeMark, copyFolder } from './log/carry-over.ts';
import { rowLogPart } from './log/open-row-log.ts';

interface FolderParts extends Omit<CopyParts, 'store'> {
  readonly log: Log;
  readonly openStore: (folder: string) => Promise<Store>;
  readonly copyInThread: CopyInThread;
}

/**
 * Copies the log of the centre into the empty store of a new node; waits until the centre can be
 * reached. Rejects with the Failure of the centre if that refuses the node, with `conflict` for a
 * store with a log of its own, and with `unavailable` if the signal aborts.
 */
export async function copyFirst(
  parts: CopyParts & { readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  await untilReached(parts.log, signal, async () => {
    const { log: id, generation } = await readCentralEnd(parts);
    await parts.store.part(rowLogPart).follow({ id, generation }, parts.central.client.url);
    await copyMissing(parts, signal, { min: 1 });
    if (!signal.aborted) await parts.store.part(rowLogPart).complete();
  });
}

/**
 * Copies the log of the centre into a folder inside the data folder, which replaces the data at
 * the next start (replaceWithCopy). Continues a copy that was interrupted. Rejects as copyFirst.
 */
export async function copyAgain(
  data: string,
  { openStore, ...parts }: FolderParts,
  signal: AbortSignal,
): Promise<void> {
  const folder = join(data, copyFolder);
  await untilReached(parts.log, signal, async () => {
    let store = await openStore(folder);
    try {
      const { log: id, generation } = await readCentralEnd(parts);
      if (store.part(rowLogPart).identity().id !== id && store.seq() > 0) {
        await store.close();
        await rm(folder, { recursive: true, force: true });
        store = await openStore(folder);
      }
      await store.part(rowLogPart).follow({ id, generation }, parts.central.client.url);
      await copyMissing({ ...parts, store }, signal, {
        min: 1,
        copy: () => parts.copyInThread(parts, folder, signal),
      });
      if (!signal.aborted) await store.part(rowLogPart).complete();
    } catch (error) {
      if (error instanceof Failure && error.code === 'conflict') {
        await store.close();
        await rm(folder, { recursive: true, force: true });
      }
      throw error;
    } finally {
      await store.close();
    }
  });
  await writeFile(join(folder, completeMark), '');
}

/** Repeats an action until it succeeds or fails for another reason than a lost connection. */
async function untilReached(
  log: Log,
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> {
  let logged: string | undefined;
  const attempt = async (): Promise<'done'> => {
    await act();
    return 'done';
  };
  const failed = (error: unknown): void => {
    const isLost = error instanceof Failure && passing.has(error.code);
    if (!isLost) throw error;
    if (error.message !== logged) log.warn({}, `Waiting for the centre: ${error.message}`);
    logged = error.message;
  };
  await retryUntilAborted(attempt, { ...centralRetry, signal, failed });
  if (signal.aborted) throw stoppingFailure();
}

const passing: ReadonlySet<string> = new Set(['unavailable', 'bad_gateway', 'rate_limited']);
