import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';

const secret = 'the-secret-outside-of-the-root';

const files = {
  'secret.txt': secret,
  'site/index.html': 'home',
  'site/.env': secret,
  'site/.git/config': secret,
  'site/a/b.txt': 'inside',
};
const ini = '[disk.site]\nroot = site\nlisting = yes\n';

/** Request targets that try to leave the root, or to reach a hidden file in it. */
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

/** Those that name a valid path, where no file is shown. The others are malformed, or redirected. */
const validTargets = new Set([
  '/%252e%252e/secret.txt',
  '/%252e%252e%252fsecret.txt',
  '/%ff%fe/secret.txt',
  '/%ed%a0%80/secret.txt',
  '/....//secret.txt',
  '/.../secret.txt',
  '//secret.txt',
  '///etc/passwd',
  '//etc/passwd',
  '//evil.example/a/b.txt',
  'http://other.example/secret.txt',
  '/a|b',
  '/a^b',
  '/a`b',
  '/{a}',
  '/.env',
  '/%2eenv',
  '/.git/config',
  '/.git/',
  '/%2egit/config',
  '/a/.hidden',
  `/${'a/'.repeat(2000)}`,
  `/${'a'.repeat(300)}`,
]);

suite('a request target', () => {
  test('never leaves the root, nor reaches a hidden file', async (t) => {
    const site = await startSite(t, { files, ini });
    for (const target of hostileTargets) {
      const request =
        `GET ${target} HTTP/1.1\r\nHost: localhost:${site.port}\r\n` + 'Connection: close\r\n\r\n';
      const answer = await site.raw(request);
      const status = target.includes('\xe9') ? '308' : validTargets.has(target) ? '404' : '400';
      assert.equal(answer.slice(9, 12), status, JSON.stringify(target.slice(0, 80)));
      assert.ok(!answer.includes(secret), target);
      assert.ok(!answer.includes(site.folder), target);
      assert.ok(!/set-cookie/i.test(answer), target);
    }
    assert.equal((await fetch(`${site.url}/a/b.txt`)).status, 200, 'the server goes on');
  });

  test('finds the same page in each of its spellings', async (t) => {
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

  test('with an unknown method gets an error that names the method', async (t) => {
    const site = await startSite(t, { files, ini });
    const answer = await site.raw('FOO /a/b.txt HTTP/1.1\r\nHost: localhost\r\n\r\n');
    assert.match(
      answer,
      /^HTTP\/1\.1 501 .*The server does not implement the method of the request\./s,
    );
  });

  test('has one line in the access log, and cannot forge another', async (t) => {
    const site = await startSite(t, { files, ini });
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    for (const request of [
      'GET /a/b.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      'GET /a"b HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'GET  /two-blanks HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'GET /bad-field HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n',
      `GET /wmk_secret${'y'.repeat(5_000)} HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n`,
      'noise\x07 200 GET made-up\r\n\r\n',
      `GET /?${'x'.repeat(9_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      `GET /no-websocket HTTP/1.1\r\nHost: localhost\r\n${upgrade}\r\n`,
      'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n',
    ]) {
      await site.raw(request);
    }
    const lines = site.logged().split('\n');
    const told = lines.flatMap(
      (line) => / (\d{3} .*) \d+ B .* 127\.0\.0\.1(?: [0-9a-f-]{36})?$/.exec(line)?.[1] ?? [],
    );
    assert.deepEqual(
      told.map((line) => line.replace(/(.)\1{20,}/, '$1$1$1')),
      [
        '200 GET localhost/a/b.txt',
        '400 GET localhost/a\\"b',
        '400 GET localhost/two-blanks',
        '400 GET localhost/bad-field',
        '400 GET localhost/wmk_……',
        '400 - noise\\u0007 200 GET made-up',
        '414 GET localhost/?xxx…',
        '404 GET localhost/no-websocket',
        '405 CONNECT localhost localhost:80',
      ],
    );
    assert.ok(lines.every((line) => line.length < 400));
  });
});
