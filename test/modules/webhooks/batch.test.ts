import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startSite } from '../../harness.ts';
import { startServed, serverFolder } from '../../process.ts';
import { postOperation } from '../../harness.ts';
import { startReceiver } from './receiver.ts';
import { local, sale, startRig, type Rig } from './rig.ts';

const batch = { mode: 'batch', every: '1d' };

function startBatches(t: TestContext, limits: object): Promise<Rig> {
  return startRig(t, { frequency: { ...batch, ...limits } });
}

/** First and last seq, and all seqs, of each batch that has arrived. */
function batchesOf({ receiver }: Rig) {
  return receiver.got.map(({ body }) => [
    body.first_seq,
    body.last_seq,
    body.batch.map(({ seq }: { seq: number }) => seq),
  ]);
}

// Each test has its own site, and waits most of its time.
suite('a batch', { concurrency: 4 }, () => {
  test('is sent once it has max_events events', async (t) => {
    const rig = await startBatches(t, { max_events: 3 });
    const ids = [];
    for (let n = 0; n < 7; n += 1) ids.push(await rig.insertEvent());
    const got = await rig.receiver.until(2);
    assert.deepEqual(batchesOf(rig).toSorted(), [
      [1, 3, [1, 2, 3]],
      [4, 6, [4, 5, 6]],
    ]);
    const delivered = got.flatMap(({ body }) => body.batch.map(({ id }: { id: string }) => id));
    assert.deepEqual(delivered.toSorted(), ids.slice(0, 6).toSorted());
    for (const { headers, body } of got) {
      const { first_seq: first, last_seq: last } = body;
      assert.equal(headers['webhook-id'], `${rig.id}-${first}-${last}`);
      assert.deepEqual(Object.keys(body), ['batch', 'first_seq', 'last_seq']);
    }
  });

  test('is sent after its interval', async (t) => {
    const rig = await startBatches(t, { every: '1s' });
    await Promise.all([rig.insertEvent(), rig.insertEvent()]);
    await rig.receiver.until(1);
    assert.deepEqual(batchesOf(rig), [[1, 2, [1, 2]]]);
  });

  test('is sent once it has max_bytes; a longer event is sent alone', async (t) => {
    const rig = await startBatches(t, { max_bytes: 2_000 });
    const sized = (bytes: number) =>
      rig.insertEvent({ type: sale.type, data: { id: 'x'.repeat(bytes) } });
    for (const bytes of [600, 600, 600, 5_000, 10]) await sized(bytes);
    const got = await rig.receiver.until(3);
    assert.deepEqual(batchesOf(rig).toSorted(), [
      [1, 2, [1, 2]],
      [3, 3, [3]],
      [4, 4, [4]],
    ]);
    for (const { bytes, body } of got) assert.ok(bytes.length < 2_000 || body.batch.length === 1);
  });

  test('is retried unchanged, even if there are new events', async (t) => {
    const rig = await startBatches(t, { max_events: 2 });
    rig.receiver.answer = ({ body }) =>
      body.first_seq === 1 && rig.receiver.got.length < 4 ? 500 : 200;
    for (let n = 0; n < 6; n += 1) await rig.insertEvent();
    const got = await rig.receiver.until(5);
    const first = got.filter(({ body }) => body.first_seq === 1);
    assert.ok(first.length >= 2);
    for (const { bytes, headers } of first) {
      assert.deepEqual(bytes, first[0]?.bytes);
      assert.equal(headers['webhook-id'], `${rig.id}-1-2`);
    }
  });

  test('that is too large for its receiver is sent in halves, down to single events', async (t) => {
    const rig = await startBatches(t, { max_events: 5 });
    rig.receiver.answer = ({ body }) => (body.batch.length > 2 ? 413 : 200);
    for (let n = 0; n < 5; n += 1) await rig.insertEvent();
    const rows = await rig.attempts(5);
    const ends = rows.map(({ seq, last_seq: last, status, outcome }) =>
      [`${seq}-${last}`, status, outcome].join(' '),
    );
    assert.deepEqual(ends.toSorted(), [
      '1-2 200 completed',
      '1-3 413 failed',
      '1-5 413 failed',
      '3-3 200 completed',
      '4-5 200 completed',
    ]);
  });

  test('of an ordered hook waits until the previous one has ended', async (t) => {
    const site = await startSite(t, { ini: local });
    const receiver = await startReceiver(t);
    receiver.answer = () => (receiver.got.length === 1 ? 500 : 200);
    const frequency = { ...batch, max_events: 2 };
    const hook = { event: ['sale.completed'], url: receiver.url, order: true, frequency };
    await site.call('svc1.webhook.insert', hook);
    for (let n = 0; n < 6; n += 1) await site.call('svc1.event.insert', sale, { vk: randomUUID() });
    const firsts = (await receiver.until(4)).map(({ body }) => body.first_seq);
    assert.deepEqual(firsts, [1, 1, 3, 5]);
  });

  test('of an ordered hook that is split sends its second half after the first one', async (t) => {
    const site = await startSite(t, { ini: local.replace('1ms', '200ms') });
    const receiver = await startReceiver(t);
    const answers = [413, 500];
    receiver.answer = () => answers.shift() ?? 200;
    const frequency = { ...batch, max_events: 4 };
    const hook = { event: ['sale.completed'], url: receiver.url, order: true, frequency };
    await site.call('svc1.webhook.insert', hook);
    for (let n = 0; n < 4; n += 1) await site.call('svc1.event.insert', sale, { vk: randomUUID() });
    const firsts = (await receiver.until(4)).map(({ body }) => body.first_seq);
    assert.deepEqual(firsts, [1, 1, 1, 3]);
  });

  test('with a test event is sent at once', async (t) => {
    const rig = await startBatches(t, {});
    await rig.insertEvent();
    await rig.site.call('svc1.webhook.test', { id: rig.id });
    await rig.receiver.until(1);
    assert.deepEqual(batchesOf(rig), [[1, 2, [1, 2]]]);
  });

  test('is not sent once the hook gets each event by itself', async (t) => {
    const rig = await startBatches(t, {});
    await rig.insertEvent();
    await rig.insertEvent();
    await rig.site.call('svc1.webhook.edit', { id: rig.id, frequency: null });
    const got = await rig.receiver.until(2);
    assert.deepEqual(got.map(({ body }) => body.seq).toSorted(), [1, 2]);
  });

  test('is sent unchanged after the server was killed', async (t) => {
    const { iniFile } = await serverFolder(t, local);
    const served = await startServed(t, iniFile);
    const receiver = await startReceiver(t);
    receiver.answer = () => () => undefined;
    const { url, adminKey: apikey } = served;
    const frequency = { ...batch, max_events: 3 };
    const hook = { event: ['sale.completed'], url: receiver.url, frequency };
    const { data } = await postOperation(url, 'svc1.webhook.insert', hook, { apikey });
    for (let n = 0; n < 4; n += 1)
      await postOperation(url, 'svc1.event.insert', sale, { apikey, vk: randomUUID() });
    await receiver.until(1);
    served.child.kill('SIGKILL');
    await served.closed;
    const again = await startServed(t, iniFile, { first: false });
    for (let n = 0; n < 2; n += 1) {
      await postOperation(again.url, 'svc1.event.insert', sale, { apikey, vk: randomUUID() });
    }
    const [first, ...others] = await receiver.until(3);
    const same = others.find(({ body }) => body.first_seq === 1);
    assert.deepEqual(same?.bytes, first?.bytes);
    const next = others.find(({ body }) => body.first_seq === 4);
    assert.equal(next?.body.last_seq, 6);
    for (const { bytes, headers } of others) {
      new Webhook(data.secret).verify(bytes, headers as Record<string, string>);
    }
  });
});
