import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { postOperation } from '../../harness.ts';
import { runWaymark } from '../../process.ts';
import { eventually, nodeKey, startFromIni } from './rig.ts';

const page = (path: string) => ({ origin: '*', path, kind: 'content', content: path });

test('a replica becomes the centre; nodes follow it and refuse the former one', async (t) => {
  const folder = await temporaryFolder(t);
  const [port, ownPort, shopPort] = [await freePort(), await freePort(), await freePort()];
  const [former, url, shop] = [port, ownPort, shopPort].map((at) => `http://127.0.0.1:${at}`);
  const ini = (at: number, data: string, node: string): string =>
    `[server]\nlisten = 127.0.0.1:${at}\ndata = ${data}\n[node]\n${node}\n`;
  const following = (name: string, role: string, central = ''): string =>
    `role = ${role}\nname = ${name}\ncentral = ${central}\nkey_file = ${name}.key`;
  const start = (name: string) => startFromIni(t, join(folder, name));
  await writeFiles(folder, { 'c.ini': ini(port, 'centre', 'role = central') });
  const centre = await start('c.ini');
  const apikey = centre.firstKey ?? '';
  const call = (at: string | undefined, name: string, v: object) =>
    postOperation(at ?? '', name, v, { apikey });
  const site = { call: (name: string, v: object) => call(former, name, v) };
  await writeFiles(folder, {
    'copy-1.key': await nodeKey(site as never, 'copy-1'),
    'shop-7.key': await nodeKey(site as never, 'shop-7'),
    'copy.ini': ini(ownPort, 'copy', following('copy-1', 'replica', former)),
    'shop.ini': ini(shopPort, 'shop', following('shop-7', 'counter', former)),
  });
  await call(former, 'svc1.userinterface.insert', page('/kept'));
  const behind = await start('copy.ini');
  const counter = await start('shop.ini');
  const sell = (n: number) => call(shop, 'svc1.event.insert', { type: 'a.sale', data: { n } });
  const sales = async (at: string | undefined): Promise<readonly number[]> => {
    const { data } = await call(at, 'svc1.event.list', { type: 'a.sale' });
    return (data as { rows: { data: { n: number } }[] }).rows.map((row) => row.data.n).toReversed();
  };
  // The centre stores three events that the replica does not get; the counter has their rows, and
  // has shortened its entry of the first one when it sends the third one.
  await behind.stop(0);
  const stored: number[] = [];
  for (const n of [1, 2, 3]) {
    await sell(n);
    stored.push(n);
    await eventually(async () => {
      assert.deepEqual([await sales(former), await sales(shop)], [stored, stored]);
    });
  }
  await centre.stop(0);
  const replica = await start('copy.ini');
  await sell(4);

  const promote = ['promote', '--config', join(folder, 'copy.ini')];
  const running = await runWaymark(promote);
  assert.match(running.err, /is in use/);
  await replica.stop(0);
  const promoted = await runWaymark(promote);
  assert.deepEqual([promoted.code, promoted.out], [0, ''], promoted.err);
  assert.match(promoted.err, /is the data of a centre now, with the changes up to \d+\./);
  const again = await runWaymark(promote);
  assert.match(again.err, /there is nothing to promote/);
  assert.notEqual(again.code, 0);
  await writeFiles(folder, { 'copy.ini': ini(ownPort, 'copy', 'role = central') });
  await start('copy.ini');
  assert.equal((await call(url, 'svc1.userinterface.insert', page('/new'))).error, undefined);

  await counter.stop(0);
  await writeFiles(folder, {
    'shop.ini': ini(shopPort, 'shop', following('shop-7', 'counter', url)),
  });
  const moved = await start('shop.ini');
  await moved.copied;
  await moved.stop(0);
  const restarted = await start('shop.ini');
  assert.equal(await (await fetch(`${shop}/new`)).text(), '/new');
  await eventually(async () => {
    assert.deepEqual(await sales(url), [1, 2, 3, 4]);
  });

  // The former centre comes back, and the node is sent there by mistake.
  await restarted.stop(0);
  await start('c.ini');
  await writeFiles(folder, {
    'shop.ini': ini(shopPort, 'shop', following('shop-7', 'counter', former)),
  });
  const lost = await start('shop.ini');
  await sell(5);
  const refused = await call(shop, 'svc1.userinterface.insert', page('/nowhere'));
  assert.equal(refused.error?.code, 'unavailable');
  await eventually(() => {
    assert.match(lost.logged(), /The copying of the log of the centre stopped: .*former centre/);
    assert.match(lost.logged(), /The sending of the outbox to the centre stopped: .*former centre/);
  });
  assert.equal(await (await fetch(`${shop}/new`)).text(), '/new');
  assert.equal((await fetch(`${former}/nowhere`)).status, 404);
  assert.deepEqual(await sales(former), [1, 2, 3]);
});
