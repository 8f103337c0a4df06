import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import { parseRequest } from '../../../src/core/http/reading/target.ts';
import {
  canonicalPath,
  encodeNonAscii,
  encodePath,
  pathOfText,
  textOfPath,
} from '../../../src/core/values/path.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import { anyCharacter } from '../../any-character.ts';
import { clientAddress } from '../../../src/core/values/network/peer.ts';

suite('any request target', () => {
  const pieces = fc.constantFrom(
    ...['/', '.', '..', '%2e', '%2E', '%', '%25', '%2f', '%5c', '\\', '%00', '\0', '?', '#', '*'],
    ...['%c0%ae', '%ed%a0%80', '%c3%a9', 'é', ';', ':', '@', 'a', '%41', 'http://example.com', ' '],
  );
  const targets = fc.oneof(
    fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
    fc.array(pieces, { maxLength: 12 }).map((parts) => `/${parts.join('')}`),
    fc.string({ unit: anyCharacter }),
    fc.webUrl(),
    fc.webPath(),
  );

  test('is refused, or names a path without . and ..', () => {
    const heads = fc.record({
      method: fc.constantFrom('GET', 'OPTIONS', 'CONNECT', ''),
      target: targets,
      httpVersion: fc.constantFrom('1.1', '1.0', '2.0', ''),
      rawFields: fc.oneof(
        { weight: 4, arbitrary: fc.constant(['Host', 'example.com']) },
        { weight: 1, arbitrary: fc.array(fc.string({ unit: anyCharacter }), { maxLength: 8 }) },
      ),
      scheme: fc.constantFrom('http', 'https'),
      peer: fc.record({
        listener: fc.constantFrom('tcp', 'unix'),
        address: fc.oneof(fc.ipV4(), fc.ipV6()).map(clientAddress),
        local: fc.constant(() => 'localhost'),
      }),
    });
    fc.assert(
      fc.property(heads, (head) => {
        let entrance;
        try {
          entrance = parseRequest(head, { trustProxy: [] });
        } catch (thrown) {
          assert.ok(thrown instanceof Failure);
          // A well-formed CONNECT is no error of the client; the server does not support it.
          const refusals =
            head.method === 'CONNECT' ? ['invalid', 'method_not_allowed'] : ['invalid'];
          assert.ok(refusals.includes(thrown.code));
          return;
        }
        assert.notEqual(head.method, 'CONNECT');
        const { path } = entrance.target;
        assert.ok(path === '*' || path.startsWith('/'));
        assert.ok(!path.includes('\0') && !path.includes('\\') && path.isWellFormed());
        assert.ok(!path.split(/\/|%2F|%5C/).some((one) => one === '.' || one === '..'));
      }),
      { numRuns: 3000 },
    );
  });

  test('that is canonical stays the same when encoded as a URL', () => {
    const texts = fc.array(fc.oneof(pieces, fc.string({ unit: 'grapheme' })), { maxLength: 10 });
    fc.assert(
      fc.property(texts, (parts) => {
        const path = canonicalPath(encodeNonAscii(`/${parts.join('')}`));
        fc.pre(path !== undefined);
        const encoded = encodePath(path);
        assert.match(encoded, /^\/(?:[\w\-.~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/);
        assert.equal(canonicalPath(encoded), path);
      }),
      { numRuns: 2000 },
    );
  });

  test('has the canonical path of another one only if both decode to the same bytes', () => {
    // Bytes besides encoded separators, which stay apart from `/` and `\\`.
    const bytes = (sent: string): string =>
      sent
        .replace(/%(2f|5c)/gi, (_, digits: string) => (digits.startsWith('2') ? '\x01' : '\x02'))
        .replace(/%([0-9a-f]{2})/gi, (_, digits: string) =>
          String.fromCharCode(Number.parseInt(digits, 16)),
        );
    const few = fc.constantFrom(
      ...['%2f', '%2F', '%5c', '%25', '%32', '2', '5', 'f', 'F', 'C', 'c', 'a', '%61', '/', 'E9'],
      ...['%e9', '%E9', '%c3%a9', '%C3', '%a9', '%46', 'e9', '|', '%7c'],
    );
    const sent = fc.array(few, { maxLength: 6 }).map((parts) => `/${parts.join('')}`);
    fc.assert(
      fc.property(sent, sent, (one, other) => {
        const [path, otherPath] = [canonicalPath(one), canonicalPath(other)];
        assert.ok(path !== undefined && otherPath !== undefined);
        assert.equal(path === otherPath, bytes(one) === bytes(other));
        const text = textOfPath(path);
        if (text !== undefined) assert.equal(pathOfText(text), path);
        assert.equal(canonicalPath(encodePath(path)), path);
      }),
      { numRuns: 5000 },
    );
  });

  test('that a person writes equals its encoded form', () => {
    assert.equal(canonicalPath(encodeNonAscii('/über uns/{a}|😀')), '/über uns/{a}|😀');
    assert.equal(canonicalPath(encodeNonAscii('/%C3%BCber')), '/über');
    assert.equal(canonicalPath(encodeNonAscii('/ü%2f%e9')), '/ü%2F%E9');
    for (const path of ['/a\\b', '/a?b', '/a#b', '/a\u0085b', '/\ud800', '/../ü', '/ü%2f..']) {
      assert.equal(canonicalPath(encodeNonAscii(path)), undefined, path);
    }
  });

  test('with half a surrogate pair is encoded to a readable path', () => {
    assert.equal(encodePath('/\ud800?#%[]'), '/%EF%BF%BD%3F%23%25%5B%5D');
  });
});
