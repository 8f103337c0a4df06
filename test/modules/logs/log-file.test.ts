import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, rename, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { LogFile } from '../../../src/modules/logs/log-file.ts';
import { temporaryFolder } from '../../folder.ts';
import { readTestConfig, startSite } from '../../harness.ts';
import { serverFolder, startServed } from '../../process.ts';

/** Resolves once the text of a file matches. */
async function untilHolds(file: string, pattern: RegExp): Promise<string> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (pattern.test(text)) return text;
    await nextTurn();
  }
}

suite('a log file', () => {
  test('is created at the first line, appended to, and opened again after a rename', async (t) => {
    const path = join(await temporaryFolder(t), 'access.log');
    const failed = (error: Error): void => {
      throw error;
    };
    await writeFile(path, 'before\n');
    const file = new LogFile(path, { now: Date.now, failed });
    file.write('one\n');
    await untilHolds(path, /^before\none\n$/);
    await rename(path, `${path}.1`);
    file.write('two\n');
    await untilHolds(`${path}.1`, /two\n$/);
    file.reopen();
    file.write('three\n');
    await untilHolds(path, /^three\n$/);
    assert.equal((await stat(path)).mode & 0o777, 0o640);
    file.reopen();
  });

  test('that cannot be written is reported once, and opened again later', async (t) => {
    const path = join(await temporaryFolder(t), 'access.log');
    await mkdir(path);
    let nowMs = 0;
    const failures: Error[] = [];
    const failing = Promise.withResolvers<undefined>();
    const file = new LogFile(path, {
      now: () => nowMs,
      failed: (error) => {
        failures.push(error);
        failing.resolve(undefined);
      },
    });
    file.write('lost\n');
    await failing.promise;
    assert.equal(file.writableNeedDrain, true, 'until the next attempt to open it');
    nowMs += 1_000;
    assert.equal(file.writableNeedDrain, false);
    await rmdir(path);
    file.write('one\n');
    await untilHolds(path, /^one\n$/);
    assert.equal(failures.length, 1);
    file.reopen();
  });
});

test('the access log goes to the file of the ini file, the log does not', async (t) => {
  const site = await startSite(t, { ini: '[log]\nfile = access.log\nformat = json\n' });
  const path = join(site.folder, 'access.log');
  await (await fetch(`${site.url}/one`)).text();
  site.logged();
  await untilHolds(path, /"target":"\/one"/);
  assert.ok(!site.logged().includes('/one'));

  const ini = await readFile(site.iniFile, 'utf8');
  await writeFile(site.iniFile, ini.replace('access.log', 'other.log'));
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
  await (await fetch(`${site.url}/two`)).text();
  site.logged();
  await untilHolds(join(site.folder, 'other.log'), /"target":"\/two"/);
  assert.ok(!(await readFile(path, 'utf8')).includes('/two'));
});

for (const workers of [1, 2]) {
  const name = `SIGUSR1 opens the file again that logrotate has renamed, with ${workers} workers`;
  test(name, { skip: process.platform === 'win32' && 'needs POSIX signals' }, async (t) => {
    const { folder, iniFile, ini } = await serverFolder(t, '[log]\nfile = access.log\n');
    await writeFile(iniFile, ini.replace('[log]', `workers = ${workers}\n[log]`));
    const served = await startServed(t, iniFile);
    const path = join(folder, 'access.log');
    const ask = async (target: string) => (await fetch(`${served.url}${target}`)).text();
    await ask('/one');
    await untilHolds(path, /\/one/);
    await rename(path, `${path}.1`);
    served.child.kill('SIGUSR1');
    while (!/SIGUSR1: reopened .*access\.log/.test(served.out())) {
      await once(served.child.stdout ?? served.child, 'data');
    }
    let count = 0;
    do {
      // A worker gets the signal a moment later.
      await ask(`/two-${(count += 1)}`);
      await nextTurn();
    } while (!(await readFile(path, 'utf8').catch(() => '')).includes('/two'));
    assert.match(await readFile(`${path}.1`, 'utf8'), /\/one/);
  });
}
