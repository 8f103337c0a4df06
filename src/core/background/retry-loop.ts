import { setTimeout as delay } from 'node:timers/promises';

/** When a task is attempted again. */
interface RetryOptions {
  /** The pause after an attempt: at first, and at most after several without success. */
  readonly minMs: number;
  readonly maxMs: number;
  readonly signal: AbortSignal;
  /** Called with the error of an attempt and the pause after it. Ends the loop if it throws. */
  readonly failed: (error: unknown, pauseMs: number) => void;
  /** Waits; a test that has no time says another one. */
  readonly wait?: typeof pause | undefined;
}

/**
 * Attempts a task again and again until the signal aborts, or an attempt resolves to `done`. The
 * pause after an attempt, which may also end by itself, is twice as long each time; `succeeded`
 * makes it short again. Each pause is up to a half shorter than that, by chance, so that those who
 * failed together do not return together. Rejects with what `failed` throws.
 */
export async function retryUntilAborted(
  attempt: (succeeded: () => void) => Promise<'done' | undefined>,
  { minMs, maxMs, signal, failed, wait = pause }: RetryOptions,
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
    await wait(pauseMs * ((1 + Math.random()) / 2), signal);
    pauseMs = Math.min(2 * pauseMs, maxMs);
  }
}

/** Waits for a time; ends early, and never rejects, when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** A function, because the signal may abort during an await. */
export function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}
