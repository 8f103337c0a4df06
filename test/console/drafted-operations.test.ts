import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftedOperations } from '../../console/src/api/drafted-operations.ts';
import { operations } from '../../src/modules.ts';

test('the console sends a draft only to operations that take one', () => {
  const taking = new Set(operations.flatMap(({ name, inDrafts }) => (inDrafts ? [name] : [])));
  assert.deepEqual(
    draftedOperations.filter((name) => !taking.has(`svc1.${name}`)),
    [],
  );
});
