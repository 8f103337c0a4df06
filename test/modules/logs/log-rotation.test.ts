import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { LogFile } from '../../../src/modules/logs/log-file.ts';
import { LogRotation, type RotationSettings } from '../../../src/modules/logs/log-rotation.ts';
import { temporaryFolder, type Cleaning } from '../../folder.ts';
import { accessLines } from '../../core/report/access-lines.ts';
import { oneClock } from '../../installed.ts';

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

  const times = { skip: oneClock() };
  test('is rotated by its age, but not while it is empty', times, async (t) => {
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
    let lines = accessLines(parts.folder);
    while (lines.length < 6 * count) {
      await nextTurn();
      lines = accessLines(parts.folder);
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
