import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../../src/core/values/failure.ts';
import {
  type StateTopic,
  StateWatcher,
  stateReadersMax,
  stateTopics,
} from '../../../src/modules/status/state-watcher.ts';

const client = { keyId: 'one', address: '192.0.2.1' };

/** A watcher whose versions a test sets, and that counts how often each is read. */
function watched() {
  const versions = new Map<StateTopic, number>();
  const reads = new Map<StateTopic, number>();
  const versionOf = (topic: StateTopic) => (): number => {
    reads.set(topic, (reads.get(topic) ?? 0) + 1);
    return versions.get(topic) ?? 0;
  };
  const all = Object.fromEntries(stateTopics.map((topic) => [topic, versionOf(topic)]));
  const watcher = new StateWatcher(all as Record<StateTopic, () => number>, 1);
  const change = (topic: StateTopic): void => {
    versions.set(topic, (versions.get(topic) ?? 0) + 1);
  };
  return { watcher, change, reads };
}

suite('the state that clients watch', () => {
  test('each reader gets the topics that it watches and that have changed since it began', async () => {
    const { watcher, change, reads } = watched();
    const abort = new AbortController();
    change('keys');
    const start = await watcher.watch(['keys', 'cache'], client);
    change('keys');
    change('nodes');
    const changes = start(abort.signal);
    assert.deepEqual((await changes.next()).value, ['keys']);
    change('cache');
    change('keys');
    assert.deepEqual((await changes.next()).value, ['keys', 'cache']);
    assert.equal(reads.has('nodes'), false);
    abort.abort();
    assert.equal((await changes.next()).done, true);
    assert.equal(watcher.size, 0);
  });

  test('a slow reader gets several changes of a topic as one', async () => {
    const { watcher, change } = watched();
    const abort = new AbortController();
    const slow = (await watcher.watch(['keys'], client))(abort.signal);
    const quick = (await watcher.watch(['keys'], client))(abort.signal);
    for (let at = 0; at < 3; at += 1) {
      change('keys');
      assert.deepEqual((await quick.next()).value, ['keys']);
    }
    assert.deepEqual((await slow.next()).value, ['keys']);
    const more = slow.next();
    change('keys');
    assert.deepEqual((await more).value, ['keys']);
    abort.abort();
    await Promise.all([slow.next(), quick.next()]);
  });

  test('refuses more readers of one key than its share, and has room again after one has left', async () => {
    const { watcher, change } = watched();
    const abort = new AbortController();
    const readers = await Promise.all(
      Array.from(
        { length: stateReadersMax / 2 },
        async () => await watcher.watch(['keys'], client),
      ),
    );
    const started = readers.map((start) => start(abort.signal));
    const coming = started.map((one) => one.next());
    await assert.rejects(
      watcher.watch(['keys'], client),
      (error) => error instanceof Failure && error.limit === 'live_state',
    );
    const another = { keyId: 'another', address: '192.0.2.1' };
    assert.ok(await watcher.watch(['keys'], another), 'another key has a place');
    change('keys');
    await Promise.all(coming);
    abort.abort();
    await Promise.all(started.map((one) => one.next()));
    assert.equal(watcher.size, 0);
    await watcher.watch(['keys'], client);
  });
});
