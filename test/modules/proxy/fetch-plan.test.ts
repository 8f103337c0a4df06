import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { Failure } from '../../../src/core/values/failure.ts';
import { canonicalPath, readRequestPath } from '../../../src/core/values/path.ts';
import type { Json, JsonObject } from '../../../src/core/values/json/json.ts';
import { fetchPlan, sourceTargets } from '../../../src/modules/proxy/fetch-plan.ts';
import { fetchRule } from './fetch-rig.ts';
import { anyCharacter } from '../../any-character.ts';
import { pathOf, sentPath } from '../../request-path.ts';

function target(source: string, path: string, asked: string, query = ''): string | undefined {
  const plan = fetchPlan(fetchRule({ source }, { path }));
  const [way] = sourceTargets(plan, { ...pathOf(asked), query });
  return way && way.source.origin + way.target;
}

suite('the URL that is requested from the source', () => {
  /** Source, rule path, visible path, query → URL. */
  const cases: readonly (readonly [string, string, string, string, string])[] = [
    ['http://s/base/*', '/shop/*', '/shop/', '', 'http://s/base/'],
    ['http://s/base/*', '/shop/*', '/shop/a/b.html', '', 'http://s/base/a/b.html'],
    ['http://s/base/*', '/shop/*', '/shop/a', 'x=1&y', 'http://s/base/a?x=1&y'],
    ['http://s/base*', '/shop*', '/shop', '', 'http://s/base'],
    ['http://s/base*', '/shop*', '/shopping', '', 'http://s/baseping'],
    ['http://s/*', '/*', '/', '', 'http://s/'],
    ['http://s/*', '/*', '/a//b', '', 'http://s/a//b'],
    ['http://s/pre-*', '/x/*', '/x/1', '', 'http://s/pre-1'],
    ['https://S.Example:443/B/*', '/x/*', '/x/1', '', 'https://s.example/B/1'],
    ['http://s:8080/*', '/x/*', '/x/1', '', 'http://s:8080/1'],
    ['http://[::1]:8080/*', '/x/*', '/x/1', '', 'http://[::1]:8080/1'],
    // The server encodes the visitor's part again, so that it stays a part of the path.
    ['http://s/*', '/x/*', '/x/a b', '', 'http://s/a%20b'],
    ['http://s/*', '/x/*', '/x/ä', '', 'http://s/%C3%A4'],
    ['http://s/*', '/x/*', '/x/a?b=c', '', 'http://s/a%3Fb=c'],
    ['http://s/*', '/x/*', '/x/a#b', '', 'http://s/a%23b'],
    ['http://s/*', '/x/*', '/x/100%', '', 'http://s/100%25'],
    ['http://s/*', '/x/*', '/x/%2e%2e/secret', '', 'http://s/%252e%252e/secret'],
    ['http://s/*', '/x/*', "/x/a;b=c,d!$&'()*+:@=", '', "http://s/a;b=c,d!$&'()*+:@="],
    ['http://s/*', '/x/*', '/x//evil.example/', '', 'http://s//evil.example/'],
    ['http://s/*', '/x/*', '/x/http://evil.example/', '', 'http://s/http://evil.example/'],
    ['http://s/*', '/x/*', '/x/@evil.example', '', 'http://s/@evil.example'],
    // The source's own path and query.
    ['http://s/ä/*', '/x/*', '/x/1', '', 'http://s/%C3%A4/1'],
    ['http://s/a%2Fb/*', '/x/*', '/x/1', '', 'http://s/a%2Fb/1'],
    ['http://s/a/../b/*', '/x/*', '/x/1', '', 'http://s/b/1'],
    ['http://s/one?key=1', '/x', '/x', '', 'http://s/one?key=1'],
    ['http://s/one?key=1', '/x', '/x', 'key=2', 'http://s/one?key=1&key=2'],
    ['http://s?key=1', '/x', '/x', 'a', 'http://s/?key=1&a'],
    ['http://s', '/x', '/x', '', 'http://s/'],
    // A star in the query: the visitor's part cannot add a parameter.
    ['http://s/get?file=*', '/x/*', '/x/a', '', 'http://s/get?file=a'],
    ['http://s/api/x-*.json', '/x/*', '/x/a/b', 'q', 'http://s/api/x-a/b.json?q'],
    ['http://s/*/index.html?v=1', '/x/*', '/x/a', 'q', 'http://s/a/index.html?v=1&q'],
    ['http://s/get?file=*&all=1', '/x/*', '/x/a&b', 'd', 'http://s/get?file=a%26b&all=1&d'],
    ['http://s/get?file=*', '/x/*', '/x/a&b=c', 'd', 'http://s/get?file=a%26b%3Dc&d'],
    ['http://s/get?file=*', '/x/*', '/x/../a+ä#', '', 'http://s/get?file=..%2Fa%2B%C3%A4%23'],
    // A star on one side only.
    ['http://s/one', '/x/*', '/x/a/b', 'q', 'http://s/one?q'],
    ['http://s/base/*', '/x', '/x', 'q', 'http://s/base/?q'],
    // A query as it was sent, except for characters that a request line cannot have.
    ['http://s/', '/x', '/x', `a="b"&c='d'&e={f}|\\^`, `http://s/?a="b"&c='d'&e={f}|\\^`],
    ['http://s/', '/x', '/x', 'a b\r\nc#d', 'http://s/?a%20b%0D%0Ac%23d'],
    ['http://s/', '/x', '/x', 'ä\ud800', 'http://s/?%C3%A4%EF%BF%BD'],
    ['http://s/', '/x', '/x', '%zz&?', 'http://s/?%zz&?'],
  ];
  for (const [source, path, asked, query, url] of cases) {
    test(`${source} under ${path}, ${asked}${query && `?${query}`} → ${url}`, () => {
      assert.equal(target(source, path, asked, query), url);
    });
  }

  const climbing: readonly (readonly [string, string, string])[] = [
    ['http://s/a/.*', '/x*', '/x./secret'],
    ['http://s/a/.*', '/x*', '/x.'],
    ['http://s/a/.*', '/x*', '/x.;v=1/secret'],
    ['http://s/a/*', '/x*', '/x../secret'],
    ['http://s/a/%2e*', '/x*', '/x./secret'],
    ['http://s/a/*', '/x/*', '/x/../../secret'],
    ['http://s/a/*', '/x/*', '/x/.'],
    ['http://s/a/*.', '/x*', '/x.'],
    ['http://s/a/*/b', '/x/*', '/x/..'],
  ];
  for (const [source, path, asked] of climbing) {
    test(`no request if source and path form a dot segment: ${source} with ${asked}`, () => {
      assert.equal(target(source, path, asked), undefined);
    });
  }

  /** Source, rule path, sent path → URL. */
  const spelled: readonly (readonly [string, string, string, string | undefined])[] = [
    ['http://s/*', '/x/*', '/x/a%2Fb', 'http://s/a%2Fb'],
    ['http://s/*', '/x/*', '/x/a%2fb%5cc', 'http://s/a%2fb%5cc'],
    ['http://s/*', '/x/*', '/x/caf%e9/%C3%a9', 'http://s/caf%e9/%C3%a9'],
    ['http://s/*', '/x/*', '/x/%61%7e', 'http://s/%61%7e'],
    ['http://s/*', '/x/*', '/x/a|b^`{}[]', 'http://s/a|b^`{}[]'],
    ['http://s/*', '/x/*', '/x//a//', 'http://s//a//'],
    ['http://s/*', '/*', '//a', 'http://s//a'],
    ['http://s/*', '/x/*', '/%78/%79', 'http://s/%79'],
    ['http://s/*', '/caf\xe9 😀%/*', '/caf%c3%A9%20%f0%9f%98%80%25/%79', 'http://s/%79'],
    ['http://s/*', '/a%2Fb/*', '/a%2fb/c', 'http://s/c'],
    ['http://s/*', '/caf%E9*', '/caf%e9t', 'http://s/t'],
    ['http://s/*', '/a%252F*', '/a%252Fb', 'http://s/b'],
    // The `*` begins within an escape of the path.
    ['http://s/*', '/a%*', '/a%2Fb', undefined],
    ['http://s/*', '/a%2*', '/a%2Fb', undefined],
    ['http://s/get?file=*', '/x/*', '/x/a%2Fb/c&d|e', 'http://s/get?file=a%2Fb%2Fc%26d%7Ce'],
    ['http://s/a%2F*', '/x*', '/x..%2Fb', undefined],
    ['http://s/a/*', '/x*', '/x..%2Fb', undefined],
    ['http://s/a/.*', '/x*', '/x.%5Cb', undefined],
  ];
  for (const [source, path, sent, url] of spelled) {
    test(`${source} under ${path}, sent as ${sent} → ${url ?? 'none'}`, () => {
      const plan = fetchPlan(fetchRule({ source }, { path }));
      const [way] = sourceTargets(plan, { ...sentPath(sent), query: '' });
      assert.equal(way && way.source.origin + way.target, url);
    });
  }

  test('stays below the source and has the sent bytes, whatever the path', () => {
    const names = fc
      .string({ unit: anyCharacter, maxLength: 12 })
      .map((name) => name.toWellFormed());
    const pieces = fc.constantFrom('%2f', '%5C', '%e9', '//', '%252F', '|', '%', '.', '%2e', '%c3');
    const segment = fc.oneof(names.map(encodeURIComponent), pieces);
    const rules = fc.constantFrom('/x/*', '/*', '/x*', '/x/%*', '/x/caf\xe9*');
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 5 }), rules, (segments, rule) => {
        const sent = `/x/${segments.join('')}`;
        const asked = readRequestPath(sent);
        if ('reason' in asked || !asked.path.startsWith(rule.slice(0, -1))) return;
        const plan = fetchPlan(fetchRule({ source: 'http://s.example/base/*' }, { path: rule }));
        const [way] = sourceTargets(plan, { ...asked, query: '' });
        if (way === undefined) return;
        const capture = way.target.slice('/base/'.length);
        assert.equal(way.target, `/base/${capture}`);
        assert.ok(sent.endsWith(capture));
        assert.equal(canonicalPath(sent.slice(0, sent.length - capture.length)), rule.slice(0, -1));
        assert.ok(new URL(way.source.origin + way.target).pathname.startsWith('/base/'));
      }),
      { numRuns: 2_000 },
    );
  });
});

suite('a rule without a usable source is a bad gateway', () => {
  const sources: readonly (Json | undefined)[] = [
    ...[undefined, null, 7, '', '*', '/path', 'ftp://s/*', 'file:///etc/*', 'http://'],
    ...['http://user:secret@s/*', 'http://s*', 'http://s.example.*', 'http://*/', 'http://s/#*'],
    ...['http://s/*/a/*', 'http://s/a/*/../b', 'http://*.s/a'],
    ...['http://s/a#b', 'http://s/\n*', 'http:\\\\s\\*', [], ['/path'], { url: 'http://s/' }],
  ];
  for (const source of sources) {
    test(source === undefined ? 'none' : JSON.stringify(source), () => {
      const enginedata: JsonObject = source === undefined ? {} : { source };
      assert.throws(
        () => fetchPlan(fetchRule(enginedata)),
        (thrown) =>
          thrown instanceof Failure &&
          thrown.code === 'bad_gateway' &&
          !/secret|http/.test(thrown.message),
      );
    });
  }

  test('no enginedata', () => {
    assert.throws(() => fetchPlan({ id: 'r1', path: '/x' }), { code: 'bad_gateway' });
  });
});

suite('the methods of a rule', () => {
  const cases: readonly (readonly [Json | undefined, readonly string[]])[] = [
    [undefined, ['GET', 'HEAD']],
    [null, ['GET', 'HEAD']],
    [
      ['GET', 'POST'],
      ['GET', 'HEAD', 'POST'],
    ],
    [['POST'], ['POST']],
    [
      ['GET', 'TRACE', 'CONNECT', 'UPGRADE', 'PURGE'],
      ['GET', 'HEAD', 'PURGE'],
    ],
  ];
  for (const [methods, expected] of cases) {
    test(`${methods === undefined ? 'none' : JSON.stringify(methods)} are ${expected.join(', ')}`, () => {
      const enginedata = { source: 'http://s/', ...(methods !== undefined && { methods }) };
      assert.deepEqual(fetchPlan(fetchRule(enginedata)).methods, expected);
    });
  }
});
