import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { TestContext } from 'node:test';
import { startTlsSite, type TlsSite } from '../tls/tls-rig.ts';
import type { ResetJob } from './reset-client.ts';

/**
 * How the connections are: opened and reset while the server is busy, or opened before, and then
 * with a request and a reset while it is busy.
 */
export const resetWays = ['unaccepted', 'clear', 'tls', 'h2c', 'h2'] as const;
/** One of them. */
export type ResetWay = (typeof resetWays)[number];

/** Connections that a thread has open at the same time: the system queues no more unaccepted. */
const batchMax = 200;
const busyMsMax = 60_000;

/** Starts a site with a table whose rows only signed-in users insert, without a trusted proxy. */
export async function startUserSite(t: TestContext): Promise<TlsSite> {
  const site = await startTlsSite(t, {
    tls: 'http_redirect = no',
    server: 'connections_per_address = 1000',
    ini: '[auth]\nuser_header = X-User\n',
  });
  const schema = { type: 'object', properties: { note: {}, who: { type: 'string' } } };
  const access = { owner: 'who', read: ['user'], insert: ['user'], edit: ['user'] };
  await site.call('svc1.table.insert', { name: 'notes', schema, ...access });
  return site;
}

/**
 * Sends inserts as another user over connections that their clients reset at once, while the server
 * is busy. Returns the number of rows, and of requests in the access log.
 */
export async function resetConnections(
  site: TlsSite,
  way: ResetWay,
  connections: number,
): Promise<{ readonly rows: number; readonly requests: number }> {
  const before = await openConnections(site);
  const done = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  for (let left = connections; left > 0; left -= batchMax) {
    Atomics.store(done, 0, 0);
    const workerData: ResetJob = {
      way,
      port: way === 'tls' || way === 'h2' ? site.tlsPort : site.port,
      ca: site.authority.cert,
      count: Math.min(left, batchMax),
      path: '/svc1/record/insert',
      fields: { 'content-type': 'application/json', 'x-user': 'victim@example.com' },
      body: JSON.stringify({ v: { table: 'notes', note: 'x' } }),
      done,
    };
    const clients = new Worker(new URL('./reset-client.ts', import.meta.url), { workerData });
    await once(clients, 'message');
    clients.postMessage('send');
    // The server is in this thread, and busy until all connections are reset.
    assert.notEqual(Atomics.wait(done, 0, 0, busyMsMax), 'timed-out');
    await clients.terminate();
  }
  await settled(site, before);
  const { data } = await site.call('svc1.record.list', { table: 'notes', limit: 1, count: true });
  const requests = site.logged().split('/svc1/record/insert').length - 1;
  return { rows: data.rows.length, requests };
}

/** Resolves when the server has no more connections than before. */
async function settled(site: TlsSite, before: number): Promise<void> {
  while ((await openConnections(site)) > before);
}

/** The number of open connections, with the one that asks. */
async function openConnections(site: TlsSite): Promise<number> {
  const fields = `Host: localhost\r\napikey: ${site.adminKey}\r\nConnection: close\r\n\r\n`;
  const metrics = await site.raw(`GET /svc1/metrics HTTP/1.1\r\n${fields}`);
  return Number(/^waymark_connections (\d+)$/m.exec(metrics)?.[1]);
}
