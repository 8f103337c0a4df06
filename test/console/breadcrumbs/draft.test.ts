import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { JsonObject } from '../../../console/src/api/api.ts';
import {
  draftOf,
  enginedataOf,
  isEditable,
  sharesOf,
  valuesOf,
  writtenCondition,
} from '../../../console/src/breadcrumbs/draft.ts';
import { outcomeText, visitorsText } from '../../../console/src/breadcrumbs/sentences.ts';

suite('the form of a breadcrumb', () => {
  const stored: readonly JsonObject[] = [
    {},
    { target: '/offers/', forward_query: true },
    { html: '<h1>x</h1>', status: 404 },
    { status: 410 },
    { target: 'key:other', comment: { any: ['thing'] } },
    {
      when: [
        { if: { country: ['CH', 'LI'], lang: 'fr' }, target: '/a', status: 307, note: 'kept' },
        { if: { query: { a: 'b', c: ['d', '*'] }, percent: 0.5 }, html: '' },
        { if: { city: 'a, b', countri: { x: 1 }, percent: '10' }, target: '' },
        { if: {}, status: 'x' },
      ],
      target: '/z',
    },
    {
      when: [
        { if: {}, target: '/', headers: { 'X-A': 'b: c', Link: ['1', '2'], 'X-B': '' } },
        { if: {}, target: '/', cookies: { shop: 'ch=1', old: '' } },
        { if: {}, target: '/', headers: { 'X-A': 5 }, cookies: { a: { value: '1' } } },
        { if: {}, target: '/', headers: {}, cookies: null },
        { if: {}, target: '/', headers: 'X', cookies: ['a'] },
      ],
    },
  ];
  for (const enginedata of stored) {
    test(`changes nothing of ${JSON.stringify(enginedata)} by itself`, () => {
      assert.deepEqual(enginedataOf(draftOf(enginedata)), enginedata);
    });
  }

  test('reads what a person writes', () => {
    const values = (name: string, text: string) => writtenCondition(name, text).value;
    assert.equal(values('country', ' CH '), 'CH');
    assert.deepEqual(values('country', 'CH, LI,'), ['CH', 'LI']);
    assert.deepEqual(values('city', '["a, b"]'), ['a, b']);
    assert.equal(values('percent', '12.5'), 12.5);
    assert.equal(values('percent', 'half'), 'half');
    assert.deepEqual(values('query', 'a=b=c, d'), { a: 'b=c', d: '*' });
    assert.equal(values('after', '2026-12-01'), '2026-12-01');
    assert.deepEqual(values('unknown', '{"a":1}'), { a: 1 });
  });

  test('reads header fields and cookies on lines of their own', () => {
    const { branches, ...draft } = draftOf({ when: [{ if: {}, target: '/' }] });
    const lines = { headers: 'X-Shop: ch\n\nLink: a\nLink: b', cookies: ' shop = ch=1 \nold=' };
    const written = { ...draft, branches: branches.map((one) => ({ ...one, ...lines })) };
    assert.deepEqual(enginedataOf(written).when, [
      {
        if: {},
        target: '/',
        headers: { 'X-Shop': 'ch', Link: ['a', 'b'] },
        cookies: { shop: 'ch=1', old: '' },
      },
    ]);
  });

  test('does not show what it would change', () => {
    assert.equal(isEditable({}), true);
    assert.equal(isEditable({ when: [{ if: {} }] }), true);
    for (const when of ['x', {}, [1], [{ target: '/' }], [{ if: [] }]]) {
      assert.equal(isEditable({ when }), false, JSON.stringify(when));
    }
    assert.equal(isEditable({ target: 7 }), false);
    assert.equal(isEditable({ when: [{ if: {}, target: '/', html: '' }] }), false);
  });

  test('allocates shares one after the other', () => {
    const shares = (...percents: readonly number[]) =>
      sharesOf(draftOf({ when: percents.map((percent) => ({ if: { percent }, target: '/' })) }));
    assert.deepEqual(shares(), []);
    assert.deepEqual(shares(30, 20), [
      { branch: 0, percent: 30 },
      { branch: 1, percent: 20 },
      { branch: undefined, percent: 50 },
    ]);
    assert.deepEqual(shares(70, 70), [
      { branch: 0, percent: 70 },
      { branch: 1, percent: 30 },
    ]);
  });

  test('knows the values that its conditions name', () => {
    const when = [{ if: { country: ['CH', 'LI'] } }, { if: { country: 'CH', percent: 5 } }];
    assert.deepEqual(valuesOf(draftOf({ when }), 'country'), ['CH', 'LI']);
    assert.deepEqual(valuesOf(draftOf({ when }), 'percent'), []);
  });
});

suite('a branch as a sentence', () => {
  const cases: readonly (readonly [JsonObject, string])[] = [
    [{}, 'Everyone'],
    [{ percent: 10 }, '10 % of the visitors'],
    [
      { country: ['CH', 'LI'], device: 'mobile', lang: 'fr' },
      'Visitors from Switzerland or Liechtenstein, on a phone, whose browser prefers French',
    ],
    [
      { percent: 5, user: '*', before: '2026-12-24' },
      '5 % of the visitors who are signed in, before 24 December 2026',
    ],
    [
      { after: '2026-12-24T18:00Z', query: { campaign: 'spring', ref: '*' } },
      'Visitors from 24 December 2026 at 18:00 UTC on, with campaign=spring, ref in the query',
    ],
    [{ country: 'T1', lang: 'x y' }, 'Visitors from T1, whose browser prefers x y'],
    [{ countri: 'CH' }, 'Visitors with the unknown condition countri "CH"'],
    [{ caller: 'api', device: 'toaster' }, 'Visitors by a program, on toaster'],
  ];
  for (const [conditions, sentence] of cases) {
    test(sentence, () => {
      const [branch] = draftOf({ when: [{ if: conditions }] }).branches;
      assert.equal(visitorsText(branch?.conditions ?? []), sentence);
    });
  }

  test('says what visitors get', () => {
    const text = (enginedata: JsonObject) => outcomeText(draftOf(enginedata).otherwise);
    assert.equal(text({ target: '/a', status: 307 }), 'go to /a (307)');
    assert.equal(text({ target: 'key:b' }), 'follow the breadcrumb b');
    assert.equal(text({ html: '<p>', status: 404 }), 'see a page of its own (404)');
    assert.equal(text({ status: 410 }), 'get the status 410');
    assert.equal(text({}), 'find nothing (404)');
    assert.equal(text({ target: '' }), 'go nowhere yet');
  });
});
