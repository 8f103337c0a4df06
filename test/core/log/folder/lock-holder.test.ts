import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Failure } from '../../../../src/core/values/failure.ts';
import { OpeningLock, stoppedOpener } from '../../../../src/core/log/folder/opening-lock.ts';
import { temporaryFolder } from '../../../folder.ts';
import { dumpChecked } from '../dump.ts';
import { isStopped, scratchStore, startStoppedOpener, startWriter } from '../scratch.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };

suite('a process that is stopped while it opens a data folder', onLinux, () => {
  test('is named to those who wait, who write when it goes on', async (t) => {
    const folder = await temporaryFolder(t);
    const writer = new OpeningLock(folder, 50);
    t.after(() => {
      writer.close();
    });
    const opener = startStoppedOpener(t, folder);
    const closed = once(opener, 'close');
    assert.ok(await isStopped(opener));
    const advice = stoppedOpener(folder) ?? '';
    assert.ok(advice.startsWith(`Process ${opener.pid} (${process.execPath} `), advice);
    const entering = [writer.enter(), writer.enter(), writer.enter()];
    for (const result of await Promise.allSettled(entering)) {
      assert.ok(result.status === 'rejected' && result.reason instanceof Failure);
      assert.equal(result.reason.code, 'unavailable');
      assert.doesNotMatch(result.reason.message, /Process|\//, 'clients get no path');
      const said = (result.reason.cause as Error).message;
      assert.match(
        said,
        new RegExp(`^Process ${opener.pid} .* is stopped\\. Resume it with "kill -CONT`),
      );
    }
    opener.kill('SIGCONT');
    assert.deepEqual(await closed, [0, null]);
    await writer.enter();
    writer.leave();
    assert.equal(stoppedOpener(folder), undefined);
  });

  test('delays the changes of others, and loses none, when it goes on', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    const { child: writer, lines, closed } = startWriter(t, [folder, '1000000']);
    const opener = startStoppedOpener(t, folder, 100);
    let stops = 0;
    while (await isStopped(opener)) {
      stops += 1;
      // The writer waits now. It goes on when the opener does.
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
      opener.kill('SIGCONT');
      while ((await isStopped(opener)) && stoppedOpener(folder) === undefined) await setImmediate();
    }
    assert.ok(stops >= 100);
    writer.kill('SIGKILL');
    let acknowledged = 0;
    for await (const line of lines) if (/^\d/.test(line)) acknowledged += 1;
    await closed;
    await store.close();
    assert.ok((await dumpChecked(folder)).length >= 2 * acknowledged);
  });
});
