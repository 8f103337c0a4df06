import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { compileTable, type CompiledTable } from '../../../src/modules/tables/compiled-table.ts';
import { parseDefinition } from '../../../src/modules/tables/definition.ts';
import { writeOnlyFields } from '../../../src/modules/tables/schema-check.ts';

function tableWith(properties: JsonObject, more: JsonObject = {}): CompiledTable {
  return compileTable({ id: 'x', name: 'x', schema: { properties, ...more } });
}

test('a row has no fields that all objects inherit', () => {
  const properties = { constructor: { type: 'string' }, toString: { type: 'number' } };
  const table = tableWith(properties, { dependentRequired: { toString: ['a'] } });
  assert.equal(table.rowMistake({}), undefined);
  assert.equal(table.rowMistake({ toString: 1 })?.field, 'a');
  assert.equal(tableWith(properties).rowMistake({ constructor: 1 })?.reason, 'wrong_type');
});

test('a mistake says in plain words what the schema demands', () => {
  const { fields } = tableWith({ name: { type: 'string', maxLength: 3 } });
  const { message } = fields.get('name')?.mistake('long') ?? {};
  assert.equal(message, 'name must not have more than 3 characters.');
});

test('uniqueItems compares values as JSON Schema does, a long list as well', () => {
  const { fields } = tableWith({ list: { type: 'array', uniqueItems: true } });
  const mistake = (items: JsonObject[string]) => fields.get('list')?.mistake(items)?.message;
  assert.match(
    mistake([
      { a: 1, b: [2] },
      { b: [2], a: 1 },
    ]) ?? '',
    /duplicate items/,
  );
  assert.match(mistake(['a', 0, -0]) ?? '', /duplicate items/);
  assert.equal(mistake([1, '1', true, 'true', null, 'null', [], {}, [1], { a: 1 }]), undefined);
  assert.equal(mistake(Array.from({ length: 200_000 }, (_, at) => ({ at }))), undefined);
});

test('a definition whose references double the checks of a row is refused', () => {
  const doubled = (levels: number): JsonObject => {
    const $defs: Record<string, JsonObject> = {};
    for (let level = 0; level < levels; level += 1) {
      const $ref = `#/$defs/a${level + 1}`;
      $defs[`a${level}`] = { anyOf: [{ $ref }, { $ref }] };
    }
    $defs[`a${levels}`] = { type: 'number' };
    return { properties: { x: { $ref: '#/$defs/a0' } }, $defs };
  };
  assert.ok('definition' in parseDefinition({ name: 'x', schema: doubled(5) }));
  const refused = parseDefinition({ name: 'x', schema: doubled(40) });
  assert.ok('mistakes' in refused);
  assert.match(refused.mistakes[0]?.message ?? '', /more than 20000 parts of the schema/);
});

test('a definition with a long chain of references is refused', () => {
  const chain = (length: number): JsonObject => {
    const links = Array.from({ length }, (_, at) => [`a${at}`, { $ref: `#/$defs/a${at + 1}` }]);
    const $defs: JsonObject = { ...Object.fromEntries(links), [`a${length}`]: { type: 'number' } };
    // Those that begin late come first, so each of them alone is short.
    const starts = Array.from({ length: length / 100 }, (_, at) => `a${length - 100 * (at + 1)}`);
    const properties = starts.map((start) => [start, { $ref: `#/$defs/${start}` }]);
    return { properties: Object.fromEntries(properties), $defs };
  };
  const fromStart = (length: number): JsonObject => ({
    ...chain(length),
    properties: { x: { $ref: '#/$defs/a0' } },
  });
  // The row, its field and the last link are schemas, too.
  for (const schema of [chain(200), fromStart(253)]) {
    assert.ok('definition' in parseDefinition({ name: 'x', schema }));
  }
  for (const schema of [chain(4_000), fromStart(254), fromStart(4_000)]) {
    const refused = parseDefinition({ name: 'x', schema });
    assert.match(JSON.stringify(refused), /lead through more than 256 schemas/);
  }
});

test('a field is writeOnly wherever the schema of the row says so', () => {
  const hidden = { properties: { pin: { writeOnly: true } } };
  const pin = { type: 'string' };
  const schemas: readonly JsonObject[] = [
    { properties: { pin: { ...pin, writeOnly: true } } },
    { properties: { pin: { type: 'object', properties: { x: { writeOnly: true } } } } },
    { properties: { pin }, allOf: [hidden] },
    { properties: { pin }, if: {}, then: { anyOf: [hidden] } },
    { properties: { pin }, dependentSchemas: { a: hidden } },
    { properties: { pin }, $ref: '#/$defs/one', $defs: { one: hidden } },
    { $ref: '#/$defs/one', $defs: { one: hidden } },
  ];
  for (const schema of schemas) {
    assert.deepEqual(writeOnlyFields(schema), ['pin'], JSON.stringify(schema));
    const parsed = parseDefinition({ name: 'x', schema, index: ['pin'] });
    assert.ok('mistakes' in parsed, 'no index on it');
  }
  assert.deepEqual(writeOnlyFields({ properties: { pin, a: { properties: { pin } } } }), []);
});
