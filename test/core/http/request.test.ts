import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { test } from 'node:test';
import { isImplemented } from '../../../src/core/http/request.ts';

test('the implemented methods are those of Node’s parser', () => {
  assert.deepEqual(METHODS.filter(isImplemented), METHODS);
  for (const method of ['FOO', 'get', 'PRI', 'PLAY', '']) assert.ok(!isImplemented(method), method);
});
