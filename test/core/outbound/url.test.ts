import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { outboundUrl } from '../../../src/core/outbound/address.ts';
import { Failure } from '../../../src/core/values/failure.ts';

suite('the URL of another server', () => {
  const accepted: readonly (readonly [string, string])[] = [
    ['http://a.example', 'http://a.example/'],
    ['https://a.example/x?y=1', 'https://a.example/x?y=1'],
    ['HTTPS://A.Example:443/', 'https://a.example/'],
    ['http://a.example:8080?x', 'http://a.example:8080/?x'],
    ['http://127.0.0.1/', 'http://127.0.0.1/'],
    ['http://[::1]:3000/', 'http://[::1]:3000/'],
    // A number is another form of an address.
    ['http://2130706433/', 'http://127.0.0.1/'],
    ['http://0x7f.1/', 'http://127.0.0.1/'],
    ['http://münchen.example/ä', 'http://xn--mnchen-3ya.example/%C3%A4'],
    ['http://a.example/@user', 'http://a.example/@user'],
  ];
  for (const [text, href] of accepted) {
    test(`${text} is ${href}`, () => {
      assert.equal(outboundUrl(text).href, href);
    });
  }

  const refused = [
    ...['', 'a.example', '//a.example/', '/path', 'ftp://a.example/', 'file:///etc/passwd'],
    ...['javascript:alert(1)', 'data:text/plain,x', 'unix:/run/x.sock', 'ws://a.example/'],
    ...['http:a.example', 'http:/a.example', 'http:///a.example', 'http://', 'https:///x'],
    ...['http://user@a.example/', 'http://user:secret@a.example/', 'http://@a.example/'],
    ...['http:\\\\a.example\\', 'http://a.example\\@b.example/', 'http://a.example/a\\b'],
    ...[' http://a.example/', 'http://a.example/ ', 'http://a.exa\nmple/', 'http://a.example/\t'],
    ...['http://a.example/\0', 'http://a.example/\x7f', 'http://a.example/\x85'],
    ...['http://a.example:99999/', 'http://[::1/', 'http://[fe80::1%25eth0]/', 'http://a b/'],
    ...['http://1.2.3.4.5/', 'http://256.256.256.256/', 'http://?x', 'http://#x', 'http://:80/'],
  ];
  for (const text of refused) {
    test(`${JSON.stringify(text)} is refused, and the message does not repeat it`, () => {
      assert.throws(
        () => outboundUrl(text),
        (thrown) => {
          assert.ok(thrown instanceof Failure);
          assert.equal(thrown.code, 'invalid');
          assert.doesNotMatch(thrown.message, /example|secret/);
          return true;
        },
      );
    });
  }
});
