import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isEventType } from '../../../src/core/values/event-type.ts';
import { knownEventTypes } from '../../../src/core/log/events/event-types.ts';
import type { Json, JsonObject } from '../../../src/core/values/json/json.ts';

const ajv = new Ajv2020({ strict: true });

function schemaOf(name: string): JsonObject {
  const known = knownEventTypes.find(({ type }) => type === name);
  assert.ok(known !== undefined, `${name} is not known`);
  return known.schema;
}

suite('the known event types', () => {
  test('are those of shops and of Waymark itself, each once', () => {
    const types = knownEventTypes.map(({ type }) => type);
    assert.equal(new Set(types).size, types.length);
    const documented = [
      ...['sale.completed', 'email.requested', 'record.changed', 'error.detected'],
      ...['account.balance_changed', 'stock.level_changed', 'webhook.test'],
    ];
    assert.deepEqual(new Set(documented).difference(new Set(types)), new Set());
    assert.ok(types.every(isEventType));
  });

  for (const { type, schema } of knownEventTypes) {
    test(`${type}: the schema accepts the example, and other members besides`, () => {
      const validate = ajv.compile(schema);
      const [example] = schema.examples as readonly JsonObject[];
      assert.ok(validate(example), ajv.errorsText(validate.errors));
      assert.ok(validate({ ...example, other: { any: ['thing'] } }));
      for (const name of schema.required as readonly string[]) {
        const { [name]: _, ...without } = example ?? {};
        assert.ok(!validate(without), `${name} is required`);
      }
    });
  }

  const wrong: readonly (readonly [string, Readonly<Record<string, Json>>])[] = [
    ['sale.completed', { id: '' }],
    ['sale.completed', { id: 'S-1', currency: 'euro' }],
    ['sale.completed', { id: 'S-1', total: '12,50' }],
    ['sale.completed', { id: 'S-1', lines: [{ quantity: 1 }] }],
    ['email.requested', { to: [] }],
    ['record.changed', { table: 'product', id: 7 }],
    ['account.balance_changed', { account: 'A-3', balance: null }],
    ['stock.level_changed', { product: 'P-7', level: '3' }],
  ];
  for (const [type, data] of wrong) {
    test(`${type}: ${JSON.stringify(data)} does not match the schema`, () => {
      assert.equal(ajv.validate(schemaOf(type), data), false);
    });
  }

  test('amounts are numbers or decimal numbers as text', () => {
    for (const total of [0, -1.5, '0', '-12.50', '100000000000000000000.01']) {
      assert.ok(ajv.validate(schemaOf('sale.completed'), { id: 'S-1', total }));
    }
  });
});
