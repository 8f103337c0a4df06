import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mountPath, origin } from '../../../src/core/config/addresses.ts';
import { parseAuthority } from '../../../src/core/values/network/authority.ts';
import { canonicalPath, encodeNonAscii, textOfPath } from '../../../src/core/values/path.ts';

const pathPiece = fc.oneof(
  fc.constantFrom('/', '.', '..', '%', '%25', '%2F', '%2e', '%00', '%C3%A9', '?', '#', '\\', ';'),
  fc.constantFrom('é', ' ', '*', '//', '\u2028', '\u0085', '~', '+', '&', '|', '<', 'a', '€'),
  fc.string(),
);

test('every path of a request that is text can be mounted, without empty segments', () => {
  fc.assert(
    fc.property(fc.array(pathPiece, { maxLength: 8 }), (pieces) => {
      const text = `/${pieces.join('')}`;
      const path = canonicalPath(encodeNonAscii(text));
      fc.pre(path !== undefined && textOfPath(path) !== undefined);
      fc.pre(!path.includes('//') && !/[?#*]/.test(text));
      assert.deepEqual(mountPath(text), { value: path.replace(/\/?$/, '/') });
    }),
    { numRuns: 3_000 },
  );
});

test('an origin of the ini file equals the origin of a request to that host', () => {
  const host = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV6().map((address) => `[${address}]`),
    fc.stringMatching(/^[A-Za-z0-9._-]{1,20}$/),
    fc.constantFrom('127.1', '0x7f.1', '1.2.3.4.', 'a..b', '.', 'A.Example.', 'localhost'),
  );
  const port = fc.constantFrom('', ':80', ':443', ':8080', ':0', ':65536', ':');
  fc.assert(
    fc.property(host, port, fc.constantFrom('http', 'https'), (name, digits, scheme) => {
      const parsed = origin(`${scheme}://${name}${digits}`);
      const authority = parseAuthority(`${name}${digits}`, scheme);
      if ('value' in parsed) assert.equal(parsed.value, `${scheme}://${authority ?? ''}`);
    }),
    { numRuns: 3_000 },
  );
});
