import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Candidate } from '../../../src/modules/rules/rule.ts';
import { parseNamedMoment, storedMoment } from '../../../src/core/values/time.ts';
import {
  createRuleCache,
  type RuleStore,
  ruleStoreOf,
} from '../../../src/modules/rules/rule-cache.ts';
import { commit, inserted, scratchStore } from '../../core/log/scratch.ts';

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
    nextRuleTimeMs: () => undefined,
    hasSegmentWildcards: () => false,
    hasWildcardOrigins: () => false,
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

/** Without rules that begin or end, nothing reads the clock. */
function noClock(): number {
  throw new Error('the clock was read');
}

suite('the rule cache', () => {
  test('looks up an origin and path once', () => {
    const calls: string[] = [];
    const rules = createRuleCache(readsAt({ seq: 1, exact: 'a' }, calls), noClock);
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
    const rules = createRuleCache(readsAt(position, []), noClock);
    const found = () => rules.exactRules('http://s', '/p').map(({ id }) => id);
    assert.deepEqual(found(), ['a']);
    Object.assign(position, { seq: 2, exact: 'b' });
    assert.deepEqual(found(), ['a'], 'one state in a run of code');
    rules.refresh();
    assert.deepEqual(found(), ['b']);
  });

  test('looks everything up again after a change of any process', async () => {
    const calls: string[] = [];
    const position = { seq: 1, exact: 'a' };
    const rules = createRuleCache(readsAt(position, calls), noClock);
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
    const rules = createRuleCache(readsAt({ seq: 1, exact: 'a' }, calls), noClock);
    rules.exactRules('http://s', '/p/q');
    rules.exactRules('http://s/p', '/q');
    assert.equal(calls.length, 2);
  });
});

suite('the rule cache with rules that begin or end', () => {
  test('follows the clock, also a clock that is set back, across daylight saving', async (t) => {
    let nowMs = Date.parse('2026-03-29T00:59:59.999Z');
    const store = await scratchStore(t);
    const data = { path: '/p', content: 'x' };
    // Clocks in Berlin show 03:00 after 01:59 that night, and 02:00 twice on 25 October.
    const [from, until] = [
      '2026-03-29T03:00[Europe/Berlin]',
      '2026-10-25T02:00[Europe/Berlin]',
    ].map((text) => storedMoment(parseNamedMoment(text, undefined)));
    await commit(store, inserted('a', { ...data, from: from ?? '', until: until ?? '' }));
    await commit(store, inserted('b', { ...data, from: until ?? '' }));
    await commit(store, inserted('always', { path: '/*', content: 'x' }));
    const rules = createRuleCache(ruleStoreOf(store), () => nowMs);
    const at = async (time: string) => {
      nowMs = Date.parse(time);
      await Promise.resolve();
      const wildcards = [...rules.wildcardRules('*', '/p')].flat();
      const found = [...rules.exactRules('*', '/p'), ...wildcards].map(({ id }) => id);
      return [found.join(), rules.period()] as const;
    };
    const [before, first] = await at('2026-03-29T00:59:59.999Z');
    assert.equal(before, 'always');
    assert.deepEqual(await at('2026-03-29T00:59:59.999Z'), ['always', first]);
    const [within, second] = await at('2026-03-29T01:00:00.000Z');
    assert.equal(within, 'a,always');
    assert.deepEqual(await at('2026-10-24T23:59:59.999Z'), ['a,always', second]);
    const [after, third] = await at('2026-10-25T00:00:00.000Z');
    assert.equal(after, 'b,always');
    assert.deepEqual((await at('2026-10-24T23:59:59.999Z'))[0], 'a,always');
    assert.equal(new Set([first, second, third]).size, 3);
    assert.ok(!rules.anyTime.exactRules('*', '/p').some(({ validity }) => validity === undefined));
  });

  test('reads the clock once for a turn', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/p', until: '2026-12-01T00:00:00.000Z' }));
    let [reads, nowMs] = [0, Date.parse('2026-11-30T23:59:59.999Z')];
    const rules = createRuleCache(ruleStoreOf(store), () => {
      reads += 1;
      return nowMs;
    });
    rules.exactRules('*', '/p');
    nowMs += 1;
    assert.equal(rules.exactRules('*', '/p').length, 1, 'one time in a run of code');
    assert.equal(reads, 1);
    rules.refresh();
    assert.equal(rules.exactRules('*', '/p').length, 0);
    assert.equal(rules.hasComing(), false);
  });
});
