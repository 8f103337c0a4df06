import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'node:test';
import {
  canonicalJson,
  mapOf,
  objectOf,
  sameJson,
  type Json,
} from '../../../src/core/values/json/json.ts';

test('values are equal if their canonical texts are equal', () => {
  const value = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
  const small = fc.oneof(
    fc.constantFrom<Json>(null, 0, -0, 1, '1', '', true, false, [], {}, [[]], [null], { a: null }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), fc.constantFrom<Json>(null, 1, {}), {
      noNullPrototype: true,
    }),
  );
  fc.assert(
    fc.property(fc.oneof(value, small), fc.oneof(value, small), (one, other) => {
      const expected = canonicalJson(one) === canonicalJson(other);
      assert.equal(sameJson(one, other), expected);
      assert.ok(sameJson(one, JSON.parse(JSON.stringify(one)) as Json));
    }),
    { numRuns: 2_000 },
  );
  assert.ok(sameJson({ a: 1, b: [2, { c: 3 }] }, { b: [2, { c: 3 }], a: 1 }));
  assert.ok(!sameJson(undefined, null));
});

test('an object and a map of its members have the same members, of any name', () => {
  const members = new Map<string, Json>([
    ['b', 1],
    ['__proto__', { a: 1 }],
    ['constructor', null],
  ]);
  const object = objectOf(members);
  assert.deepEqual(Object.entries(object), [...members]);
  assert.equal(Object.getPrototypeOf(object), Object.prototype);
  assert.deepEqual([...mapOf(object)], [...members]);
});
