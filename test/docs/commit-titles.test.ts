import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { titleProblem } from '../../docs/prose/commit-titles.ts';

suite('the title of a commit', () => {
  for (const title of [
    'cache: key on identity headers',
    'test/store: give -0 and 0 the same place in an index',
    'server/h2, http: refuse a second Host',
  ]) {
    test(`is accepted: ${title}`, () => {
      assert.equal(titleProblem(title), undefined);
    });
  }

  for (const [title, problem] of [
    ['key on identity headers', /folder and a colon/],
    ['cache: keys on identity headers', /"keys", which is not a verb/],
    ['cache: the key has identity headers', /"the"/],
    [`cache: add ${'x'.repeat(70)}`, /has 81 characters; 72 are allowed/],
  ] as const) {
    test(`is refused: ${title}`, () => {
      assert.match(titleProblem(title) ?? '', problem);
    });
  }
});
