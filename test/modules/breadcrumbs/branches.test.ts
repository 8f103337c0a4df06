import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import {
  chooseRenderBranch,
  renderWhenOf,
  renderWhenProblems,
} from '../../../src/modules/breadcrumbs/branches.ts';
import type { StoredRule } from '../../../src/modules/rules/rule.ts';
import { someVisitor } from '../../visitor.ts';

/** An object that tells when its member is read. */
function watched(read: string[], name: string): JsonObject {
  const enumerable = true;
  return Object.defineProperty({}, 'of', {
    enumerable,
    get() {
      read.push(name);
      return name;
    },
  });
}

test('merges the enginedata of no branch but the one that a visitor gets', () => {
  const read: string[] = [];
  const branch = (a: string) => ({ if: { query: { a } }, enginedata: watched(read, a) });
  const enginedata = { title: 't', when: [branch('1'), branch('2'), branch('3')] };
  const rule = { id: 'r', origin: '*', path: '/', kind: 'content', engine: 'x', enginedata };
  const stored = { rule, seq: 1, insertedSeq: 1 } as unknown as StoredRule;
  assert.deepEqual(renderWhenProblems(enginedata), []);
  const found = renderWhenOf(stored) ?? assert.fail();
  const shown = (query: string) => {
    return chooseRenderBranch(found, stored, { visitor: someVisitor(), query }).answer();
  };
  assert.deepEqual(read, []);
  assert.deepEqual({ ...shown('a=2') }, { title: 't', of: '2' });
  assert.equal(shown('a=2'), shown('a=2'));
  assert.deepEqual({ ...shown('a=4') }, { title: 't' });
  assert.deepEqual(read, ['2']);
});
