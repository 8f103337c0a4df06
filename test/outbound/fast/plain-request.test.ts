import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import type { Dispatcher } from 'undici';
import { plainRequests } from '../../../src/outbound/fast/plain-request.ts';

const origin = new URL('http://src.example:8080');

function get(
  headers: string[],
  others: Partial<Dispatcher.DispatchOptions> = {},
): Dispatcher.DispatchOptions {
  return { origin: origin.origin, path: '/a?b', method: 'GET', body: null, headers, ...others };
}

suite('a request for a plain connection', () => {
  test('says what is asked, and nothing but that', () => {
    const request = plainRequests(origin)(get(['accept', '*/*', 'x-a', 'caf\xe9', 'x-b', '']));
    assert.equal(
      request?.head,
      'GET /a?b HTTP/1.1\r\nhost: src.example:8080\r\nconnection: keep-alive\r\n' +
        'accept: */*\r\nx-a: caf\xe9\r\nx-b: \r\n\r\n',
    );
  });

  test('names the host that is asked for, once', () => {
    const request = plainRequests(origin)(get(['Host', 'other.example']));
    assert.equal(
      request?.head,
      'GET /a?b HTTP/1.1\r\nhost: other.example\r\nconnection: keep-alive\r\n\r\n',
    );
  });

  const others: Readonly<Record<string, Dispatcher.DispatchOptions>> = {
    'another method': get([], { method: 'HEAD' }),
    content: get([], { body: Readable.from(['x']) }),
    'another protocol': get([], { upgrade: 'websocket' }),
    'a target that ends the line': get([], { path: '/a HTTP/1.1\r\nx: y' }),
    'a target that is no path': get([], { path: 'http://other.example/' }),
    'a field in a value': get(['x', 'a\r\nb: c']),
    'a field in a name': get(['x\r\ny', 'z']),
    'a name that is none': get(['x y', 'z']),
    'an empty name': get(['', 'z']),
    'a control character': get(['x', 'a\0']),
    'what is no byte': get(['x', '€']),
    'framing of its own': get(['Transfer-Encoding', 'chunked']),
    'a length of its own': get(['content-length', '5']),
    'a connection of its own': get(['connection', 'close']),
  };
  for (const [what, options] of Object.entries(others)) {
    test(`is none with ${what}`, () => {
      assert.equal(plainRequests(origin)(options), undefined);
    });
  }

  test('is none over TLS for another host, whose certificate is asked for then', () => {
    const requests = plainRequests(new URL('https://src.example'));
    assert.notEqual(requests(get([])), undefined);
    assert.equal(requests(get(['host', 'other.example'])), undefined);
  });

  test('names the path of each request, and is none for another method', () => {
    const requests = plainRequests(origin);
    const fields = ['accept', '*/*'];
    assert.match(requests(get(fields, { path: '/c' }))?.head ?? '', /^GET \/c HTTP/);
    assert.equal(requests(get(fields, { method: 'HEAD' })), undefined);
    assert.match(requests(get(fields))?.head ?? '', /^GET \/a\?b HTTP/);
  });
});
