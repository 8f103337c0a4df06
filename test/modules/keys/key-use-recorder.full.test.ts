import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { silentLog } from '../../../src/core/report/log.ts';
import {
  KeyUseRecorder,
  countedUsesWriteMs,
  keyUsesWriteMs,
} from '../../../src/modules/keys/key-use-recorder.ts';
import { openIn } from '../../core/log/scratch.ts';
import { type TestSite, postOperation, startSite } from '../../harness.ts';
import { runWaymark, serverFolder, startServed } from '../../process.ts';
import { signIn } from './sign-in.ts';

interface ListedKey {
  readonly id: string;
  readonly name: string;
  readonly last_used: string | null;
}

async function keysOf(site: TestSite): Promise<ReadonlyMap<string, ListedKey>> {
  const { data } = await site.call('svc1.key.list', {});
  return new Map((data.rows as readonly ListedKey[]).map((row) => [row.name, row]));
}

async function makeKey(site: TestSite, name: string, scopes: readonly string[] = ['read']) {
  const { data } = await site.call('svc1.key.insert', { name, scopes });
  return { id: data.id as string, key: data.key as string };
}

const lastUse = async (site: TestSite, name: string) => (await keysOf(site)).get(name)?.last_used;

suite('the last use of a key', () => {
  test('is that of HTTP, of a websocket, and of a session', async (t) => {
    const site = await startSite(t);
    const since = new Date().toISOString();
    const [byHttp, bySocket, bySession] = [
      await makeKey(site, 'http'),
      await makeKey(site, 'socket'),
      await makeKey(site, 'session'),
    ];
    const before = await keysOf(site);
    assert.deepEqual(
      ['http', 'socket', 'session'].map((name) => before.get(name)?.last_used),
      [null, null, null],
    );
    assert.ok((before.get('admin')?.last_used ?? '') >= since);

    await site.call('svc1.server.status', {}, { apikey: byHttp.key });
    const socket = await site.socket();
    await socket.call('svc1.session.authenticate', { apikey: bySocket.key });
    await signIn(site, bySession.key);
    const used = await keysOf(site);
    for (const name of ['http', 'socket', 'session']) {
      assert.ok((used.get(name)?.last_used ?? '') >= since, name);
    }
  });

  test('moves with each message of a websocket and each request of a session', async (t) => {
    const site = await startSite(t);
    const { key } = await makeKey(site, 'open');
    const socket = await site.socket();
    await socket.call('svc1.session.authenticate', { apikey: key });
    const first = await lastUse(site, 'open');
    while ((await lastUse(site, 'open')) === first) await socket.call('svc1.server.status', {});

    const { token, cookie } = await signIn(site, key);
    const second = await lastUse(site, 'open');
    const request = { apikey: token, headers: { cookie } };
    while ((await lastUse(site, 'open')) === second) {
      await site.call('svc1.server.status', {}, request);
    }
  });

  test('a wrong or revoked key leaves nothing, and a restart keeps the others', async (t) => {
    const { iniFile, folder } = await serverFolder(t, 'workers = 2\n');
    const first = await startServed(t, iniFile);
    const call = (name: string, v: object, apikey = first.adminKey) =>
      postOperation(first.url, name, v, { apikey });
    const [used, gone] = [
      await call('svc1.key.insert', { name: 'used', scopes: ['read'] }),
      await call('svc1.key.insert', { name: 'gone', scopes: ['read'] }),
    ];
    await call('svc1.key.insert', { name: 'idle', scopes: ['read'] });
    for (const { data } of [used, gone]) await call('svc1.server.status', {}, data.key as string);
    await call('svc1.key.revoke', { id: gone.data.id });
    for (const apikey of [gone.data.key as string, 'wmk_wrong']) {
      assert.equal((await call('svc1.server.status', {}, apikey)).status, 401);
    }
    first.child.kill('SIGTERM');
    await first.closed;

    const store = await openIn(join(folder, 'data'));
    const ids = [...store.keyUses.all().keys()];
    await store.close();
    assert.equal(ids.length, 2, 'of the admin key and of the used one');
    assert.ok(ids.includes(used.data.id as string));

    const listed = await runWaymark(['key', 'list', '--config', iniFile]);
    assert.match(listed.out, /^ID +CREATED +LAST USED +SCOPES +RATE +BOUNDS +UNTIL +NAME\n/);
    assert.match(listed.out, /Z +\d{4}-\d\d-\d\dT\S+Z +read +- +- +- +used\n/);
    assert.match(listed.out, /Z +never +read +- +- +- +idle\n/);
    const second = await startServed(t, iniFile, { first: false });
    const { data } = await postOperation(
      second.url,
      'svc1.key.list',
      {},
      {
        apikey: first.adminKey,
      },
    );
    const rows = new Map((data.rows as ListedKey[]).map((row) => [row.name, row.last_used]));
    assert.equal(rows.get('idle'), null);
    assert.match(rows.get('used') ?? '', /Z$/);
  });

  test('requests write nothing to the data file', async (t) => {
    const site = await startSite(t);
    const { key } = await makeKey(site, 'many');
    const content = () => readFile(join(site.folder, 'data/data.mdb'));
    const before = await content();
    for (let count = 0; count < 50; count += 1) {
      await site.call('svc1.server.status', {}, { apikey: key });
    }
    assert.ok(before.equals(await content()));
    await site.waymark.stop(0);
    assert.ok(!before.equals(await content()));
  });
});

function recorderOf(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const state = { nowMs: 1000, warnings: 0, isFull: false };
  const stored = new Map<string, string>();
  const sums = new Map<string, number>();
  const puts: (readonly string[])[] = [];
  const recorder = new KeyUseRecorder({
    store: {
      keyUses: {
        all: () => stored,
        count: (id) => sums.get(id) ?? 0,
        put: (uses, counts = new Map()) => {
          puts.push([...uses.keys()]);
          if (state.isFull) return Promise.reject(new Error('disk full'));
          for (const [id, ms] of uses) stored.set(id, new Date(ms).toISOString());
          for (const [id, added] of counts) sums.set(id, (sums.get(id) ?? 0) + added);
          return Promise.resolve();
        },
      },
    },
    now: () => state.nowMs,
    log: { ...silentLog, warn: () => (state.warnings += 1) },
  });
  const wait = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms);
    // The end of a put is two microtasks away.
    await new Promise(setImmediate);
  };
  const minute = (): Promise<void> => wait(keyUsesWriteMs);
  return { recorder, state, sums, puts, wait, minute };
}

suite('the recorder of uses', () => {
  test('writes counted uses within seconds, and those that it could not write later', async (t) => {
    const { recorder, state, sums, puts, wait } = recorderOf(t);
    recorder.note('key');
    recorder.count('token');
    recorder.count('token');
    assert.equal(recorder.counted('token'), 2);
    state.isFull = true;
    await wait(countedUsesWriteMs);
    assert.deepEqual(puts, [['key', 'token']]);
    assert.deepEqual([recorder.counted('token'), sums.get('token')], [2, undefined]);
    state.isFull = false;
    recorder.count('token');
    assert.equal(recorder.counted('token'), 3);
    await wait(countedUsesWriteMs);
    assert.deepEqual([recorder.counted('token'), sums.get('token')], [3, 3]);
    assert.deepEqual([recorder.counted('key'), recorder.last().size], [0, 2]);
  });

  test('writes once a minute at most, and nothing while no key is used', async (t) => {
    const { recorder, puts, minute } = recorderOf(t);
    await minute();
    for (let count = 0; count < 100; count += 1) recorder.note('a');
    recorder.note('b');
    assert.equal(puts.length, 0);
    await minute();
    await minute();
    assert.deepEqual(puts, [['a', 'b']]);
    recorder.note('b');
    await recorder.close();
    assert.deepEqual(puts, [['a', 'b'], ['b']]);
    recorder.note('a');
    await recorder.close();
    await minute();
    assert.equal(puts.length, 2);
  });

  test('shows the uses that are not written yet, and writes them later if it fails', async (t) => {
    const { recorder, state, puts, minute } = recorderOf(t);
    state.isFull = true;
    recorder.note('a');
    await minute();
    state.nowMs = 2000;
    recorder.note('b');
    await minute();
    assert.equal(state.warnings, 1);
    const expected = [
      ['a', '1970-01-01T00:00:01.000Z'],
      ['b', '1970-01-01T00:00:02.000Z'],
    ];
    assert.deepEqual([...recorder.last()], expected);
    state.isFull = false;
    await recorder.close();
    assert.deepEqual(puts.at(-1), ['a', 'b']);
    assert.deepEqual([...recorder.last()], expected);
  });
});
