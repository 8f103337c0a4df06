import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { openEnvironment } from '../../src/store/databases.ts';
import { transact } from '../../src/store/environment.ts';
import { OpeningLock } from '../../src/store/opening-lock.ts';
import { temporaryFolder } from '../folder.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };
const asRoot = { skip: process.getuid?.() !== 0 && 'needs root' };
const opener = join(import.meta.dirname, 'opener.ts');

/** Locks of one file, as several processes have them. */
async function locksOf(t: TestContext, count: number): Promise<readonly OpeningLock[]> {
  const file = join(await temporaryFolder(t), 'opening.lock');
  const locks = Array.from({ length: count }, () => new OpeningLock(file));
  t.after(() => {
    for (const lock of locks) lock.close();
  });
  return locks;
}

suite('the lock of an environment', () => {
  test('lets all write at the same time', async (t) => {
    const [one, two, three] = (await locksOf(t, 3)) as [OpeningLock, OpeningLock, OpeningLock];
    await Promise.all([one.enter(), one.enter(), two.enter()]);
    three.enterSync();
    for (const lock of [one, one, two, three]) lock.leave();
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
    const lock = new OpeningLock(join(folder, 'opening.lock'));
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
    assert.deepEqual(await readdir(folder), ['opening.lock']);
    lock.leave();
    assert.deepEqual(await closed, [0, null]);
    assert.deepEqual((await readdir(folder)).toSorted(), ['data.mdb', 'lock.mdb', 'opening.lock']);
  });

  test('belongs to the user of the folder if root opens it first', asRoot, async (t) => {
    const folder = await temporaryFolder(t);
    await chown(folder, 1, 1);
    await openEnvironment(folder).close();
    assert.equal((await stat(join(folder, 'opening.lock'))).uid, 1);
  });

  test('is free for a moment, also if the writes of a process overlap without end', async (t) => {
    const folder = await temporaryFolder(t);
    const environment = openEnvironment(folder);
    t.after(() => environment.close());
    const child = spawn(process.execPath, [opener, folder, '5'], { stdio: 'inherit' });
    t.after(() => child.kill('SIGKILL'));
    const opened = once(child, 'close');
    let isOver = false;
    const write = async (): Promise<void> => {
      while (!isOver) await transact(environment, () => undefined);
    };
    const writing = Promise.all([write(), setImmediate().then(write), write()]);
    assert.deepEqual(await opened, [0, null]);
    isOver = true;
    await writing;
  });
});
