import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { eventually, nodeKey, startFollower, untilEqual } from './rig.ts';

const rules = [{ path: '/a', asset: 'a.bin' }];

async function put(site: TestSite, name: string, content: Buffer): Promise<string> {
  const reply = await fetch(`${site.url}/svc1/asset/${name}`, {
    method: 'PUT',
    body: new Uint8Array(content),
    headers: { apikey: site.adminKey },
  });
  assert.equal(reply.status, 200, await reply.text());
  return createHash('sha256').update(content).digest('hex');
}

const fileOf = ({ folder }: TestSite, hash: string) => join(folder, 'data/assets', hash);

async function filesOf({ folder }: TestSite): Promise<readonly string[]> {
  const names = await readdir(join(folder, 'data/assets')).catch(() => []);
  return names.filter((name) => !name.startsWith('.')).sort();
}

async function page(site: TestSite): Promise<Buffer> {
  const reply = await fetch(`${site.url}/a`);
  assert.equal(reply.status, 200, site.logged());
  return Buffer.from(await reply.arrayBuffer());
}

suite('the files of assets at a replica', () => {
  test('come from the centre: those of the past, and new ones', async (t) => {
    const centre = await startSite(t, { rules });
    const [first, second] = [randomBytes(300_000), randomBytes(3_000_000)];
    const hash = await put(centre, 'a.bin', first);
    const replica = await startFollower(t, centre, { name: 'shop' });
    await untilEqual(centre, replica);
    assert.deepEqual(await page(replica), first);
    await eventually(async () => {
      assert.deepEqual(await filesOf(replica), [hash]);
    });
    await put(centre, 'a.bin', second);
    const other = await put(centre, 'b.bin', randomBytes(10));
    await untilEqual(centre, replica);
    assert.deepEqual(await page(replica), second);
    await eventually(async () => {
      assert.ok((await filesOf(replica)).includes(other));
    });
  });

  test('are asked for again if they are missing or damaged, and checked', async (t) => {
    const centre = await startSite(t, { rules });
    const content = randomBytes(200_000);
    const hash = await put(centre, 'a.bin', content);
    const replica = await startFollower(t, centre, { name: 'shop' });
    await untilEqual(centre, replica);
    await page(replica);
    await writeFile(fileOf(replica, hash), 'short');
    assert.deepEqual(await page(replica), content);
    await rm(fileOf(replica, hash));
    await rm(fileOf(centre, hash));
    // The replica has it in memory; another asset of the same length has not been read.
    const next = randomBytes(200_000);
    const other = await put(centre, 'a.bin', next);
    await writeFile(fileOf(centre, other), randomBytes(200_000));
    await untilEqual(centre, replica);
    assert.equal((await fetch(`${replica.url}/a`)).status, 503);
    assert.ok(!(await filesOf(replica)).includes(other));
    await put(centre, 'a.bin', next);
    await eventually(async () => {
      assert.deepEqual(await page(replica), next);
    });
    assert.deepEqual(await readFile(fileOf(replica, other)), next);
  });

  test('are sent to keys of nodes only, by their hashes only, in parts as well', async (t) => {
    const site = await startSite(t);
    const content = randomBytes(1_000);
    const hash = await put(site, 'a.bin', content);
    const key = await nodeKey(site, 'shop');
    const get = (name: string, headers: Readonly<Record<string, string>>) =>
      fetch(`${site.url}/svc1/asset-file/${name}`, { headers });
    const reader = await site.call('svc1.key.insert', { name: 'r', scopes: ['read', 'design'] });
    assert.equal((await get(hash, {})).status, 401);
    assert.equal((await get(hash, { apikey: reader.data.key })).status, 403);
    for (const name of ['0'.repeat(64), 'data.mdb', 'a.bin', '']) {
      assert.equal((await get(name, { apikey: key })).status, 404, name);
    }
    const part = await get(hash, { apikey: key, range: 'bytes=10-' });
    assert.equal(part.status, 206);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), content.subarray(10));
  });
});
