import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import { sale, startRig, type Rig } from './rig.ts';

/** Inserts events; resolves to their ids once their attempts are recorded. */
async function tellAll({ insertEvent, attempts }: Rig, count: number): Promise<readonly string[]> {
  const ids = [];
  for (let n = 0; n < count; n += 1) ids.push(await insertEvent());
  await attempts(count);
  return ids;
}

function replay({ site, id }: Rig, v: object, vk?: string) {
  return site.call('svc1.webhook.replay', { id, ...v }, vk === undefined ? {} : { vk });
}

// Each test has its own site, and waits most of its time.
suite('a replay', { concurrency: 4 }, () => {
  test('sends one message again unchanged, by its id or its seq', async (t) => {
    const rig = await startRig(t);
    const { receiver, attempts } = rig;
    const ids = await tellAll(rig, 3);
    const { data } = await replay(rig, { delivery: ids[1] });
    assert.equal(data.deliveries, 1);
    const [, second, , again] = await receiver.until(4);
    assert.equal(again?.body.id, ids[1]);
    assert.deepEqual(again?.bytes, receiver.got.find(({ body }) => body.seq === 2)?.bytes);
    assert.ok(second);
    const rows = await attempts(4);
    assert.deepEqual(
      rows.filter(({ seq }) => seq === 2).map(({ attempt }) => attempt),
      [1, 2],
    );
    await replay(rig, { delivery: '3' });
    assert.equal((await receiver.until(5)).at(-1)?.body.seq, 3);
  });

  test('with the same vk gets the same answer, even after its hook was deleted', async (t) => {
    const rig = await startRig(t);
    const [id] = await tellAll(rig, 1);
    const { data: first } = await replay(rig, { delivery: id }, 'once');
    assert.equal(first.deliveries, 1);
    const { data: report } = await rig.site.call('svc1.webhook.invalidate', { id: rig.id });
    await rig.site.call('svc1.webhook.invalidate', { id: rig.id, confirm: report.digest });
    assert.equal((await replay(rig, { delivery: id })).error?.code, 'not_found');
    const { data, replayed } = await replay(rig, { delivery: id }, 'once');
    assert.deepEqual([data, replayed], [first, true]);
    assert.equal((await replay(rig, { delivery: '1' }, 'once')).error?.code, 'conflict');
  });

  test('of a record.changed finds it by its id', async (t) => {
    const rig = await startRig(t, { event: ['record.changed'] });
    await rig.site.call('svc1.userinterface.insert', { path: '/a', content: 'x' });
    const [first] = await rig.receiver.until(1);
    await rig.attempts(1);
    await replay(rig, { delivery: first?.body.id });
    assert.deepEqual((await rig.receiver.until(2))[1]?.bytes, first?.bytes);
  });

  test('sends messages again that were given up, with a new series of attempts', async (t) => {
    const rig = await startRig(t, { retry_limit: 2, event: ['sale.completed'] });
    const { receiver, attempts } = rig;
    receiver.answer = ({ body }) => (body.seq === 2 ? 500 : 200);
    for (let n = 0; n < 3; n += 1) await rig.insertEvent();
    await attempts(4);
    assert.equal((await replay(rig, { failed: true })).data.deliveries, 1);
    const rows = (await attempts(6)).filter(({ seq }) => seq === 2);
    assert.deepEqual(
      rows.map(({ attempt, outcome }) => [attempt, outcome]),
      [
        [1, 'failed'],
        [2, 'exhausted'],
        [3, 'failed'],
        [4, 'exhausted'],
      ],
    );
    receiver.answer = () => 200;
    await replay(rig, { failed: true });
    await attempts(7);
    assert.equal((await replay(rig, { failed: true })).data.deliveries, 0);
  });

  test('sends the events of a period', async (t) => {
    const rig = await startRig(t);
    await tellAll(rig, 5);
    const { rows } = (await rig.site.call('svc1.event.list', { type: sale.type })).data;
    const seqs = rows.map(({ seq }: { seq: number }) => seq).toReversed();
    const { data } = await replay(rig, { since: String(seqs[1]), until: String(seqs[3]) });
    assert.equal(data.deliveries, 3);
    const again = (await rig.receiver.until(8)).slice(5).map(({ body }) => body.seq);
    assert.deepEqual(again.toSorted(), [2, 3, 4]);
    assert.equal((await replay(rig, { until: String(seqs[0] - 1) })).data.deliveries, 0);
  });

  test('of a batch sends all of it', async (t) => {
    const frequency = { mode: 'batch', every: '1d', max_events: 3 };
    const rig = await startRig(t, { frequency });
    for (let n = 0; n < 6; n += 1) await rig.insertEvent();
    const got = await rig.receiver.until(2);
    await rig.attempts(2);
    for (const delivery of ['5', `${rig.id}-4-6`]) {
      const count = rig.receiver.got.length;
      assert.equal((await replay(rig, { delivery })).data.deliveries, 1);
      const again = (await rig.receiver.until(count + 1)).at(-1);
      assert.deepEqual(again?.bytes, got.find(({ body }) => body.first_seq === 4)?.bytes);
      await rig.attempts(count + 1);
    }
  });

  test('of a split batch sends its parts', async (t) => {
    const frequency = { mode: 'batch', every: '1d', max_events: 4 };
    const rig = await startRig(t, { frequency });
    rig.receiver.answer = ({ body }) => (body.batch.length > 2 ? 413 : 200);
    for (let n = 0; n < 8; n += 1) await rig.insertEvent();
    await rig.attempts(6);
    assert.equal((await replay(rig, { delivery: `${rig.id}-1-4` })).data.deliveries, 2);
    const again = (await rig.receiver.until(8)).slice(6).map(({ body }) => body.first_seq);
    assert.deepEqual(again.toSorted(), [1, 3]);
  });

  test('by an id that the hook never sent finds nothing', async (t) => {
    const frequency = { mode: 'batch', every: '1d', max_events: 2 };
    const rig = await startRig(t, { frequency });
    for (let n = 0; n < 2; n += 1) await rig.insertEvent();
    const [batch] = await rig.attempts(1);
    const caused = await startRig(t, { event: ['record.changed'] });
    await caused.site.call('svc1.userinterface.insert', { path: '/a', content: 'x' });
    const [change] = await caused.receiver.until(1);
    await caused.attempts(1);
    const seq = /-\d+$/.exec(change?.body.id)?.[0] ?? '';
    for (const [from, delivery] of [
      [rig, `${caused.id}-1-2`],
      [rig, `${rig.id}-1-1`],
      [rig, `${rig.id}-1-3`],
      [rig, `${rig.id}-2-2`],
      [caused, `${caused.id}-1-1`],
      [caused, `${caused.id}${seq}`],
    ] as const) {
      assert.equal((await replay(from, { delivery })).error?.code, 'not_found', delivery);
    }
    assert.equal((await replay(rig, { delivery: batch?.id })).data.deliveries, 1);
  });

  test('of a message that waits for a retry makes it due now', async (t) => {
    const ini = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n';
    const rig = await startRig(t, {}, ini);
    rig.receiver.answer = () => (rig.receiver.got.length === 1 ? 500 : 200);
    await tellAll(rig, 1);
    await replay(rig, { delivery: '1' });
    await rig.receiver.until(2);
    const [, again] = await rig.attempts(2);
    assert.deepEqual([again?.attempt, again?.outcome], [2, 'completed']);
  });

  for (const [what, retryLimit] of [
    ['is retried later', 5],
    ['is given up', 1],
  ] as const) {
    test(`of a message in flight that ${what} sends it once more`, async (t) => {
      const ini = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n';
      const rig = await startRig(t, { event: [sale.type], retry_limit: retryLimit }, ini);
      const { receiver, site, id } = rig;
      receiver.answer = () => 500;
      await tellAll(rig, 1);
      const held = Promise.withResolvers<ServerResponse>();
      receiver.answer = () => (receiver.got.length === 2 ? held.resolve : 200);
      await replay(rig, { delivery: '1' });
      const response = await held.promise;
      await replay(rig, { delivery: '1' });
      const hook = { event: ['a.b'], url: receiver.url };
      const other = (await site.call('svc1.webhook.insert', hook)).data.id;
      // The answer to a change comes after earlier events are read. Replays follow right after.
      for (const name of ['x', 'y']) await site.call('svc1.webhook.edit', { id: other, name });
      response.writeHead(500).end();
      const rows = await rig.attempts(3);
      assert.deepEqual(
        rows.map(({ outcome }) => outcome === 'completed'),
        [false, false, true],
      );
      assert.equal((await site.call('svc1.webhook.deliveries', { id })).data.waiting, 0);
      assert.equal((await replay(rig, { failed: true })).data.deliveries, 0);
    });
  }

  test('of an ordered hook keeps the order, even if a message fails', async (t) => {
    const ini = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 200ms\n';
    const rig = await startRig(t, { order: true, event: [sale.type] }, ini);
    const { receiver } = rig;
    await tellAll(rig, 3);
    receiver.answer = () => (receiver.got.length === 4 ? 500 : 200);
    await replay(rig, { since: '1' });
    const seqs = (await receiver.until(7)).map(({ body }) => body.seq);
    assert.deepEqual(seqs, [1, 2, 3, 1, 1, 2, 3]);
  });

  test('happens once for a vk, and only for existing hooks and messages', async (t) => {
    const rig = await startRig(t);
    await tellAll(rig, 1);
    const first = await replay(rig, { delivery: '1' }, 'again');
    const second = await replay(rig, { delivery: '1' }, 'again');
    assert.deepEqual([second.data, second.replayed], [first.data, true]);
    for (const [v, code] of [
      [{ delivery: '7' }, 'not_found'],
      [{ delivery: 'x' }, 'not_found'],
      [{ delivery: '1', failed: true }, 'invalid'],
      [{}, 'invalid'],
      [{ since: 'soon' }, 'invalid'],
    ] as const) {
      assert.equal((await replay(rig, v)).error?.code, code, JSON.stringify(v));
    }
  });
});
