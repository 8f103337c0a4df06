import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { postOperation } from '../../harness.ts';
import { serverFolder, startServed, type Served } from '../../process.ts';
import { startReceiver, type TestReceiver } from './receiver.ts';

const ini = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1ms\n';

interface Told {
  readonly folder: string;
  readonly served: Served;
  readonly iniFile: string;
  readonly receiver: TestReceiver;
  readonly call: (
    name: string,
    v: object,
    more?: { readonly vk?: string },
  ) => ReturnType<typeof postOperation>;
}

async function startTold(t: TestContext, server: string): Promise<Told> {
  const { folder, iniFile } = await serverFolder(t, server + ini);
  const served = await startServed(t, iniFile);
  const receiver = await startReceiver(t);
  const { url, adminKey: apikey } = served;
  const call = (name: string, v: object, more: { readonly vk?: string } = {}) =>
    postOperation(url, name, v, { apikey, ...more });
  await call('svc1.webhook.insert', { event: ['sale.completed'], url: receiver.url });
  return { folder, served, iniFile, receiver, call };
}

const sale = { type: 'sale.completed', data: { id: 'S-1' } };

suite('a process that delivers', () => {
  test('completes the attempts in flight at SIGTERM', async (t) => {
    const { served, iniFile, receiver, call } = await startTold(t, '');
    let answered = 0;
    receiver.answer = () => (response) => {
      setTimeout(() => {
        answered += 1;
        response.end();
      }, 50);
    };
    for (let n = 0; n < 3; n += 1) await call('svc1.event.insert', sale, { vk: randomUUID() });
    await receiver.until(3);
    served.child.kill('SIGTERM');
    assert.deepEqual(await served.closed, { code: 0, signal: null });
    assert.equal(answered, 3);
    const again = await startServed(t, iniFile, { first: false });
    const { adminKey: apikey } = served;
    await postOperation(again.url, 'svc1.event.insert', sale, { apikey, vk: randomUUID() });
    await receiver.until(4);
    assert.deepEqual(await receiver.untilSeqs(4), [1, 2, 3, 4]);
    assert.equal(receiver.got.length, 4, 'nothing arrived twice');
  });

  test('repeats unrecorded attempts unchanged after it was killed', async (t) => {
    const { served, iniFile, receiver, call } = await startTold(t, '');
    receiver.answer = () => () => undefined;
    for (let n = 0; n < 3; n += 1) await call('svc1.event.insert', sale, { vk: randomUUID() });
    await receiver.until(3);
    served.child.kill('SIGKILL');
    await served.closed;
    receiver.answer = () => 200;
    await startServed(t, iniFile, { first: false });
    const got = await receiver.until(6);
    for (const { bytes, body } of got.slice(3)) {
      const before = got.slice(0, 3).find((one) => one.body.id === body.id);
      assert.deepEqual(bytes, before?.bytes);
    }
    assert.deepEqual(await receiver.untilSeqs(3), [1, 2, 3]);
  });

  test('is one of several workers; when it ends, another one takes over', async (t) => {
    const { folder, served, receiver, call } = await startTold(t, 'workers = 2\n');
    await call('svc1.event.insert', sale, { vk: randomUUID() });
    await receiver.until(1);
    const [pid] = (await readFile(join(folder, 'data', 'deliver.pid'), 'utf8')).split(' ');
    assert.notEqual(Number(pid), served.pid);
    process.kill(Number(pid), 'SIGKILL');
    for (let n = 0; n < 5; n += 1) {
      // The killed worker may be the one that has the connection.
      await call('svc1.event.insert', sale, { vk: randomUUID() }).catch(() => delay(50));
    }
    const { data } = await call('svc1.event.list', { type: 'sale.completed' });
    const { length } = data.rows;
    const seqs = await receiver.untilSeqs(length);
    assert.deepEqual(
      seqs,
      Array.from({ length }, (_, at) => at + 1),
    );
    served.child.kill('SIGTERM');
    await once(served.child, 'close');
  });
});
