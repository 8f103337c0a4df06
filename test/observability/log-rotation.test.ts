import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { LogFile } from '../../src/observability/log-file.ts';
import { LogRotation, type RotationSettings } from '../../src/observability/log-rotation.ts';
import { temporaryFolder, type Cleaning } from '../folder.ts';
import { serverFolder, startServed } from '../process.ts';

/** A rotation of `access.log` in a new folder, with files that write it. */
async function rotation(
  t: Cleaning,
  settings: RotationSettings,
  { writers = 1, now = Date.now }: { readonly writers?: number; readonly now?: () => number } = {},
) {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'access.log');
  const failures: Error[] = [];
  const failed = (error: Error): void => {
    failures.push(error);
  };
  const files = Array.from({ length: writers }, () => new LogFile(path, { now: Date.now, failed }));
  const rotating = new LogRotation({
    settings: () => ({ file: path, ...settings }),
    reopen: () => {
      for (const file of files) file.reopen();
    },
    failed,
    now,
  });
  t.after(async () => {
    for (const file of files) file.reopen();
    await rotating.stop();
  });
  return { folder, path, files, failures, rotating };
}

async function untilSize(path: string, bytes: number): Promise<void> {
  while ((await stat(path).catch(() => undefined))?.size !== bytes) await nextTurn();
}

/** All lines of the files in a folder whose names begin with `access.log`. */
function linesIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith('access.log'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1));
}

suite('the file of the access log', () => {
  test('is rotated by its size, and as many files are kept as the ini file says', async (t) => {
    const { path, files, rotating, failures } = await rotation(t, {
      rotateBytes: 6,
      rotateKeep: 2,
    });
    await rotating.check();
    for (const line of ['one--\n', 'two--\n', 'three\n']) {
      files[0]?.write(line);
      await untilSize(path, 6);
      await rotating.check();
    }
    files[0]?.write('four\n');
    await untilSize(path, 5);
    await rotating.check();
    assert.equal(await readFile(path, 'utf8'), 'four\n');
    assert.equal(await readFile(`${path}.1`, 'utf8'), 'three\n');
    assert.equal(await readFile(`${path}.2`, 'utf8'), 'two--\n');
    assert.equal(existsSync(`${path}.3`), false);
    assert.deepEqual(failures, []);
  });

  test('is rotated by its age, but not while it is empty', async (t) => {
    let ageMs = 0;
    const now = (): number => Date.now() + ageMs;
    const { path, files, rotating } = await rotation(t, { rotateAgeMs: 3_600_000 }, { now });
    await writeFile(path, '');
    ageMs = 7_200_000;
    await rotating.check();
    assert.equal(existsSync(`${path}.1`), false);
    files[0]?.write('old\n');
    await untilSize(path, 4);
    ageMs = 1_800_000;
    await rotating.check();
    assert.equal(existsSync(`${path}.1`), false);
    ageMs = 3_700_000;
    await rotating.check();
    assert.equal(await readFile(`${path}.1`, 'utf8'), 'old\n');
  });

  test('loses and mixes no line of several writers', async (t) => {
    const parts = await rotation(t, { rotateBytes: 20_000, rotateKeep: 1_000 }, { writers: 3 });
    const count = 400;
    for (let at = 0; at < count; at += 1) {
      for (const [writer, file] of parts.files.entries()) {
        file.write(`${writer} ${at} ${'x'.repeat(at % 90)}.\n`.repeat(2));
      }
      if (at % 20 === 0) await parts.rotating.check();
    }
    for (const file of parts.files) file.reopen();
    let lines = linesIn(parts.folder);
    while (lines.length < 6 * count) {
      await nextTurn();
      lines = linesIn(parts.folder);
    }
    assert.ok(existsSync(`${parts.path}.3`));
    assert.equal(lines.length, 6 * count);
    assert.deepEqual(
      lines.filter((line) => !/^[012] \d+ x*\.$/.test(line)),
      [],
    );
    assert.equal(new Set(lines).size, 3 * count);
  });

  test('goes on if it cannot be rotated, which is said once', async (t) => {
    const { path, files, rotating, failures } = await rotation(t, { rotateBytes: 4 });
    await mkdir(`${path}.1/a`, { recursive: true });
    files[0]?.write('one\n');
    await untilSize(path, 4);
    await rotating.check();
    await rotating.check();
    assert.equal(failures.length, 1);
    files[0]?.write('two\n');
    await untilSize(path, 8);
    await rm(`${path}.1`, { recursive: true });
    await rotating.check();
    assert.equal(await readFile(`${path}.1`, 'utf8'), 'one\ntwo\n');
  });
});

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
  const lines = linesIn(folder);
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
  while (!linesIn(small).some((line) => line.includes('/room'))) {
    assert.equal(await ask('/room'), 404);
  }
  assert.equal(served.out().match(/Cannot write the access log file/g)?.length, 1);
  assert.match(served.out(), /ENOSPC/);
});
