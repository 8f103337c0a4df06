import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';

const secret = 'the-secret-outside-of-the-root';

const files = {
  'secret.txt': secret,
  'site/index.html': 'home',
  'site/.env': secret,
  'site/.git/config': secret,
  'site/a/b.txt': 'inside',
};
const ini = '[disk.site]\nroot = site\nlisting = yes\n';

/** Request targets of somebody who wants out of the root, or into what is hidden in it. */
const hostileTargets: readonly string[] = [
  '/../secret.txt',
  '/..',
  '/../',
  '/./../secret.txt',
  '/a/../../secret.txt',
  '/a/b.txt/../../../secret.txt',
  '/%2e%2e/secret.txt',
  '/%2E%2E/secret.txt',
  '/.%2e/secret.txt',
  '/%2e./secret.txt',
  '/..%2fsecret.txt',
  '/..%2Fsecret.txt',
  '/%2e%2e%2fsecret.txt',
  '/a%2f..%2f..%2fsecret.txt',
  '/..%5csecret.txt',
  '/..\\secret.txt',
  '/a\\..\\..\\secret.txt',
  '/%5c..%5csecret.txt',
  '/%252e%252e/secret.txt',
  '/%252e%252e%252fsecret.txt',
  '/%c0%ae%c0%ae/secret.txt',
  '/%c0%ae%c0%ae%c0%afsecret.txt',
  '/%e0%80%ae%e0%80%ae/secret.txt',
  '/%f0%80%80%ae/secret.txt',
  '/%uff0e%uff0e/secret.txt',
  '/%u002e%u002e/secret.txt',
  '/%ff%fe/secret.txt',
  '/%ed%a0%80/secret.txt',
  '/..;/secret.txt',
  '/..;x=1/secret.txt',
  '/a/..;/..;/secret.txt',
  '/....//secret.txt',
  '/.../secret.txt',
  '//secret.txt',
  '//../secret.txt',
  '///etc/passwd',
  '//etc/passwd',
  '//evil.example/a/b.txt',
  '/a//../../secret.txt',
  '/\\evil.example/',
  '/%00',
  '/a/b.txt%00',
  '/a/b.txt%00.html',
  '/secret.txt%00.html',
  '/%0d%0aSet-Cookie:%20x=1',
  '/a/b.txt%0a',
  '/%7f',
  '/%c2%85',
  '/%e2%80%a8',
  '/%',
  '/%2',
  '/%zz',
  '/a/%',
  '/a#/../secret.txt',
  '/a/b.txt#x',
  '/.env',
  '/%2eenv',
  '/.git/config',
  '/.git/',
  '/%2egit/config',
  '/a/.hidden',
  '/.',
  '/a/.',
  '/a/./b.txt',
  '/%2e/',
  'secret.txt',
  '../secret.txt',
  '*',
  'file:///etc/passwd',
  'http://other.example/secret.txt',
  'https://localhost/secret.txt',
  'http://user@localhost/a/b.txt',
  '/a"b',
  '/<script>',
  '/a|b',
  '/a^b',
  '/a`b',
  '/{a}',
  '/caf\xe9',
  '/\x7f',
  `/${'a/'.repeat(2000)}`,
  `/${'a'.repeat(300)}`,
  `/${'%2e%2e/'.repeat(200)}etc/passwd`,
];

/** Heads that two readers could understand differently; `:` stands for the port. */
const hostileHeads: readonly (readonly [string, string])[] = [
  ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
  ['no Host in HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
  ['two Hosts', 'GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n'],
  ['two Hosts that differ', 'GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n'],
  ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
  ['a Host of blanks', 'GET / HTTP/1.1\r\nHost:   \r\n\r\n'],
  ['a Host with a user', 'GET / HTTP/1.1\r\nHost: user@localhost\r\n\r\n'],
  ['a Host with a path', 'GET / HTTP/1.1\r\nHost: localhost/a\r\n\r\n'],
  ['a Host with a query', 'GET / HTTP/1.1\r\nHost: localhost?a\r\n\r\n'],
  ['a Host with a blank', 'GET / HTTP/1.1\r\nHost: local host\r\n\r\n'],
  ['a list of Hosts', 'GET / HTTP/1.1\r\nHost: localhost, evil\r\n\r\n'],
  ['a Host with a bad port', 'GET / HTTP/1.1\r\nHost: localhost:99999\r\n\r\n'],
  ['a Host with a named port', 'GET / HTTP/1.1\r\nHost: localhost:http\r\n\r\n'],
  ['an unclosed IPv6 Host', 'GET / HTTP/1.1\r\nHost: [::1\r\n\r\n'],
  ['a backslash in Host', 'GET / HTTP/1.1\r\nHost: local\\host\r\n\r\n'],
  ['a non-ASCII Host', 'GET / HTTP/1.1\r\nHost: caf\xe9\r\n\r\n'],
  ['a blank before the colon', 'GET / HTTP/1.1\r\nHost : localhost\r\n\r\n'],
  ['a folded field', 'GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n'],
  ['a field without a colon', 'GET / HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n'],
  ['a field without a name', 'GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n'],
  ['a NUL in a value', 'GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n'],
  ['a bare CR in a value', 'GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n'],
  ['a blank in the name', 'GET / HTTP/1.1\r\nHost: localhost\r\nX Y: a\r\n\r\n'],
  [
    'both framings',
    'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'two lengths',
    'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc',
  ],
  [
    'two lengths that differ',
    'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
  ],
  ['a list of lengths', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3, 3\r\n\r\nabc'],
  ['a negative length', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n'],
  ['a signed length', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +3\r\n\r\nabc'],
  ['a length in hex', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x3\r\n\r\nabc'],
  [
    'a coding that is not chunked',
    'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n',
  ],
  [
    'chunked not last',
    'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
  ],
  [
    'gzip before chunked',
    'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'chunked twice',
    'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'a disguised coding',
    'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'a coding in HTTP/1.0',
    'POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['an unknown version', 'GET / HTTP/3.7\r\nHost: localhost\r\n\r\n'],
  ['no version', 'GET /\r\nHost: localhost\r\n\r\n'],
  ['a lower-case version', 'GET / http/1.1\r\nHost: localhost\r\n\r\n'],
  ['a tab in the request line', 'GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['an unknown method', 'G<T / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['TLS on a plain port', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['noise', `${'\xff\x00'.repeat(50)}\r\n\r\n`],
  ['a long request line', `GET /?${'q'.repeat(9000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`],
];

suite('the door', () => {
  test('no hostile path gets out of the root or into what is hidden', async (t) => {
    const site = await startSite(t, { files, ini });
    for (const target of hostileTargets) {
      const request =
        `GET ${target} HTTP/1.1\r\nHost: localhost:${site.port}\r\n` + 'Connection: close\r\n\r\n';
      const answer = await site.raw(request);
      assert.match(answer, /^HTTP\/1\.1 40[04] /, JSON.stringify(target.slice(0, 80)));
      assert.ok(!answer.includes(secret), target);
      assert.ok(!answer.includes(site.folder), target);
      assert.ok(!/set-cookie/i.test(answer), target);
    }
    assert.equal((await fetch(`${site.url}/a/b.txt`)).status, 200, 'the server goes on');
  });

  test('no hostile head gets past', async (t) => {
    const site = await startSite(t, { files, ini });
    for (const [title, head] of hostileHeads) {
      const answer = await site.raw(head);
      assert.match(answer, /^HTTP\/1\.1 400 /, title);
      assert.match(answer, /\r\nConnection: close\r\n/i, title);
      assert.equal(answer.match(/HTTP\/1\.1 \d{3}/g)?.length, 1, `${title}: one answer only`);
    }
    assert.equal((await fetch(`${site.url}/a/b.txt`)).status, 200, 'the server goes on');
  });

  test('a header block over 32 KiB, or of more than 100 fields, is refused', async (t) => {
    const site = await startSite(t, { files, ini });
    for (const fields of [`X: ${'y'.repeat(60_000)}\r\n`, 'X: y\r\n'.repeat(120)]) {
      const answer = await site.raw(`GET / HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`);
      assert.match(answer, /^HTTP\/1\.1 431 /);
    }
  });

  test('one path under many spellings is one page', async (t) => {
    const site = await startSite(t, { files, ini });
    for (const target of [
      '/a/b.txt',
      '/%61/b.txt',
      '/a/b%2Etxt',
      '/a/b.txt?x=1',
      '/a/b.txt?../..',
    ]) {
      const answer = await site.raw(
        `GET ${target} HTTP/1.1\r\nHost: LOCALHOST:${site.port}\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 200 /, target);
      assert.ok(answer.endsWith('inside'), target);
    }
  });

  test('the access log has a line for each, and none that a client has made up', async (t) => {
    const site = await startSite(t, { files, ini, server: '' });
    await site.raw('GET /a/b.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await site.raw('GET /a"b HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const lines = site
      .logged()
      .split('\n')
      .filter((line) => / (?:200|400) GET /.test(line));
    assert.equal(lines.length, 2);
    assert.match(lines[0] ?? '', /200 GET localhost\/a\/b\.txt 6 B .* disk:site 127\.0\.0\.1/);
  });
});
