import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { commit, ofOneMachine, openIn, scratchStore } from './scratch.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';

const data = { name: 'a key', scopes: ['read'], created: '2026-01-01T00:00:00.000Z' };

function addedKey(id: string) {
  return { family: 'key', id, action: 'insert', data: { ...data, hash: `hash of ${id}` } } as const;
}

const noon = Date.UTC(2026, 10, 24, 12);

suite('the last use of keys', () => {
  test('is the newest time that was put, of existing keys', async (t) => {
    const store = await scratchStore(t);
    await commit(store, addedKey('a'), addedKey('b'));
    assert.deepEqual(store.keyUses.all(), new Map());
    await store.keyUses.put(
      new Map([
        ['a', noon],
        ['none', noon],
      ]),
    );
    await store.keyUses.put(
      new Map([
        ['a', noon - 1],
        ['b', noon + 1],
      ]),
    );
    const times = [
      ['a', '2026-11-24T12:00:00.000Z'],
      ['b', '2026-11-24T12:00:00.001Z'],
    ] as const;
    assert.deepEqual(store.keyUses.all(), new Map(times));
  });

  test('ends with its key, and is no change', async (t) => {
    const store = await scratchStore(t);
    await commit(store, addedKey('a'), addedKey('b'));
    const seq = store.seq();
    await store.keyUses.put(
      new Map([
        ['a', noon],
        ['b', noon],
      ]),
    );
    assert.equal(store.seq(), seq);
    await commit(store, { family: 'key', id: 'a', action: 'invalidate', data: {} });
    assert.deepEqual([...store.keyUses.all().keys()], ['b']);
    // A process may still have a use in memory.
    await store.keyUses.put(new Map([['a', noon + 1]]));
    assert.deepEqual([...store.keyUses.all().keys()], ['b']);
    for await (const { differences } of store.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });

  test('is counted, over all processes, as long as the key exists', ofOneMachine, async (t) => {
    const folder = await temporaryFolder(t);
    const [one, other] = [await openIn(folder), await openIn(folder)];
    await commit(one, addedKey('a'), addedKey('b'));
    const uses = new Map([['a', noon]]);
    await one.keyUses.put(uses, new Map([['a', 2]]));
    await other.keyUses.put(uses, new Map([['a', 3]]));
    await one.keyUses.put(new Map(), new Map([['none', 1]]));
    await Promise.all([one.close(), other.close()]);
    const store = await scratchStore(t, { folder });
    assert.deepEqual(
      ['a', 'b', 'none'].map((id) => store.keyUses.count(id)),
      [5, 0, 0],
    );
    await commit(store, { family: 'key', id: 'a', action: 'invalidate', data: {} });
    assert.equal(store.keyUses.count('a'), 0);
    assert.deepEqual([...store.keyUses.all()], []);
  });

  test('is that of all processes, and survives them', ofOneMachine, async (t) => {
    const folder = await temporaryFolder(t);
    const [one, other] = [await openIn(folder), await openIn(folder)];
    await commit(one, addedKey('a'));
    await other.keyUses.put(new Map([['a', noon + 5]]));
    await one.keyUses.put(new Map([['a', noon]]));
    await Promise.all([one.close(), other.close()]);
    const again = await scratchStore(t, { folder });
    assert.deepEqual([...again.keyUses.all()], [['a', '2026-11-24T12:00:00.005Z']]);
  });
});
