import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { documentNodesMax, formats, schemaDocuments } from '../../../src/core/operations/ajv.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../src/core/values/json/json.ts';
import { compileTable } from '../../../src/modules/tables/compiled-table.ts';
import { parseDefinition } from '../../../src/modules/tables/definition.ts';

const numbers = (length: number): readonly number[] => Array.from({ length }, (_, at) => at);
const named = (length: number, one: (at: number) => Json): JsonObject =>
  Object.fromEntries(numbers(length).map((at) => [`f${at}`, one(at)]));

const alternatives = {
  properties: named(500, (at) => ({
    anyOf: numbers(8).map((length) => ({ type: 'string', minLength: length, pattern: `^a${at}` })),
  })),
};

/** Schemas that are split, with rows of which some are valid. */
const schemas: readonly { readonly schema: JsonObject; readonly rows: readonly JsonObject[] }[] = [
  {
    schema: { properties: { a: { anyOf: numbers(2_000).map((at) => ({ const: at * 2 })) } } },
    rows: [{ a: 0 }, { a: 3_998 }, { a: 3 }, { a: 'x' }, {}],
  },
  {
    schema: {
      properties: { kind: { type: 'string' } },
      allOf: numbers(200).map((at) => ({
        if: { properties: { kind: { const: `k${at}` } }, required: ['kind'] },
        then: { properties: { [`p${at}`]: { type: 'number' } }, required: [`p${at}`] },
      })),
      unevaluatedProperties: false,
    },
    rows: [{ kind: 'k7', p7: 1 }, { kind: 'k7', p8: 1 }, { kind: 'k7', p7: 'x' }, { kind: 'x' }],
  },
  {
    schema: {
      $defs: { long: named(90, () => ({ type: 'string' })), city: { $ref: '#/properties/b' } },
      properties: {
        a: { type: 'object', properties: named(90, () => ({ $ref: '#/$defs/city' })) },
        b: { type: 'string', maxLength: 3 },
        c: { type: 'array', items: { oneOf: [{ $ref: '#/properties/b' }, { type: 'number' }] } },
        d: { not: { $ref: '#/properties/c' } },
      },
      dependentSchemas: { b: { required: ['c'] } },
      additionalProperties: false,
    },
    rows: [
      { a: { f1: 'abc', f89: 'abcd' } },
      { a: { f1: 'abc', f89: 'x', other: 1 }, b: 'x', c: ['abc', 1] },
      { b: 'x' },
      { c: ['abcd'] },
      { d: ['abc'] },
      { d: ['abcd'], e: 1 },
    ],
  },
];

test('a split schema accepts the same rows as a whole one', () => {
  const verdicts = new Set<boolean>();
  for (const { schema, rows } of schemas) {
    const whole = new Ajv2020({ strict: false }).compile(schema);
    const table = compileTable({ id: 'x', name: 'x', schema });
    for (const row of rows) {
      const isValid = whole(row);
      assert.equal(table.rowMistake(row) === undefined, isValid, JSON.stringify(row));
      verdicts.add(isValid);
    }
  }
  assert.equal(verdicts.size, 2);
});

test('no document of a schema with many alternatives is long', () => {
  const nodes = (value: Json): number => {
    const inner = Array.isArray(value) ? (value as readonly Json[]) : Object.values(value ?? {});
    const isSchema = isJsonObject(value) && ['type', '$ref', 'anyOf'].some((one) => one in value);
    return inner.reduce((sum: number, one: Json) => {
      return sum + (typeof one === 'object' ? nodes(one) : 0);
    }, Number(isSchema));
  };
  const { documents, row } = schemaDocuments(alternatives);
  for (const [name, document] of documents) {
    // That of the row has one reference for each of its properties.
    assert.ok(nodes(document) <= (name === row ? 501 : documentNodesMax), name);
  }
});

test('a schema is compiled once for all definitions that have it', () => {
  const one = compileTable({ id: 'x', name: 'x', schema: alternatives });
  const copy = JSON.parse(JSON.stringify(alternatives)) as JsonObject;
  assert.equal(compileTable({ id: 'y', name: 'y', schema: copy, key: 'f1' }).fields, one.fields);
});

test('a schema with a long list of names that are compared is refused', () => {
  const mistakeOf = (schema: JsonObject): string => {
    const parsed = parseDefinition({ name: 'x', schema });
    return 'mistakes' in parsed ? (parsed.mistakes[0]?.message ?? '') : '';
  };
  const text = { type: 'string' };
  const withPatterns = (length: number) => ({
    properties: { a: { patternProperties: named(length, () => text) } },
  });
  assert.equal(mistakeOf(withPatterns(500)), '');
  assert.match(mistakeOf(withPatterns(2_000)), /^schema at .*patternProperties: 2000 names/);
  const names = Object.keys(named(2_000, () => 0));
  assert.match(
    mistakeOf({ properties: { a: text }, dependentRequired: { a: names } }),
    /2000 names/,
  );
  const open = { properties: named(400, () => text), unevaluatedProperties: false };
  assert.equal(mistakeOf(open), '');
  const allOf = numbers(400).map((at) => ({ properties: { [`g${at}`]: text } }));
  assert.match(mistakeOf({ ...open, allOf }), /unevaluatedProperties: 800 names/);
});

const { date } = formats;

test('a date is a day that the calendar has', () => {
  assert.ok(date !== undefined);
  const valid = ['2026-11-23', '2024-02-29', '2000-02-29', '0000-01-01', '9999-12-31'];
  const others = [
    '2023-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-00-01',
    '2026-13-01',
    '2026-01-00',
  ];
  for (const text of valid) assert.equal(date(text), true, text);
  for (const text of [...others, '2026-1-1', '2026-11-23T00:00', '']) {
    assert.equal(date(text), false, text);
  }
});

test('a date agrees with the calendar of JavaScript', () => {
  const two = (max: number) => fc.nat(max).map((one) => String(one).padStart(2, '0'));
  const year = fc.nat(9_999).map((one) => String(one).padStart(4, '0'));
  fc.assert(
    fc.property(year, two(14), two(33), (...parts) => {
      const text = parts.join('-');
      const timeMs = Date.parse(`${text}T00:00:00Z`);
      const isDay = !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(text);
      assert.equal(date?.(text), isDay);
    }),
  );
});
