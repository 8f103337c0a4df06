import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { runWaymark } from '../../process.ts';

const digest = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

async function put(site: TestSite, path: string, content: Buffer): Promise<Response> {
  return fetch(`${site.url}/svc1/${path}`, {
    ...{ method: 'PUT', body: new Uint8Array(content), headers: { apikey: site.adminKey } },
  });
}

const storedFile = ({ folder }: TestSite, sha256: string) => join(folder, 'data/assets', sha256);

async function pageOf({ url }: TestSite): Promise<Buffer> {
  const reply = await fetch(`${url}/a`);
  assert.equal(reply.status, 200);
  return Buffer.from(await reply.arrayBuffer());
}

/** A site with two assets, and an export of it. */
async function exported(t: Parameters<typeof startSite>[0]) {
  const site = await startSite(t, { rules: [{ path: '/a', asset: 'a.bin' }] });
  const [one, other] = [randomBytes(500_000), randomBytes(20)];
  assert.equal((await put(site, 'asset/former.bin', Buffer.from('former'))).status, 200);
  assert.equal((await put(site, 'asset/former.bin', other)).status, 200);
  assert.equal((await put(site, 'asset/a.bin', one)).status, 200);
  assert.equal((await put(site, 'asset/same.bin', one)).status, 200);
  const target = await temporaryFolder(t);
  const files = join(target, 'files');
  const run = () => runWaymark(['export', '--files', files, '--config', site.iniFile]);
  const { code, out, err } = await run();
  assert.equal(code, 0, err);
  const rows = join(target, 'rows.ndjson');
  await writeFile(rows, out);
  return { site, one, other, files, rows, run, err };
}

suite('an export with files', () => {
  test('has each file once, checked by its hash, and can be repeated', async (t) => {
    const { site, one, other, files, run, err } = await exported(t);
    const both = [digest(one), digest(other)].sort();
    assert.match(err, /Copied 2 files of assets, 500020 bytes/);
    assert.deepEqual((await readdir(files)).sort(), both);
    assert.deepEqual(await readFile(join(files, digest(one))), one);

    await writeFile(join(files, digest(one)), 'cut');
    assert.equal((await run()).code, 0);
    assert.deepEqual(await readFile(join(files, digest(one))), one);

    await rm(files, { recursive: true });
    await rm(storedFile(site, digest(one)));
    await writeFile(storedFile(site, digest(other)), randomBytes(20));
    const broken = await run();
    assert.equal(broken.code, 1);
    assert.match(broken.err, /a\.bin \(\w{64}\) is missing/);
    assert.match(broken.err, /former\.bin \(\w{64}\) is damaged/);
    assert.match(broken.err, /Copied 0 files/);
    assert.deepEqual(await readdir(files), []);
  });

  test('is imported into a folder and into a server, without what is damaged', async (t) => {
    const { one, other, files, rows } = await exported(t);
    const local = await startSite(t);
    const config = ['--config', local.iniFile];
    const imported = await runWaymark(['import', rows, '--files', files, ...config]);
    assert.equal(imported.code, 0, imported.err);
    assert.match(imported.err, /Imported 2 files of assets, 500020 bytes/);
    assert.deepEqual(await pageOf(local), one);
    const checked = await runWaymark(['check', '--data', ...config]);
    assert.match(checked.err, /Files of assets: 2 whole\./);

    const remote = await startSite(t);
    await writeFile(join(files, digest(other)), 'damaged');
    await writeFile(join(files, 'notes.txt'), 'no file of an asset');
    const to = ['--url', remote.url, '--apikey', remote.adminKey];
    const sent = await runWaymark(['import', rows, '--files', files, ...to]);
    assert.equal(sent.code, 1);
    assert.match(sent.err, new RegExp(`${digest(other)} is damaged`));
    assert.match(sent.err, /Imported 1 file of assets, 500000 bytes/);
    assert.deepEqual(await pageOf(remote), one);
    const names = await readdir(join(remote.folder, 'data/assets'));
    assert.deepEqual(
      names.filter((name) => !name.startsWith('.')),
      [digest(one)],
    );
  });
});

suite('a file that is uploaded by its hash', () => {
  test('needs the right hash, and a key that may upload', async (t) => {
    const site = await startSite(t);
    const content = randomBytes(100);
    const path = `asset-file/${digest(content)}`;
    assert.equal((await put(site, path, content)).status, 200);
    assert.equal((await put(site, path, randomBytes(100))).status, 422);
    assert.equal((await put(site, 'asset-file/a.bin', content)).status, 400);
    const { data } = await site.call('svc1.asset.list', {});
    assert.deepEqual(data?.rows, []);
    const reader = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
    const refused = await fetch(`${site.url}/svc1/${path}`, {
      ...{ method: 'PUT', body: 'x', headers: { apikey: reader.data.key } },
    });
    assert.equal(refused.status, 403);
  });
});
