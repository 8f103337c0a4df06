import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Cleaning } from '../../folder.ts';
import { serverFolder, startServed } from '../../process.ts';
import { accessLines } from '../../core/report/access-lines.ts';

test('several workers rotate their file, and lose no line', async (t) => {
  const { folder, iniFile } = await serverFolder(
    t,
    'workers = 2\n[log]\nfile = access.log\nrotate_size = 4KiB\nrotate_keep = 9\n',
  );
  const served = await startServed(t, iniFile);
  let count = 0;
  do {
    const asked = Array.from({ length: 8 }, async () => {
      count += 1;
      await (await fetch(`${served.url}/page-${count}`)).text();
    });
    await Promise.all(asked);
  } while (!existsSync(join(folder, 'access.log.2')));
  served.child.kill('SIGTERM');
  await served.closed;
  const lines = accessLines(folder);
  const pages = lines.map((line) => /\/page-(\d+) .*127\.0\.0\.1 \S+$/.exec(line)?.[1]);
  assert.equal(lines.length, count);
  assert.equal(new Set(pages).size, count);
  assert.ok(!pages.includes(undefined));
});

/** Mounts a disk of 64 KiB; false if this user may not mount. */
function mountSmallDisk(t: Cleaning, folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return false;
  }
  t.after(() => {
    execFileSync('umount', ['-l', folder]);
  });
  return true;
}

test('a full disk stops no answer, and the log goes on when there is room', async (t) => {
  const { folder, iniFile } = await serverFolder(
    t,
    '[log]\nfile = small/access.log\nrotate_size = 4KiB\nrotate_keep = 2\n',
    { 'small/filler': '' },
  );
  const small = join(folder, 'small');
  if (!mountSmallDisk(t, small)) {
    t.skip('needs the right to mount a small disk');
    return;
  }
  const served = await startServed(t, iniFile);
  const ask = async (path: string) => (await fetch(`${served.url}${path}`)).status;
  const filler = join(small, 'filler');
  await writeFile(filler, Buffer.alloc(60 * 1024));
  while (!served.out().includes('Cannot write the access log file')) {
    assert.equal(await ask(`/${'long'.repeat(200)}`), 404);
  }
  for (let at = 0; at < 50; at += 1) assert.equal(await ask('/full'), 404);
  await rm(filler);
  while (!accessLines(small).some((line) => line.includes('/room'))) {
    assert.equal(await ask('/room'), 404);
  }
  assert.equal(served.out().match(/Cannot write the access log file/g)?.length, 1);
  assert.match(served.out(), /ENOSPC/);
});
