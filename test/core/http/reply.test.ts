import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withVary } from '../../../src/core/http/reply.ts';

test('Vary names everything that a response depends on', () => {
  const cases: readonly (readonly [before: readonly string[], after: string | undefined])[] = [
    [[], 'Accept-Encoding'],
    [['Vary', 'Accept-Language'], 'Accept-Language, Accept-Encoding'],
    [['vary', 'accept-encoding , Origin'], 'accept-encoding, Origin'],
    [['Vary', 'Origin', 'VARY', 'Cookie,Origin'], 'Origin, Cookie, Accept-Encoding'],
    [['Vary', '*'], '*'],
    [['Vary', 'Origin', 'Vary', '*'], '*'],
    [['Vary', ''], 'Accept-Encoding'],
  ];
  for (const [before, after] of cases) {
    const fields = withVary(['X-A', '1', ...before, 'X-B', '2'], 'Accept-Encoding');
    assert.deepEqual(fields, ['X-A', '1', 'X-B', '2', 'Vary', after]);
  }
  assert.deepEqual(withVary(['X-A', '1']), ['X-A', '1']);
  assert.deepEqual(withVary(['Vary', 'a', 'vary', 'B, A']), ['Vary', 'a, B']);
});
