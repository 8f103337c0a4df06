import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageFieldNames } from '../../../src/core/http/content/page.ts';
import { startSite } from '../../harness.ts';

test('a page and its 304 have the headers of all pages', async (t) => {
  const { url } = await startSite(t, {
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/file.html': '<p>a file</p>' },
    rules: [
      { path: '/page.html', kind: 'content', content: 'a page' },
      { path: '/generic', kind: 'content', engine: 'html', enginedata: { html: 'generic' } },
      { path: '/crumb', kind: 'resolve', enginedata: { html: 'a breadcrumb' } },
    ],
  });
  const paths = ['/file.html', '/page.html', '/generic', '/crumb', '/none', '/svc1/engine.js'];
  for (const path of paths) {
    // Each content coding has its own entity tag.
    const plain = { 'accept-encoding': 'identity' };
    const reply = await fetch(url + path, { headers: plain });
    await reply.text();
    const etag = reply.headers.get('etag');
    const replies = [
      reply,
      ...(etag === null
        ? []
        : [await fetch(url + path, { headers: { ...plain, 'if-none-match': etag } })]),
    ];
    if (etag !== null) assert.equal(replies[1]?.status, 304, path);
    for (const { headers, status } of replies) {
      for (const name of pageFieldNames) assert.ok(headers.has(name), `${path} ${status} ${name}`);
    }
  }
});
