import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { startSite, type TestSite } from '../../harness.ts';
import { httpSource, rawSource } from '../../core/outbound/sources.ts';
import { withTimeout } from '../../timeouts.ts';
import { fullPort } from './attempt-rig.ts';
import { startReceiver } from './receiver.ts';
import { sale, type Row } from './rig.ts';

const ini = (timeoutMs: number): string => `[webhook]
allow_private = 127.0.0.1
connect_timeout = ${timeoutMs / 2}ms
timeout = ${timeoutMs}ms
retry = 1h
`;

/** The result of one attempt: outcome, status, and the error or the content. */
type Expected = readonly [string, number | undefined, RegExp];

/** Makes a receiver, or a URL without one. */
type Make = (t: TestContext) => Promise<string> | string;

const ok = 'HTTP/1.1 200 OK\r\n';
const refused: Expected = ['failed', undefined, /^The address is not allowed/];

const hostile: Readonly<Record<string, readonly [Make, Expected]>> = {
  'hangs at its connection': [
    async (t) => `http://127.0.0.1:${await fullPort(t)}`,
    ['failed', undefined, /^No connection was made in time/],
  ],
  'hangs at TLS': [
    async (t) => `https://127.0.0.1:${(await rawSource(t, () => undefined)).port}`,
    ['failed', undefined, /^No connection was made in time/],
  ],
  'hangs before its header section': [
    async (t) => (await rawSource(t, () => undefined)).origin,
    ['failed', undefined, /^The response was not complete in time/],
  ],
  'hangs in its content': [
    (t) => raw(t, `${ok}Content-Length: 100\r\n\r\nhalf`),
    ['completed', 200, /^The response was not complete in time/],
  ],
  'resets its connection': [
    async (t) => (await rawSource(t, (socket) => socket.resetAndDestroy())).origin,
    ['failed', undefined, /^The connection ended before the response did/],
  ],
  'answers 1 GiB': [endless, ['completed', 200, /^x{1024}$/]],
  'answers a gzip bomb': [bomb, ['completed', 200, /^.\ufffd/]],
  'answers 10,000 fields': [
    (t) => raw(t, `${ok}${'a: b\r\n'.repeat(10_000)}\r\n`),
    ['failed', undefined, /^The header section of the response is too large/],
  ],
  'redirects to a metadata address': [
    (t) =>
      raw(t, 'HTTP/1.1 307 No\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n'),
    ['failed', 307, /^$/],
  ],
  'is a metadata address': [() => 'http://169.254.169.254/latest/meta-data', refused],
  'is a private address': [() => 'http://127.0.0.2:9', refused],
  'is a private address in IPv6': [() => 'http://[::ffff:10.0.0.1]', refused],
  'is a private address behind NAT64': [() => 'http://[64:ff9b::a9fe:a9fe]', refused],
  'is the loopback in IPv6': [() => 'http://[::1]:9', refused],
  'is a name of nobody': [
    () => 'http://nobody.invalid',
    ['failed', undefined, /^The name could not be resolved|^No connection was made in time/],
  ],
};

test('hostile receivers fail attempts of their own hooks only, and delay no other hook', async (t) => {
  // The other receivers have to respond within this time.
  await withTimeout([600, 5_000, 20_000], (timeoutMs) => meetHostile(t, timeoutMs));
});

async function meetHostile(t: TestContext, timeoutMs: number): Promise<void> {
  const site = await startSite(t, { ini: ini(timeoutMs) });
  const receiver = await startReceiver(t);
  const hooks = new Map<string, string>();
  for (const [what, [make]] of Object.entries(hostile)) {
    const hook = { name: what, event: [sale.type], url: await make(t) };
    const { data, error } = await site.call('svc1.webhook.insert', hook);
    assert.equal(error, undefined, what);
    hooks.set(what, data.id);
  }
  await site.call('svc1.webhook.insert', { event: [sale.type], url: receiver.url });
  await site.call('svc1.event.insert', sale, { vk: randomUUID() });
  await receiver.until(1);
  for (const [what, [, [outcome, status, says]]] of Object.entries(hostile)) {
    const row = await firstAttempt(site, hooks.get(what) ?? '');
    assert.deepEqual([row.outcome, row.status], [outcome, status], what);
    assert.match(row.error ?? row.answer ?? '', says, what);
  }
  assert.equal((await fetch(`${site.url}/svc1/health`)).status, 200);
}

async function firstAttempt(site: TestSite, id: string): Promise<Row> {
  for (;;) {
    const { rows } = (await site.call('svc1.webhook.deliveries', { id })).data;
    if (rows.length > 0) return rows[0] as Row;
    await delay(20);
  }
}

/** Responds to each request with some bytes, and leaves the connection open. */
async function raw(t: TestContext, bytes: string): Promise<string> {
  const { origin } = await rawSource(t, (socket) => socket.write(bytes));
  return origin;
}

async function endless(t: TestContext): Promise<string> {
  const piece = Buffer.alloc(2 ** 20, 'x');
  const { origin } = await httpSource(t, (_, response) => {
    response.writeHead(200, { 'Content-Length': String(2 ** 30) });
    const pour = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', pour);
    pour();
  });
  return origin;
}

async function bomb(t: TestContext): Promise<string> {
  const content = await promisify(gzip)(Buffer.alloc(64 * 2 ** 20));
  const { origin } = await httpSource(t, (_, response) => {
    response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(content);
  });
  return origin;
}
