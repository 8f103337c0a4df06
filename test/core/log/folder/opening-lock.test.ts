import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { openEnvironment } from '../../../../src/core/log/databases.ts';
import { transact } from '../../../../src/core/log/environment.ts';
import {
  FileLock,
  OpeningLock,
  enterWaitMs,
  writingMsMax,
} from '../../../../src/core/log/folder/opening-lock.ts';
import { temporaryFolder } from '../../../folder.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };
const lockFiles = ['opening-wait.lock', 'opening.lock'];
const asRoot = { skip: process.getuid?.() !== 0 && 'needs root' };
const opener = join(import.meta.dirname, '../opener.ts');

/** Locks of one file, as several processes have them, with a clock that a test moves. */
async function locksOf(
  t: TestContext,
  count: number,
  clock = { ms: 1_000 },
): Promise<readonly OpeningLock[]> {
  const folder = await temporaryFolder(t);
  const now = (): number => clock.ms;
  const locks = Array.from({ length: count }, () => new OpeningLock(folder, enterWaitMs, now));
  t.after(() => {
    for (const lock of locks) lock.close();
  });
  return locks;
}

suite('the lock of an environment', () => {
  test('lets all write at the same time', async (t) => {
    const clock = { ms: 1_000 };
    const locks = await locksOf(t, 3, clock);
    const [one, two, three] = locks as [OpeningLock, OpeningLock, OpeningLock];
    await Promise.all([one.enter(), one.enter(), two.enter()]);
    three.enterSync();
    for (const lock of [one, one, two, three]) lock.leave();
  });

  test('lets nobody else of a process write once its writes overlap for long', async (t) => {
    const clock = { ms: 1_000 };
    const [lock] = (await locksOf(t, 1, clock)) as [OpeningLock];
    await lock.enter();
    clock.ms += writingMsMax + 1;
    let entered = false;
    const entering = lock.enter().then(() => {
      entered = true;
    });
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    assert.equal(entered, false);
    lock.leave();
    await entering;
    lock.leave();
  });

  test('keeps writers out while one opens, and lets them in afterwards, in their order', async (t) => {
    const [opener, writer] = (await locksOf(t, 2)) as [OpeningLock, OpeningLock];
    const order: string[] = [];
    const entered = opener.alone(() => {
      const all = ['a', 'b', 'c'].map((name) => writer.enter().then(() => order.push(name)));
      order.push('opened');
      return Promise.all(all);
    });
    await entered;
    assert.deepEqual(order, ['opened', 'a', 'b', 'c']);
    for (let count = 0; count < 3; count += 1) writer.leave();
    assert.equal(
      opener.alone(() => 'again'),
      'again',
    );
  });

  test('lets nobody write while one waits to open', async (t) => {
    const folder = await temporaryFolder(t);
    const [waiting, writer] = [
      new FileLock(join(folder, 'opening-wait.lock'), 0),
      new OpeningLock(folder),
    ];
    t.after(() => {
      waiting.close();
      writer.close();
    });
    assert.ok(waiting.takeAlone(0));
    let entered = false;
    const entering = writer.enter().then(() => {
      entered = true;
    });
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    assert.equal(entered, false);
    waiting.release();
    await entering;
    writer.leave();
  });

  test('is free again when opening fails', async (t) => {
    const [opener, writer] = (await locksOf(t, 2)) as [OpeningLock, OpeningLock];
    const fail = (): void => {
      throw new Error('no');
    };
    assert.throws(() => {
      opener.alone(fail);
    }, /no/);
    await writer.enter();
    writer.leave();
  });

  test('makes a process that opens wait for those that write', onLinux, async (t) => {
    const folder = await temporaryFolder(t);
    const lock = new OpeningLock(folder);
    t.after(() => {
      lock.close();
    });
    await lock.enter();
    const child = spawn(process.execPath, [opener, folder, '1'], { stdio: 'inherit' });
    t.after(() => child.kill('SIGKILL'));
    const closed = once(child, 'close');
    const isWaiting = new RegExp(` WRITE ${child.pid} `);
    while (child.exitCode === null && !isWaiting.test(await readFile('/proc/locks', 'utf8'))) {
      await setImmediate();
    }
    assert.ok(!(await readdir(folder)).includes('lock.mdb'));
    lock.leave();
    assert.deepEqual(await closed, [0, null]);
    const all = ['data.mdb', 'lock.mdb', ...lockFiles];
    assert.deepEqual((await readdir(folder)).toSorted(), all);
  });

  test('belongs to the user of the folder if root opens it first', asRoot, async (t) => {
    const folder = await temporaryFolder(t);
    await chown(folder, 1, 1);
    await openEnvironment(folder).close();
    for (const name of lockFiles) assert.equal((await stat(join(folder, name))).uid, 1, name);
  });

  test('is refused if it is a link, a folder, or no lock', async (t) => {
    const folder = await temporaryFolder(t);
    const file = join(folder, 'opening.lock');
    const ways = [
      () => symlink(join(folder, 'elsewhere'), file),
      () => mkdir(file),
      () => writeFile(file, 'x'.repeat(200)),
    ];
    for (const make of ways) {
      await make();
      assert.throws(() => openEnvironment(folder), {
        code: 'unavailable',
        message: /opening\.lock cannot be locked \(.+\)$/,
      });
      await rm(file, { recursive: true });
    }
    assert.deepEqual(await readdir(folder), []);
  });

  test('stays closed to others until the writes before are done', async (t) => {
    const environment = openEnvironment(await temporaryFolder(t));
    const texts = environment.openDB<string, number>('texts', { encoding: 'string' });
    const put = async (key: number): Promise<number> =>
      transact(environment, () => {
        texts.putSync(key, 'x');
        return key;
      });
    const writes = [1, 2, 3].map(put);
    await environment.close();
    assert.deepEqual(await Promise.all(writes), [1, 2, 3]);
  });

  test('is free for a moment, also if the writes of a process and its thread overlap without end', async (t) => {
    const folder = await temporaryFolder(t);
    const environment = openEnvironment(folder);
    t.after(() => environment.close());
    const thread = new Worker(new URL('../writing-thread.ts', import.meta.url), {
      workerData: folder,
    });
    await once(thread, 'message');
    const child = spawn(process.execPath, [opener, folder, '5'], { stdio: 'inherit' });
    t.after(() => child.kill('SIGKILL'));
    const opened = once(child, 'close');
    const texts = environment.openDB<string, number>('main', { encoding: 'string' });
    const put = (): void => {
      texts.putSync(0, 'x'.repeat(5_000));
    };
    let isOver = false;
    const write = async (): Promise<void> => {
      while (!isOver) await transact(environment, put);
    };
    const writing = Promise.all([write(), setImmediate().then(write), write()]);
    assert.deepEqual(await opened, [0, null]);
    isOver = true;
    thread.postMessage('stop');
    await Promise.all([writing, once(thread, 'exit')]);
  });
});
