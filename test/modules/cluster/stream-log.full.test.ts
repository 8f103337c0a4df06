import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import { connect, headers } from '@nats-io/transport-node';
import { uuidv7 } from 'uuidv7';
import { entryHeaders } from '../../../src/modules/cluster/message.ts';
import {
  changeRetention,
  clusterStatus,
  createCluster,
} from '../../../src/modules/cluster/status.ts';
import { openStreamLog } from '../../../src/modules/cluster/stream-log.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { cleaningAfterAll, temporaryFolder, writeFiles } from '../../folder.ts';
import { startNats, until } from './nats.ts';
import { Appender, entriesUpTo, needsNats, settingsOf, startLog, type LogRig } from './rig.ts';

suite('a log in a stream of one server', needsNats, () => {
  const cleaning = cleaningAfterAll();
  let rig: Promise<LogRig> | undefined;
  const started = (): Promise<LogRig> => (rig ??= startLog(cleaning, 1));

  test('three nodes that append at the same time see all entries in one order', async () => {
    const log = await started();
    const first = await log.open();
    const nodes = [first, await log.open(), await log.open()].map((shared) => new Appender(shared));
    const each = 250;
    await Promise.all(
      nodes.map(async (node, at) => {
        for (let n = 0; n < each; n += 1) await node.append(`${at}-${n}`);
      }),
    );
    const end = await first.end();
    for (const node of nodes) await node.reach(end);
    const [one, ...others] = nodes.map(({ seen }) =>
      seen.map(({ after, position, data }) => [after, position, Buffer.from(data).toString()]),
    );
    for (const other of others) assert.deepEqual(other, one);
    const texts = (one ?? []).map(([, , text]) => text);
    assert.equal(new Set(texts).size, 3 * each);
    assert.equal(texts.length, 3 * each);
    for (const node of nodes) {
      for (const [text, position] of node.acknowledged) {
        assert.equal(node.seen.find((entry) => entry.position === position)?.data.toString(), text);
      }
      assert.equal(node.acknowledged.size, each);
    }
    await Promise.all(nodes.map((node) => node.stop()));
  });

  test('an entry of 30 MB is one entry, and an entry behind it follows', async () => {
    const shared = await (await started()).open();
    const data = randomBytes(30 * 2 ** 20);
    const before = await shared.end();
    const position = await shared.append(data, before);
    assert.ok(position !== undefined && position > before + 20);
    assert.equal(await shared.append(Buffer.from('late'), before), undefined);
    const last = await shared.append(Buffer.alloc(0), position);
    assert.equal(last, position + 1);
    const [large, small, ...more] = await entriesUpTo(shared, last, before);
    assert.deepEqual([large?.after, large?.position], [before, position]);
    assert.ok(large?.data !== undefined && data.equals(large.data));
    assert.deepEqual([small?.after, small?.position, small?.data.length], [position, last, 0]);
    assert.deepEqual(more, []);
  });

  test('an entry that is larger than a log takes is refused', async () => {
    const shared = await (await started()).open();
    await assert.rejects(shared.append(Buffer.alloc(257 * 2 ** 20), 0), { code: 'too_large' });
  });

  test('a broadcast reaches all nodes, also after a connection was lost', async (t) => {
    const { servers, settings, id, open } = await startLog(t, 1);
    const [server = assert.fail()] = servers;
    const [one, other] = [await open(), await open()];
    const received = async (text: string): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const forget = other.onBroadcast((data) => {
        if (Buffer.from(data).toString() === text) resolve(undefined);
      });
      // Nothing stores a message that comes before the subscription.
      const sending = setInterval(() => void one.broadcast(Buffer.from(text)), 20);
      await promise;
      clearInterval(sending);
      forget();
    };
    await received('first');
    await server.kill();
    await server.start();
    await received('second');
    assert.equal((await clusterStatus(settings)).log, id);
    assert.equal((await clusterStatus(settings)).end, 0, 'the stream has none of them');
  });

  test('nobody can remove entries', async () => {
    const { servers, settings } = await started();
    const nats = await connect({ servers: servers.map(({ url }) => url) });
    for (const [call, input] of [
      ['PURGE', {}],
      ['MSG.DELETE', { seq: 1 }],
    ] as const) {
      const subject = `$JS.API.STREAM.${call}.${settings.name}`;
      const answer = await nats.request(subject, JSON.stringify(input));
      assert.match(answer.string(), /"error"/);
    }
    await nats.close();
  });

  test('a message that Waymark has not written ends reading with a conflict', async (t) => {
    const { servers } = await started();
    const settings = settingsOf(servers, { name: 'foreign' });
    const id = uuidv7();
    await createCluster(settings, { id, replicas: 1 });
    const shared = await openStreamLog({ settings, id, log: silentLog, newId: uuidv7 });
    t.after(() => shared.close());
    const nats = await connect({ servers: servers.map(({ url }) => url) });
    t.after(() => nats.close());
    const fields = headers();
    fields.set('Nats-Expected-Stream', 'foreign');
    await nats.request(`foreign.log.${id}`, 'hello', { headers: fields, timeout: 5_000 });
    await assert.rejects(entriesUpTo(shared, 1), { code: 'conflict', message: /Message 1 / });
  });

  test('a server that has left out a message does not end reading, if another one has it', async (t) => {
    const { servers } = await started();
    const [incomplete] = await startNats(t);
    assert.ok(incomplete !== undefined);
    const id = uuidv7();
    const settings = settingsOf(servers, { name: 'complete' });
    const wrong = settingsOf([incomplete], { name: 'complete' });
    for (const one of [settings, wrong]) await until(() => createCluster(one, { id, replicas: 1 }));
    const parts = { id, log: silentLog, newId: uuidv7 };
    const shared = await openStreamLog({ ...parts, settings });
    t.after(() => shared.close());
    assert.equal(await shared.append(Buffer.from('a'), 0), 1);
    assert.equal(await shared.append(Buffer.from('b'), 1), 2);
    const nats = await connect({ servers: incomplete.url });
    t.after(() => nats.close());
    const fields = headers();
    for (const [name, value] of entryHeaders({ id: uuidv7(), after: 1, at: 0, count: 1 })) {
      fields.set(name, value);
    }
    await nats.request(`complete.log.${id}`, 'b', { headers: fields, timeout: 5_000 });
    const both = { ...settings, servers: [...wrong.servers, ...settings.servers] };
    // Each of them begins with a random server.
    for (let reader = 0; reader < 8; reader += 1) {
      const reading = await openStreamLog({ ...parts, settings: both });
      t.after(() => reading.close());
      const entries = await entriesUpTo(reading, 2);
      assert.deepEqual(
        entries.map(({ data }) => Buffer.from(data).toString()),
        ['a', 'b'],
      );
    }
  });

  test('reading ends with a conflict when the stream has another log', async (t) => {
    const { servers } = await started();
    const settings = settingsOf(servers, { name: 'replaced' });
    const id = uuidv7();
    await createCluster(settings, { id, replicas: 1 });
    const shared = await openStreamLog({ settings, id, log: silentLog, newId: uuidv7 });
    t.after(() => shared.close());
    assert.equal(await shared.append(Buffer.from('a'), 0), 1);
    const nats = await connect({ servers: servers.map(({ url }) => url) });
    t.after(() => nats.close());
    await nats.request('$JS.API.STREAM.DELETE.replaced');
    await createCluster(settings, { id: uuidv7(), replicas: 1 });
    await assert.rejects(entriesUpTo(shared, 2), { code: 'conflict', message: /another cluster/ });
  });
});

suite('opening a log', needsNats, () => {
  const reject = async (settings: ReturnType<typeof settingsOf>, id?: string) => {
    const opened = openStreamLog({ settings, id, log: silentLog, newId: uuidv7 });
    const failure: unknown = await opened.then(
      (shared) => shared.close(),
      (error: unknown) => error,
    );
    assert.ok(failure instanceof Failure);
    return `${failure.code}: ${failure.message}`;
  };

  test('says what is missing or wrong', async (t) => {
    const [server] = await startNats(t, { config: 'authorization { user: me, password: secret }' });
    assert.ok(server !== undefined);
    const folder = await temporaryFolder(t);
    await writeFiles(folder, { right: 'secret\n', wrong: 'guess' });
    const user = { user: 'me', passwordFile: `${folder}/right` };
    const wrong = { user: 'me', passwordFile: `${folder}/wrong` };
    assert.match(await reject(settingsOf([server], wrong)), /^forbidden: NATS at .* refuses/);
    const settings = settingsOf([server], user);
    assert.match(await reject(settings), /^not_found: .*`waymark cluster init`/);
    const id = uuidv7();
    await createCluster(settings, { id });
    assert.match(await reject(settings, uuidv7()), /^conflict: .* another cluster/);
    const nats = await connect({ servers: server.url, user: 'me', pass: 'secret' });
    t.after(() => nats.close());
    const other = { name: 'orders', subjects: ['orders'] };
    await nats.request('$JS.API.STREAM.CREATE.orders', JSON.stringify(other));
    assert.match(
      await reject(settingsOf([server], { ...user, name: 'orders' })),
      /^conflict: The stream orders has no log of Waymark/,
    );
    const limited = { name: 'short', subjects: ['short.log.x'], metadata: { 'waymark-log': 'x' } };
    await nats.request('$JS.API.STREAM.CREATE.short', JSON.stringify({ ...limited, max_msgs: 9 }));
    assert.match(
      await reject(settingsOf([server], { ...user, name: 'short' })),
      /^conflict: .*other settings.*`discard` is "old" instead of "new"/,
    );
  });

  test('refuses a stream with compression, which damages it in nats-server 2.15', async (t) => {
    const { servers, settings, id } = await startLog(t, 1);
    const nats = await connect({ servers: servers.map(({ url }) => url) });
    t.after(() => nats.close());
    const info = await nats.request('$JS.API.STREAM.INFO.waymark');
    const { config } = info.json<{ config: object }>();
    const update = JSON.stringify({ ...config, compression: 's2' });
    await nats.request('$JS.API.STREAM.UPDATE.waymark', update);
    assert.match(
      await reject(settings, id),
      /^conflict: .*other settings.*`compression` is "s2" instead of "none"/,
    );
  });

  test('without JetStream, or without a server, it fails with the reason', async (t) => {
    const [server] = await startNats(t, { jetStream: false });
    assert.ok(server !== undefined);
    assert.match(await reject(settingsOf([server])), /^unavailable: .*not turned on/);
    await server.kill();
    assert.match(await reject(settingsOf([server])), /^unavailable: Cannot connect to NATS/);
  });

  test('a node that knows its log also opens it without a server, and goes on with one', async (t) => {
    const { servers, settings, id } = await startLog(t, 1);
    const [server] = servers;
    assert.ok(server !== undefined);
    await server.kill();
    const shared = await openStreamLog({ settings, id, log: silentLog, newId: uuidv7 });
    t.after(() => shared.close());
    assert.match(shared.state().problem ?? '', /^Cannot connect to NATS/);
    const appended = shared.append(Buffer.from('a'), 0);
    await server.start();
    assert.equal(await appended, 1);
    assert.deepEqual(shared.state(), { isConnected: true, problem: undefined });
  });
});

test('a node that lacks removed entries says how to bring it back', needsNats, async (t) => {
  const { settings, id, open } = await startLog(t, 1);
  const shared = await open();
  assert.equal(await shared.append(Buffer.from('a'), 0), 1);
  assert.equal(await shared.append(Buffer.from('b'), 1), 2);
  const kept = await clusterStatus(settings);
  assert.deepEqual([kept.first, kept.end, kept.retention_ms], [1, 2, 0]);
  const again = await createCluster(settings, { id, retentionMs: 100 });
  assert.equal(again.retention_ms, 100);
  await until(async () => {
    assert.equal((await clusterStatus(settings)).first, 3);
  });
  const month = await changeRetention(settings, 30 * 86_400_000);
  assert.deepEqual([month.since, month.end, month.retention_ms], [null, 2, 30 * 86_400_000]);
  assert.equal(await shared.append(Buffer.from('c'), 2), 3, 'positions go on');
  assert.deepEqual(
    (await entriesUpTo(shared, 3, 2)).map(({ data }) => Buffer.from(data).toString()),
    ['c'],
  );
  const advice = /begins with 3, which keeps entries for 30d\. Run `waymark backup` on another/;
  await assert.rejects(entriesUpTo(shared, 3, 1), { code: 'conflict', message: advice });
  await assert.rejects(entriesUpTo(shared, 3), { message: /^The data folder is empty, and / });
});
