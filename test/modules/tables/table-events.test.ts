import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Json } from '../../../src/core/values/json/json.ts';
import { parseDefinition } from '../../../src/modules/tables/definition.ts';
import {
  raisesEvent,
  tableEventData,
  tableEvents,
  type TableEvent,
} from '../../../src/modules/tables/table-events.ts';

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
      const parsed = parseDefinition({ name: 't', schema, events: sent });
      assert.ok('definition' in parsed);
      assert.deepEqual(parsed.definition.events, object);
    }
    assert.deepEqual(tableEvents(object, schema).slice(0, 2), [
      { type: 'stock.level_changed', field: 'stock', crosses: 0 },
      { type: 'stock.level_changed', field: 'stock', below: 5 },
    ]);
  });

  const mistakes: readonly (readonly [Json, RegExp])[] = [
    ['stock crosses 0', /object such as/],
    ['a.b: stock crosses', /object such as/],
    ['', /object such as/],
    [7, /object such as/],
    ['stock: stock', /stock: an event type is dotted/],
    ['record.changed: stock', /Waymark raises this event itself/],
    ['a.b: stcok', /no property stcok. Did you mean stock/],
    ['a.b: constructor', /no property constructor/],
    ['a.b: secret', /secret is writeOnly/],
    ['a.b: stock crosse 0', /no condition crosse. Did you mean crosses/],
    ['a.b: stock below some', /below has to be a number/],
    ['a.b: lines below 3', /lines has no numbers/],
    [{ 'a.b': 'stock' }, /an object with a field/],
    [{ 'a.b': [] }, /a type at least one/],
    [{ 'a.b': { field: 'stock', below: 1, above: 2 } }, /use one of below and above/],
    [{ 'a.b': { field: 'status', becomes: null } }, /becomes has to be/],
  ];
  for (const [sent, message] of mistakes) {
    test(`${JSON.stringify(sent)} is a mistake`, () => {
      const parsed = parseDefinition({ name: 't', schema, events: sent });
      assert.ok('mistakes' in parsed);
      const [mistake, ...others] = parsed.mistakes;
      assert.deepEqual([mistake?.field, others], ['events', []]);
      assert.match(mistake?.message ?? '', message);
      assert.match(mistake?.message ?? '', /[.?]$/);
    });
  }

  test('a property that has become writeOnly raises none', () => {
    assert.deepEqual(tableEvents({ 'a.b': { field: 'secret' } }, schema), []);
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
      tableEventData({ type, field }, { before, after, key, showsValues: true });
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
      { before: undefined, after, key: undefined, showsValues: true },
    );
    assert.deepEqual(inserted, { ...row, field: 'stock', value: 0 });
  });
});
