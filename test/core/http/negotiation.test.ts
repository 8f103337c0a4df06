import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  acceptsType,
  languagePreference,
  parseAccept,
  preferredType,
  prefersHtml,
} from '../../../src/core/http/representation/negotiation.ts';

const browser =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const java = 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2';

suite('weights', () => {
  const weights: readonly (readonly [value: string, weighted: string])[] = [
    ['a, b;q=0.5, c;q=0.7', 'a=1 c=0.7 b=0.5'],
    ['B;Q=0.5,A ; q=1.000', 'a=1 b=0.5'],
    ['a;q=0', 'a=0'],
    ['a;q=1.5, b;q=0.1234, c;q=-1, d;q=x, e;q=, f;q=2', 'a=1'],
    ['a;q=.2', 'a=0.2'],
    [',, a,;q=1, b', 'a=1 b=1'],
    ['', ''],
    ['"', ''],
    [Array.from({ length: 100 }, (_, at) => `a${at}`).join(','), 64],
  ].map(([value, expected]) => [
    String(value),
    typeof expected === 'number'
      ? Array.from({ length: expected }, (_, at) => `a${at}=1`).join(' ')
      : (expected ?? ''),
  ]);
  for (const [value, weighted] of weights) {
    test(value.slice(0, 40), () => {
      const shown = parseAccept(value).map(({ range, q }) => `${range}=${q}`);
      // RFC 9110 §12.4.2: at most 1, at most three digits; malformed weights are left out.
      assert.equal(shown.join(' '), weighted);
    });
  }
});

suite('the preferred media type', () => {
  const html = 'text/html';
  const json = 'application/json';
  const schema = 'application/schema+json';
  const cases: readonly (readonly [
    accept: string | undefined,
    types: readonly string[],
    preferred: string | undefined,
  ])[] = [
    [undefined, [html, json], html],
    ['', [html, json], html],
    ['*/*', [json, html], json],
    ['*', [json, html], json],
    [browser, [json, html], html],
    [java, [json, html], html],
    [java, [json], json],
    ['application/json', [html, json], json],
    ['Application/JSON', [html, json], json],
    ['application/*', [html, json], json],
    ['application/schema+json', [html, schema], schema],
    ['text/*;q=0.5, application/json;q=0.4', [html, json], html],
    ['text/*, text/html;q=0.1, application/json;q=0.5', [html, json], json],
    ['*/*;q=0.1, text/html;q=0, application/*;q=0.01', [html, json], json],
    ['text/html;q=0', [html, json], undefined],
    ['text/html;q=0, */*', [html, json], json],
    ['image/png', [html, json], undefined],
    ['nonsense', [html, json], undefined],
    [
      'text/html;level=1, text/html;q=0.2, */*;q=0.5',
      ['text/html;level=1', json],
      'text/html;level=1',
    ],
    ['text/html;level=1, text/html;q=0.2, */*;q=0.5', [html, json], json],
    ['text/html;charset=UTF-8', ['text/html; charset=utf-8'], 'text/html; charset=utf-8'],
    ['application/json;profile="a,b", text/html', [json, html], html],
    [`${'image/png,'.repeat(64)}text/html`, [html], undefined],
  ];
  for (const [accept, types, preferred] of cases) {
    test(`for ${accept?.slice(0, 60) ?? 'no Accept'} of ${types.join(' and ')}`, () => {
      assert.equal(preferredType(accept, types), preferred);
    });
  }

  test('is HTML for browsers and not for tools', () => {
    assert.ok(prefersHtml(browser));
    assert.ok(prefersHtml('text/html'));
    for (const accept of [undefined, '*/*', 'application/json', 'text/plain, text/html', '']) {
      assert.equal(prefersHtml(accept), false, accept ?? 'no Accept');
    }
  });

  test('is the same after any number of other values', () => {
    for (const value of [browser, 'text/plain', `text/html,${'x'.repeat(300)}`]) {
      const before = prefersHtml(value);
      for (let at = 0; at < 200; at += 1) prefersHtml(`text/x${at}`);
      assert.equal(prefersHtml(value), before, value);
      assert.equal(prefersHtml(value), before, value);
    }
  });

  test('is one that is accepted', () => {
    assert.ok(acceptsType('text/*', html));
    assert.ok(acceptsType(undefined, html));
    assert.ok(!acceptsType('text/*;q=0', html));
    assert.ok(!acceptsType(json, html));
  });
});

/** Languages from the best to the worst: `-` for content without one, `!` before an excluded one. */
function ordered(acceptLanguage: string | undefined, langs: string): string {
  const preference = languagePreference(acceptLanguage);
  return langs
    .split(' ')
    .map((lang) => ({ lang, rank: preference.rank(lang === '-' ? undefined : lang) }))
    .sort((one, other) => (one.rank ?? Infinity) - (other.rank ?? Infinity))
    .map(({ lang, rank }) => (rank === undefined ? `!${lang}` : lang))
    .join(' ');
}

suite('the preferred language', () => {
  const cases: readonly (readonly [accept: string | undefined, langs: string, best: string])[] = [
    [undefined, 'de - en', '- de en'],
    ['', 'de - en', '- de en'],
    ['*', 'de - en', '- de en'],
    ['de', '- en de', 'de - en'],
    ['DE-ch', '- de de-CH', 'de-CH de -'],
    ['de-CH, de;q=0.9, en;q=0.8', '- fr en de de-ch', 'de-ch de en - fr'],
    ['en;q=0.5, fr;q=0.9', 'en - fr', 'fr en -'],
    ['en, fr', 'fr en', 'en fr'],
    ['de-CH, fr;q=0.9', 'fr de', 'de fr'],
    ['zh-Hant-TW', 'zh - zh-Hant zh-Hant-TW', 'zh-Hant-TW zh-Hant zh -'],
    ['de-x-own', 'de-x de', 'de de-x'],
    // A longer tag of a listed language is better than a language that is not listed.
    ['de', 'fr de-AT -', '- de-AT fr'],
    ['de-CH', 'fr de-AT - de', 'de - de-AT fr'],
    // Excluded languages.
    ['de, en;q=0', '- en de', 'de - !en'],
    ['en;q=0', 'en-GB en fr -', '- fr !en-GB !en'],
    ['en-GB, en;q=0', 'en-US en - en-GB', 'en-GB - !en-US !en'],
    ['en, en-GB;q=0', 'en-GB en-US en', 'en en-US !en-GB'],
    ['de, *;q=0', '- fr de de-AT', 'de - de-AT !fr'],
    ['*;q=0', '- fr', '- !fr'],
    ['en, en;q=0', 'en -', '- !en'],
    ['fr, *;q=0.5', 'de fr -', 'fr - de'],
    ['toolonglanguage, de_CH, 1a, de;q=2', '- de', '- de'],
  ];
  for (const [accept, langs, best] of cases) {
    test(`for ${accept ?? 'no Accept-Language'} of ${langs}`, () => {
      assert.equal(ordered(accept, langs), best);
    });
  }
});

test('any text is a valid preference, and throws nothing', () => {
  const piece = fc.constantFrom(
    '*',
    '/',
    ';',
    'q',
    '=',
    ',',
    '"',
    '0.',
    '1',
    'de',
    '-',
    'text/html',
  );
  const values = fc.array(fc.oneof(piece, fc.string()), { maxLength: 20 });
  fc.assert(
    fc.property(values, (parts) => {
      const value = parts.join('');
      // A random text may or may not accept HTML; no other result is possible.
      assert.ok(['text/html', undefined].includes(preferredType(value, ['text/html'])));
      const rank = languagePreference(value).rank('de');
      assert.ok(rank === undefined || rank >= 0);
    }),
  );
});
