import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FaultyProxy } from '../faults/proxy.ts';
import { startSite, type TestSite } from '../harness.ts';
import { eventually, startFollower } from './rig.ts';

const MIB = 1024 * 1024;

/** The numbers of the stored sales, oldest first. */
async function soldAt(site: TestSite): Promise<readonly number[]> {
  const { data } = await site.call('svc1.event.list', { type: 'a.sale' });
  return (data as { rows: { data: { n: number } }[] }).rows.map((row) => row.data.n).toReversed();
}

/** A value that nests as deeply as an event may. */
function nested(levels: number): object {
  let value: object = {};
  for (let level = 1; level < levels; level += 1) value = { a: value };
  return value;
}

test('an outbox with more bytes than one request may have reaches the centre', async (t) => {
  const centre = await startSite(t);
  const proxy = await FaultyProxy.start(Number(new URL(centre.url).port));
  t.after(() => {
    proxy.close();
  });
  const properties = { no: { type: 'string' }, scan: { type: 'string' } };
  const table = { name: 'orders', schema: { type: 'object', properties }, key: 'no' };
  assert.equal((await centre.call('svc1.table.insert', table)).error, undefined);
  const v = { name: 'shop-7', scopes: ['follow', 'record.write'], node: 'shop-7' };
  const { data: made } = await centre.call('svc1.key.insert', v);
  const counter = await startFollower(t, centre, {
    ...{ name: 'shop-7', role: 'counter', key: made.key },
    central: { ...centre, url: `http://127.0.0.1:${proxy.port}` },
  });
  proxy.cut();
  const numbers = ['1', '2', '3', '4', '5'];
  for (const no of numbers) {
    const order = { table: 'orders', no, scan: 'x'.repeat(3.9 * MIB) };
    const { error } = await counter.call('svc1.record.insert', order, { apikey: centre.adminKey });
    assert.equal(error, undefined);
  }
  proxy.heal();
  await eventually(async () => {
    const { data } = await counter.call('svc1.server.status', {}, { apikey: centre.adminKey });
    assert.deepEqual(data.node.central.outbox, { waiting: 0, refused: 0 });
  });
  const { data } = await centre.call('svc1.server.status', {});
  assert.equal(data.counts.rows, numbers.length);
});

test('an entry because of which the centre takes no request is set aside', async (t) => {
  const centre = await startSite(t);
  const counter = await startFollower(t, centre, { name: 'shop-7', role: 'counter' });
  const apikey = centre.adminKey;
  for (const n of [1, 2, 3, 4]) {
    // The envelope of the counter's request adds some levels.
    const data = { n, ...(n === 3 && { deep: nested(60) }) };
    const { error } = await counter.call('svc1.event.insert', { type: 'a.sale', data }, { apikey });
    assert.equal(error, undefined);
  }
  await eventually(async () => {
    assert.deepEqual(await soldAt(centre), [1, 2, 4]);
    const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
    assert.deepEqual([data.waiting, data.refused], [0, 1]);
    assert.deepEqual(data.rows[0].refused.code, 'too_large');
  });
});
