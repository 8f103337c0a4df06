import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import {
  claimFolder,
  claimantPid,
  takeOverFolder,
} from '../../../../src/core/log/folder/folder-claim.ts';
import { temporaryFolder } from '../../../folder.ts';

const { pid } = process;
const isWindows = process.platform === 'win32';

suite('the claim of a data folder', () => {
  test('excludes other processes until it is released', async (t) => {
    const folder = join(await temporaryFolder(t), 'data');
    const claim = await claimFolder(folder, { pid });
    await assert.rejects(claimFolder(folder, { pid }), {
      code: 'conflict',
      message:
        `the data folder ${folder} is in use by another waymark (pid ${pid}); ` +
        'if it is a copy of the one in use, remove serve.pid in it',
    });
    await claim.release();
    assert.deepEqual(await readdir(folder), []);
    await (await claimFolder(folder, { pid })).release();
  });

  test('is given to one of many processes that request it at once', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFile(join(folder, 'serve.pid'), '999999999 1\n');
    const claims = await Promise.allSettled(
      Array.from({ length: 20 }, () => claimFolder(folder, { pid })),
    );
    assert.equal(claims.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.deepEqual(await readdir(folder), ['serve.pid']);
  });

  test('passes from a process that holds it to the one that takes over', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await claimFolder(folder, { pid });
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    t.after(() => child.kill('SIGKILL'));
    const next = child.pid ?? 0;
    await assert.rejects(takeOverFolder(folder, { pid: next, from: next }), {
      code: 'conflict',
      message: `the process ${pid} holds the data folder ${folder}, not ${next}`,
    });
    const second = await takeOverFolder(folder, { pid: next, from: pid });
    assert.equal(await claimantPid(folder, 'serve'), next);
    // The first process ends later, and leaves the claim of the other.
    await first.release();
    assert.equal(await claimantPid(folder, 'serve'), next);
    await second.release();
    assert.deepEqual(await readdir(folder), []);
    await assert.rejects(takeOverFolder(folder, { pid: next, from: pid }), { code: 'conflict' });
  });

  const stale: readonly (readonly [string, string])[] = [
    ['of a process that is gone', '999999999 12345\n'],
    ['of a pid that another process has now', `${pid} 1\n`],
    ['without a pid', 'nonsense'],
    ['that is empty', ''],
    ['of pid 0', '0 0\n'],
  ];
  for (const [name, text] of stale) {
    const needsLinux = name.includes('has now') && process.platform !== 'linux';
    test(`replaces a stale one ${name}`, { skip: needsLinux && 'needs Linux' }, async (t) => {
      const folder = await temporaryFolder(t);
      await writeFile(join(folder, 'serve.pid'), text);
      const claim = await claimFolder(folder, { pid });
      assert.match(await readFile(join(folder, 'serve.pid'), 'utf8'), new RegExp(`^${pid} `));
      await claim.release();
      assert.deepEqual(await readdir(folder), []);
    });
  }

  test('is replaced after its process was killed, not before', async (t) => {
    const folder = await temporaryFolder(t);
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    t.after(() => child.kill('SIGKILL'));
    await once(child, 'spawn');
    await claimFolder(folder, { pid: child.pid ?? 0 });
    await assert.rejects(claimFolder(folder, { pid }), { code: 'conflict' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const claim = await claimFolder(folder, { pid });
    await claim.release();
  });

  test('is released only by its owner', async (t) => {
    const folder = await temporaryFolder(t);
    const claim = await claimFolder(folder, { pid, startToken: 'mine' });
    await writeFile(join(folder, 'serve.pid'), `${pid} theirs\n`);
    await claim.release();
    assert.deepEqual(await readdir(folder), ['serve.pid']);
  });

  test('fails with a message of one line if the folder cannot be claimed', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFile(join(folder, 'file'), '');
    await assert.rejects(claimFolder(join(folder, 'file'), { pid }), {
      code: 'unavailable',
      message: `the data folder ${join(folder, 'file')} is a file, not a folder`,
    });
    await mkdir(join(folder, 'serve.pid'));
    await assert.rejects(claimFolder(folder, { pid }), /cannot be claimed \(EISDIR\)/);
  });

  test('leaves no files on a full disk', { skip: isWindows && 'needs ulimit' }, async (t) => {
    const folder = await temporaryFolder(t);
    const { href } = new URL('../../../../src/core/log/folder/folder-claim.ts', import.meta.url);
    const source = `import { claimFolder } from ${JSON.stringify(href)};
      await claimFolder(${JSON.stringify(folder)}, { pid: process.pid });`;
    const run = spawn('sh', [
      ...['-c', 'trap "" XFSZ; ulimit -f 0; exec "$@"', 'sh'],
      ...[process.execPath, '--input-type=module', '-e', source],
    ]);
    const said = await text(run.stderr);
    assert.match(said, /cannot be claimed \(EFBIG\)/);
    assert.deepEqual(await readdir(folder), []);
  });
});
