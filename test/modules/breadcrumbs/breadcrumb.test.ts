import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  breadcrumbProblems,
  parseBreadcrumb,
} from '../../../src/modules/breadcrumbs/breadcrumb.ts';
import { isTarget } from '../../../src/modules/rules/rule.ts';
import type { Json, JsonObject } from '../../../src/core/values/json/json.ts';

suite('a mistake in a breadcrumb', () => {
  const when = (written: Json): JsonObject => ({ target: '/', when: [written] });
  const some = (conditions: Json): JsonObject => when({ if: conditions, target: '/x' });
  const readable: readonly (readonly [title: string, conditions: Json])[] = [
    ['no condition at all, in so many words', {}],
    ['a user', { user: 'ann' }],
    ['users, and anybody', { user: ['ann', '*'] }],
    ['a role', { role: ['editor'] }],
    ['countries in any case', { country: ['ch', 'LI'] }],
    ['languages', { lang: ['de', 'zh-Hant-TW'] }],
    ['devices', { device: ['ios', 'bot'] }],
    ['regions and cities', { region: ['CH-ZH', 'Zürich'], city: 'Genève' }],
    ['places', { place: ['shop-7'] }],
    ['callers', { caller: ['navigation', 'api'] }],
    ['hosts', { referer: ['www.example.com', '*.example.org'] }],
    ['parameters', { query: { a: 'b', c: '*', '': ['', 'd'] } }],
    ['networks and addresses', { ip: ['10.0.0.0/8', '2001:db8::1', '::ffff:10.0.0.1'] }],
    ['times', { after: '2026-01-01', before: '2026-12-31T23:59:59+01:00' }],
    ['shares', { percent: 12.5 }],
  ];
  for (const [title, conditions] of readable) {
    test(`is not found in ${title}`, () => {
      assert.deepEqual(breadcrumbProblems(some(conditions)), []);
    });
  }

  const conditions: Readonly<Record<string, readonly Json[]>> = {
    user: ['', [], [''], 5, null, { name: 'ann' }, [['ann']]],
    role: ['', [], true],
    country: ['Switzerland', 'CHE', '', ['CH', 'x']],
    lang: ['', '*', 'de_CH', 'de-', [5]],
    device: ['phone', 'Mobile', []],
    query: ['a=b', {}, { a: 5 }, { a: [] }, { a: null }, ['a']],
    ip: ['10.0.0', '10.0.0.0/33', '010.0.0.1', 'localhost', []],
    after: ['soon', '2026-02-30T00:00:00Z', 5, '2026-13-01'],
    before: ['', null, ['2026-01-01T00:00:00Z']],
    percent: [-1, 100.5, '50', null, [50]],
    region: ['', [], 5, 'x'.repeat(129)],
    city: ['', [' ']],
    place: ['', []],
    caller: ['browser', 'Navigation', []],
    referer: ['', 'https://x.example/', 'x.example/a', '*', '*.', 'a b', 'x'.repeat(300)],
    weekday: ['monday'],
    __proto__: [],
    constructor: ['x'],
    toString: ['x'],
  };
  for (const [name, values] of Object.entries(conditions)) {
    for (const value of values) {
      test(`is ${name} with ${JSON.stringify(value)}`, () => {
        const written = JSON.parse(`{"${name}": ${JSON.stringify(value)}}`) as JsonObject;
        assert.deepEqual(breadcrumbProblems(some(written)), [`when[0].if.${name}`]);
      });
    }
  }

  const branches: readonly (readonly [title: string, branch: Json, problems: readonly string[]])[] =
    [
      ['a branch that is none', 'x', ['when[0]']],
      ['a branch without conditions', { target: '/x' }, ['when[0].if']],
      ['conditions that are none', { if: 'mobile', target: '/x' }, ['when[0].if']],
      ['a branch that comes to nothing', { if: {} }, ['when[0]']],
      ['a script', { if: {}, target: 'javascript:alert(1)' }, ['when[0].target']],
      ['another host in disguise', { if: {}, target: '//x.example' }, ['when[0].target']],
      ['a page that is no text', { if: {}, html: 5 }, ['when[0].html']],
      ['a status that is none', { if: {}, target: '/x', status: 99 }, ['when[0].status']],
      ['a member of another name', { if: {}, target: '/x', note: 'x' }, []],
      [
        'several things at once',
        { if: { user: '', weekday: 1 }, target: 'x' },
        ['when[0].if.user', 'when[0].if.weekday', 'when[0].target'],
      ],
    ];
  for (const [title, branch, problems] of branches) {
    test(`is ${title}`, () => {
      assert.deepEqual(breadcrumbProblems(when(branch)), problems);
    });
  }

  test('is named for any enginedata, and never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue(), (written, target) => {
        const { when: read, otherwise } = parseBreadcrumb({
          when: written as Json,
          target: target as Json,
        });
        assert.equal(read.length, Array.isArray(written) ? written.length : 0);
        for (const branch of [...read, otherwise]) {
          const { target: read } = branch.answer;
          assert.ok(read === undefined || isTarget(read));
        }
      }),
    );
  });
});

suite('percentages', () => {
  const sharesOf = (...branches: readonly JsonObject[]) =>
    parseBreadcrumb({ when: branches.map((some) => ({ if: some, target: '/' })) }).when.map(
      ({ conditions }) => conditions.map(({ share }) => share),
    );
  test('are allocated consecutively, and start again after 100', () => {
    const shares = sharesOf(
      { percent: 30 },
      { country: 'CH' },
      { percent: 30 },
      { percent: 40 },
      { percent: 0.5 },
    );
    const read = shares.map(([one]) => one && [one.from, one.size]);
    assert.deepEqual(read, [
      [0, 300_000],
      undefined,
      [300_000, 300_000],
      [600_000, 400_000],
      [0, 5_000],
    ]);
  });

  test('are not used up by an invalid branch', () => {
    const [, second] = sharesOf({ percent: 30, weekday: 1 }, { percent: 10 });
    assert.equal(second?.[0]?.from, 0);
  });
});

suite('targets', () => {
  const cases: readonly (readonly [target: string, is: boolean])[] = [
    ['/', true],
    ['/a?b#c', true],
    ['/a/*', true],
    ['https://other.example', true],
    ['http://other.example:8080/*', true],
    ['key:spring', true],
    ['key:two words', true],
    [`key:${'k'.repeat(512)}`, true],
    [`key:${'k'.repeat(513)}`, false],
    ['key:', false],
    ['key:a\nb', false],
    ['', false],
    ['a', false],
    ['//other.example', false],
    ['/\\other.example', false],
    ['/a b', false],
    ['/a\r\nSet-Cookie: x', false],
    ['javascript:alert(1)', false],
    ['JavaScript:alert(1)', false],
    [' javascript:alert(1)', false],
    ['data:text/html,x', false],
    ['vbscript:x', false],
    ['https:other.example', false],
    ['https:///other.example', false],
    ['https://', false],
    ['https://user@other.example/', false],
    ['https://user:pass@other.example/', false],
    ['https://other.example*', false],
    ['https://*/', false],
    ['https://*.example/', false],
    [`/${'a'.repeat(4_096)}`, false],
  ];
  for (const [target, is] of cases) {
    test(`${JSON.stringify(target.slice(0, 60))} is ${is ? 'valid' : 'invalid'}`, () => {
      assert.equal(isTarget(target), is);
    });
  }
});
