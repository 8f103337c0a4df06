import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { claimFolder } from '../../../../src/core/log/folder/folder-claim.ts';
import { openDatabases, openEnvironment } from '../../../../src/core/log/databases.ts';
import { verifyData } from '../../../../src/modules/upkeep/verify/verify.ts';
import { temporaryFolder, writeFiles } from '../../../folder.ts';
import { postOperation } from '../../../harness.ts';
import { commit, inserted, scratchStore } from '../scratch.ts';
import { startServed } from '../../../process.ts';
import { rowLogPart } from '../../../../src/modules/nodes/log/open-row-log.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';

const run = promisify(execFile);

/** A small disk for the test; undefined, and the test is skipped, if none can be mounted. */
async function smallDisk(t: TestContext, path = 'disk'): Promise<string | undefined> {
  const folder = await temporaryFolder(t);
  const disk = join(folder, path);
  await mkdir(disk, { recursive: true });
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]);
  } catch {
    t.skip('needs Linux and root, to mount a small disk');
    return undefined;
  }
  t.after(() => run('umount', ['--lazy', disk]));
  return disk;
}

/** Writes a file until the disk is full. */
async function fill(disk: string): Promise<void> {
  const { bavail, bsize } = await statfs(disk);
  await writeFile(join(disk, `filler ${bavail}`), Buffer.alloc(bavail * bsize));
  assert.equal((await statfs(disk)).bavail, 0);
}

const page = (path: string) => ({ path, kind: 'content', content: 'stored' });
const insert = 'svc1.userinterface.insert';

test('a server starts on a full disk, serves, and answers writes with 507', async (t) => {
  const disk = await smallDisk(t);
  if (disk === undefined) return;
  const iniFile = join(disk, 'server.ini');
  await writeFiles(disk, { 'server.ini': '[server]\nlisten = 127.0.0.1:0\ndata = data\n' });
  const first = await startServed(t, iniFile);
  const { adminKey: apikey } = first;
  assert.equal((await postOperation(first.url, insert, page('/a'), { apikey })).status, 200);
  first.child.kill('SIGKILL');
  await first.closed;
  await fill(disk);

  const second = await startServed(t, iniFile, { first: false });
  assert.equal(await (await fetch(`${second.url}/a`)).text(), 'stored');
  const refused = await postOperation(second.url, insert, page('/b'), { apikey });
  assert.deepEqual([refused.status, refused.error?.code], [507, 'storage_full']);
  second.child.kill('SIGTERM');
  assert.equal((await second.closed).code, 0);

  // The claim of the folder is released although nothing can be written.
  await fill(disk);
  const third = await startServed(t, iniFile, { first: false });
  assert.equal(await (await fetch(`${third.url}/a`)).text(), 'stored');
  await assert.rejects(claimFolder(join(disk, 'data'), { pid: process.pid }), { code: 'conflict' });
  const fillers = await run('find', [disk, '-name', 'filler *', '-delete']);
  assert.equal(fillers.stderr, '');
  assert.equal((await postOperation(third.url, insert, page('/b'), { apikey })).status, 200);
});

test('a claim on a full disk excludes other processes, and is replaced once it is stale', async (t) => {
  const disk = await smallDisk(t);
  if (disk === undefined) return;
  const folder = join(disk, 'data');
  await mkdir(folder);
  await fill(disk);
  const claim = await claimFolder(folder, { pid: process.pid });
  const path = join(folder, 'serve.pid');
  assert.ok((await lstat(path)).isSymbolicLink());
  await assert.rejects(claimFolder(folder, { pid: process.pid }), { code: 'conflict' });
  await claim.release();
  await assert.rejects(lstat(path), { code: 'ENOENT' });
  await claimFolder(folder, { pid: 999_999_999, startToken: '1' });
  const next = await claimFolder(folder, { pid: process.pid });
  await next.release();
});

test('a check says that the disk of its copy is full', async (t) => {
  const disk = await smallDisk(t);
  if (disk === undefined) return;
  const store = await scratchStore(t);
  const content = 'x'.repeat(2 ** 20);
  for (let at = 0; at < 8; at += 1) await commit(store, inserted(`r${at}`, { path: '/', content }));
  const check = store.part(upkeep).verify(disk);
  const free = {
    code: 'storage_full',
    message: /needs up to \d+ MB, but the disk of .* has 5 MB free/,
  };
  await assert.rejects(check[Symbol.asyncIterator]().next(), free);
  const environment = openEnvironment(await temporaryFolder(t));
  t.after(() => environment.close());
  const databases = environment.transactionSync(() => openDatabases(environment));
  for (const [at, text] of store.part(rowLogPart).rows(0, { rows: 8, characters: 1e9 }).entries()) {
    await databases.log.put(at + 1, text);
  }
  const late = verifyData(databases, families, { folder: disk, bytes: 1 });
  await assert.rejects(late.next(), { code: 'storage_full', message: /the disk of .* is full/ });
});

test('a cache folder that is a mount point is emptied, not removed', async (t) => {
  const cache = await smallDisk(t, 'data/cache');
  if (cache === undefined) return;
  const folder = join(cache, '../..');
  const iniFile = join(folder, 'server.ini');
  await writeFiles(folder, {
    'server.ini': '[server]\nlisten = 127.0.0.1:0\ndata = data\n',
    'data/cache/run': 'another version',
    'data/cache/content/aa/left': 'of no use',
    'data/cache/lost+found/of': 'the file system',
  });
  const { url } = await startServed(t, iniFile);
  assert.equal((await fetch(`${url}/svc1/health`)).status, 200);
  const names = (await readdir(cache)).toSorted();
  assert.deepEqual(names, [
    'data.mdb',
    'lock.mdb',
    'lost+found',
    'opening-wait.lock',
    'opening.lock',
    'run',
  ]);
});
