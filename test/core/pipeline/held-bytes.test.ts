import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { test, type TestContext } from 'node:test';
import type { TestSite } from '../../harness.ts';
import { connectHttp2 } from '../server/h2/client.ts';
import { openSocket } from './raw-client.ts';
import { startTlsSite } from '../server/tls/tls-rig.ts';

const pageBytes = 200_000;

/** Polls the metrics until no memory is held; fails after a while. */
async function untilNothingHeld({ url }: TestSite): Promise<void> {
  const givesUpAtMs = Date.now() + 10_000;
  const held = /^waymark_(?:requests_held|unread_answers)_bytes [1-9]/m;
  while (Date.now() < givesUpAtMs) {
    const metrics = await (await fetch(`${url}/svc1/metrics`)).text();
    assert.match(metrics, /^waymark_unread_answers_bytes /m);
    if (!held.test(metrics)) return;
  }
  assert.fail('bytes are held of requests that are all answered');
}

/** Requests a page and disconnects when the response begins. */
async function askAndLeave(t: TestContext, port: number, target: string): Promise<void> {
  const socket = await openSocket(t, port);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(3));
  await once(socket, 'data');
  socket.resetAndDestroy();
}

test('no memory is held for requests and responses that have ended, in whichever way', async (t) => {
  const site = await startTlsSite(t, {
    tls: 'http_redirect = no',
    rules: [{ path: '/large', content: 'x'.repeat(pageBytes), contenttype: 'text/plain' }],
  });
  const place = { origin: site.url, path: '/large' };
  const get = `/svc1/userinterface/get?_v.origin=${site.url}&_v.path=/large`;
  for (const target of ['/large', get]) {
    for (const method of ['GET', 'GET', 'GET', 'HEAD']) {
      await (await fetch(site.url + target, { method })).arrayBuffer();
      await site.ask(`https://localhost:${site.tlsPort}${target}`, { method });
    }
    const ranges = { Range: 'bytes=0-150000' };
    await (await fetch(site.url + target, { headers: ranges })).arrayBuffer();
    for (let n = 0; n < 5; n += 1) await askAndLeave(t, site.port, target);
  }
  const client = await connectHttp2(t, site);
  for (const method of ['GET', 'GET', 'HEAD']) {
    await client.ask('/large', { ':method': method });
  }
  const left = client.begin('/large');
  await once(left, 'response');
  left.close();
  for (const gone of [true, false]) {
    const socket = await site.socket();
    for (const name of ['get', 'get_content']) {
      socket.websocket.send(JSON.stringify({ a: `svc1.userinterface.${name}`, v: place }));
    }
    if (gone) socket.websocket.terminate();
    else await once(socket.websocket, 'message');
  }
  const posted = request(`${site.url}/svc1/userinterface/get`, { method: 'POST' });
  posted.on('error', () => undefined);
  posted.write('x'.repeat(pageBytes));
  posted.destroy();
  await untilNothingHeld(site);
});
