import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { retryUntilAborted } from '../../../src/core/background/retry-loop.ts';

const never = new AbortController().signal;

suite('a task that is attempted again', () => {
  test('has pauses that double up to a limit, until an attempt succeeds', async () => {
    const pauses: number[] = [];
    let attempts = 0;
    const attempt = (succeeded: () => void): Promise<'done' | undefined> => {
      attempts += 1;
      if (attempts === 5) succeeded();
      return attempts === 7 ? Promise.resolve('done') : Promise.reject(new Error(`${attempts}`));
    };
    const options = { minMs: 1, maxMs: 5, signal: never };
    const failed = (_error: unknown, pauseMs: number): void => void pauses.push(pauseMs);
    await retryUntilAborted(attempt, { ...options, failed });
    assert.deepEqual(pauses, [1, 2, 4, 5, 1, 2]);
  });

  test('ends when the signal aborts, in an attempt or in a pause', async () => {
    const during = new AbortController();
    const failed = (): never => assert.fail('an attempt that is stopped has not failed');
    const stopped = (): Promise<undefined> => {
      during.abort();
      return Promise.reject(new Error('stopped'));
    };
    await retryUntilAborted(stopped, { minMs: 1, maxMs: 1, signal: during.signal, failed });
    const between = new AbortController();
    const ended = (): Promise<undefined> => {
      setImmediate(() => {
        between.abort();
      });
      return Promise.resolve(undefined);
    };
    const long = { minMs: 1e6, maxMs: 1e6 };
    await retryUntilAborted(ended, { ...long, signal: between.signal, failed });
  });

  test('is given up for an error that `failed` throws', async () => {
    const lost = new Error('lost');
    const failed = (error: unknown): never => {
      throw error;
    };
    const attempt = (): Promise<undefined> => Promise.reject(lost);
    await assert.rejects(
      retryUntilAborted(attempt, { minMs: 1, maxMs: 1, signal: never, failed }),
      lost,
    );
  });
});
