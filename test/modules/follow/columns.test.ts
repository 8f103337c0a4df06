import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  columnsOf,
  columnValues,
  fitsColumn,
  type ColumnType,
} from '../../../src/modules/follow/columns.ts';
import type { Json } from '../../../src/core/values/json/json.ts';

suite('columns', () => {
  test('have the type of their property; other properties are JSON', () => {
    const properties = {
      a: { type: 'string' },
      b: { type: ['null', 'integer'] },
      c: { type: ['string', 'integer'] },
      d: { type: 'string', format: 'date' },
      e: true,
      f: { type: 'object', properties: { pin: { writeOnly: true } } },
      id: { type: 'string' },
      ['x'.repeat(64)]: { type: 'string' },
      'a\0': { type: 'string' },
    };
    assert.deepEqual(columnsOf({ properties }), {
      ...{ a: 'text', b: 'bigint', c: 'jsonb', d: 'date', e: 'jsonb' },
    });
    assert.deepEqual(columnsOf({}), {});
  });

  const values: readonly (readonly [ColumnType, readonly Json[], readonly Json[]])[] = [
    ['text', ['', 'a'], [1, true, ['a']]],
    ['bigint', [0, -7, 2 ** 53 - 1], [1.5, 2 ** 53, '1']],
    ['double precision', [1.5, 1e300], ['1.5']],
    ['boolean', [true, false], ['true', 1]],
    ['date', ['2026-11-23', '2024-02-29'], ['2026-02-29', '0000-01-01', 'today', '2026-13-01']],
    [
      'timestamptz',
      ['2026-11-23T10:00:00Z', '2026-11-23t10:00:00.123456+02:00'],
      ['2026-11-23', '2026-02-30T10:00:00Z', '2026-11-23T25:00:00Z', '2026-11-23T10:00:00+23:00'],
    ],
    ['jsonb', [1, 'a', [1], { a: 1 }], []],
  ];
  for (const [type, fitting, others] of values) {
    test(`${type} takes only values that PostgreSQL takes`, () => {
      for (const value of fitting)
        assert.equal(fitsColumn(value, type), true, JSON.stringify(value));
      for (const value of others)
        assert.equal(fitsColumn(value, type), false, JSON.stringify(value));
    });
  }

  test('texts that PostgreSQL cannot store are mended, at any depth and in names', () => {
    const row = { id: 'r', seq: 1, table: 't', a: 'x\\u0000', b: [{ 'k\0': '\ud800' }] };
    assert.deepEqual(columnValues(row, { a: 'text', b: 'jsonb' }), {
      ...{ id: 'r', seq: 1, a: 'x\\u0000', b: [{ 'k\u{fffd}': '\u{fffd}' }] },
    });
  });
});
