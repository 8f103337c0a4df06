import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { isInside, isRuleInside, type Bounds } from '../../../src/core/values/bounds.ts';

const one = 'https://one.example';

const cases: readonly (readonly [Bounds, origin: string, path: string, expected: boolean])[] = [
  [{ paths: ['/blog/'] }, '*', '/blog/a', true],
  [{ paths: ['/blog/'] }, '*', '/blog/*', true],
  [{ paths: ['/blog/'] }, '*', '/blog/', true],
  [{ paths: ['/blog/'] }, '*', '/blog', false],
  [{ paths: ['/blog/'] }, '*', '/blog*', false],
  [{ paths: ['/blog/'] }, '*', '/blogger', false],
  [{ paths: ['/blog/'] }, '*', '/*', false],
  [{ paths: ['/blog/'] }, '*', 'blog/', false],
  [{ paths: ['/blog/'] }, '*', '/blog%2Fa', false],
  [{ paths: ['/blog'] }, '*', '/blog', true],
  [{ paths: ['/blog'] }, '*', '/blog/a', true],
  [{ paths: ['/blog'] }, '*', '/blog/*', true],
  [{ paths: ['/blog'] }, '*', '/blog*', false],
  [{ paths: ['/blog'] }, '*', '/blogger', false],
  [{ paths: ['/'] }, '*', '/*', true],
  [{ paths: ['/'] }, '*', 'key', false],
  [{ paths: ['/a/', '/b/'] }, '*', '/b/x', true],
  [{ origins: [one] }, one, 'key', true],
  [{ origins: [one] }, one, '/*', true],
  [{ origins: [one] }, '*', '/a', false],
  [{ origins: [one] }, '', '/a', false],
  [{ origins: [one], paths: ['/a/'] }, one, '/b', false],
];

suite('bounds', () => {
  for (const [bounds, origin, path, expected] of cases) {
    const where = `${origin} ${path}`;
    test(`${where} is ${expected ? 'inside' : 'outside'} of ${JSON.stringify(bounds)}`, () => {
      assert.equal(isInside(bounds, { origin, path }), expected);
    });
  }

  test('a rule whose origin waits has none', () => {
    const rule = { origin: one, path: '/a', kind: 'content', _unknowns_: { origin: 'x' } } as const;
    assert.equal(isRuleInside({ origins: [one] }, rule), false);
    assert.equal(isRuleInside({ paths: ['/'] }, rule), true);
  });

  test('a wildcard is inside exactly if all that it covers is', () => {
    const segment = fc.constantFrom('a', 'b', 'ab', '');
    const path = fc.array(segment, { maxLength: 4 }).map((all) => `/${all.join('/')}`);
    fc.assert(
      fc.property(path, path, path, (bound, start, more) => {
        const bounds = { paths: [bound] };
        if (!isInside(bounds, { origin: '*', path: `${start}*` })) return;
        for (const covered of [start, start + more, `${start}x`]) {
          assert.ok(isInside(bounds, { origin: '*', path: covered }), covered);
        }
      }),
    );
    fc.assert(
      fc.property(path, path, (bound, start) => {
        const bounds = { paths: [bound] };
        if (isInside(bounds, { origin: '*', path: `${start}*` })) return;
        const samples = ['', 'x', '/', '/x'].map((end) => start + end);
        assert.ok(samples.some((covered) => !isInside(bounds, { origin: '*', path: covered })));
      }),
    );
  });
});
