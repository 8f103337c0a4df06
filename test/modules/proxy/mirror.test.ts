import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { suite, test, type TestContext } from 'node:test';
import { text } from 'node:stream/consumers';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

/** A request as a server got it. */
interface Got {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly cookie: string | undefined;
  readonly body: string;
}

/** A server that tells which requests it gets, and answers with its name. */
async function server(t: TestContext, name: string, status = 200) {
  const events = new EventEmitter();
  const seen: Got[] = [];
  const { origin } = await httpSource(t, (request, response) => {
    void text(request).then(
      (body) => {
        const { method, url, headers } = request;
        seen.push({ method, url, cookie: headers.cookie, body });
        response.writeHead(status, { 'x-name': name }).end(name);
        events.emit('got');
      },
      () => undefined,
    );
  });
  return {
    ...{ origin, seen },
    until: async (count: number): Promise<void> => {
      while (seen.length < count) await once(events, 'got');
    },
  };
}

suite('a mirror', () => {
  test('gets a copy of each request, and its answers go nowhere', async (t) => {
    const [app, mirror] = [await server(t, 'app'), await server(t, 'mirror', 500)];
    const site = await startSite(t, {
      ini: `[proxy.app]\npath = /app/\nsource = ${app.origin}\nmirror = ${mirror.origin}/v2/\n`,
    });
    const headers = { cookie: 'a=1' };
    for (const [method, body] of [
      ['GET', null],
      ['DELETE', null],
      ['POST', 'a'.repeat(100_000)],
    ] as const) {
      const reply = await fetch(`${site.url}/app/x%2Fy?q`, { method, body, headers });
      assert.deepEqual([reply.status, await reply.text()], [200, 'app']);
    }
    await mirror.until(3);
    assert.deepEqual(
      mirror.seen.toSorted((a, b) => String(a.method).localeCompare(String(b.method))),
      app.seen
        .map((got) => ({ ...got, url: '/v2/x%2Fy?q' }))
        .toSorted((a, b) => String(a.method).localeCompare(String(b.method))),
    );
    const { rows } = (await site.call('svc1.source.list', {})).data;
    const row = rows.find((one: { origin: string }) => one.origin === mirror.origin);
    assert.equal(row.requests, 3);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/app/x' });
    assert.ok(JSON.stringify(data).includes(`A copy of the request goes to ${mirror.origin}.`));
  });

  test('that is down, silent or slow changes nothing for visitors', async (t) => {
    const app = await server(t, 'app');
    const silent = await httpSource(t, () => undefined);
    const site = await startSite(t, {
      ini:
        `[proxy.down]\npath = /down/\nsource = ${app.origin}\nmirror = http://127.0.0.1:9\n` +
        `[proxy.silent]\npath = /silent/\nsource = ${app.origin}\nmirror = ${silent.origin}\n`,
    });
    for (const path of ['/down/a', '/silent/a']) {
      for (const body of [null, 'text']) {
        const method = body === null ? 'GET' : 'POST';
        const reply = await fetch(site.url + path, { method, body });
        assert.deepEqual([reply.status, await reply.text()], [200, 'app']);
      }
    }
    const asked = Array.from({ length: 110 }, async () =>
      (await fetch(`${site.url}/silent/b`, { cache: 'no-store' })).text(),
    );
    assert.ok((await Promise.all(asked)).every((name) => name === 'app'));
    const { rows } = (await site.call('svc1.source.list', {})).data;
    const row = rows.find((one: { origin: string }) => one.origin === silent.origin);
    assert.equal(row.last_error.message, '100 copies of requests wait for the mirror.');
  });

  test('gets no content that is too long, and none that the client has broken off', async (t) => {
    const [app, mirror] = [await server(t, 'app'), await server(t, 'mirror')];
    const ini = `[proxy.app]\nsource = ${app.origin}\nmirror = ${mirror.origin}\n`;
    const site = await startSite(t, { ini });
    const long = 'x'.repeat(1024 * 1024 + 1);
    await (await fetch(`${site.url}/long`, { method: 'POST', body: long })).text();
    await site.raw(
      'POST /half HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd',
    );
    await (await fetch(`${site.url}/last`, { method: 'POST', body: 'a' })).text();
    await mirror.until(1);
    assert.deepEqual(
      mirror.seen.map(({ url }) => url),
      ['/last'],
    );
  });
});
