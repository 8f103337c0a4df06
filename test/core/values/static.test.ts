import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Static, StaticInput, StaticOutput } from '../../../src/core/values/json/static.ts';

const schema = {
  type: 'object',
  required: ['id', 'state', 'place'],
  additionalProperties: false,
  properties: {
    id: { type: 'string' },
    state: { type: 'string', enum: ['open', 'closed'] },
    place: {
      type: ['object', 'null'],
      required: ['seq'],
      properties: { seq: { type: 'integer' } },
    },
    count: { type: 'integer', nullable: true },
    names: { type: 'array', items: { oneOf: [{ type: 'string' }, { const: 0 }] } },
    sums: { type: 'object', additionalProperties: { type: 'number' } },
    scope: { type: 'string', anyOf: [{ enum: ['read', 'admin'] }, { pattern: '^verify:' }] },
    more: { description: 'Any JSON.' },
  },
} as const;

type Value = Static<typeof schema>;

// The type check of `npm run lint` is half of this test: it refuses an error that is not there.
const values: readonly [value: unknown, isValid: boolean][] = [
  [{ id: 'a', state: 'open', place: null } satisfies Value, true],
  [{ id: 'a', state: 'closed', place: { seq: 1 }, count: null } satisfies Value, true],
  [
    { id: 'a', state: 'open', place: null, names: ['x', 0], sums: { a: 1.5 } } satisfies Value,
    true,
  ],
  [{ id: 'a', state: 'open', place: null, scope: 'verify:1', more: [{}] } satisfies Value, true],
  // @ts-expect-error -- a required member is missing
  [{ id: 'a', state: 'open' } satisfies Value, false],
  // @ts-expect-error -- no word of the list
  [{ id: 'a', state: 'shut', place: null } satisfies Value, false],
  // @ts-expect-error -- a member of a member is missing
  [{ id: 'a', state: 'open', place: {} } satisfies Value, false],
  // @ts-expect-error -- no member of the schema
  [{ id: 'a', state: 'open', place: null, other: 1 } satisfies Value, false],
  // @ts-expect-error -- null, which only `count` may be
  [{ id: null, state: 'open', place: null } satisfies Value, false],
  // @ts-expect-error -- neither a text nor 0
  [{ id: 'a', state: 'open', place: null, names: [1] } satisfies Value, false],
  // @ts-expect-error -- a text among numbers
  [{ id: 'a', state: 'open', place: null, sums: { a: 'b' } } satisfies Value, false],
];

test('the type of a schema has the values that ajv finds valid', () => {
  const validate = new Ajv2020({ strict: true, strictTypes: false }).compile(schema);
  for (const [value, isValid] of values) {
    assert.equal(validate(value), isValid, JSON.stringify(value));
  }
});

test('an input has no null, an answer may have undefined, and both may be open', () => {
  const count = ({ count: given = 0 }: StaticInput<typeof schema>): number => given;
  assert.equal(count({ id: 'a', state: 'open', place: { seq: 1 }, count: 2 }), 2);
  const place = { id: 'a', state: 'open', place: null } as const;
  const answer: StaticOutput<typeof schema> = { ...place, count: undefined };
  assert.ok('count' in answer);
  const made = { type: 'object', properties: Object.fromEntries([['a', {}]]) } as const;
  const open: Static<typeof made> = {};
  assert.deepEqual(open, {});
});
