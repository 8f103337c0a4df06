import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { freePort } from '../../free-port.ts';
import { postOperation } from '../../harness.ts';
import { serverFolder, startServed, workersOf, type Served } from '../../process.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { eventually, nodeKey, renewLog } from './rig.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };
const allow = '[webhook]\nallow_private = 127.0.0.0/8\n';

suite('a counter with several workers', onLinux, () => {
  test('takes events and writes in all of them, and copies the log again', async (t) => {
    const receiver = await startReceiver(t);
    const port = await freePort();
    const centreFolder = await serverFolder(t, `${allow}[node]\nrole = central\n`);
    await writeFile(
      centreFolder.iniFile,
      centreFolder.ini.replace('127.0.0.1:0', `127.0.0.1:${port}`),
    );
    const centre = await startServed(t, centreFolder.iniFile);
    const { url, adminKey: apikey } = centre;
    const call = (at: Served, name: string, v: object) =>
      postOperation(at.url, name, v, { apikey, headers: { connection: 'close' } });
    const site = { call: (name: string, v: object) => call(centre, name, v) };
    const key = await nodeKey(site as never, 'shop-7');
    await call(centre, 'svc1.webhook.insert', {
      ...{ event: ['a.sale'], url: receiver.url, where: 'shop-7' },
    });
    const node = `[node]\nrole = counter\nname = shop-7\ncentral = ${url}\nkey_file = k\n`;
    const own = await serverFolder(t, `workers = 2\n${allow}${node}`, { k: key });
    const { iniFile } = own;
    // It has the same port after its restart.
    await writeFile(iniFile, own.ini.replace('127.0.0.1:0', `127.0.0.1:${await freePort()}`));
    const counter = await startServed(t, iniFile, { first: false });
    assert.equal(workersOf(counter).length, 2);
    const sales = Array.from({ length: 8 }, (_, n) => n);
    for (const n of sales) {
      const { data } = await call(counter, 'svc1.event.insert', { type: 'a.sale', data: { n } });
      assert.equal(data?.seq, null);
      // The answer comes once every worker has the change.
      const page = { path: `/page/${n}`, kind: 'content', content: String(n) };
      assert.equal((await call(counter, 'svc1.userinterface.insert', page)).error, undefined);
      assert.equal(await (await fetch(`${counter.url}/page/${n}`)).text(), String(n));
    }
    const delivered = await receiver.until(sales.length);
    assert.deepEqual(
      delivered.map(({ body }) => body.data.n),
      sales,
    );
    const numbers = async (): Promise<readonly number[]> => {
      const { data } = await call(centre, 'svc1.event.list', { type: 'a.sale' });
      return data.rows.map((row: { data: { n: number } }) => row.data.n).toReversed();
    };
    await eventually(async () => {
      assert.deepEqual(await numbers(), sales);
    });

    centre.child.kill('SIGKILL');
    await centre.closed;
    await renewLog(join(centreFolder.folder, 'data'));
    await startServed(t, centreFolder.iniFile, { first: false });
    while (!/The new copy is complete[^]*serves http/.test(counter.out())) {
      await new Promise((resolve) => counter.child.stdout?.once('data', resolve));
    }
    await eventually(async () => {
      const { data } = await call(counter, 'svc1.server.status', {});
      assert.equal(data.node.central.connected, true);
    });
    assert.equal(await (await fetch(`${counter.url}/page/7`)).text(), '7');
  });
});
