import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  parseRequest,
  type ValidatedRequest,
  type RequestHead,
} from '../../../src/core/http/reading/target.ts';
import { Failure } from '../../../src/core/values/failure.ts';

function headOf(head: Partial<RequestHead>): RequestHead {
  return {
    method: 'GET',
    target: '/',
    httpVersion: '1.1',
    rawFields: ['Host', 'example.com'],
    scheme: 'http',
    peer: { listener: 'tcp', address: '192.0.2.1', local: () => '192.0.2.2:80' },
    ...head,
  };
}

function enter(head: Partial<RequestHead>): ValidatedRequest {
  return parseRequest(headOf(head), { trustProxy: [] });
}

const dots = /has a \. or \.\. segment/;
const escape = /% without two hexadecimal digits/;
const overlong = /overlong form of UTF-8/;
const control = /control character/;
const character =
  /contains the character U\+[0-9A-F]{4}, which must be percent-encoded|has a backslash/;
const fragment = /fragment/;
const form = /must be a path/;
const site = /names no site of this connection/;

const refused: readonly (readonly [target: string, message: RegExp])[] = [
  // Dot segments (RFC 3986 §5.2.4), in every mix of encodings.
  ['/.', dots],
  ['/..', dots],
  ['/./', dots],
  ['/../', dots],
  ['/../etc/passwd', dots],
  ['/a/../b', dots],
  ['/a/./b', dots],
  ['/a/b/..', dots],
  ['/a/b/.', dots],
  ['/%2e', dots],
  ['/%2E%2E', dots],
  ['/%2e%2e/etc/passwd', dots],
  ['/.%2e/etc/passwd', dots],
  ['/%2e./etc/passwd', dots],
  ['/a/%2e%2E/b', dots],
  ['/a/%2e/b', dots],
  ['/a//../b', dots],
  ['/static/..%00/x', control],
  ['/..?x=1', dots],
  ['/a/..?', dots],
  // Path parameters after dots: Java servers drop them before they resolve dot segments.
  ['/..;/admin', dots],
  ['/a/..;x=1/b', dots],
  ['/.;/a', dots],
  ['/a/..%3b/b', dots],
  ['/%2e%2e%3B', dots],
  // Dot segments between encoded separators, in any mix of them.
  ['/..%2fetc', dots],
  ['/..%2F..%2Fetc', dots],
  ['/%2e%2e%2fetc', dots],
  ['/..%5cwindows', dots],
  ['/a%2f..', dots],
  ['/a%2f.%2fb', dots],
  ['/a%5C%2e%2e/b', dots],
  ['/a%2f..;x/b', dots],
  ['/..\\..\\windows', character],
  ['/a\\b', character],
  ['/\\evil.example', character],
  ['\\', form],
  // Forms of UTF-8 that are longer than needed (RFC 3629 §3): `.`, `/`, `\\` and NUL for some.
  ['/%c0%ae%c0%ae/', overlong],
  ['/%c0%af', overlong],
  ['/%C0%80', overlong],
  ['/%e0%80%ae', overlong],
  ['/%e0%80%af', overlong],
  ['/%f0%80%80%af', overlong],
  ['/%c1%9c', overlong],
  // Malformed escapes (RFC 3986 §2.1).
  ['/%', escape],
  ['/%2', escape],
  ['/%zz', escape],
  ['/100%', escape],
  ['/%u002e%u002e/', escape],
  ['/%u2215', escape],
  ['/%%32%65', escape],
  ['/%2%65', escape],
  ['/%-1', escape],
  ['/a%?x', escape],
  // Controls, raw and encoded.
  ['/%00', control],
  ['/index.html%00.png', control],
  ['/%0d%0aSet-Cookie:x', control],
  ['/%0a', control],
  ['/%09', control],
  ['/%1b%5b2J', control],
  ['/%7f', control],
  ['/%c2%80', control],
  ['/%c2%85', control],
  ['/%c2%9f', control],
  ['/%e2%80%a8', control],
  ['/%e2%80%a9', control],
  ['/\0', character],
  ['/a\tb', character],
  ['/a\rb', character],
  ['/a\nb', character],
  ['/\x7f', character],
  // Characters that must be encoded.
  ['/a b', character],
  ['/"a"', character],
  ['/<script>', character],
  ['/a?b c', character],
  ['/a?<b>', character],
  ['/a?b\0', character],
  ['/a?b\r\nX: y', character],
  ['/a?\x7f', character],
  // Clients never send fragments.
  ['/#', fragment],
  ['/a#b', fragment],
  ['/a?b#c', fragment],
  ['/a#?b', fragment],
  // Targets that name no site of the connection.
  ['http://example.com@evil.example/', site],
  ['http://user@example.com/', site],
  ['http://example.com%2f@evil.example/', site],
  ['http:///a', site],
  ['https://example.com/', site],
  ['http://example.com\\a', site],
  ['http://example.com/../a', dots],
  ['http://example.com#a', fragment],
  ['http:/example.com/', form],
  ['ftp://example.com/', form],
  ['file:///etc/passwd', form],
  ['javascript:alert(1)', form],
  // Forms for other methods or for proxies (RFC 9112 §3.2).
  ['', form],
  ['*', form],
  ['a', form],
  ['a/../b', form],
  ['?a', form],
  ['example.com:443', form],
  ['%2f', form],
  [' /', form],
  [`/${'a'.repeat(8 * 1024)}`, /longer than 8192 bytes/],
  [`/?${'a'.repeat(8 * 1024)}`, /longer than 8192 bytes/],
];

const accepted: readonly (readonly [target: string, path: string, query?: string])[] = [
  ['/', '/'],
  ['/index.html', '/index.html'],
  ['/a/b/', '/a/b/'],
  ['/a//b', '/a//b'],
  ['/a///', '/a///'],
  ['//', '//'],
  ['//evil.example', '//evil.example'],
  ['///', '///'],
  // Encoded separators stay encoded, in upper case, and look like nothing else.
  ['/a%2Fb', '/a%2Fb'],
  ['/a%2fb', '/a%2Fb'],
  ['/a%5cb', '/a%5Cb'],
  ['/%2f%2fevil.example', '/%2F%2Fevil.example'],
  ['/api/v4/projects/group%2Fname', '/api/v4/projects/group%2Fname'],
  ['/@scope%2fpackage', '/@scope%2Fpackage'],
  ['/a..%2fb', '/a..%2Fb'],
  ['/..a%2f..b', '/..a%2F..b'],
  // So do bytes that are not UTF-8: single ones, surrogates, too far, cut off.
  ['/caf%e9', '/caf%E9'],
  ['/%ff', '/%FF'],
  ['/%80', '/%80'],
  ['/%ed%a0%80', '/%ED%A0%80'],
  ['/%f4%90%80%80', '/%F4%90%80%80'],
  ['/%f8%98%80%80%80', '/%F8%98%80%80%80'],
  ['/%e2%82', '/%E2%82'],
  ['/%e2%82%C3%A9%20%41', '/%E2%82é A'],
  ['/...', '/...'],
  ['/..../a', '/..../a'],
  ['/.well-known/security.txt', '/.well-known/security.txt'],
  ['/..a', '/..a'],
  ['/a..', '/a..'],
  ['/a.', '/a.'],
  ['/a/..b/c', '/a/..b/c'],
  ['/.%2e.', '/...'],
  ['/a;b=c/d', '/a;b=c/d'],
  ['/a%20b', '/a b'],
  ['/a%20', '/a '],
  ['/..%20/a', '/.. /a'],
  ['/caf%C3%A9', '/café'],
  ['/%e6%97%a5%e6%9c%ac', '/日本'],
  ['/%F0%9F%98%80', '/😀'],
  // Decoded once only.
  ['/%252e%252e/', '/%2e%2e/'],
  ['/%252f', '/%252f'],
  ['/%255c', '/%255c'],
  ['/%25252F', '/%25252F'],
  ['/caf%25E9', '/caf%25E9'],
  ['/%25%32F', '/%252F'],
  ['/%2500', '/%00'],
  ['/%25%32%65', '/%2e'],
  ['/100%25', '/100%'],
  // Look-alike characters are ordinary characters and stay unchanged.
  ['/%ef%bc%8e%ef%bc%8e/a', '/．．/a'],
  ['/%e2%80%a5/a', '/‥/a'],
  ['/%e2%88%95a', '/∕a'],
  ['/%ef%bc%8fa', '/／a'],
  ['/%ef%bc%bca', '/＼a'],
  ['/%c2%a0', '/\u00a0'],
  ['/cafe%cc%81', '/cafe\u0301'],
  ["/-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@"],
  ['/[id]', '/[id]'],
  ['/%3Fa%23b', '/?a#b'],
  ['/%7Ea%2Ab', '/~a*b'],
  ['/%22%3C%3E%5E%60%7B%7C%7D', '/"<>^`{|}'],
  ['/@evil.example', '/@evil.example'],
  ['/http://evil.example', '/http://evil.example'],
  // Raw characters that browsers send.
  ['/a|b^c`d{e}[f]', '/a|b^c`d{e}[f]'],
  ['/a?', '/a', ''],
  ['/a?b=c&d', '/a', 'b=c&d'],
  ['/a?b?c', '/a', 'b?c'],
  ['/?/../%2e%2e//', '/', '/../%2e%2e//'],
  ['/a?%zz%00%', '/a', '%zz%00%'],
  ['/a?"b"|^{}`\\[]\'', '/a', '"b"|^{}`\\[]\''],
  ['http://example.com', '/'],
  ['http://example.com/a?b', '/a', 'b'],
  ['HTTP://EXAMPLE.com:80/A', '/A'],
  ['http://example.com//evil.example', '//evil.example'],
  ['http://example.com?a', '/', 'a'],
];

suite('a request target', () => {
  for (const [target, message] of refused) {
    test(`${JSON.stringify(target.slice(0, 40))} is refused`, () => {
      assert.throws(
        () => enter({ target }),
        (thrown) =>
          thrown instanceof Failure &&
          ['invalid', 'too_large'].includes(thrown.code) &&
          message.test(thrown.message),
      );
    });
  }

  for (const [target, path, query = ''] of accepted) {
    test(`${JSON.stringify(target)} is the path ${JSON.stringify(path)}`, () => {
      const sentPath = target.replace(/^http:\/\/[^/?]*/i, '').replace(/\?.*$/, '') || '/';
      const isMarked = target.endsWith('?') && query === '';
      const mark = isMarked ? { hasEmptyQuery: true } : {};
      const read = { origin: 'http://example.com', path, sentPath, query, ...mark };
      assert.deepEqual(enter({ target }).target, read);
    });
  }

  test('* is valid for OPTIONS only', () => {
    const { target } = enter({ method: 'OPTIONS', target: '*' });
    const read = { origin: 'http://example.com', path: '*', sentPath: '*', query: '' };
    assert.deepEqual(target, read);
    assert.throws(() => enter({ method: 'OPTIONS', target: '*?a' }), form);
  });

  test('may be as long as the limit', () => {
    const path = `/${'%41'.repeat(2700)}`;
    assert.equal(enter({ target: path }).target.path, `/${'A'.repeat(2700)}`);
  });

  test('in absolute form has its own authority, whatever Host says', () => {
    const { origin } = enter({ target: 'http://Other.example:81/a' }).target;
    assert.equal(origin, 'http://other.example:81');
    assert.throws(() => enter({ target: 'http://other.example/', rawFields: [] }), /Host/);
    const rawFields = ['Host', 'a b'];
    assert.throws(() => enter({ target: 'http://other.example/', rawFields }), /Host/);
  });

  test('with raw bytes is to be sent again, percent-encoded', () => {
    const cases: readonly (readonly [string, string, string?])[] = [
      ['/caf\xc3\xa9', '/caf%C3%A9'],
      ['/caf\xe9', '/caf%E9'],
      ['/a?\xe9', '/a', '%E9'],
      ['//caf\xc3\xa9', '//caf%C3%A9'],
      ['http://example.com/\xc3\xa9', '/%C3%A9'],
    ];
    for (const [target, sentPath, query = ''] of cases) {
      const read = enter({ target });
      assert.deepEqual([read.isUnencoded, read.target.sentPath], [true, sentPath]);
      assert.equal(read.target.query, query);
    }
    assert.equal(enter({ target: '/caf%C3%A9' }).isUnencoded, false);
    assert.throws(() => enter({ target: '/\xc0\xae' }), overlong);
    assert.throws(() => enter({ target: '/\xc2\x85' }), control);
    assert.throws(() => enter({ target: '/../\xc3\xa9' }), dots);
  });
});
