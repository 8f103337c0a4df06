import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { openStore } from '../../../src/core/log/open.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { AssetFiles, interruptedUploadsMax } from '../../../src/modules/assets/asset-files.ts';
import { keepAssets } from '../../../src/modules/assets/asset-keeper.ts';
import { temporaryFolder } from '../../folder.ts';
import { type TestSite, startSite } from '../../harness.ts';
import { oneClock } from '../../installed.ts';
import { runWaymark } from '../../process.ts';

const run = promisify(execFile);
const dayMs = 86_400_000;

async function put(site: TestSite, name: string, content: string, query = ''): Promise<string> {
  const reply = await fetch(`${site.url}/svc1/asset/${name}${query}`, {
    ...{ method: 'PUT', body: content, headers: { apikey: site.adminKey } },
  });
  assert.equal(reply.status, 200, await reply.text());
  return createHash('sha256').update(content).digest('hex');
}

const folderOf = ({ folder }: TestSite): string => join(folder, 'data/assets');

async function namesOf(site: TestSite): Promise<readonly string[]> {
  return (await readdir(folderOf(site))).filter((name) => !name.startsWith('.')).sort();
}

/** Opens the data of a site that has stopped, and a keeper with a retention of 30 days. */
async function keeperOf(site: TestSite, nowMs: () => number) {
  const folder = join(site.folder, 'data');
  const store = await openStore({ families, folder, now: nowMs, newId: () => 'x' });
  const files = new AssetFiles(folder);
  const parts = { files, store, now: nowMs, log: silentLog, retentionMs: () => 30 * dayMs };
  return { store, keep: () => keepAssets(parts, new AbortController().signal) };
}

suite('a part of an upload', () => {
  const upload = { owner: 'A', name: 'upload' };
  test('that continues nothing leaves no file in the place of what another has', async (t) => {
    const files = new AssetFiles(await temporaryFolder(t));
    const incoming = join(files.folder, '.incoming');
    await assert.rejects(files.begin(upload, 5), { code: 'conflict' });
    assert.deepEqual(await readdir(incoming), []);
    const writer = await files.begin(upload);
    await writer.write(Buffer.from('abc'));
    await writer.interrupt();
    await assert.rejects(files.begin(upload, 5), { code: 'conflict' });
    assert.equal(await files.interruptedBytes(upload), 3);
  });

  test('takes the place of the oldest one, once the server has enough of them', async (t) => {
    const files = new AssetFiles(await temporaryFolder(t));
    const begin = async (name: string, owner = 'A') => {
      const writer = await files.begin({ owner, name });
      await writer.write(Buffer.from('abc'));
      await writer.interrupt();
    };
    for (let upload = 0; upload < interruptedUploadsMax; upload += 1) await begin(`${upload}`);
    const incoming = join(files.folder, '.incoming');
    const [oldest = ''] = await readdir(incoming);
    await utimes(join(incoming, oldest), 1, 1);
    await begin('further');
    const left = await readdir(incoming);
    assert.equal(left.length, interruptedUploadsMax);
    assert.ok(!left.includes(oldest));
    assert.equal(await files.interruptedBytes({ owner: 'A', name: 'further' }), 3);
  });

  test('of one client takes no place of another client', async (t) => {
    const files = new AssetFiles(await temporaryFolder(t));
    const begin = async (owner: string, name: string) => {
      const writer = await files.begin({ owner, name });
      await writer.write(Buffer.from('abc'));
      await writer.interrupt();
    };
    await begin('B', 'the oldest');
    const incoming = join(files.folder, '.incoming');
    for (const name of await readdir(incoming)) await utimes(join(incoming, name), 1, 1);
    for (let at = 0; at < interruptedUploadsMax + 5; at += 1) await begin('A', `${at}`);
    assert.equal((await readdir(incoming)).length, interruptedUploadsMax);
    assert.equal(await files.interruptedBytes({ owner: 'B', name: 'the oldest' }), 3);
    await begin('C', 'another');
    assert.equal(await files.interruptedBytes({ owner: 'B', name: 'the oldest' }), 3);
    assert.equal(await files.interruptedBytes({ owner: 'C', name: 'another' }), 3);
  });

  test('finds a disk without room for a further file', async (t) => {
    const folder = await temporaryFolder(t);
    const options = ['-t', 'tmpfs', '-o', 'nr_inodes=4', 'tmpfs', folder];
    const isMounted = await run('mount', options).then(
      () => true,
      () => false,
    );
    if (!isMounted) {
      t.skip('this user may not mount');
      return;
    }
    t.after(() => run('umount', ['--lazy', folder]));
    const files = new AssetFiles(folder);
    const writer = await files.begin();
    await assert.rejects(files.begin(), { code: 'storage_full' });
    await writer.discard();
  });
});

suite('files of assets', () => {
  const times = { skip: oneClock() };
  test(
    'go when no asset, live or in an open draft, has referred to them for the retention',
    times,
    async (t) => {
      const site = await startSite(t);
      const live = await put(site, 'a.txt', 'live');
      const replaced = await put(site, 'b.txt', 'former');
      await put(site, 'b.txt', 'newer');
      await site.call('svc1.draft.insert', { name: 'campaign' });
      const drafted = await put(site, 'c.txt', 'drafted', '?draft=campaign');
      const left = join(folderOf(site), '.incoming', '999999999-00');
      await writeFile(left, 'a process that has ended was writing this');
      await site.waymark.stop(0);
      let nowMs = Date.now();
      const { store, keep } = await keeperOf(site, () => nowMs);
      await keep();
      assert.equal((await namesOf(site)).length, 4, 'nothing goes before the retention is over');
      assert.deepEqual(await readdir(join(folderOf(site), '.incoming')), []);
      nowMs += 31 * dayMs;
      await keep();
      const names = await namesOf(site);
      assert.equal(names.length, 3);
      assert.ok(names.includes(live) && names.includes(drafted) && !names.includes(replaced));
      await store.close();
    },
  );

  test('stay for the retention after their last use, so that an undo brings the asset back', async (t) => {
    const site = await startSite(t);
    const hash = await put(site, 'a.txt', 'used for a year');
    await site.waymark.stop(0);
    const nowMs = Date.now() + 365 * dayMs;
    const { store, keep } = await keeperOf(site, () => nowMs);
    await keep();
    const { mtimeMs } = await stat(join(folderOf(site), hash));
    assert.ok(Math.abs(mtimeMs - nowMs) < 1_000);
    await store.close();
  });

  test('are in a backup, and `check --data` finds missing, damaged and unused ones', async (t) => {
    const site = await startSite(t);
    const [gone, broken] = [await put(site, 'a.txt', 'one'), await put(site, 'b.txt', 'two')];
    await put(site, 'c.txt', 'three');
    const copy = join(await temporaryFolder(t), 'copy');
    const { iniFile } = site;
    const backup = await runWaymark(['backup', copy, '--config', iniFile]);
    assert.match(backup.err, /and 11 bytes in 3 files of assets/);
    assert.deepEqual((await readdir(join(copy, 'assets'))).sort(), await namesOf(site));
    const check = () => runWaymark(['check', '--data', '--config', iniFile]);
    const sound = await check();
    assert.equal(sound.code, 0, sound.err);
    assert.match(sound.err, /Files of assets: 3 whole\./);
    await rm(join(folderOf(site), gone));
    await writeFile(join(folderOf(site), broken), 'owt');
    await writeFile(join(folderOf(site), 'f'.repeat(64)), 'unused');
    await utimes(join(folderOf(site), 'f'.repeat(64)), 1, 1);
    const found = await check();
    assert.equal(found.code, 1);
    assert.match(found.err, new RegExp(`assets: the file of a\\.txt \\(${gone}\\) is missing`));
    assert.match(found.err, new RegExp(`assets: the file of b\\.txt \\(${broken}\\) is damaged`));
    assert.match(found.err, /Files of assets: 1 whole, 1 that no asset refers to\./);
  });
});
