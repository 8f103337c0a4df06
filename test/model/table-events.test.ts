import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Json } from '../../src/model/json.ts';
import {
  raisesEvent,
  readTableEvents,
  tableEventData,
  tableEvents,
  type TableEvent,
} from '../../src/model/table-events.ts';

const schema = {
  properties: {
    sku: { type: 'string' },
    stock: { type: 'integer' },
    price: { type: 'string' },
    status: { type: 'string' },
    gone: { type: 'boolean' },
    lines: { type: 'array' },
    secret: { type: 'string', writeOnly: true },
  },
};

suite('events of a table', () => {
  test('the text of the ini file and the object say the same', () => {
    const text =
      'stock.level_changed: stock crosses 0, stock.level_changed: stock below 5, ' +
      'account.balance_changed: price, order.sent: status becomes on its way, a.b: gone becomes true';
    const object = {
      'stock.level_changed': [
        { field: 'stock', crosses: 0 },
        { field: 'stock', below: 5 },
      ],
      'account.balance_changed': { field: 'price' },
      'order.sent': { field: 'status', becomes: 'on its way' },
      'a.b': { field: 'gone', becomes: true },
    };
    for (const sent of [text, object]) {
      const reading = readTableEvents(sent, schema);
      assert.deepEqual(reading, { value: object, waiting: undefined, problems: [] });
    }
    assert.deepEqual(tableEvents(object, schema).slice(0, 2), [
      { type: 'stock.level_changed', field: 'stock', crosses: 0 },
      { type: 'stock.level_changed', field: 'stock', below: 5 },
    ]);
  });

  const mistakes: readonly (readonly [Json, string, string, string?])[] = [
    ['stock crosses 0', 'events', 'wrong_type'],
    ['a.b: stock crosses', 'events', 'wrong_type'],
    ['', 'events', 'wrong_type'],
    [7, 'events', 'wrong_type'],
    ['stock: stock', 'events.stock', 'bad_format'],
    ['record.changed: stock', 'events.record.changed', 'bad_format'],
    ['a.b: stcok', 'events.a.b', 'bad_format', 'stock'],
    ['a.b: constructor', 'events.a.b', 'bad_format'],
    ['a.b: secret', 'events.a.b', 'bad_format'],
    ['a.b: stock crosse 0', 'events.a.b', 'unknown_field', 'crosses'],
    ['a.b: stock below some', 'events.a.b', 'wrong_type'],
    ['a.b: lines below 3', 'events.a.b', 'bad_format'],
    [{ 'a.b': 'stock' }, 'events.a.b', 'wrong_type'],
    [{ 'a.b': [] }, 'events.a.b', 'out_of_range'],
    [{ 'a.b': { field: 'stock', below: 1, above: 2 } }, 'events.a.b', 'bad_format'],
    [{ 'a.b': { field: 'status', becomes: null } }, 'events.a.b', 'wrong_type'],
  ];
  for (const [sent, field, reason, suggestion] of mistakes) {
    test(`${JSON.stringify(sent)} is a mistake`, () => {
      const { value, waiting, problems } = readTableEvents(sent, schema);
      assert.deepEqual(value, {});
      assert.notEqual(waiting, undefined);
      const [problem] = problems;
      assert.deepEqual(
        [problem?.field, problem?.reason, problem?.suggestion],
        [field, reason, suggestion],
      );
      assert.match(problem?.message ?? '', /\.$/);
    });
  }

  test('a property that has become writeOnly raises none', () => {
    assert.deepEqual(tableEvents({ 'a.b': { field: 'secret' } }, schema), []);
  });

  test('a mistake in one member leaves the others valid', () => {
    const { value, waiting } = readTableEvents('a.b: stock, c.d: nothing', schema);
    assert.deepEqual(value, { 'a.b': { field: 'stock' } });
    assert.deepEqual(waiting, { 'c.d': { field: 'nothing' } });
  });
});

suite('a change of a row raises an event', () => {
  const cases: readonly (readonly [
    Omit<TableEvent, 'type' | 'field'>,
    Json | undefined,
    Json | undefined,
    boolean?,
  ])[] = [
    [{}, 1, 2, true],
    [{}, 1, 1],
    [{}, [1], [1]],
    [{}, undefined, 1, true],
    [{}, 1, undefined],
    [{ crosses: 0 }, 1, 0, true],
    [{ crosses: 0 }, 0, 1, true],
    [{ crosses: 0 }, 0, -1],
    [{ crosses: 0 }, 5, 3],
    [{ crosses: 0 }, '1.50', '-1', true],
    [{ crosses: 0 }, undefined, 0],
    [{ below: 5 }, 5, 4, true],
    [{ below: 5 }, 4, 3],
    [{ below: 5 }, undefined, 4, true],
    [{ below: 5 }, undefined, 5],
    [{ below: 5 }, 4, 6],
    [{ below: 5 }, 4, 'many'],
    [{ above: 5 }, 5, 6, true],
    [{ above: 5 }, 6, 7],
    [{ becomes: 'shipped' }, 'paid', 'shipped', true],
    [{ becomes: 'shipped' }, 'shipped', 'shipped'],
    [{ becomes: 'shipped' }, undefined, 'shipped', true],
    [{ becomes: 3 }, 2, '3'],
  ];
  for (const [condition, before, after, expected = false] of cases) {
    const from = JSON.stringify(before ?? null);
    const name = `${JSON.stringify(condition)} from ${from} to ${JSON.stringify(after ?? null)}`;
    test(`${name}: ${expected ? 'yes' : 'no'}`, () => {
      const event = { type: 'a.b', field: 'f', ...condition };
      assert.equal(raisesEvent(event, { f: before }, { f: after }), expected);
    });
  }

  test('an inserted row has no former values; a row that no longer exists raises none', () => {
    const event = { type: 'a.b', field: 'f' };
    assert.equal(raisesEvent(event, undefined, { f: 1 }), true);
    assert.equal(raisesEvent(event, { f: 1 }, undefined), false);
  });

  test('with the data of a known type, or the field and its values', () => {
    const before = { sku: 'P-7', stock: 5, price: '1.20' };
    const after = { ...before, id: 'r-1', table: 'products', stock: 0, price: '1.30' };
    const data = (type: string, field: string, key?: string) =>
      tableEventData({ type, field }, { before, after, key });
    const row = { table: 'products', id: 'r-1' };
    assert.deepEqual(data('stock.level_changed', 'stock', 'sku'), {
      ...{ product: 'P-7', level: 0, previous: 5 },
      ...row,
    });
    assert.deepEqual(data('account.balance_changed', 'price'), {
      ...{ account: 'r-1', balance: '1.30', previous: '1.20' },
      ...row,
    });
    assert.deepEqual(data('a.b', 'stock', 'sku'), {
      ...row,
      ...{ key: 'P-7', field: 'stock', value: 0, previous: 5 },
    });
    const inserted = tableEventData(
      { type: 'a.b', field: 'stock' },
      { before: undefined, after, key: undefined },
    );
    assert.deepEqual(inserted, { ...row, field: 'stock', value: 0 });
  });
});
