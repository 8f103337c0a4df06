import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createWaymarkClient } from '../../src/outbound/waymark-client.ts';

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
