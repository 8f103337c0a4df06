import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseRequest, type RequestHead } from '../../../src/core/http/reading/target.ts';
import { Failure } from '../../../src/core/values/failure.ts';

const host = ['Host', 'example.com'];

function enter(rawFields: readonly string[], head: Partial<RequestHead> = {}) {
  const whole: RequestHead = {
    method: 'GET',
    target: '/',
    httpVersion: '1.1',
    scheme: 'http',
    peer: { listener: 'tcp', address: '192.0.2.1', local: () => '192.0.2.2:80' },
    ...head,
    rawFields,
  };
  return parseRequest(whole, { trustProxy: [] });
}

const once = /must not occur more than once/;
const badHost = /not a host with an optional port/;
const noNumber = /not a number of bytes/;
const exclude = /exclude each other/;
const onlyChunked = /may only be chunked/;
const notToken = /name that is not a token/;
const control = /contains a control character/;

const refused: readonly (readonly [
  rawFields: readonly string[],
  message: RegExp,
  head?: Partial<RequestHead>,
])[] = [
  // Host (RFC 9112 §3.2).
  [[], /Host field is missing/],
  [['Host', ''], badHost, { httpVersion: '1.0' }],
  [[...host, ...host], once],
  [[...host, 'host', 'evil.example'], once],
  [[...host, 'HOST', ''], once],
  [['Host', ''], badHost],
  [['Host', ' '], badHost],
  [['Host', '.'], badHost],
  [['Host', '.example.com'], badHost],
  [['Host', 'example..com'], badHost],
  [['Host', 'example.com..'], badHost],
  [['Host', 'user@example.com'], badHost],
  [['Host', 'user:pass@example.com'], badHost],
  [['Host', 'example.com/path'], badHost],
  [['Host', 'example.com?a'], badHost],
  [['Host', 'example.com#a'], badHost],
  [['Host', 'example.com\\a'], badHost],
  [['Host', 'exam ple.com'], badHost],
  [['Host', 'example.com evil.example'], badHost],
  [['Host', 'example.com\tevil.example'], badHost],
  [['Host', 'example.com,evil.example'], badHost],
  [['Host', 'example.com, evil.example'], badHost],
  [['Host', 'http://example.com'], badHost],
  [['Host', 'example.com:'], badHost],
  [['Host', 'example.com:0'], badHost],
  [['Host', 'example.com:080'], badHost],
  [['Host', 'example.com:65536'], badHost],
  [['Host', 'example.com:999999'], badHost],
  [['Host', 'example.com:+80'], badHost],
  [['Host', 'example.com:80a'], badHost],
  [['Host', 'example.com:80:80'], badHost],
  [['Host', ':80'], badHost],
  [['Host', 'ex%61mple.com'], badHost],
  [['Host', 'ex\xe4mple.com'], badHost],
  [['Host', '<script>'], badHost],
  [['Host', '${jndi:ldap}'], badHost],
  [['Host', '127.1'], badHost],
  [['Host', '0x7f.0.0.1'], badHost],
  [['Host', '0177.0.0.1'], badHost],
  [['Host', '127.0.0.256'], badHost],
  [['Host', '2130706433'], badHost],
  [['Host', '::1'], badHost],
  [['Host', '[::1'], badHost],
  [['Host', '[]'], badHost],
  [['Host', '[::1]a'], badHost],
  [['Host', '[::1%25eth0]'], badHost],
  [['Host', '[::g]'], badHost],
  [['Host', '[1:2:3]'], badHost],
  [['Host', '[v1.a]'], badHost],
  [['Host', `${'a'.repeat(600)}.example`], badHost],
  [['Host', 'example.com\r\nX: y'], control],
  [['Host', 'example.com\0'], control],
  // Framing (RFC 9112 §6).
  [[...host, 'Content-Length', '5', 'Transfer-Encoding', 'chunked'], exclude],
  [[...host, 'transfer-encoding', 'chunked', 'content-length', '0'], exclude],
  [[...host, 'Content-Length', '5', 'Content-Length', '5'], once],
  [[...host, 'Content-Length', '5', 'content-length', '6'], once],
  [[...host, 'Content-Length', '5, 5'], noNumber],
  [[...host, 'Content-Length', ''], noNumber],
  [[...host, 'Content-Length', '+5'], noNumber],
  [[...host, 'Content-Length', '-1'], noNumber],
  [[...host, 'Content-Length', '0x5'], noNumber],
  [[...host, 'Content-Length', '5.0'], noNumber],
  [[...host, 'Content-Length', '5e1'], noNumber],
  [[...host, 'Content-Length', '5 '], noNumber],
  [[...host, 'Content-Length', '\xb2'], noNumber],
  [[...host, 'Content-Length', '99999999999999999999'], noNumber],
  [[...host, 'Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked'], once],
  [[...host, 'Transfer-Encoding', 'identity', 'transfer-encoding', 'chunked'], once],
  [[...host, 'Transfer-Encoding', ''], onlyChunked],
  [[...host, 'Transfer-Encoding', 'gzip, chunked'], onlyChunked],
  [[...host, 'Transfer-Encoding', 'chunked, chunked'], onlyChunked],
  [[...host, 'Transfer-Encoding', 'chunked, identity'], onlyChunked],
  [[...host, 'Transfer-Encoding', 'identity'], onlyChunked],
  [[...host, 'Transfer-Encoding', 'xchunked'], onlyChunked],
  [[...host, 'Transfer-Encoding', 'chunked;a=b'], onlyChunked],
  [[...host, 'Transfer-Encoding', ' chunked'], onlyChunked],
  [[...host, 'Transfer-Encoding', 'chunked\t'], onlyChunked],
  [[...host, 'Transfer-Encoding', '"chunked"'], onlyChunked],
  [[...host, 'Transfer-Encoding', '\x0bchunked'], control],
  [[...host, 'Transfer-Encoding', 'chunked'], /HTTP\/1.0/, { httpVersion: '1.0' }],
  // Names and values (RFC 9110 §5.1, §5.5).
  [[...host, '', 'a'], notToken],
  [[...host, 'a b', 'c'], notToken],
  [[...host, 'Content-Length ', '5'], notToken],
  [[...host, ' Transfer-Encoding', 'chunked'], notToken],
  [[...host, 'a:', 'b'], notToken],
  [[...host, 'a\0', 'b'], notToken],
  [[...host, 'a\r\nb', 'c'], notToken],
  [[...host, '(a)', 'b'], notToken],
  [[...host, '\xe4', 'b'], notToken],
  [[...host, 'a', 'b\0'], control],
  [[...host, 'a', 'b\rc'], control],
  [[...host, 'a', 'b\nc'], control],
  [[...host, 'a', 'b\r\n c'], control],
  [[...host, 'a', '\x7f'], control],
  [[...host, 'a', '\u2028'], control],
  [[...host, ...Array.from({ length: 200 }, () => 'a')], /more than 100 header fields/],
  [host, /HTTP\/1.1 and HTTP\/1.0 only/, { httpVersion: '0.9' }],
  [host, /HTTP\/1.1 and HTTP\/1.0 only/, { httpVersion: '2.0' }],
];

suite('a request head', () => {
  for (const [rawFields, message, head] of refused) {
    const shown = JSON.stringify(rawFields).slice(0, 70);
    test(`${shown} ${head?.httpVersion ?? ''} is refused`, () => {
      assert.throws(
        () => enter(rawFields, head),
        (thrown) =>
          thrown instanceof Failure &&
          ['invalid', 'too_large'].includes(thrown.code) &&
          message.test(thrown.message),
      );
    });
  }

  test('has each header under its lower-case name; repeated ones are one list', () => {
    const { fields } = enter([
      ...host,
      ...['ACCEPT', 'text/html', 'X-Own', 'a\tb \xe4', 'accept', 'text/plain'],
      ...['Cookie', 'a=1', 'cookie', 'b=2', 'X-own', '', 'X-OWN', 'c'],
    ]);
    assert.equal(fields.accept, 'text/html, text/plain');
    assert.equal(fields.cookie, 'a=1; b=2');
    assert.equal(fields['x-own'], 'a\tb \xe4, , c');
  });

  test('treats names such as __proto__ as ordinary headers', () => {
    assert.equal(Object.getPrototypeOf(enter(host).fields), null);
    assert.equal(enter(host).fields.constructor, undefined);
    const { fields } = enter([...host, '__proto__', 'a', 'Constructor', 'b']);
    assert.equal(fields.__proto__, 'a');
    assert.equal(fields.constructor, 'b');
  });

  test('may have one hundred headers', () => {
    const rawFields = [...host, ...Array.from({ length: 99 }, (_, at) => [`a${at}`, 'b']).flat()];
    assert.equal(Object.keys(enter(rawFields).fields).length, 100);
  });

  test('may have a Content-Length or chunked content', () => {
    assert.equal(enter([...host, 'Content-Length', '12']).fields['content-length'], '12');
    const { fields } = enter([...host, 'Transfer-Encoding', 'Chunked']);
    assert.equal(fields['transfer-encoding'], 'Chunked');
    enter([...host, 'Content-Length', '5'], { httpVersion: '1.0' });
  });
});

test('a request of HTTP/1.0 without Host is for the address of its connection', () => {
  const { target } = enter([], { httpVersion: '1.0' });
  assert.equal(target.origin, 'http://192.0.2.2');
});
