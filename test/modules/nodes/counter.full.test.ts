import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { openIn } from '../../core/log/scratch.ts';
import { eventually, startFollower, stateOf, untilEqual } from './rig.ts';
import { outboxPart } from '../../../src/modules/nodes/log/outbox-entries.ts';

interface Listed {
  readonly id: string;
  readonly data: { readonly n: number };
  readonly counter: string | null;
  readonly seq: number;
}

async function eventsAt(site: TestSite, apikey: string): Promise<readonly Listed[]> {
  const { data } = await site.call('svc1.event.list', { type: 'a.sale', limit: 1000 }, { apikey });
  return (data as { rows: Listed[] }).rows.toReversed();
}

const sale = (n: number) => ({ type: 'a.sale', data: { n } });

test('a counter takes events at once, and the centre stores them in order and once', async (t) => {
  const centre = await startSite(t);
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter' });
  const apikey = centre.adminKey;
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    const { data, error } = await counter.call('svc1.event.insert', sale(n), { apikey });
    assert.equal(error, undefined);
    assert.equal(data.seq, null);
    ids.push(data.id);
  }
  await eventually(async () => {
    assert.equal((await eventsAt(centre, apikey)).length, 20);
  });
  const stored = await eventsAt(centre, apikey);
  assert.deepEqual(
    stored.map(({ id }) => id),
    ids,
  );
  assert.ok(stored.every(({ counter: at }) => at === 'shop-7'));
  const seq = await untilEqual(centre, counter);
  assert.equal(await stateOf(counter, seq), await stateOf(centre, seq));
});

test('an offline counter takes events; a repeated vk is one event, also later', async (t) => {
  const centre = await startSite(t, { listen: 'listen = 127.0.0.1:0' });
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter' });
  const more = { apikey: centre.adminKey, vk: 'ticket-1' };
  const { data: first } = await counter.call('svc1.event.insert', sale(1), more);
  const again = await counter.call('svc1.event.insert', sale(1), more);
  assert.deepEqual([again.data.id, again.replayed], [first.id, true]);
  const other = await counter.call('svc1.event.insert', sale(2), more);
  assert.equal(other.error?.code, 'conflict');
  await eventually(async () => {
    assert.equal((await eventsAt(centre, centre.adminKey)).length, 1);
  });
  await untilEqual(centre, counter);
  await eventually(async () => {
    const late = await counter.call('svc1.event.insert', sale(1), more);
    assert.deepEqual([late.data.id, late.replayed], [first.id, true]);
    assert.equal(typeof late.data.seq, 'number');
  });
  await centre.waymark.stop(0);
  for (let n = 10; n < 15; n += 1) {
    const { error } = await counter.call('svc1.event.insert', sale(n), { apikey: centre.adminKey });
    assert.equal(error, undefined);
  }
  const { data } = await counter.call('svc1.outbox.list', {}, { apikey: centre.adminKey });
  assert.deepEqual(
    (data as { rows: { v: { data: { n: number } } }[] }).rows.map(({ v }) => v.data.n),
    [10, 11, 12, 13, 14],
  );
  assert.equal(data.waiting, 5);
});

test('an entry that the centre refuses is set aside and reported; the others are sent', async (t) => {
  const centre = await startSite(t);
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter' });
  const apikey = centre.adminKey;
  // The counter checks events itself; a later version of it might take others.
  const store = await openIn(`${counter.folder}/data`);
  const bad = { type: 'no event type', data: {}, occurred_at: '2026-01-01T00:00:00.000Z' };
  await store.part(outboxPart).put(() => ({
    ...{ id: '0198c0de-0000-7000-8000-000000000000', a: 'svc1.event.insert', v: bad },
    ...{ dtu_txn: new Date().toISOString(), by: 'test' },
  }));
  await store.close();
  await counter.call('svc1.event.insert', sale(1), { apikey });
  await eventually(async () => {
    assert.equal((await eventsAt(centre, apikey)).length, 1);
    const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
    assert.deepEqual([data.waiting, data.refused], [0, 1]);
    assert.equal(data.rows[0].refused.code, 'invalid');
    const errors = await centre.call('svc1.event.list', { type: 'error.detected' });
    assert.equal(errors.data.rows[0]?.data.code, 'outbox_refused');
  });
  const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
  const { n } = data.rows[0];
  assert.equal((await counter.call('svc1.outbox.discard', { n }, { apikey })).error, undefined);
  const gone = await counter.call('svc1.outbox.retry', { n }, { apikey });
  assert.equal(gone.error?.code, 'not_found');
});

test('a counter delivers its own events without the centre, once, and not those of others', async (t) => {
  const receiver = await startReceiver(t);
  const allow = '[webhook]\nallow_private = 127.0.0.0/8\n';
  const centre = await startSite(t, { ini: `${allow}[node]\nrole = central\n` });
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter', ini: allow });
  const other = await startFollower(t, centre, { name: 'shop-8', role: 'counter', ini: allow });
  const apikey = centre.adminKey;
  const v = { event: ['a.sale'], url: receiver.url, where: 'counters' };
  const { error } = await centre.call('svc1.webhook.insert', v);
  assert.equal(error, undefined);
  await untilEqual(centre, counter);
  await untilEqual(centre, other);
  await counter.call('svc1.event.insert', sale(1), { apikey });
  await receiver.until(1);
  await eventually(async () => {
    assert.equal((await eventsAt(centre, apikey)).length, 1);
  });
  await untilEqual(centre, counter);
  await centre.call('svc1.event.insert', { ...sale(2), counter: 'shop-7' });
  await receiver.until(2);
  const { data: hooks } = await centre.call('svc1.webhook.list', {});
  // A new connection reports at once.
  await untilReported(centre, hooks.rows[0].id);
  await centre.waymark.stop(0);
  await counter.call('svc1.event.insert', sale(3), { apikey });
  const got = await receiver.until(3);
  await stateOf(counter, 1);
  assert.deepEqual(
    got.map(({ body }) => [body.seq, body.data.n, body.counter]),
    [1, 2, 3].map((n) => [n, n, 'shop-7']),
  );
});

/** Resolves once the centre shows what the counter has delivered. */
async function untilReported(centre: TestSite, id: string): Promise<void> {
  await eventually(async () => {
    // A changed hook makes its node report before the next period.
    await centre.call('svc1.webhook.edit', { id, name: String(Math.random()) });
    const { data } = await centre.call('svc1.webhook.deliveries', { id });
    const [queue] = data.nodes as { node: string; newest: number; outcome?: string }[];
    assert.deepEqual([queue?.node, queue?.newest, queue?.outcome], ['shop-7', 2, 'completed']);
  });
}

test('a counter takes rows of tables, which the centre stores once and with the same id', async (t) => {
  const centre = await startSite(t);
  const apikey = centre.adminKey;
  const v = { name: 'orders', schema: { type: 'object', properties: { no: { type: 'string' } } } };
  const made = await centre.call('svc1.table.insert', { ...v, key: 'no' });
  assert.equal(made.error, undefined);
  const key = { name: 'shop-7', scopes: ['follow', 'event', 'record.write'], node: 'shop-7' };
  const { data: node } = await centre.call('svc1.key.insert', key);
  const counter = await startFollower(t, centre, {
    ...{ name: 'shop-7', role: 'counter', key: node.key },
  });
  const more = { apikey, vk: 'order-1' };
  const taken = await counter.call('svc1.record.insert', { table: 'orders', no: 'A1' }, more);
  assert.equal(taken.error, undefined);
  assert.deepEqual([taken.data.seq, taken.data.no], [null, 'A1']);
  const again = await counter.call('svc1.record.insert', { table: 'orders', no: 'A1' }, more);
  assert.deepEqual([again.error, again.data?.id, again.replayed], [undefined, taken.data.id, true]);
  const other = await counter.call('svc1.record.insert', { table: 'orders', no: 'A2' }, more);
  assert.equal(other.error?.code, 'conflict');
  const wrong = await counter.call('svc1.record.insert', { table: 'order', no: 'A2' }, { apikey });
  assert.equal(wrong.error?.code, 'not_found');
  await eventually(async () => {
    const { data } = await centre.call('svc1.record.list', { table: 'orders' });
    assert.deepEqual(
      data.rows.map(({ id, no }: { id: string; no: string }) => [id, no]),
      [[taken.data.id, 'A1']],
    );
  });
  const seq = await untilEqual(centre, counter);
  const later = await counter.call('svc1.record.insert', { table: 'orders', no: 'A1' }, more);
  assert.deepEqual([later.data?.id, later.replayed], [taken.data.id, true]);
  assert.equal(await stateOf(counter, seq), await stateOf(centre, seq));
  const read = await counter.call(
    'svc1.record.read',
    { table: 'orders', id: taken.data.id },
    { apikey },
  );
  assert.equal(read.data.no, 'A1');
});

test('a counter tells the centre of a receiver that is gone, because it cannot pause the hook', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = () => 410;
  const allow = '[webhook]\nallow_private = 127.0.0.0/8\n';
  const centre = await startSite(t, { ini: `${allow}[node]\nrole = central\n` });
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter', ini: allow });
  const v = { event: ['a.sale'], url: receiver.url, where: 'shop-7' };
  const { data } = await centre.call('svc1.webhook.insert', v);
  await untilEqual(centre, counter);
  await counter.call('svc1.event.insert', sale(1), { apikey: centre.adminKey });
  await eventually(async () => {
    const { data: errors } = await centre.call('svc1.event.list', { type: 'error.detected' });
    assert.deepEqual(
      errors.rows.map((row: { data: { code: string; id: string } }) => [
        row.data.code,
        row.data.id,
      ]),
      [['receiver_gone', data.id]],
    );
  });
});

test('a counter sends the header values of its hooks, and never a mark in their place', async (t) => {
  const receiver = await startReceiver(t);
  const allow = '[webhook]\nallow_private = 127.0.0.0/8\n';
  const centre = await startSite(t, { ini: `${allow}[node]\nrole = central\n` });
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter', ini: allow });
  const other = await startFollower(t, centre, { name: 'shop-8', role: 'counter', ini: allow });
  const headers = { authorization: 'Bearer first' };
  const v = { event: ['a.sale'], url: receiver.url, where: 'shop-7', headers };
  const { data } = await centre.call('svc1.webhook.insert', v);
  const { id } = data;
  const apikey = centre.adminKey;
  for (const [n, value] of ['Bearer first', 'Bearer second', 'Bearer third'].entries()) {
    await centre.call('svc1.webhook.edit', { id, headers: { authorization: value } });
    await untilEqual(centre, counter);
    await counter.call('svc1.event.insert', sale(n), { apikey });
    const got = await receiver.until(n + 1);
    assert.equal(got[n]?.headers.authorization, value);
  }
  await untilEqual(centre, other);
  const seen = await other.call('svc1.webhook.read', { id }, { apikey });
  assert.deepEqual(seen.data.headers, { authorization: '[withheld]' });
  const refused = await centre.call('svc1.webhook.edit', { id, headers: seen.data.headers });
  assert.deepEqual(
    refused.data.problems.map(({ field }: { field: string }) => field),
    ['headers.authorization'],
  );
});
