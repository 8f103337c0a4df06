import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite, type Answer } from '../../harness.ts';
import { startReceiver } from './receiver.ts';
import { local } from './rig.ts';

const schema = {
  type: 'object',
  properties: {
    sku: { type: 'string' },
    stock: { type: 'integer' },
    pin: { type: 'string', writeOnly: true },
  },
};

const products = {
  ...{ name: 'products', schema, key: 'sku' },
  events: 'stock.level_changed: stock crosses 0',
};

test('a receiver reads the event and the row, now and then, with a key that writes nothing', async (t) => {
  const site = await startSite(t, { ini: local });
  const receiver = await startReceiver(t);
  const made = await site.call('svc1.table.insert', products);
  assert.deepEqual(made.data.events, { 'stock.level_changed': { field: 'stock', crosses: 0 } });
  await site.call('svc1.table.insert', { ...products, name: 'lamps' });
  const event = ['record.changed', 'stock.level_changed'];
  const hook = { event, url: receiver.url, table: ['products'], order: true };
  assert.deepEqual((await site.call('svc1.webhook.insert', hook)).data.problems, []);

  const row = { table: 'products', sku: 'P-7', stock: 2, pin: 'not for receivers' };
  for (const table of ['lamps', 'products']) {
    const { error } = await site.call('svc1.record.insert', { ...row, table });
    assert.equal(error, undefined);
  }
  for (const stock of [0, 3]) {
    const edited = await site.call('svc1.record.edit', { table: 'products', sku: 'P-7', stock });
    assert.equal(edited.error, undefined);
  }
  const bodies = (await receiver.until(5)).map(({ body }) => body);
  const types = bodies.map(({ type, data }) => [type, data.table]);
  const changed = ['record.changed', 'products'];
  const level = ['stock.level_changed', 'products'];
  assert.deepEqual(types, [changed, changed, level, changed, level]);
  assert.deepEqual(bodies[0].data.fields.toSorted(), ['pin', 'sku', 'stock']);
  const { table, id, ...data } = bodies[2].data;
  assert.deepEqual(data, { product: 'P-7', level: 0, previous: 2 });
  assert.ok(!JSON.stringify(bodies).includes(row.pin));

  const { data: key } = await site.call('svc1.key.insert', { name: 'r', scopes: ['verify'] });
  const get = async (path: string): Promise<Answer> => {
    const reply = await fetch(`${site.url}/svc1/${path}`, { headers: { apikey: key.key } });
    return (await reply.json()) as Answer;
  };
  const read = (await get(`event/read?_v.id=${bodies[2].id}`)).data;
  assert.deepEqual([read.type, read.data], ['stock.level_changed', bodies[2].data]);
  const named = `record/read?_v.table=${table}&_v.id=${id}`;
  const now = (await get(named)).data;
  assert.deepEqual([now.sku, now.stock, now.pin], ['P-7', 3, undefined]);
  assert.deepEqual((await get('record/read?_v.table=products&_v.sku=P-7')).data, now);
  const then = (await get(`${named}&_v.as_of=${read.seq}`)).data;
  assert.deepEqual([then.sku, then.stock, then.pin], ['P-7', 0, undefined]);
  const v = { table: 'products', sku: 'P-7', stock: 9 };
  const refused = await site.call('svc1.record.edit', v, { apikey: key.key });
  assert.equal(refused.error?.code, 'forbidden');
});

test('rows of an import raise the events of their table, in its transaction', async (t) => {
  const site = await startSite(t);
  const events = 'product.sold_out: stock below 1';
  await site.call('svc1.table.insert', { ...products, events });
  const lines = [0, 5, 0].map((stock, at) => {
    const v = { table: 'products', sku: `P-${at}`, stock };
    return JSON.stringify({ a: 'svc1.record.insert', v });
  });
  const reply = await fetch(`${site.url}/svc1/userinterface/import`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', apikey: site.adminKey },
    body: lines.join('\n'),
  });
  const { data } = (await reply.json()) as Answer;
  assert.deepEqual([data.imported, data.refused], [3, 0], JSON.stringify(data));
  const { rows } = (await site.call('svc1.event.list', { type: 'product.sold_out' })).data;
  assert.deepEqual(
    rows.map((row: Answer) => [row.data.key, row.data.value]),
    [
      ['P-2', 0],
      ['P-0', 0],
    ],
  );
});
