import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startSite, postOperation } from '../harness.ts';
import { temporaryFolder, writeFiles } from '../folder.ts';
import { eventually, nodeKey, startFromIni as start } from './rig.ts';

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
  await eventually(async () => {
    const { data } = await call(url, 'svc1.event.list', { type: 'a.sale' });
    assert.equal(data.rows.length, 1);
  });
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
