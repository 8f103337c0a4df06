import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { placeRecord, requireSize } from '../../../../src/core/operations/records/placement.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';

const fieldsOf = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, at]));

/** Places fields that no schema knows; returns how far it came, and the data or the failure. */
function place(sent: JsonObject): { readonly steps: readonly string[]; readonly result: unknown } {
  const steps: string[] = [];
  try {
    const result = placeRecord({ current: undefined, sent }, () => {
      steps.push('placed');
      return {
        names: new Set(['known']),
        placeField: () => ({}),
        complete: (fields, unknowns) => {
          requireSize('The record', { fields, unknowns }, 1_000_000);
        },
      };
    });
    return { steps, result };
  } catch (failure) {
    return { steps, result: failure };
  }
}

suite('fields that no schema knows', () => {
  test('wait, up to 256 of them', () => {
    const { result } = place(fieldsOf(256));
    assert.equal(Object.keys((result as { _unknowns_: object })._unknowns_).length, 256);
    const { result: refused } = place(fieldsOf(257));
    assert.ok(refused instanceof Failure && refused.code === 'too_large');
  });

  test('are refused before anything is made of them, if there are very many', () => {
    for (const sent of [fieldsOf(5_000), { _unknowns_: fieldsOf(5_000) }]) {
      const { steps, result } = place(sent);
      assert.ok(result instanceof Failure && result.code === 'too_large');
      assert.deepEqual(steps, []);
    }
  });
});
