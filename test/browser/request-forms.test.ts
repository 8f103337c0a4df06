import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { oneBrowser } from './browser.ts';

const openTab = oneBrowser();

const forms = [
  ...[
    '/a%2Fb',
    '/a%5Cb',
    '/a|b',
    '/a^b',
    '/a[b]',
    '/a{b}',
    '/a`b',
    '/a"b',
    '/a<b>',
    '/a\\b',
    '/a b',
  ],
  ...['/%e9', '/%ff%fe', '//a//b', '/a//b', '/é', '/a;v=1', '/a/../b', '/%61', '/a%zz', '/a%'],
  ...[
    "/a?x=|{}^`'",
    '/a?x=é',
    '/a?%zz',
    '/a?',
    '/@scope%2fname',
    '/.well-known/x',
    '/~a/!$&*+,=:@',
  ],
];

test('an application gets every path as a browser sends it', async (t) => {
  const seen: (string | undefined)[] = [];
  const source = await httpSource(t, ({ url }, response) => {
    if (url !== '/page') seen.push(url);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Page</h1>');
  });
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [{ path: '/*', kind: 'content.fetch', enginedata: { source: `${source.origin}/*` } }],
  });
  const { page } = await openTab(t);
  await page.goto(`${site.url}/page`);
  for (const form of forms) {
    seen.length = 0;
    const url = form.startsWith('//') ? site.url + form : form;
    const { status, sent } = await page.evaluate<{ status: number; sent: string }>(
      `(async () => {
        const { pathname, search } = new URL(${JSON.stringify(url)}, location.href);
        const { status } = await fetch(${JSON.stringify(url)}, { cache: 'no-store' });
        return { status, sent: pathname + search };
      })()`,
    );
    // No server reads an escape without two digits in the same way; nginx and Caddy refuse it, too.
    const isBroken = /%(?![0-9a-f]{2})/i.test(sent.split('?', 1)[0] ?? '');
    assert.deepEqual([status, ...seen], isBroken ? [400] : [200, sent], form);
  }
});
