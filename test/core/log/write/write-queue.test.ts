import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { Failure } from '../../../../src/core/values/failure.ts';
import { openDatabases, openEnvironment } from '../../../../src/core/log/databases.ts';
import { WriteQueue, type StoreCondition } from '../../../../src/core/log/write/write-queue.ts';
import { temporaryFolder } from '../../../folder.ts';

async function layQueue(t: TestContext) {
  const environment = openEnvironment(await temporaryFolder(t));
  t.after(() => environment.close());
  const { meta } = environment.transactionSync(() => openDatabases(environment));
  const condition: StoreCondition = { refusal: undefined };
  const queue = new WriteQueue(environment, condition);
  const put = (key: string) => () => {
    meta.putSync(key, 'written');
    return { result: key, bytes: 0 };
  };
  return { queue, condition, put, keys: () => [...meta.getKeys()].map(String) };
}

suite('the queue of writes', () => {
  test('writes a batch in the order of arrival, and answers each write', async (t) => {
    const { queue, put, keys } = await layQueue(t);
    const seen: (readonly string[])[] = [];
    const results = ['a', 'b', 'c'].map((key) =>
      queue.write(() => {
        seen.push(keys());
        return put(key);
      }),
    );
    assert.equal(queue.length, 3);
    assert.deepEqual(await Promise.all(results), ['a', 'b', 'c']);
    assert.deepEqual(seen, [[], ['a'], ['a', 'b']]);
    assert.equal(queue.length, 0);
  });

  test('fails only the write whose decision throws', async (t) => {
    const { queue, put, keys } = await layQueue(t);
    const [before, refused, after] = await Promise.allSettled([
      queue.write(() => put('a')),
      queue.write(() => {
        throw new Failure('conflict', 'another process is the writer');
      }),
      queue.write(() => put('b')),
    ]);
    assert.deepEqual([before.status, after.status], ['fulfilled', 'fulfilled']);
    assert.match(String(refused.status === 'rejected' && refused.reason), /another process/);
    assert.deepEqual(keys(), ['a', 'b']);
  });

  test('rolls back the whole batch if a put throws, and goes on with the next', async (t) => {
    const { queue, put, keys } = await layQueue(t);
    const batch = await Promise.allSettled([
      queue.write(() => put('a')),
      queue.write(() => () => {
        put('b')();
        throw new TypeError('a bug');
      }),
    ]);
    assert.deepEqual(
      batch.map((write) => write.status === 'rejected' && String(write.reason)),
      ['TypeError: a bug', 'TypeError: a bug'],
    );
    assert.deepEqual(keys(), []);
    assert.equal(await queue.write(() => put('c')), 'c');
  });

  test('refuses writes while the data is damaged, and once it is closed', async (t) => {
    const { queue, condition, put, keys } = await layQueue(t);
    condition.refusal = new Failure('unavailable', 'damaged');
    await assert.rejects(
      queue.write(() => put('a')),
      /damaged/,
    );
    condition.refusal = undefined;
    const pending = queue.write(() => put('b'));
    const closing = queue.close();
    await assert.rejects(
      queue.write(() => put('c')),
      { code: 'unavailable' },
    );
    assert.equal(await pending, 'b');
    await closing;
    assert.deepEqual(keys(), ['b']);
  });
});
