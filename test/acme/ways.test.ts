import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { challengesFor } from '../../src/acme/ways.ts';

suite('a host is shown to be ours', () => {
  const tcp = (scheme: 'http' | 'https', port: number) =>
    ({ kind: 'tcp', scheme, host: '', port }) as const;
  const table = [
    ['in the clear on port 80', [tcp('http', 80), tcp('https', 443)], ['http-01', 'tls-alpn-01']],
    ['over TLS on port 443', [tcp('http', 8080), tcp('https', 443)], ['tls-alpn-01', 'http-01']],
    [
      'in the clear behind a router',
      [tcp('http', 8080), tcp('https', 8443)],
      ['http-01', 'tls-alpn-01'],
    ],
    ['over TLS alone', [tcp('https', 8443)], ['tls-alpn-01']],
    [
      'over TLS beside a unix socket',
      [tcp('https', 443), { kind: 'unix', path: '/x' }],
      ['tls-alpn-01'],
    ],
  ] as const;
  for (const [name, listens, ways] of table) {
    test(name, () => {
      assert.deepEqual(challengesFor(listens), ways);
    });
  }
});
