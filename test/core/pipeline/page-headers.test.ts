import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';

const site = startSite(
  { after },
  {
    server: 'trust_proxy = 127.0.0.0/8',
    ini:
      '[auth]\nuser_header = X-User\n[disk.uploads]\npath = /up/\nroot = up\n' +
      '[headers.all]\npath = /*\nCache-Control = "public, max-age=3600"\n' +
      "[headers.up]\npath = /up/*, /link/*, /key\nContent-Security-Policy = default-src 'none'\n" +
      '[headers.nonce]\npath = /nonce\nsecurity = strict\n',
    files: { 'up/page.html': '<script>run()</script>' },
    rules: [
      { path: '/link/a', kind: 'resolve', enginedata: { html: '<script>run()</script>' } },
      { path: 'key', kind: 'resolve', enginedata: { html: 'x' } },
      {
        path: '/for',
        kind: 'resolve',
        headers: { 'X-Cookie': '${request.header.cookie}' },
        enginedata: {
          when: [
            {
              if: { user: 'anna' },
              html: 'Dear Anna',
              headers: { 'X-Branch': '${request.header.cookie}' },
            },
          ],
          html: 'Dear all',
        },
      },
      {
        path: '/rendered',
        kind: 'content',
        engine: 'template',
        enginedata: { render: 'server', template: 'Dear {{ user.name }}' },
      },
      {
        path: '/nonce',
        kind: 'content',
        content: '<style nonce="${nonce}">p{}</style>',
        contenttype: 'text/html',
      },
      { path: '/all', kind: 'content', content: 'all' },
    ],
  },
);

const anna = { 'x-user': 'anna', 'x-forwarded-for': '192.0.2.1' };
const contentOf = ({ url }: TestSite, path: string): string =>
  `${url}/svc1/userinterface/get_content?_v.origin=${encodeURIComponent(url)}&_v.path=${path}`;
const linkOf = ({ url }: TestSite, key: string): string =>
  `${url}/svc1/userinterface.link.htm?k=${key}`;

suite('pages that operations answer with', () => {
  test('have the fields of the ini file for their path', async () => {
    const at = await site;
    const policyOf = async (url: string): Promise<string | null> =>
      (await fetch(url)).headers.get('content-security-policy');
    assert.equal(await policyOf(`${at.url}/up/page.html`), "default-src 'none'");
    assert.equal(await policyOf(contentOf(at, '/up/page.html')), "default-src 'none'");
    assert.equal(await policyOf(linkOf(at, '/link/a')), "default-src 'none'");
    assert.equal(await policyOf(linkOf(at, 'key')), "default-src 'none'");
    const own = encodeURIComponent(at.url);
    const elsewhere = encodeURIComponent('http://other.example');
    const other = contentOf(at, '/up/page.html').replace(own, elsewhere);
    assert.match((await policyOf(other)) ?? '', /sandbox/);
  });

  test('do not show cookies of the server to the page rule', async () => {
    const at = await site;
    const names = ['waymark_login', '__Host-waymark_login', 'waymark_session_0123abcd'];
    const own = [...names, 'waymark_draft', 'waymark_signin_a'].map((name) => `${name}=SECRET`);
    const headers = { ...anna, cookie: [...own, 'theme=dark'].join('; ') };
    const resolve = `${at.url}/svc1/userinterface/get_resolve?_v.k=/for`;
    for (const url of [`${at.url}/for`, linkOf(at, '/for'), resolve]) {
      const reply = await fetch(url, { headers });
      const shown = `${JSON.stringify([...reply.headers])} ${await reply.text()}`;
      assert.match(shown, /theme=dark/, url);
      assert.doesNotMatch(shown, /SECRET/, url);
    }
  });
});

suite('a Cache-Control of the ini file', () => {
  for (const [path, expected] of [
    ['/all', /^public, max-age=3600$/],
    ['/link/a', /^public, max-age=3600$/],
    ['/for', /^private, no-store$/],
    ['/rendered', /^private, max-age=3600$/],
    ['/nonce', /^private, no-store$/],
  ] as const) {
    test(`shares ${path} only if it is the same for all`, async () => {
      const at = await site;
      const urls = [at.url + path, contentOf(at, path)];
      for (const url of path === '/for' ? [...urls, linkOf(at, path)] : urls) {
        const reply = await fetch(url, { headers: anna });
        assert.match(reply.headers.get('cache-control') ?? '', expected, url);
      }
    });
  }
});
