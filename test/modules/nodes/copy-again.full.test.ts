import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cp } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { startSite, postOperation } from '../../harness.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { eventually, nodeKey, renewLog, startFollower, startFromIni as start } from './rig.ts';

const page = (path: string, content: string) => ({
  ...{ origin: '*', path, kind: 'content', content, contenttype: 'text/html' },
});

test('a node copies a log again that was restored from a backup, and keeps its outbox', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFiles(folder, { 'c.ini': '[server]\nlisten = 127.0.0.1:0\ndata = data\n' });
  const first = await start(t, join(folder, 'c.ini'));
  const [url = ''] = first.addresses;
  const { port } = new URL(url);
  const apikey = first.firstKey ?? '';
  const call = (at: string, name: string, v: object) => postOperation(at, name, v, { apikey });
  const site = { call: (name: string, v: object) => call(url, name, v) };
  const key = await nodeKey(site as never, 'shop-7');
  const reader = await call(url, 'svc1.key.insert', { name: 'reader', scopes: ['read'] });
  await first.stop(0);
  await cp(join(folder, 'data'), join(folder, 'backup'), { recursive: true });

  const again = `[server]\nlisten = 127.0.0.1:${port}\ndata = `;
  await writeFiles(folder, { 'c.ini': `${again}data\n`, 'b.ini': `${again}backup\n` });
  const second = await start(t, join(folder, 'c.ini'));
  await call(url, 'svc1.userinterface.insert', page('/lost', 'lost'));
  await writeFiles(folder, {
    'central.key': key,
    'n.ini': `[server]\nlisten = 127.0.0.1:0\ndata = node\n[node]\nrole = counter\nname = shop-7\ncentral = ${url}\nkey_file = central.key\n`,
  });
  const node = await start(t, join(folder, 'n.ini'));
  const [nodeUrl = ''] = node.addresses;
  assert.equal(await (await fetch(`${nodeUrl}/lost`)).text(), 'lost');
  await postOperation(nodeUrl, 'svc1.server.status', {}, { apikey: reader.data.key as string });
  await second.stop(0);
  await call(nodeUrl, 'svc1.event.insert', { type: 'a.sale', data: { n: 1 } });

  const restored = await start(t, join(folder, 'b.ini'));
  assert.deepEqual(restored.addresses, [url]);
  await call(url, 'svc1.userinterface.insert', page('/found', 'found'));
  await node.copied;
  // It serves its old state until the restart.
  assert.equal(await (await fetch(`${nodeUrl}/lost`)).text(), 'lost');
  await node.stop(0);
  const restarted = await start(t, join(folder, 'n.ini'));
  const [newUrl = ''] = restarted.addresses;
  assert.equal((await fetch(`${newUrl}/lost`)).status, 404);
  assert.equal(await (await fetch(`${newUrl}/found`)).text(), 'found');
  const { data: keys } = await call(newUrl, 'svc1.key.list', {});
  const rows = keys.rows as readonly { id: string; last_used: string | null }[];
  assert.match(rows.find(({ id }) => id === reader.data.id)?.last_used ?? '', /Z$/);
  await eventually(async () => {
    const { data } = await call(url, 'svc1.event.list', { type: 'a.sale' });
    assert.equal(data.rows.length, 1);
  });
});

test('a node that copies a log again goes on with the deliveries that wait', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = () => 503;
  const folder = await temporaryFolder(t);
  const server = (port: number, data: string): string =>
    `[server]\nlisten = 127.0.0.1:${port}\ndata = ${data}\n` +
    '[webhook]\nallow_private = 127.0.0.0/8\nretry = 500ms\n';
  const [port, nodePort] = [await freePort(), await freePort()];
  const [url, nodeUrl] = [port, nodePort].map((at) => `http://127.0.0.1:${at}`) as [string, string];
  await writeFiles(folder, { 'c.ini': `${server(port, 'data')}[node]\nrole = central\n` });
  const first = await start(t, join(folder, 'c.ini'));
  const apikey = first.firstKey ?? '';
  const call = (at: string, name: string, v: object) => postOperation(at, name, v, { apikey });
  const site = { call: (name: string, v: object) => call(url, name, v) };
  const node = `[node]\nrole = counter\nname = shop-7\ncentral = ${url}\nkey_file = k\n`;
  const files = {
    k: await nodeKey(site as never, 'shop-7'),
    'n.ini': server(nodePort, 'node') + node,
  };
  await writeFiles(folder, files);
  const counter = await start(t, join(folder, 'n.ini'));
  const hook = { event: ['a.sale'], url: receiver.url, where: 'shop-7', retry_limit: 1_000 };
  await call(url, 'svc1.webhook.insert', hook);
  const sale = (n: number): object => ({ type: 'a.sale', data: { n } });
  await call(url, 'svc1.event.insert', { ...sale(1), counter: 'shop-7' });
  // The counter attempts it, so it has the event from the centre before its own.
  await receiver.until(1);
  await call(nodeUrl, 'svc1.event.insert', sale(2));
  await call(nodeUrl, 'svc1.event.insert', sale(3));
  await receiver.untilSeqs(3);
  await first.stop(0);
  await renewLog(join(folder, 'data'));
  await start(t, join(folder, 'c.ini'));
  await counter.copied;
  await counter.stop(0);
  receiver.answer = () => 200;
  const before = receiver.got.length;
  await start(t, join(folder, 'n.ini'));
  await call(nodeUrl, 'svc1.event.insert', sale(4));
  await eventually(() => {
    const delivered = receiver.got.slice(before).map(({ body }) => [body.seq, body.data.n]);
    assert.deepEqual(
      delivered.toSorted(),
      [1, 2, 3, 4].map((n) => [n, n]),
    );
  });
});

test('a node that cannot copy a log again tries on, and says so in its state', async (t) => {
  const centre = await startSite(t);
  let says: 'truth' | 'another log' | 'forbidden' = 'truth';
  // A part of the API of the centre, whose log.end lies.
  const lying = createServer((request, response) => {
    void (async () => {
      const body = await buffer(request);
      const { apikey = '' } = request.headers as Record<string, string>;
      const headers = { 'content-type': 'application/json', apikey };
      const answer = await fetch(`${centre.url}${request.url}`, { method: 'POST', headers, body });
      let text = await answer.text();
      if (says !== 'truth' && request.url?.endsWith('/log/end') === true) {
        const { data } = JSON.parse(text) as { data: object };
        const error = { code: 'forbidden', message: 'The key has another node now.' };
        const lie = says === 'forbidden' ? { error } : { data: { ...data, log: says } };
        text = JSON.stringify({ r: 'svc1.log.end', ...lie });
        says = 'forbidden';
      }
      const type = answer.headers.get('content-type') ?? '';
      response.writeHead(answer.status, { 'content-type': type }).end(text);
    })();
  }).listen(0, '127.0.0.1');
  t.after(() => lying.close());
  await once(lying, 'listening');
  const url = `http://127.0.0.1:${(lying.address() as AddressInfo).port}`;
  const node = await startFollower(t, centre, { name: 'copy-1', central: { ...centre, url } });
  says = 'another log';
  await eventually(async () => {
    const { data } = await node.call('svc1.server.status', {}, { apikey: centre.adminKey });
    const { connected, problem } = data.node.central;
    assert.equal(connected, false);
    assert.match(problem, /The key has another node now/);
  });
  says = 'truth';
  await node.waymark.copied;
});

test('a data folder with a log of its own becomes no copy, and a copy no centre', async (t) => {
  const centre = await startSite(t);
  const key = await nodeKey(centre, 'copy-1');
  const folder = await temporaryFolder(t);
  const server = '[server]\nlisten = 127.0.0.1:0\ndata = data\n';
  const node = `[node]\nrole = replica\nname = copy-1\ncentral = ${centre.url}\nkey_file = k\n`;
  await writeFiles(folder, { 'own.ini': server, 'copy.ini': server + node, k: key });
  const copy = await start(t, join(folder, 'copy.ini'));
  await copy.stop(0);
  await assert.rejects(start(t, join(folder, 'own.ini')), /is a copy of that of http/);
  await writeFiles(folder, { 'own.ini': server.replace('data\n', 'other\n') });
  const own = await start(t, join(folder, 'own.ini'));
  await own.stop(0);
  await writeFiles(folder, { 'copy.ini': server.replace('data\n', 'other\n') + node });
  await assert.rejects(start(t, join(folder, 'copy.ini')), /has a log of its own/);
});
