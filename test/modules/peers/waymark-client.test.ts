import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createWaymarkClient } from '../../../src/modules/peers/waymark-client.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('an answer that is not from Waymark is told by its status', async (t) => {
  let status = 0;
  const proxy = createServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'text/html' }).end(`<h1>${status}</h1>`);
  }).listen(0, '127.0.0.1');
  t.after(() => proxy.close());
  await once(proxy, 'listening');
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const client = createWaymarkClient(url, { timeoutMs: 30_000, fields: () => ({}) });
  const size = 'refuses the size of the request (413): raise its limit.';
  const expected = [
    [200, 'bad_gateway', `${url} answers 200, but it is not a Waymark server.`],
    [404, 'bad_gateway', `${url} answers 404, but it is not a Waymark server.`],
    [413, 'too_large', `A proxy in front of ${url} ${size}`],
    [502, 'unavailable', `${url} answers 502: its proxy does not reach the server.`],
  ] as const;
  for (const [next, code, message] of expected) {
    status = next;
    const call = client.call('svc1.node.insert', { v: {}, apikey: 'k' });
    await assert.rejects(call, { code, message });
  }
});

// undici cancels the unread body of a Response that nobody holds any more.
test('a download has all its bytes, however late they are read', async (t) => {
  const content = Buffer.alloc(200_000, 'x');
  const server = createServer((_request, response) => response.end(content)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createWaymarkClient(url, { timeoutMs: 30_000, fields: () => ({}) });
  const asked = { apikey: 'k', first: 0 };
  const { chunks } = await client.download('asset-file/0', asked, t.signal);
  for (let turns = 0; turns < 10; turns += 1) {
    collectGarbage();
    await turn();
  }
  assert.deepEqual(await buffer(chunks), content);
});
