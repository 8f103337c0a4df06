import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  boundBehaviours,
  requireBoundOperation,
} from '../../../../src/core/operations/bounds/operations.ts';
import { operations } from '../../../../src/modules.ts';
import { boundScopes } from '../../../../src/core/values/key.ts';

suite('what a bound key may call', () => {
  test('each operation says what it does for a bound key, and nothing else does', () => {
    const names = operations.map(({ name }) => name).toSorted();
    assert.deepEqual(Object.keys(boundBehaviours).toSorted(), names);
  });

  test('an operation that limits itself needs a scope that a bound key can have', () => {
    for (const { name, scope } of operations) {
      if (boundBehaviours[name] !== 'inside') continue;
      assert.ok(scope !== undefined && boundScopes.includes(scope), name);
    }
  });

  test('an operation without an entry is refused to bound keys, and only to them', () => {
    const name = 'svc1.userinterface.none';
    assert.throws(() => {
      requireBoundOperation(name, { bounds: { paths: ['/'] } });
    }, /is about more than that/);
    requireBoundOperation(name, {});
    for (const inherited of ['toString', '__proto__', 'constructor']) {
      assert.throws(() => {
        requireBoundOperation(inherited, { bounds: { paths: ['/'] } });
      });
    }
  });
});
