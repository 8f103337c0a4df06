import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import type { Candidate } from '../../../src/modules/rules/rule.ts';
import {
  candidatesFor,
  possibleWinners,
  sortByPrecedence,
  varyByLanguage,
  type CandidateReads,
} from '../../../src/modules/rules/matcher.ts';
import { capturedPart } from '../../../src/core/values/path.ts';
import { commit, inserted, scratchStore } from '../../core/log/scratch.ts';
import { wildcardGroups } from './wildcard-groups.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

const shop = 'http://shop.example';

let lastSeq = 0;

/** Creates a candidate, inserted after the previous one. */
function candidate(id: string, fields: Partial<Candidate> = {}): Candidate {
  lastSeq += 1;
  return {
    id,
    seq: lastSeq,
    insertedSeq: lastSeq,
    origin: '*',
    path: '/a',
    kind: 'content',
    lang: undefined,
    rve: undefined,
    designedAtMs: undefined,
    ...fields,
  };
}

function winners(candidates: readonly Candidate[], acceptLanguage?: string): readonly string[] {
  const fields = acceptLanguage === undefined ? {} : { 'accept-language': acceptLanguage };
  return sortByPrecedence(candidates, fields).map(({ id }) => id);
}

suite('the precedence of rules', () => {
  const orders: readonly (readonly [
    title: string,
    candidates: readonly (readonly [id: string, fields: Partial<Candidate>])[],
    acceptLanguage?: string,
  ])[] = [
    [
      'exact origin before all other criteria',
      [
        ['wildcard of the origin', { origin: shop, path: '/*' }],
        ['everywhere', { path: '/a', lang: 'en', rve: 9, designedAtMs: 9, insertedSeq: 9e6 }],
      ],
      'en',
    ],
    [
      'exact path before wildcard',
      [
        ['exact', { path: '/a' }],
        ['wildcard', { path: '/a*', lang: 'en', rve: 9, designedAtMs: 9, insertedSeq: 9e6 }],
      ],
      'en',
    ],
    [
      'longer wildcard before shorter',
      [
        ['/a/b*', { path: '/a/b*' }],
        ['/a/*', { path: '/a/*', rve: 1 }],
        ['/a*', { path: '/a*', rve: 2 }],
        ['/*', { path: '/*', lang: 'en', rve: 9 }],
      ],
      'en',
    ],
    [
      'languages by Accept-Language, then no language, then others',
      [
        ['de-CH', { lang: 'de-CH' }],
        ['de', { lang: 'de' }],
        ['fr', { lang: 'fr' }],
        ['none', { rve: 1 }],
        ['ja', { lang: 'ja', rve: 9 }],
      ],
      'fr;q=0.5, de-CH',
    ],
    [
      'a language before its shorter form, before that of the next tag',
      [
        ['en-GB', { lang: 'en-GB' }],
        ['en', { lang: 'en' }],
        ['sv', { lang: 'sv' }],
      ],
      'en-GB, sv',
    ],
    [
      'an excluded language after every other rule, whatever its other fields',
      [
        ['everywhere and wild', { path: '/*', lang: 'fr' }],
        ['excluded', { origin: shop, path: '/a', lang: 'de', rve: 9 }],
      ],
      'fr, de;q=0',
    ],
    [
      'without Accept-Language a rule without a language first',
      [
        ['none', {}],
        ['en', { lang: 'en', rve: 9 }],
      ],
    ],
    [
      'higher rve; a missing rve counts as 0',
      [
        ['1.5', { rve: 1.5 }],
        ['1', { rve: 1 }],
        ['none', { designedAtMs: 3 }],
        ['0', { rve: 0, designedAtMs: 2 }],
        ['-1', { rve: -1, designedAtMs: 9 }],
      ],
    ],
    [
      'newer designed_at; rules without it last',
      [
        ['new', { designedAtMs: 5 }],
        ['old', { designedAtMs: -5 }],
        ['none', { insertedSeq: 9e6 }],
      ],
    ],
    [
      'newer insert, whatever was edited later',
      [
        ['new', { insertedSeq: 2, seq: 2 }],
        ['old', { insertedSeq: 1, seq: 9 }],
      ],
    ],
  ];
  for (const [title, wanted, acceptLanguage] of orders) {
    test(title, () => {
      const candidates = wanted.map(([id, fields]) => candidate(id, fields));
      const ids = wanted.map(([id]) => id);
      assert.deepEqual(winners(candidates, acceptLanguage), ids);
      assert.deepEqual(winners(candidates.toReversed(), acceptLanguage), ids);
    });
  }

  test('a rule in an excluded language answers if there is no other', () => {
    assert.deepEqual(winners([candidate('de', { lang: 'de' })], 'de;q=0'), ['de']);
  });
});

test('the capture is the part of the path that * matches', () => {
  const cases: readonly (readonly [rule: string, path: string, capture: string | undefined])[] = [
    ['/a*', '/a', ''],
    ['/a*', '/ab', 'b'],
    ['/a*', '/a/b', '/b'],
    ['/a/*', '/a/', ''],
    ['/a/*', '/a/b/c', 'b/c'],
    ['/*', '/', ''],
    ['/é*', '/éà', 'à'],
    ['/a', '/a', undefined],
    ['spring*', 'spring*', undefined],
    ['/shop/*/edit', '/shop/a/edit', 'a'],
    ['/shop/*/edit', '/shop/a%2Fb/edit', 'a%2Fb'],
    ['/shop/*/edit', '/shop/*/edit', '*'],
    ['/shop/*/edit', '/shop//edit', undefined],
    ['/shop/*/edit', '/shop/edit', undefined],
    ['/shop/*/edit', '/shop/a/b/edit', undefined],
    ['/shop/*/edit', '/shop/a/edit/', undefined],
    ['/shop/*/edit', '/shop/a/editor', undefined],
    ['/*/', '/a/', 'a'],
    ['/*/', '/a', undefined],
    ['a/*/b', 'a/x/b', undefined],
  ];
  for (const [rule, path, capture] of cases) {
    assert.equal(capturedPart(rule, path), capture, `${rule} ${path}`);
  }
});

test('Accept-Language chooses between rules in several languages', () => {
  const langs = (...all: readonly (string | undefined)[]) =>
    varyByLanguage(all.map((lang) => candidate('x', { lang })));
  assert.deepEqual([langs(), langs('de'), langs('de', 'de')], [false, false, false]);
  assert.deepEqual([langs('de', 'en'), langs('de', undefined)], [true, true]);
});

/** A naive implementation of docs/design/page-rules.md#matching over all rules. */
function naiveWinner(
  rules: readonly Candidate[],
  { origin, path, acceptLanguage }: Asked,
): Candidate | undefined {
  const covering = rules.filter(
    (rule) => (rule.origin === origin || rule.origin === '*') && covers(rule.path, path),
  );
  const tags = [...acceptLanguage].sort((one, other) => other.q - one.q);
  const excluded = tags.filter(({ q }) => q === 0).map(({ tag }) => tag);
  const isExcluded = ({ lang }: Candidate) =>
    lang !== undefined &&
    withBase(lang).some((tag) => excluded.includes(tag)) &&
    !tags.some(({ tag, q }) => q > 0 && tag === lang && !excluded.includes(lang));
  const others = covering.filter((rule) => !isExcluded(rule));
  let best = others.length > 0 ? others : covering;
  const keep = (score: (rule: Candidate) => number) => {
    const most = Math.max(...best.map(score));
    best = best.filter((rule) => score(rule) === most);
  };
  keep((rule) => (rule.origin === '*' ? 0 : 1));
  keep((rule) => (rule.path.includes('*') ? 0 : 1));
  keep((rule) => rule.path.indexOf('*'));
  keep((rule) => rule.path.length);
  const wanted = tags.filter(({ q }) => q > 0).flatMap(({ tag }) => withBase(tag));
  keep((rule) => {
    const { lang } = rule;
    // Without any accepted language, all rules that are not excluded rank equally.
    if (isExcluded(rule)) return -Infinity;
    if (lang === undefined) return -wanted.length;
    const rank = wanted.indexOf(lang);
    if (rank !== -1) return -rank;
    // A longer form of an accepted tag ranks after no language and before all others.
    return withBase(lang).some((tag) => wanted.includes(tag))
      ? -wanted.length - 1
      : -wanted.length - 2;
  });
  keep(({ rve }) => rve ?? 0);
  keep(({ designedAtMs }) => designedAtMs ?? -Infinity);
  keep(({ insertedSeq }) => insertedSeq);
  return best[0];
}

/** Whether a rule covers a path: a `*` in the middle is one segment, one at the end any text. */
function covers(rulePath: string, path: string): boolean {
  const [before = '', behind] = rulePath.split('*');
  if (behind === undefined) return rulePath === path;
  const pattern = RegExp.escape(before) + (behind === '' ? '.*' : '[^/]+') + RegExp.escape(behind);
  return new RegExp(`^${pattern}$`, 's').test(path);
}

/** A tag and its base: `de-CH`, `de`. */
function withBase(tag: string): readonly string[] {
  return tag.includes('-') ? [tag, tag.slice(0, tag.indexOf('-'))] : [tag];
}

interface Asked {
  readonly origin: string;
  readonly path: string;
  readonly acceptLanguage: readonly { readonly tag: string; readonly q: number }[];
}

const origins = [shop, 'http://shop.example:8080', 'https://shop.example'];
const pathPieces = fc.constantFrom('a', 'b', 'ab', '/', 'é', '-');
const paths = fc.array(pathPieces, { maxLength: 5 }).map((pieces) => `/${pieces.join('')}`);
const langs = ['de', 'de-CH', 'en', 'en-GB', 'fr'];
const requests: fc.Arbitrary<Asked> = fc.record({
  origin: fc.constantFrom(...origins, 'http://other.example'),
  path: paths,
  acceptLanguage: fc.uniqueArray(
    fc.record({ tag: fc.constantFrom(...langs), q: fc.constantFrom(0, 0.3, 0.5, 1) }),
    { maxLength: 4, selector: ({ tag }) => tag },
  ),
});
const rules = fc.record({
  origin: fc.constantFrom('*', ...origins),
  path: fc
    .tuple(paths, fc.constantFrom('', '*', '/*'), paths)
    .map(([path, star, end]) =>
      star === '/*' ? `${path.replace(/\/+$/, '')}/*${end}` : path + star,
    ),
  lang: fc.option(fc.constantFrom(...langs), { nil: undefined }),
  rve: fc.option(fc.constantFrom(-1, 0, 0.5, 2), { nil: undefined }),
  designedAtMs: fc.option(fc.constantFrom(0, 1_000, 1_735_787_045_000), { nil: undefined }),
});

function winnerOf(reads: CandidateReads, { origin, path, acceptLanguage }: Asked): string {
  const field = acceptLanguage.map(({ tag, q }) => `${tag};q=${q}`).join(', ');
  const fields = acceptLanguage.length === 0 ? {} : { 'accept-language': field };
  const [winner] = sortByPrecedence(candidatesFor(reads, { origin, path }), fields);
  const [contender] = sortByPrecedence(
    possibleWinners(reads, { origin, path }, () => true),
    fields,
  );
  assert.equal(contender?.id, winner?.id);
  return winner?.id ?? 'none';
}

suite('the winner', () => {
  test('is the first by the documented criteria', () => {
    fc.assert(
      fc.property(fc.array(rules, { maxLength: 12 }), requests, (made, request) => {
        const all = made.map((fields, at) => candidate(`rule ${at}`, fields));
        const reads: CandidateReads = {
          exactRules: (origin, path) =>
            all.filter((rule) => rule.origin === origin && rule.path === path),
          wildcardRules: (origin, path) =>
            wildcardGroups(
              all.filter(
                (rule) =>
                  rule.origin === origin && rule.path.includes('*') && covers(rule.path, path),
              ),
            ),
        };
        assert.equal(winnerOf(reads, request), naiveWinner(all, request)?.id ?? 'none');
      }),
      { numRuns: 3_000 },
    );
  });

  test('is the same with candidates from the store', async (t) => {
    const store = await scratchStore(t);
    const made = fc.sample(rules, { numRuns: 400, seed: 7 });
    const changes = await commit(
      store,
      ...made.map(({ lang, rve, designedAtMs, ...where }, at) =>
        inserted(`rule ${at}`, {
          ...where,
          ...(lang !== undefined && { lang }),
          ...(rve !== undefined && { rve }),
          ...(designedAtMs !== undefined && { designed_at: new Date(designedAtMs).toJSON() }),
        }),
      ),
    );
    const all = made.map((fields, at) =>
      candidate(`rule ${at}`, { ...fields, insertedSeq: changes[at]?.seq ?? 0 }),
    );
    fc.assert(
      fc.property(requests, (request) => {
        assert.equal(
          winnerOf(store.of(storedRules), request),
          naiveWinner(all, request)?.id ?? 'none',
        );
      }),
      { numRuns: 2_000 },
    );
  });
});
