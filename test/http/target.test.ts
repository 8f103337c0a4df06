import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseRequest, type ValidatedRequest, type RequestHead } from '../../src/http/target.ts';
import { Failure } from '../../src/model/failure.ts';

function headOf(head: Partial<RequestHead>): RequestHead {
  return {
    method: 'GET',
    target: '/',
    httpVersion: '1.1',
    rawFields: ['Host', 'example.com'],
    secure: false,
    peerAddress: '192.0.2.1',
    ...head,
  };
}

function enter(head: Partial<RequestHead>): ValidatedRequest {
  return parseRequest(headOf(head), { trustProxy: [] });
}

const dots = /has a \. or \.\. segment/;
const separator = /encoded \/ or \\/;
const escape = /% without two hexadecimal digits/;
const utf8 = /not UTF-8/;
const control = /control character/;
const character =
  /contains the character U\+[0-9A-F]{4}, which must be percent-encoded|has a backslash/;
const fragment = /fragment/;
const slashes = /starts with \/\//;
const form = /must be a path/;
const site = /names another site/;

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
  // Separators that appear only after decoding.
  ['/%2f', separator],
  ['/a%2Fb', separator],
  ['/..%2fetc', separator],
  ['/..%2F..%2Fetc', separator],
  ['/%2e%2e%2fetc', separator],
  ['/%2f%2fevil.example', separator],
  ['/..%5cwindows', separator],
  ['/a%5Cb', separator],
  ['/%5c%5cevil.example', separator],
  ['/..\\..\\windows', character],
  ['/a\\b', character],
  ['/\\evil.example', character],
  ['\\', form],
  // Bytes that are not UTF-8 (RFC 3629 §3): overlong forms, surrogates, too far, cut off.
  ['/%c0%ae%c0%ae/', utf8],
  ['/%c0%af', utf8],
  ['/%C0%80', utf8],
  ['/%e0%80%ae', utf8],
  ['/%e0%80%af', utf8],
  ['/%f0%80%80%af', utf8],
  ['/%c1%9c', utf8],
  ['/%ed%a0%80', utf8],
  ['/%ed%a0%bd%ed%b8%80', utf8],
  ['/%f4%90%80%80', utf8],
  ['/%f8%88%80%80%80', utf8],
  ['/%ff', utf8],
  ['/%80', utf8],
  ['/caf%e9', utf8],
  ['/%e2%82', utf8],
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
  ['/caf\xe9', character],
  ['/\xc0\xae', character],
  ['/"a"', character],
  ['/<script>', character],
  ['/a^b', character],
  ['/a`b', character],
  ['/{a}', character],
  ['/a|b', character],
  ['/a?b c', character],
  ['/a?\xe9', character],
  ['/a?<b>', character],
  ['/a?b\0', character],
  ['/a?b\r\nX: y', character],
  ['/a?\x7f', character],
  // Clients never send fragments.
  ['/#', fragment],
  ['/a#b', fragment],
  ['/a?b#c', fragment],
  ['/a#?b', fragment],
  // Targets that other recipients read as another site.
  ['//', slashes],
  ['//evil.example', slashes],
  ['//evil.example/%2e%2e', slashes],
  ['///', slashes],
  ['http://example.com//evil.example', slashes],
  ['http://evil.example/', site],
  ['http://example.com:81/', site],
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
  ['/%252f', '/%2f'],
  ['/%255c', '/%5c'],
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
  ['/a?', '/a', ''],
  ['/a?b=c&d', '/a', 'b=c&d'],
  ['/a?b?c', '/a', 'b?c'],
  ['/?/../%2e%2e//', '/', '/../%2e%2e//'],
  ['/a?%zz%00%', '/a', '%zz%00%'],
  ['/a?"b"|^{}`\\[]\'', '/a', '"b"|^{}`\\[]\''],
  ['http://example.com', '/'],
  ['http://example.com/a?b', '/a', 'b'],
  ['HTTP://EXAMPLE.com:80/A', '/A'],
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
      assert.deepEqual(enter({ target }).target, { origin: 'http://example.com', path, query });
    });
  }

  test('* is valid for OPTIONS only', () => {
    const { target } = enter({ method: 'OPTIONS', target: '*' });
    assert.deepEqual(target, { origin: 'http://example.com', path: '*', query: '' });
    assert.throws(() => enter({ method: 'OPTIONS', target: '*?a' }), form);
  });

  test('may be as long as the limit', () => {
    const path = `/${'%41'.repeat(2700)}`;
    assert.equal(enter({ target: path }).target.path, `/${'A'.repeat(2700)}`);
  });
});
