import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type TestContext, suite, test } from 'node:test';
import {
  subscriptionsMax,
  subscriptionsPerAddressMax,
} from '../../../../src/core/fair/shared-limits.ts';
import { socketSubscriptionsMax } from '../../../../src/core/server/websocket/subscriptions.ts';
import { type TestSite, type TestSocket, readTestConfig, startSite } from '../../../harness.ts';
import { insertPage, subscribe } from '../../../modules/status/subscriber.ts';
import { runWaymark } from '../../../process.ts';
import { closing } from './socket-rig.ts';

const rule = 'svc1.userinterface';

/** Replaces lines of the ini file and reloads it. */
async function reload({ iniFile, waymark }: TestSite, before: string, after: string) {
  const ini = await readFile(iniFile, 'utf8');
  assert.ok(ini.includes(before));
  await writeFile(iniFile, ini.replace(before, after));
  waymark.reload({ ok: true, config: await readTestConfig(iniFile) });
}

async function makeKey(site: TestSite, ...scopes: readonly string[]) {
  const { data } = await site.call('svc1.key.insert', { name: 'k', scopes });
  return data as { readonly key: string; readonly id: string };
}

suite('subscribing', () => {
  test('needs the scope read', async (t) => {
    const site = await startSite(t);
    const cases: readonly (readonly [scopes: readonly string[], code: string | undefined])[] = [
      [[], 'unauthenticated'],
      [['render', 'design', 'webhook', 'event'], 'forbidden'],
      [['read'], undefined],
      [['admin'], undefined],
    ];
    for (const [scopes, code] of cases) {
      const key = scopes.length === 0 ? undefined : (await makeKey(site, ...scopes)).key;
      const subscribed = subscribe(await site.socket(key));
      if (code === undefined) await subscribed;
      else await assert.rejects(subscribed, { code });
    }
  });

  test('is limited for a websocket, for a key and for the process', async (t) => {
    const site = await startSite(t);
    const fill = async (key: string, most: number): Promise<readonly TestSocket[]> => {
      const sockets: TestSocket[] = [];
      for (let left = most; left > 0; left -= socketSubscriptionsMax) {
        const socket = await site.socket(key);
        sockets.push(socket);
        const count = Math.min(left, socketSubscriptionsMax);
        await Promise.all(Array.from({ length: count }, () => subscribe(socket, { path: '/x' })));
      }
      return sockets;
    };
    const first = await makeKey(site, 'read');
    const second = await makeKey(site, 'read');
    // Nobody holds more than is left for the others.
    const [full, ...others] = await fill(first.key, subscriptionsMax / 2);
    const last = others.at(-1);
    assert.ok(full !== undefined && last !== undefined);
    await assert.rejects(subscribe(full), { code: 'too_large' });
    await assert.rejects(subscribe(last), { code: 'rate_limited' });
    assert.match(site.logged(), /"?subscriptions"?/);
    const [, ...ofSecond] = await fill(second.key, subscriptionsMax / 4);
    await assert.rejects(subscribe(ofSecond.at(-1) ?? full), { code: 'rate_limited' });
    const more = await site.socket(site.adminKey);
    await subscribe(more);
    // When one subscription ends, the server accepts another; the others continue.
    full.websocket.close();
    await once(full.websocket, 'close');
    const subscriber = await subscribe(more);
    const { seq } = await insertPage(more, { path: '/y' });
    await subscriber.until(() => subscriber.seqs().includes(seq));
  });

  test('is limited for an address without a key, so that keys have room', async (t) => {
    const site = await startSite(t);
    const v = { origin: site.url, path: '/a' };
    const failures = new Map<string | undefined, number>();
    for (let sockets = 0; sockets < 16; sockets += 1) {
      const socket = await site.socket();
      const asked = Array.from({ length: 64 }, () => socket.call(`${rule}.follow`, v));
      for (const { error } of await Promise.all(asked)) {
        failures.set(error?.code, (failures.get(error?.code) ?? 0) + 1);
      }
    }
    assert.deepEqual(Object.fromEntries(failures), {
      undefined: subscriptionsPerAddressMax,
      rate_limited: 16 * 64 - subscriptionsPerAddressMax,
    });
    await subscribe(await site.socket(site.adminKey));
  });
});

test('packets that an operation makes itself count as a subscription, and end with its id', async (t) => {
  const site = await startSite(t);
  const socket = await site.socket(site.adminKey);
  const watch = () => socket.call('svc1.server.subscribe', { topics: ['changes'] });
  const watching = await watch();
  assert.equal(watching.error, undefined);
  const v = { origin: site.url, path: '/a' };
  for (let others = 1; others < socketSubscriptionsMax; others += 1) {
    assert.equal((await socket.call(`${rule}.follow`, v)).error, undefined);
  }
  assert.equal((await watch()).error?.code, 'too_large');
  await socket.call('svc1.session.unsubscribe', { id: watching.id });
  assert.equal((await watch()).error, undefined);
});

suite('a subscriber that may no longer read', () => {
  test('because its key was revoked gets an error and is closed at once, whichever way it was revoked', async (t) => {
    const site = await startSite(t);
    const write = () => insertPage(site, { path: '/secret', content: 'x' });
    const revokes: readonly ((id: string) => Promise<unknown>)[] = [
      (id) => site.call('svc1.key.revoke', { id }),
      (id) => site.call('svc1.key.revoke', { id }).then(write),
      (id) => runWaymark(['key', 'revoke', id, '--config', site.iniFile]),
    ];
    for (const revoke of revokes) {
      const { key, id } = await makeKey(site, 'read');
      const socket = await site.socket(key);
      const closed = closing(socket.websocket);
      const subscribers = [await subscribe(socket), await subscribe(socket, { path: '/none' })];
      await revoke(id);
      assert.deepEqual(await closed, [1008, 'The caller may no longer read this.']);
      for (const { errors, packets } of subscribers) {
        assert.deepEqual(packets, []);
        assert.deepEqual(
          errors.map((error) => error?.code),
          ['unauthenticated'],
        );
      }
    }
  });

  test('gets none of the packets that it had not read yet', async (t) => {
    const site = await startSite(t);
    const { key, id } = await makeKey(site, 'read');
    const [slow, quick] = [await site.socket(key), await site.socket(site.adminKey)];
    const closed = closing(slow.websocket);
    const subscribers = [];
    for (let n = 0; n < 16; n += 1) {
      subscribers.push(await subscribe(slow));
      const other = await subscribe(quick);
      if (n < 15) continue;
      slow.websocket.pause();
      await insertPage(site, { path: '/large', content: 'x'.repeat(1 << 20) });
      await other.until(({ length }) => length === 1);
    }
    await site.call('svc1.key.revoke', { id });
    slow.websocket.resume();
    assert.equal((await closed)[0], 1008);
    const told = subscribers.filter(({ packets }) => packets.length > 0);
    assert.ok(told.length < 14, `${told.length} of 16 were told`);
    assert.ok(subscribers.every(({ errors }) => errors.length === 1));
  });

  test('because it authenticated again gets an error at the next change', async (t) => {
    const site = await startSite(t);
    const { key } = await makeKey(site, 'render');
    const socket = await site.socket(site.adminKey);
    const closed = closing(socket.websocket);
    const subscriber = await subscribe(socket);
    await socket.call('svc1.session.authenticate', { apikey: key });
    await insertPage(site, { path: '/secret' });
    assert.equal((await closed)[0], 1008);
    assert.deepEqual(subscriber.packets, []);
    assert.equal(subscriber.errors[0]?.code, 'forbidden');
  });

  test('because the ini file has changed gets an error at the next change', async (t) => {
    const site = await startSite(t, { ini: '[auth]\nanonymous = render, read\n' });
    const socket = await site.socket();
    const closed = closing(socket.websocket);
    const subscriber = await subscribe(socket);
    const { seq } = await insertPage(site, { path: '/open' });
    await subscriber.until(() => subscriber.seqs().includes(seq));
    await reload(site, 'anonymous = render, read', 'anonymous = render');
    assert.equal((await socket.call(`${rule}.list`, {})).error?.code, 'unauthenticated');
    await insertPage(site, { path: '/secret' });
    assert.equal((await closed)[0], 1008);
    assert.deepEqual(subscriber.seqs(), [seq]);
    assert.equal(subscriber.errors[0]?.code, 'unauthenticated');
  });
});

suite('a subscriber that reads slowly', () => {
  const pingMs = 30_000;
  /** A subscriber that does not read, and another that has read every packet. */
  async function startSlow(t: TestContext, count: number, content: string) {
    const site = await startSite(t);
    const slow = await site.socket(site.adminKey);
    const quick = await site.socket(site.adminKey);
    const subscribers = [await subscribe(slow), await subscribe(quick)] as const;
    slow.websocket.pause();
    for (let n = 0; n < count; n += 1) await insertPage(site, { path: `/${n}`, content });
    await subscribers[1].until(({ length }) => length === count);
    return { site, slow, quick, subscribers };
  }

  test('gets every packet and every response in the end', async (t) => {
    const { slow, subscribers } = await startSlow(t, 4, 'x'.repeat(3 << 20));
    const answers = Array.from({ length: 4 }, () => slow.call('svc1.server.status', {}));
    slow.websocket.resume();
    for (const { data } of await Promise.all(answers)) assert.equal(data.counts.rules, 4);
    await subscribers[0].until(({ length }) => length === 4);
    assert.deepEqual(subscribers[0].seqs(), subscribers[1].seqs());
  });

  test('and answers no ping is closed with a reason', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { slow, quick, subscribers } = await startSlow(t, 15, 'x'.repeat(1 << 20));
    const closed = closing(slow.websocket);
    const pinged = once(quick.websocket, 'ping');
    t.mock.timers.tick(pingMs);
    await pinged;
    // The server reads the pong before the next message.
    await quick.call('svc1.server.status', {});
    t.mock.timers.tick(pingMs);
    await quick.call('svc1.server.status', {});
    slow.websocket.resume();
    assert.deepEqual(await closed, [1013, 'The client reads its answers too slowly.']);
    const got = subscribers[0].seqs();
    assert.ok(got.length < 12, `${got.length} of 15 packets of 2 MiB were held for it`);
    assert.deepEqual(got, subscribers[1].seqs().slice(0, got.length), 'without a gap');

    const again = await subscribe(quick, { from_seq: got.at(-1) ?? 0, path: '/*' });
    await again.until(({ length }) => length === 15 - got.length);
    assert.deepEqual([...got, ...again.seqs()], subscribers[1].seqs());
  });
});

test('reloads of the ini file neither lose nor repeat changes, and packets follow the new configuration', async (t) => {
  const site = await startSite(t, { server: 'public_url = http://0.example\n' });
  const socket = await site.socket(site.adminKey);
  const subscriber = await subscribe(socket);
  const writer = await site.socket(site.adminKey);
  const pages = Array.from({ length: 400 }, (_, n) =>
    insertPage(writer, { path: `/${n}`, engine: 'html' }),
  );
  for (let n = 0; n < 10; n += 1) {
    await reload(site, `public_url = http://${n}.example`, `public_url = http://${n + 1}.example`);
  }
  const seqs = (await Promise.all(pages)).map(({ seq }) => seq);
  const { seq } = await insertPage(writer, { path: '/last', engine: 'html' });
  await subscriber.until((packets) => packets.at(-1)?.seq === seq);
  assert.deepEqual(subscriber.seqs(), [...seqs, seq]);
  assert.match(subscriber.packets.at(-1)?.record.enginereference, /^http:\/\/10\.example\//);
});
