import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { RequestCoalescer } from '../../../src/modules/cache/request-coalescer.ts';

const purges = { epoch: () => 0, isPurgedSince: () => false };
const target = { key: 'key', url: 'http://localhost/' };

suite('a request that waits for another one', () => {
  test('is sent itself when that has no result in time', async () => {
    const late: string[] = [];
    const coalescer = new RequestCoalescer<string>(purges, {
      waitMsMax: 1,
      onLate: (key) => late.push(key),
    });
    const result = Promise.withResolvers<string>();
    const join = () =>
      coalescer.join(
        target,
        new AbortController().signal,
        async () => ({
          value: await result.promise,
          completed: undefined,
          discard: () => undefined,
        }),
        (value) => value,
      );
    const first = join();
    assert.equal(await join(), undefined);
    assert.deepEqual(late, ['key']);
    // The first one goes on, and waits as long as its client does.
    result.resolve('news');
    assert.equal(await first, 'news');
    assert.equal(coalescer.size, 0);
  });
});
