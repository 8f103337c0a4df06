import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { transports, type Call } from '../transports.ts';

const products = {
  name: 'products',
  schema: {
    type: 'object',
    required: ['sku', 'name'],
    properties: {
      sku: { type: 'string', maxLength: 20 },
      name: { type: 'string' },
      price: { type: 'number', minimum: 0 },
      shop: { type: 'string' },
      supplier_price: { type: 'number', writeOnly: true },
    },
  },
  key: 'sku',
  index: ['price', 'shop'],
  search: ['name'],
};

async function shop(t: TestContext, via = 'HTTP'): Promise<{ site: TestSite; call: Call }> {
  const site = await startSite(t);
  const connect = transports[via];
  assert.ok(connect !== undefined);
  const call = await connect(site);
  const made = await call('svc1.table.insert', products);
  assert.equal(made.error, undefined, JSON.stringify(made.error));
  return { site, call };
}

for (const via of Object.keys(transports)) {
  suite(`rows over ${via}`, () => {
    test('are inserted, read by key, edited, listed and deleted', async (t) => {
      const { call } = await shop(t, via);
      const v = { table: 'products', sku: 'A-1', name: 'Tern', price: 12.5 };
      const inserted = await call('svc1.record.insert', v);
      assert.equal(inserted.error, undefined, JSON.stringify(inserted.error));
      const { id, seq } = inserted.data;
      assert.deepEqual(inserted.data, { ...v, id, seq, unknowns: [], problems: [] });
      const read = await call('svc1.record.read', { table: 'products', sku: 'A-1' });
      assert.deepEqual(read.data, { ...v, id, seq });

      const edited = await call('svc1.record.edit', { table: 'products', sku: 'A-1', price: 14 });
      assert.equal(edited.data.price, 14);
      const stale = { table: 'products', id, price: 15, if_seq: seq };
      assert.equal((await call('svc1.record.edit', stale)).error?.code, 'precondition_failed');
      const then = await call('svc1.record.read', { table: 'products', id, as_of: String(seq) });
      assert.equal(then.data.price, 12.5);
      const history = await call('svc1.record.read', { table: 'products', id }, { qk: 'history' });
      assert.deepEqual(
        history.data.rows.map((row: { action: string }) => row.action),
        ['edit', 'insert'],
      );
      const listed = await call('svc1.record.list', { table: 'products', count: true });
      assert.deepEqual([listed.data.rows.length, listed.data.count], [1, 1]);

      const dry = await call('svc1.record.invalidate', { table: 'products', sku: 'A-1' });
      assert.equal(dry.data.gone, 1, JSON.stringify(dry));
      const { digest: confirm } = dry.data;
      const done = await call('svc1.record.invalidate', { table: 'products', sku: 'A-1', confirm });
      assert.equal(done.data.done, true, JSON.stringify(done));
      const gone = await call('svc1.record.read', { table: 'products', id });
      assert.equal(gone.error?.code, 'not_found');
      const undo = { table: 'products', txn: done.data.txn };
      const again = await call('svc1.record.invalidate', undo);
      assert.equal(again.data.restored, 1);
      await call('svc1.record.invalidate', { ...undo, confirm: again.data.digest });
      assert.equal(
        (await call('svc1.record.get', { table: 'products', sku: 'A-1' })).data.price,
        14,
      );
    });

    test('keep invalid values in _unknowns_ and refuse rows without a required field', async (t) => {
      const { call } = await shop(t, via);
      const v = { table: 'products', sku: 'A-1', name: 'Tern', price: -1, colour: 'red' };
      const { data } = await call('svc1.record.insert', v);
      assert.deepEqual(data._unknowns_, { price: -1, colour: 'red' });
      assert.deepEqual(
        data.problems.map((one: { field: string; reason: string }) => [one.field, one.reason]),
        [
          ['price', 'out_of_range'],
          ['colour', 'unknown_field'],
        ],
      );
      const missing = await call('svc1.record.insert', { table: 'products', sku: 'A-2' });
      assert.deepEqual([missing.error?.code, missing.error?.field], ['invalid', 'name']);
      const taken = await call('svc1.record.insert', { table: 'products', sku: 'A-1', name: 'x' });
      assert.deepEqual([taken.error?.code, taken.error?.field], ['conflict', 'sku']);
      assert.match(taken.error?.message ?? '', new RegExp(`"A-1".*${data.id}`));
    });

    test('are filtered and sorted by declared indexes, page by page', async (t) => {
      const { call } = await shop(t, via);
      for (const [sku, name, price, shop] of [
        ['A-1', 'Tern lamp', 30, 'zurich'],
        ['A-2', 'Heron lamp', 10, 'bern'],
        ['B-1', 'Puffin', 20, 'zurich'],
        ['B-2', 'Dunlin', 40, 'zurich'],
      ] as const) {
        await call('svc1.record.insert', { table: 'products', sku, name, price, shop });
      }
      const skus = async (v: object): Promise<readonly string[]> => {
        const { data, error } = await call('svc1.record.list', { table: 'products', ...v });
        assert.equal(error, undefined, JSON.stringify(error));
        return data.rows.map(({ sku }: { sku: string }) => sku);
      };
      assert.deepEqual(await skus({ where: { shop: 'bern' } }), ['A-2']);
      assert.deepEqual(await skus({ where: { price: { '>': 10, '<=': 30 } } }), ['B-1', 'A-1']);
      assert.deepEqual(await skus({ sort: '-price' }), ['B-2', 'A-1', 'B-1', 'A-2']);
      assert.deepEqual(await skus({ where: { shop: 'zurich' }, sort: 'price' }), [
        ...['B-1', 'A-1', 'B-2'],
      ]);
      assert.deepEqual(await skus({ where: { sku: { prefix: 'B' } } }), ['B-1', 'B-2']);
      assert.deepEqual(await skus({ where: { sku: { in: ['B-2', 'A-1', 'none'] } } }), [
        ...['A-1', 'B-2'],
      ]);
      assert.deepEqual(await skus({ text: 'lamp her' }), ['A-2']);
      const v = { table: 'products', sort: 'price', limit: 3, count: true };
      const first = await call('svc1.record.list', v);
      assert.equal(first.data.count, 4);
      const second = await call('svc1.record.list', { ...v, after: first.data.next });
      assert.deepEqual(
        second.data.rows.map(({ sku }: { sku: string }) => sku),
        ['B-2'],
      );
      // Fewer rows have the price: its index gives the order, also after rows have changed that.
      const where = { shop: 'zurich', price: { '>=': 20, '<=': 30 } };
      assert.deepEqual(await skus({ where }), ['B-1', 'A-1']);
      const page = await call('svc1.record.list', { table: 'products', where, limit: 1 });
      for (const sku of ['C-1', 'C-2']) {
        await call('svc1.record.insert', { table: 'products', sku, name: sku, price: 30 });
      }
      assert.deepEqual(await skus({ where }), ['A-1', 'B-1']);
      assert.deepEqual(await skus({ where, after: page.data.next }), ['A-1']);
      for (const after of ['x', ':0:x', `${String(page.data.next)}!`]) {
        const wrong = await call('svc1.record.list', { table: 'products', where, after });
        assert.deepEqual([wrong.error?.code, wrong.error?.field], ['invalid', 'after']);
      }
      const none = await call('svc1.record.list', { table: 'products', where: { name: 'x' } });
      assert.deepEqual([none.error?.code, none.error?.field], ['invalid', 'where.name']);
      assert.match(none.error?.message ?? '', /`index = price, shop, name` to \[table\.products\]/);
    });
  });
}

test('a row keeps its key when an undo would give the same to another one', async (t) => {
  const { call } = await shop(t);
  const v = { table: 'products', sku: 'A-1', name: 'Tern' };
  const { data: first } = await call('svc1.record.insert', v);
  const { data: dry } = await call('svc1.record.invalidate', { table: 'products', id: first.id });
  const { digest: confirm } = dry;
  const gone = { table: 'products', id: first.id, confirm };
  const { data: done } = await call('svc1.record.invalidate', gone);
  const { data: second } = await call('svc1.record.insert', { ...v, name: 'Heron' });
  const undo = await call('svc1.record.invalidate', { table: 'products', txn: done.txn });
  assert.deepEqual([undo.error?.code, undo.error?.field], ['conflict', 'sku']);
  // A caller that may write rows but not read them learns neither the value nor the other row.
  const message = undo.error?.message ?? '';
  assert.match(message, new RegExp(`row ${first.id} of products .*former sku`));
  assert.ok(!message.includes('A-1') && !message.includes(second.id), message);
});

test('a field that is too large is refused by name, and one form is one row', async (t) => {
  const { site, call } = await shop(t);
  const v = { table: 'products', sku: 'A-1', name: 'x'.repeat(10_000_000) };
  const large = await call('svc1.record.insert', v);
  assert.deepEqual([large.error?.code, large.error?.field], ['too_large', 'name']);
  const form = { table: 'products', sku: 'A-2', name: 'Tern' };
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => site.call('record.insert', form, { vk: 'one form' })),
  );
  assert.equal(new Set(answers.map(({ data }) => data.id)).size, 1);
  assert.equal(answers.filter(({ replayed }) => replayed === true).length, 99);
  const listed = await call('svc1.record.list', { table: 'products', count: true });
  assert.equal(listed.data.count, 1);
});

test('equal rows without vk are two rows, from the same key and without a key', async (t) => {
  const { site } = await shop(t);
  const schema = { type: 'object', properties: { message: { type: 'string' } } };
  await site.call('table.insert', { name: 'letters', schema, insert: ['anonymous'] });
  const v = { table: 'letters', message: 'hello' };
  const send = async (apikey: string | undefined) => {
    const { data, replayed } = await site.call('record.insert', v, { apikey });
    assert.equal(replayed, undefined);
    return data.id as string;
  };
  const ids = [
    await send(site.adminKey),
    await send(site.adminKey),
    await send(undefined),
    await send(undefined),
  ];
  assert.equal(new Set(ids).size, 4);
});

test('a reference shows the title of its row, and one without a row is a problem', async (t) => {
  const { call } = await shop(t);
  const schema = {
    properties: { lamp: { type: 'string', 'x-table': 'products' }, count: { type: 'integer' } },
  };
  await call('svc1.table.insert', { name: 'orders', schema });
  await call('svc1.record.insert', { table: 'products', sku: 'A-1', name: 'Tern' });
  const { data: order } = await call('svc1.record.insert', { table: 'orders', lamp: 'A-1' });
  assert.deepEqual(order.problems, []);
  const { data } = await call('svc1.record.get', { table: 'orders', id: order.id });
  // The first text of a product is its sku.
  assert.deepEqual(data._titles_, { lamp: 'A-1' });
  const { data: form } = await call('svc1.record.schema', { table: 'orders' });
  assert.deepEqual(form.references.lamp.choices, [{ value: 'A-1', title: 'A-1' }]);
  const wrong = await call('svc1.record.insert', { table: 'orders', lamp: 'none', count: 1 });
  assert.deepEqual(
    wrong.data.problems.map((one: { field: string; reason: string }) => [one.field, one.reason]),
    [['lamp', 'no_row']],
  );
});
