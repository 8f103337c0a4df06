import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  coversHost,
  coversOrigin,
  originRank,
  parseOriginPattern,
  patternsOver,
  sampleOrigin,
  sharesHost,
} from '../../../../src/core/values/network/origin-pattern.ts';

suite('the pattern of an origin', () => {
  const parsed: readonly (readonly [text: string, pattern: string | undefined])[] = [
    ['*', '*'],
    ['https://*.example.com', 'https://*.example.com'],
    ['HTTPS://*.Example.COM:443', 'https://*.example.com'],
    ['http://*.example.com.:8080', 'http://*.example.com:8080'],
    ['https://*.bücher.example', 'https://*.xn--bcher-kva.example'],
    ['https://*.localhost', 'https://*.localhost'],
    ['https://a.example', 'https://a.example'],
    [`https://*${'.a'.repeat(10)}`, `https://*${'.a'.repeat(10)}`],
    [`https://*${'.a'.repeat(11)}`, undefined],
    ['https://*', undefined],
    ['https://*.', undefined],
    ['https://*.*.example.com', undefined],
    ['https://a.*.example.com', undefined],
    ['https://*example.com', undefined],
    ['https://*.0.0.1', undefined],
    ['https://*.[::1]', undefined],
    ['https://*.example.com/a', undefined],
    ['*.example.com', undefined],
    ['ftp://*.example.com', undefined],
  ];
  for (const [text, pattern] of parsed) {
    test(`of ${text} is ${pattern ?? 'none'}`, () => {
      assert.equal(parseOriginPattern(text), pattern);
    });
  }

  const covered: readonly (readonly [pattern: string, origin: string, isCovered: boolean])[] = [
    ['*', 'http://a', true],
    ['https://a.example', 'https://a.example', true],
    ['https://a.example', 'http://a.example', false],
    ['https://*.example.com', 'https://a.example.com', true],
    ['https://*.example.com', 'https://a.b.example.com', true],
    ['https://*.example.com', 'https://example.com', false],
    ['https://*.example.com', 'https://badexample.com', false],
    ['https://*.example.com', 'https://a.example.com.evil.test', false],
    ['https://*.example.com', 'http://a.example.com', false],
    ['https://*.example.com', 'https://a.example.com:8443', false],
    ['https://*.example.com:8443', 'https://a.example.com:8443', true],
    ['https://*.example.com', 'https://*.shop.example.com', true],
    ['https://*.shop.example.com', 'https://*.example.com', false],
    ['https://*.example.com', '*', false],
  ];
  for (const [pattern, origin, isCovered] of covered) {
    test(`${pattern} ${isCovered ? 'covers' : 'does not cover'} ${origin}`, () => {
      assert.equal(coversOrigin(pattern, origin), isCovered);
    });
  }

  test('covers hosts of every scheme and port', () => {
    assert.ok(coversHost('https://*.example.com:8443', 'a.example.com'));
    assert.ok(!coversHost('https://*.example.com', 'example.com'));
    assert.ok(coversHost('https://a.example', 'a.example'));
    assert.ok(sharesHost('https://*.example.com', 'http://a.example.com:81'));
    assert.ok(sharesHost('https://*.a.example.com', 'http://*.example.com'));
    assert.ok(!sharesHost('https://*.a.example.com', 'http://*.b.example.com'));
    assert.ok(!sharesHost('https://*.example.com', 'https://example.com'));
  });

  test('is found for each origin that it covers, in the order of its rank', () => {
    const label = fc.constantFrom('a', 'b', 'example', 'com');
    const host = fc.array(label, { minLength: 1, maxLength: 12 }).map((all) => all.join('.'));
    const site = fc.record({
      scheme: fc.constantFrom('http', 'https'),
      host,
      port: fc.constantFrom('', ':8080'),
    });
    const text = ({ scheme, host: name, port }: { scheme: string; host: string; port: string }) =>
      `${scheme}://${name}${port}`;
    fc.assert(
      fc.property(site, site, (asked, named) => {
        const origin = text(asked);
        const pattern = parseOriginPattern(text({ ...named, host: `*.${named.host}` }));
        const all = patternsOver(origin);
        assert.deepEqual(
          all,
          all.toSorted((one, other) => originRank(other) - originRank(one)),
        );
        if (pattern === undefined) return;
        assert.equal(all.includes(pattern), coversOrigin(pattern, origin));
        assert.ok(coversOrigin(pattern, sampleOrigin(pattern)));
      }),
      { numRuns: 2_000 },
    );
  });
});
