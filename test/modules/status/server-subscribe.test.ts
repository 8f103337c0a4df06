import assert from 'node:assert/strict';
import { on, type EventEmitter } from 'node:events';
import { after, suite, test } from 'node:test';
import { startSite } from '../../harness.ts';

const started = startSite({ after });

interface Received {
  readonly r: string;
  readonly id?: unknown;
  readonly data: { readonly topics: readonly string[] };
}

/** The packets of a websocket, without the answers to its requests. */
async function* packetsOf(websocket: EventEmitter): AsyncGenerator<Received> {
  for await (const [bytes] of on(websocket, 'message')) {
    const message = JSON.parse(String(bytes)) as Received;
    if (message.r.endsWith('.change')) yield message;
  }
}

suite('server.subscribe', () => {
  test('says what has changed over the websocket, by topic, without the data', async () => {
    const site = await started;
    const socket = await site.socket(site.adminKey);
    const packets = packetsOf(socket.websocket);
    const coming = packets.next();
    const { data } = await socket.call('svc1.server.subscribe', { topics: ['keys', 'cache'] });
    assert.equal(typeof data.seq, 'number');
    await site.call('svc1.userinterface.insert', { path: '/a', kind: 'content', content: 'a' });
    await site.call('svc1.key.insert', { name: 'watched', scopes: ['read'] });
    const { value } = await coming;
    assert.equal(value.r, 'svc1.server.change');
    assert.deepEqual(value.data, { topics: ['keys'] });
  });

  test('streams as NDJSON over HTTP', async () => {
    const site = await started;
    const abort = new AbortController();
    const reply = await fetch(`${site.url}/svc1/server/subscribe`, {
      method: 'POST',
      headers: { apikey: site.adminKey, 'content-type': 'application/json' },
      body: JSON.stringify({ v: { topics: ['changes'] } }),
      signal: abort.signal,
    });
    assert.equal(reply.headers.get('content-type'), 'application/x-ndjson');
    await site.call('svc1.userinterface.insert', { path: '/b', kind: 'content', content: 'b' });
    const reader = reply.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    assert.equal(new TextDecoder().decode(value), '{"topics":["changes"]}\n');
    abort.abort();
  });

  test('tells when a page rule begins and when it ends', async () => {
    const site = await started;
    const socket = await site.socket(site.adminKey);
    const packets = packetsOf(socket.websocket);
    const first = packets.next();
    await socket.call('svc1.server.subscribe', { topics: ['times'] });
    const nowMs = Date.now();
    const [from, until] = [nowMs + 1_200, nowMs + 2_400];
    const isoOf = (ms: number): string => new Date(ms).toISOString();
    const rule = { path: '/timed', kind: 'content', content: 'x' };
    const times = { from: isoOf(from), until: isoOf(until) };
    await site.call('svc1.userinterface.insert', { ...rule, ...times });
    assert.deepEqual((await first).value.data, { topics: ['times'] });
    // A packet says that a moment has passed since the one before.
    for (const moment of [from, until]) while (Date.now() < moment) await packets.next();
  });

  test('a key for one webhook may watch only the deliveries of that webhook', async () => {
    const site = await started;
    const made = await Promise.all(
      ['one', 'two'].map((name) =>
        site.call('svc1.webhook.insert', {
          ...{ url: 'http://x.example/', event: [`${name}.b`] },
        }),
      ),
    );
    const [one, two] = made.map(({ data }) => data.id as string);
    const scopes = [`verify:${one}`];
    const { key } = (await site.call('svc1.key.insert', { name: 'partner', scopes })).data;
    for (const v of [
      { topics: ['deliveries'] },
      { topics: ['changes'], hook: one },
      { topics: ['deliveries'], hook: two },
    ]) {
      const { error } = await site.call('svc1.server.subscribe', v, { apikey: key });
      assert.equal(error?.code, 'forbidden', JSON.stringify(v));
    }
    const socket = await site.socket(key);
    const watch = { topics: ['deliveries'], hook: one };
    assert.equal((await socket.call('svc1.server.subscribe', watch)).error, undefined);
    assert.match(
      (await site.call('svc1.server.subscribe', { topics: ['weather'] })).error?.field ?? '',
      /^topics/,
    );
  });
});

suite('session.unsubscribe', () => {
  test('ends the subscriptions with an id, and leaves the others', async () => {
    const site = await started;
    const socket = await site.socket(site.adminKey);
    const request = async (message: { a: string; v: object; id: string }): Promise<void> => {
      const messages = on(socket.websocket, 'message');
      socket.websocket.send(JSON.stringify(message));
      for await (const [bytes] of messages) {
        const { r, id } = JSON.parse(String(bytes)) as Received;
        if (r === message.a && id === message.id) return;
      }
    };
    const packets = packetsOf(socket.websocket);
    const topics = ['changes'];
    const first = packets.next();
    await request({ a: 'svc1.userinterface.subscribe', v: { path: '/u/*' }, id: 'rules' });
    await request({ a: 'svc1.userinterface.subscribe', v: { path: '/u/*' }, id: 'more rules' });
    await request({ a: 'svc1.server.subscribe', v: { topics }, id: 'state' });
    await socket.call('svc1.session.unsubscribe', { id: 'rules' });
    await socket.call('svc1.session.unsubscribe', { id: 'state' });
    for (const path of ['/u/1', '/u/2']) {
      await site.call('svc1.userinterface.insert', { path, kind: 'content', content: path });
    }
    const ids = [(await first).value.id, (await packets.next()).value.id];
    assert.deepEqual(ids, ['more rules', 'more rules']);
    // All of them end, and the websocket can subscribe again.
    await socket.call('svc1.session.unsubscribe', { id: 'more rules' });
    await request({ a: 'svc1.userinterface.subscribe', v: { path: '/u/*' }, id: 'again' });
    const next = packets.next();
    await site.call('svc1.userinterface.insert', { path: '/u/3', kind: 'content', content: '3' });
    assert.equal((await next).value.id, 'again');
  });
});
