import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../../model/failure.ts';
import { taskRetryMs } from './limits.ts';
import type { ClusterTask } from './task-turn.ts';

/** The work of a node while it has the turn of a task. */
interface TurnWork {
  /** Does the task until the signal aborts, because the node stops or has lost the turn. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  /** Called with an error of the shared log or of the task, each time; it is tried again. */
  readonly failed: (error: unknown) => void;
}

/** Does a task of the cluster whenever this node has its turn, until the signal aborts. */
export async function doInTurn(
  task: ClusterTask,
  { work, failed }: TurnWork,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const lost = new AbortController();
    try {
      await task.take(() => {
        lost.abort();
      });
      try {
        await work(AbortSignal.any([signal, lost.signal]));
      } finally {
        await task.release();
      }
    } catch (error) {
      const isOthers = error instanceof Failure && error.code === 'conflict';
      if (!isOthers && !isAborted(signal)) failed(error);
    }
    await delay(taskRetryMs, undefined, { signal }).catch(() => undefined);
  }
}

/** A function, because the signal may abort during an await. */
function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}
