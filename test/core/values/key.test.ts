import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canWrite, scopes } from '../../../src/core/values/key.ts';
import { operations } from '../../../src/modules.ts';

test('a caller may write if its scopes allow an operation that writes', () => {
  const writing = operations.filter(({ effect }) => effect === 'writes');
  for (const scope of scopes) {
    const mayWrite = scope === 'admin' || writing.some((one) => one.scope === scope);
    assert.equal(canWrite({ scopes: new Set([scope]) }), mayWrite, scope);
  }
  assert.equal(canWrite({ scopes: new Set() }), false);
  assert.equal(canWrite({ scopes: new Set(['render', 'event']) }), true);
});
