import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { openDatabases, openEnvironment } from '../../../src/core/log/databases.ts';
import { transactSync } from '../../../src/core/log/environment.ts';
import {
  type LoginSession,
  loginSessionsPart,
} from '../../../src/modules/login/stored-sessions.ts';
import { carryOver } from '../../../src/modules/nodes/log/carry-over.ts';
import { ofOneMachine, openIn, scratchStore } from '../../core/log/scratch.ts';
import { temporaryFolder } from '../../folder.ts';

const noon = Date.UTC(2026, 10, 24, 12);
const max = { perPerson: 2, all: 4 };

function session(id: string, person = id, endMs = noon + 1_000): LoginSession {
  return {
    ...{ id, hash: `hash of ${id}`, user: person, roles: ['a'], issuer: 'https://id.example' },
    ...{ found: [`subject ${person}`, `session ${id}`] },
    ...{ created: new Date(noon).toISOString(), expires: new Date(endMs).toISOString() },
  };
}

const more = { idToken: 'a token', nowMs: noon, max };

suite('the sessions of visitors', () => {
  test('are found by id, person and provider, until they end', async (t) => {
    const store = (await scratchStore(t)).part(loginSessionsPart);
    const one = session('1', 'ann');
    await store.add(one, more);
    await store.add(session('2', 'ann'), { ...more, idToken: undefined });
    await store.add(session('11', 'bob'), more);
    assert.deepEqual(store.find('1'), one);
    assert.deepEqual(
      store.findBy('subject ann').map(({ id }) => id),
      ['1', '2'],
    );
    assert.deepEqual(store.findBy('session 1'), [one]);
    assert.deepEqual([store.idToken('1'), store.idToken('2')], ['a token', undefined]);
    assert.deepEqual(
      store.list('1', 10).map(({ id }) => id),
      ['11', '2'],
    );
    const before = store.changes();
    assert.deepEqual(await store.end(['1', '1', 'none']), [one]);
    assert.ok(store.changes() > before);
    assert.deepEqual([store.find('1'), store.idToken('1')], [undefined, undefined]);
    assert.deepEqual(store.findBy('session 1'), []);
    assert.deepEqual(await store.end(['1']), []);
  });

  test('are bounded for a person and in all, and expired ones go', async (t) => {
    const store = (await scratchStore(t)).part(loginSessionsPart);
    const ids = () => store.list('', 10).map(({ id }) => id);
    for (const id of ['1', '2', '3']) await store.add(session(id, 'ann'), more);
    assert.deepEqual(ids(), ['2', '3']);
    for (const id of ['4', '5', '6']) await store.add(session(id), more);
    assert.deepEqual(ids(), ['3', '4', '5', '6']);
    const later = { ...more, nowMs: noon + 1_000 };
    await store.add(session('7', 'ann', noon + 2_000), later);
    assert.deepEqual(ids(), ['7']);
    assert.deepEqual(store.findBy('subject 4'), []);
  });

  test('are seen by other processes, and go to a new copy of a log', ofOneMachine, async (t) => {
    const [folder, copy] = [await temporaryFolder(t), await temporaryFolder(t)];
    const [one, other] = [await openIn(folder), await openIn(folder)];
    await one.part(loginSessionsPart).add(session('1'), more);
    await one.part(loginSessionsPart).changeKeys(() => [{ secret: 'x', createdMs: noon }]);
    other.refresh();
    assert.equal(other.part(loginSessionsPart).find('1')?.user, '1');
    const target = await openIn(copy);
    await Promise.all([one.close(), other.close(), target.close()]);
    const environments = [openEnvironment(folder), openEnvironment(copy)] as const;
    const [from, to] = environments.map((each) => transactSync(each, () => openDatabases(each)));
    assert.ok(from !== undefined && to !== undefined);
    carryOver(from, to);
    await Promise.all(environments.map((each) => each.close()));
    const again = await openIn(copy);
    t.after(() => again.close());
    assert.equal(again.part(loginSessionsPart).find('1')?.user, '1');
    assert.equal(again.part(loginSessionsPart).keys()[0]?.secret, 'x');
  });
});
