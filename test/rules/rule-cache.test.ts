import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Candidate } from '../../src/model/rule.ts';
import { createRuleCache, type RuleStore } from '../../src/rules/rule-cache.ts';

function candidate(id: string, path: string): Candidate {
  return {
    id,
    seq: 1,
    insertedSeq: 1,
    origin: 'http://s',
    path,
    kind: 'content',
    lang: undefined,
    rve: undefined,
    designedAtMs: undefined,
  };
}

/** Reads of a log with the newest seq `seq`, and a list of the calls. */
function readsAt(position: { seq: number; exact: string }, calls: string[]): RuleStore {
  return {
    rule: () => undefined,
    seq: () => position.seq,
    refresh: () => undefined,
    exactRules(origin, path) {
      calls.push(`exact ${origin}${path}`);
      return [candidate(position.exact, path)];
    },
    *wildcardRules(origin, path) {
      calls.push(`wildcard ${origin}${path}`);
      yield [candidate('w', '/*')];
    },
  };
}

suite('the rule cache', () => {
  test('looks up an origin and path once', () => {
    const calls: string[] = [];
    const rules = createRuleCache(readsAt({ seq: 1, exact: 'a' }, calls));
    for (let times = 0; times < 3; times += 1) {
      assert.deepEqual(
        rules.exactRules('http://s', '/p').map(({ id }) => id),
        ['a'],
      );
      assert.deepEqual(
        [...rules.wildcardRules('http://s', '/p')].flat().map(({ id }) => id),
        ['w'],
      );
    }
    assert.deepEqual(calls, ['exact http://s/p', 'wildcard http://s/p']);
  });

  test('shows a change to the next request, although another request has just read', () => {
    const position = { seq: 1, exact: 'a' };
    const rules = createRuleCache(readsAt(position, []));
    const found = () => [rules.seq(), ...rules.exactRules('http://s', '/p').map(({ id }) => id)];
    assert.deepEqual(found(), [1, 'a']);
    Object.assign(position, { seq: 2, exact: 'b' });
    assert.deepEqual(found(), [1, 'a'], 'one state in a run of code');
    rules.refresh();
    assert.deepEqual(found(), [2, 'b']);
  });

  test('looks everything up again after a change of any process', async () => {
    const calls: string[] = [];
    const position = { seq: 1, exact: 'a' };
    const rules = createRuleCache(readsAt(position, calls));
    rules.exactRules('http://s', '/p');
    // Requests and changes alternate.
    await Promise.resolve();
    Object.assign(position, { seq: 2, exact: 'b' });
    assert.deepEqual(
      rules.exactRules('http://s', '/p').map(({ id }) => id),
      ['b'],
    );
    assert.equal(calls.length, 2);
  });

  test('keeps origin and path apart', () => {
    const calls: string[] = [];
    const rules = createRuleCache(readsAt({ seq: 1, exact: 'a' }, calls));
    rules.exactRules('http://s', '/p/q');
    rules.exactRules('http://s/p', '/q');
    assert.equal(calls.length, 2);
  });
});
