import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { suite, test, type TestContext } from 'node:test';
import { silentLog } from '../../../src/core/report/log.ts';
import type { Asset } from '../../../src/modules/assets/asset.ts';
import { PictureProcess } from '../../../src/modules/assets/picture-process.ts';
import { createVariants } from '../../../src/modules/assets/variants.ts';
import { temporaryFolder } from '../../folder.ts';

const loaded = await import('sharp').catch(() => undefined);
const skip = loaded === undefined && 'sharp is not installed';

/** No test waits that long. */
const never = 600_000;

/** A folder with the pictures `culprit` and `other`, and a process that has begun. */
async function startPictures(t: TestContext, { processMs = never, waitMs = never } = {}) {
  if (loaded === undefined) throw new Error('sharp is not installed');
  const folder = await temporaryFolder(t);
  const path = (name: string): string => join(folder, name);
  const create = { width: 400, height: 300, channels: 3, background: 'green' } as const;
  for (const name of ['culprit', 'other']) {
    await loaded.default({ create }).png({ compressionLevel: 0 }).toFile(path(name));
  }
  const pictureProcess = new PictureProcess({ ms: processMs });
  await pictureProcess.version();
  const clock = { ms: Date.now() };
  const start = () =>
    createVariants({
      ...{ files: { folder, path }, bytesMax: 1e9, now: () => clock.ms, log: silentLog },
      ...{ pictureProcess, waitMs },
    });
  const variants = start();
  const widthOf = async (asset: Asset | undefined) =>
    asset && (await loaded.default(path(asset.sha256)).metadata()).width;
  const find = async (name: string, width = 160, by = variants) => {
    const asset = { name, sha256: name, bytes: 360_000, contenttype: 'image/png' };
    const size = { width, height: undefined };
    const address = name === 'other' ? '192.0.2.1' : '198.51.100.1';
    return widthOf(await by.find(asset, { size, accept: 'image/webp', address }));
  };
  t.after(() => {
    signal(pictureProcess, 'SIGKILL');
  });
  return { clock, find, path, pictureProcess, start };
}

function signal({ pid }: PictureProcess, name: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(pid, name);
}

suite('the end of the process that makes pictures', { skip }, () => {
  test('is remembered for the picture in work, for ten minutes, and not for others', async (t) => {
    const { clock, find, pictureProcess } = await startPictures(t, { processMs: 2_000 });
    signal(pictureProcess, 'SIGSTOP');
    const { pid } = pictureProcess;
    assert.deepEqual(await Promise.all([find('culprit'), find('other')]), [undefined, 160]);
    assert.notEqual(pictureProcess.pid, pid);
    assert.deepEqual([await find('culprit'), await find('other', 320)], [undefined, 320]);
    clock.ms += 601_000;
    assert.equal(await find('culprit'), 160);
  });

  test('by a signal from outside is no fault of a picture: it is made by the next', async (t) => {
    const { path, pictureProcess } = await startPictures(t);
    const picture = { source: path('other'), width: 160, type: 'image/webp' } as const;
    const made = pictureProcess.make(picture);
    const { pid } = pictureProcess;
    signal(pictureProcess, 'SIGKILL');
    assert.ok((await made).length > 0);
    const twice = pictureProcess.make(picture);
    const refused = assert.rejects(twice, /The process that makes pictures was ended/);
    const second = pictureProcess.pid;
    assert.notEqual(second, pid);
    signal(pictureProcess, 'SIGKILL');
    while (pictureProcess.pid === second) await setImmediate();
    signal(pictureProcess, 'SIGKILL');
    await refused;
  });

  test('is not waited for: the whole picture is sent, and what was made before', async (t) => {
    const { find, pictureProcess, start } = await startPictures(t, { waitMs: 1_000 });
    while ((await find('other')) === undefined) await setImmediate();
    signal(pictureProcess, 'SIGSTOP');
    const { pid } = pictureProcess;
    assert.deepEqual(await Promise.all([find('culprit'), find('other', 320)]), [
      undefined,
      undefined,
    ]);
    assert.equal(await find('other'), 160);
    const restarted = start();
    assert.equal(await find('other', 160, restarted), 160);
    assert.equal(pictureProcess.pid, pid);
    signal(pictureProcess, 'SIGCONT');
    while ((await find('culprit')) === undefined) await setImmediate();
    while ((await find('other', 320)) === undefined) await setImmediate();
  });
});
