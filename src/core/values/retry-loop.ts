import { setTimeout as delay } from 'node:timers/promises';

/** When a task is attempted again. */
interface RetryOptions {
  /** The pause after an attempt: at first, and at most after several without success. */
  readonly minMs: number;
  readonly maxMs: number;
  readonly signal: AbortSignal;
  /** Makes pauses up to a half shorter, so that those who failed together do not return so. */
  readonly isSpread?: boolean;
  /** Called with the error of an attempt and the pause after it. Ends the loop if it throws. */
  readonly failed: (error: unknown, pauseMs: number) => void;
}

/**
 * Attempts a task again and again until the signal aborts, or an attempt resolves to `done`. The
 * pause after an attempt, which may also end by itself, is twice as long each time; `succeeded`
 * makes it short again. Rejects with what `failed` throws.
 */
export async function retryUntilAborted(
  attempt: (succeeded: () => void) => Promise<'done' | undefined>,
  { minMs, maxMs, signal, isSpread = false, failed }: RetryOptions,
): Promise<void> {
  let pauseMs = minMs;
  const succeeded = (): void => {
    pauseMs = minMs;
  };
  while (!signal.aborted) {
    try {
      if ((await attempt(succeeded)) === 'done') return;
    } catch (error) {
      if (isAborted(signal)) return;
      failed(error, pauseMs);
    }
    const spread = isSpread ? (1 + Math.random()) / 2 : 1;
    await delay(pauseMs * spread, undefined, { signal }).catch(() => undefined);
    pauseMs = Math.min(2 * pauseMs, maxMs);
  }
}

/** A function, because the signal may abort during an await. */
function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}
