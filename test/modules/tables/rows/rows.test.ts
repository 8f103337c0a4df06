import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { transports, type Call } from '../../status/transports.ts';

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

test('a field may have a name that all objects inherit, whatever a table uses it for', async (t) => {
  const { site, call } = await shop(t);
  // In a literal, `__proto__` would be no property.
  const parsed = (text: string): object => JSON.parse(text) as object;
  const text = { type: 'string' };
  const properties = {
    ...parsed('{"__proto__": {"type": "string"}}'),
    ...{ constructor: text, toString: text, valueOf: { ...text, 'x-table': 'odd' } },
  };
  const access = { owner: 'toString', read: ['anonymous'], insert: ['anonymous'] };
  const made = await call('svc1.table.insert', {
    ...{ name: 'odd', schema: { properties }, key: '__proto__', title: 'constructor' },
    ...{ index: ['constructor'], search: ['constructor'], honeypot: 'isPrototypeOf', ...access },
  });
  assert.equal(made.error, undefined, JSON.stringify(made));
  const asNobody = (name: string, v: object): Promise<Answer> =>
    site.call(name, { table: 'odd', ...v }, { apikey: undefined });
  const first = await asNobody('record.insert', parsed('{"__proto__": "a"}'));
  assert.equal(first.error, undefined, JSON.stringify(first));
  const second = { ...parsed('{"__proto__": "b"}'), constructor: 'c', valueOf: 'a' };
  assert.equal((await asNobody('record.insert', second)).error, undefined);
  const third = { ...second, constructor: 'd' };
  assert.equal((await asNobody('record.insert', third)).error?.code, 'conflict');
  const read = await asNobody('record.get', parsed('{"__proto__": "a"}'));
  assert.equal(read.data.id, first.data.id);
  const keys = async (v: object): Promise<unknown> => {
    const { data } = await asNobody('record.get', v);
    return (data.rows as object[]).map((row) => Object.entries(row)[2]);
  };
  const [a, b] = [
    ['__proto__', 'a'],
    ['__proto__', 'b'],
  ];
  assert.deepEqual(await keys({}), [a, b]);
  assert.deepEqual(await keys({ sort: '-constructor' }), [b, a]);
  assert.deepEqual(await keys({ where: { constructor: null } }), [a]);
  assert.deepEqual(await keys({ text: 'c' }), [b]);
  const none = await call('svc1.record.read', { table: 'odd' });
  assert.deepEqual([none.error?.code, none.error?.field], ['invalid', 'id']);
  const { data: form } = await call('svc1.record.schema', { table: 'odd' });
  assert.deepEqual(form.references.valueOf.choices, [
    { value: 'a', title: 'a' },
    { value: 'b', title: 'c' },
  ]);
});

test('a list refuses a cursor that no list of its order has answered', async (t) => {
  const { call } = await shop(t);
  for (const sku of ['A', 'B']) {
    await call('svc1.record.insert', { table: 'products', sku, name: sku, price: 1 });
  }
  const list = (v: object): Promise<Answer> =>
    call('svc1.record.list', { table: 'products', limit: 1, ...v });
  const { data: sorted } = await list({ sort: 'sku' });
  const { data: oldest } = await list({});
  const { data: found } = await list({ text: 'a' });
  for (const [v, after] of [
    [{}, sorted.next],
    [{}, 'x'.repeat(5_000)],
    [{ as_of: String(sorted.rows[0].seq) }, 'x'.repeat(5_000)],
    [{ sort: 'sku' }, oldest.next],
    [{ sort: 'price' }, sorted.next],
    [{ where: { price: 1 } }, sorted.next],
    [{ text: 'a' }, sorted.next],
    [{ sort: 'sku' }, found.next],
    [{}, found.next],
  ] as const) {
    const { error } = await list({ ...v, after });
    assert.deepEqual([error?.code, error?.field], ['invalid', 'after'], JSON.stringify(v));
  }
  assert.equal((await list({ after: oldest.next })).data.rows[0].sku, 'B');
  assert.equal((await list({ sort: 'sku', after: sorted.next })).data.rows[0].sku, 'B');
});

test('rows of the past are found by the keys, fields and order of then', async (t) => {
  const { call } = await shop(t);
  for (const [sku, price] of [
    ['A', 3],
    ['B', 1],
    ['C', 2],
  ]) {
    await call('svc1.record.insert', { table: 'products', sku, name: `lamp ${sku}`, price });
  }
  const { data: last } = await call('svc1.record.insert', {
    ...{ table: 'products', sku: 'D', name: 'no price', supplier_price: 5 },
  });
  const as_of = String(last.seq);
  const { data: listed } = await call('svc1.record.list', { table: 'products' });
  const [a] = listed.rows as [{ id: string }];
  await call('svc1.record.edit', { table: 'products', id: a.id, sku: 'Z', price: 0 });
  const properties = {
    ...{ sku: { type: 'string' }, name: { type: 'string' } },
    cost: { type: 'number', 'x-renamed-from': 'price' },
  };
  const { data: tables } = await call('svc1.table.list', { name: 'products' });
  const changed = { id: tables.rows[0].id, index: ['cost'], schema: { properties } };
  const { data: report } = await call('svc1.table.edit', changed);
  const confirmed = await call('svc1.table.edit', { ...changed, confirm: report.digest });
  assert.equal(confirmed.error, undefined, JSON.stringify([report, confirmed]));

  for (const operation of ['read', 'get']) {
    const read = await call(`svc1.record.${operation}`, { table: 'products', sku: 'A', as_of });
    assert.deepEqual([read.data?.id, read.data?.price], [a.id, 3], JSON.stringify(read));
    const missing = await call(`svc1.record.${operation}`, { table: 'products', sku: 'Z', as_of });
    assert.equal(missing.error?.code, 'not_found');
  }
  const list = async (v: object): Promise<Answer> =>
    call('svc1.record.get', { table: 'products', as_of, ...v });
  const skus = async (v: object): Promise<unknown> => {
    const { data, error } = await list(v);
    assert.equal(error, undefined, JSON.stringify(error));
    return (data.rows as { sku: string }[]).map(({ sku }) => sku).join('');
  };
  assert.equal(await skus({}), 'ABCD');
  assert.equal(await skus({ sort: 'price' }), 'DBCA');
  assert.equal(await skus({ sort: '-price' }), 'ACBD');
  assert.equal(await skus({ sort: '-price', where: { price: { '>': 1 } } }), 'AC');
  let pages = '';
  for (let after: string | null = ''; after !== null;) {
    const { data } = await list({ sort: 'price', limit: 1, after });
    for (const { sku } of data.rows as { sku: string }[]) pages += sku;
    after = data.next as string | null;
  }
  assert.equal(pages, 'DBCA');
  const { data: counted } = await list({ sort: 'price', limit: 1, count: true });
  assert.equal(counted.count, 4);
  for (const v of [{ sort: 'cost' }, { where: { cost: 1 } }, { where: { supplier_price: 5 } }]) {
    assert.equal((await list(v)).error?.code, 'invalid', JSON.stringify(v));
  }
  const { error } = await list({ sort: 'price', after: 'x' });
  assert.deepEqual([error?.code, error?.field], ['invalid', 'after']);
});

test('an equal row without vk is no second one while it exists', async (t) => {
  const { site } = await shop(t);
  const schema = { type: 'object', properties: { message: { type: 'string' } } };
  await site.call('table.insert', { name: 'letters', schema });
  const v = { table: 'letters', message: 'hello' };
  const send = async (vk?: string): Promise<[string, unknown]> => {
    const { data, replayed } = await site.call('record.insert', v, vk === undefined ? {} : { vk });
    return [data.id as string, replayed];
  };
  const [first, replayed] = await send();
  assert.equal(replayed, undefined);
  assert.deepEqual(await send(), [first, true]);
  const [other] = await send('another one');
  assert.notEqual(other, first);
  const { data: plan } = await site.call('record.invalidate', { table: 'letters', id: first });
  const gone = { table: 'letters', id: first, confirm: plan.digest as string };
  assert.equal((await site.call('record.invalidate', gone)).error, undefined);
  const [third, again] = await send();
  assert.notEqual(third, first);
  assert.equal(again, undefined);
});

test('an equal form of a visitor without vk is no second row for a minute', async (t) => {
  const startMs = Date.now();
  t.mock.timers.enable({ apis: ['Date'], now: startMs });
  const { site } = await shop(t);
  const schema = { type: 'object', properties: { message: { type: 'string' } } };
  await site.call('table.insert', { name: 'letters', schema, insert: ['anonymous'] });
  const send = async (ms: number): Promise<readonly unknown[]> => {
    t.mock.timers.setTime(startMs + ms);
    const v = { table: 'letters', message: 'hello' };
    const { data, replayed } = await site.call('record.insert', v, { apikey: undefined });
    return [data.id, replayed];
  };
  const [first, isRepeat] = await send(0);
  assert.equal(isRepeat, undefined);
  assert.deepEqual(await send(60_000), [first, true]);
  const [later, replayed] = await send(60_001);
  assert.notEqual(later, first);
  assert.equal(replayed, undefined);
  // The newest row counts.
  assert.deepEqual(await send(100_000), [later, true]);
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
