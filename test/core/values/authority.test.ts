import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseAuthority, type Scheme } from '../../../src/core/values/network/authority.ts';
import { parseRequest } from '../../../src/core/http/reading/target.ts';

const forms: readonly (readonly [text: string, scheme: Scheme, canonical: string])[] = [
  ['example.com', 'http', 'example.com'],
  ['EXAMPLE.com', 'http', 'example.com'],
  ['example.com.', 'http', 'example.com'],
  ['Example.COM.:80', 'http', 'example.com'],
  ['example.com:80', 'https', 'example.com:80'],
  ['example.com:443', 'https', 'example.com'],
  ['example.com:443', 'http', 'example.com:443'],
  ['example.com:65535', 'http', 'example.com:65535'],
  ['localhost:8080', 'http', 'localhost:8080'],
  ['my_host', 'http', 'my_host'],
  ['xn--bcher-kva.example', 'http', 'xn--bcher-kva.example'],
  ['1and1.example', 'http', '1and1.example'],
  ['127.0.0.1:8080', 'http', '127.0.0.1:8080'],
  ['[::1]', 'http', '[::1]'],
  ['[0:0:0:0:0:0:0:1]:8080', 'http', '[::1]:8080'],
  ['[2001:DB8::1]:443', 'https', '[2001:db8::1]'],
  ['[::ffff:127.0.0.1]', 'http', '[::ffff:7f00:1]'],
];

suite('a host with its port', () => {
  for (const [text, scheme, canonical] of forms) {
    test(`${text} by ${scheme} is ${canonical}, as in the origin of a URL`, () => {
      assert.equal(parseAuthority(text, scheme), canonical);
      assert.equal(new URL(`${scheme}://${canonical}/`).origin, `${scheme}://${canonical}`);
    });
  }

  test('gives the origin of a request, with the scheme of the connection', () => {
    const local = () => '192.0.2.2:80';
    const peer = { listener: 'tcp', address: '192.0.2.1', local } as const;
    const head = { method: 'GET', target: '/', httpVersion: '1.1', peer };
    const origins = (['http', 'https'] as const).map((scheme) => {
      const whole = { ...head, scheme, rawFields: ['host', 'EXAMPLE.com:443'] };
      return parseRequest(whole, { trustProxy: [] }).target.origin;
    });
    assert.deepEqual(origins, ['http://example.com:443', 'https://example.com']);
  });
});
