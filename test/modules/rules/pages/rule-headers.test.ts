import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';
import { httpSource } from '../../../core/outbound/sources.ts';
import { ask } from '../../files/disk-rig.ts';

suite('the headers of a page rule', () => {
  test('set, add and remove fields of its answers, whatever its kind is', async (t) => {
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200, { 'x-powered-by': 'app', link: '</own.css>' }).end('far');
    });
    const headers = {
      'X-Robots-Tag': 'noindex',
      'Link[]': ['</a.css>', '</b.css>'],
      'X-Powered-By': '',
      'X-Path': '${path} ${request.header.X-A}',
    };
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n[headers.all]\nX-Robots-Tag = all\n',
      rules: [
        { path: '/page', kind: 'content', content: 'page', headers },
        { path: '/to', kind: 'resolve', enginedata: { target: '/page' }, headers },
        { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/` }, headers },
        { path: '/plain', kind: 'content', content: 'plain' },
      ],
    });
    for (const value of ['1', '2', '1']) {
      for (const [path, status, link] of [
        ['/page', 200, '</a.css>, </b.css>'],
        ['/to', 302, '</a.css>, </b.css>'],
        ['/far/x', 200, '</own.css>, </a.css>, </b.css>'],
      ] as const) {
        const seen = await ask(site.url, path, { headers: { 'x-a': value } });
        assert.deepEqual([seen.status, seen.fields.link], [status, link], path);
        assert.equal(seen.fields['x-path'], `${path} ${value}`);
        assert.equal(seen.fields['x-powered-by'], undefined);
        // The ini file comes last.
        assert.equal(seen.fields['x-robots-tag'], 'all');
      }
    }
    const page = await ask(site.url, '/page');
    const known = { headers: { 'if-none-match': page.fields.etag } };
    const again = await ask(site.url, '/page', known);
    assert.deepEqual([again.status, again.fields.link], [304, '</a.css>, </b.css>']);
    assert.equal((await ask(site.url, '/plain')).fields.link, undefined);
  });

  test('are a field as any other: edited, in the history, explained', async (t) => {
    const site = await startSite(t);
    const insert = { path: '/p', kind: 'content', content: 'p', headers: { 'X-A': '1' } };
    const { data } = await site.call('svc1.userinterface.insert', insert);
    assert.equal((await ask(site.url, '/p')).fields['x-a'], '1');
    await site.call('svc1.userinterface.edit', { id: data.id, headers: { 'X-A': '2' } });
    assert.equal((await ask(site.url, '/p')).fields['x-a'], '2');
    const history = await site.call('svc1.userinterface.read', { id: data.id }, { qk: 'history' });
    assert.match(JSON.stringify(history.data), /"X-A":"1"/);
    const explained = await site.call('svc1.userinterface.explain', { path: '/p' });
    assert.deepEqual(explained.data.notes, ['Its headers change X-A.']);
    await site.call('svc1.userinterface.edit', { id: data.id, headers: null });
    assert.equal((await ask(site.url, '/p')).fields['x-a'], undefined);
  });

  test('wait in _unknowns_ if they are not valid', async (t) => {
    const site = await startSite(t);
    for (const headers of [
      { 'Content-Length': '5' },
      { 'Bad Name': 'x' },
      { 'X-A': 'a\r\nX-B: b' },
      { 'X-A': '${nobody}' },
      { 'X-A': 5 },
      {},
      'X-A: b',
    ]) {
      const insert = { path: '/p', kind: 'content', content: 'p', headers };
      const { data } = await site.call('svc1.userinterface.insert', insert);
      const text = JSON.stringify(data);
      assert.match(text, /"field":"headers[".]/, text);
      assert.deepEqual(data._unknowns_, { headers }, text);
    }
    assert.equal((await ask(site.url, '/p')).status, 200);
  });
});

suite('a nonce with security = strict', () => {
  const content =
    '<script nonce="${nonce}">a()</script>' +
    '<p>text</p>'.repeat(200) +
    '<style nonce="${nonce}">';
  const rules = [
    { path: '/page', kind: 'content', content },
    { path: '/plain', kind: 'content', content: '<p>plain</p>' },
    { path: '/a.json', kind: 'content', contenttype: 'application/json', content },
  ];

  test('reaches a stored page, another one each time, also compressed', async (t) => {
    const site = await startSite(t, { ini: '[headers.a]\nsecurity = strict\n', rules });
    const seen = new Set<string>();
    for (const headers of [{}, { 'if-none-match': '*' }, { range: 'bytes=0-5' }, {}]) {
      const { status, fields, text } = await ask(site.url, '/page', { headers });
      const policy = String(fields['content-security-policy']);
      const [, nonce = ''] = /script-src 'self' 'nonce-([A-Za-z0-9+/=]{24})'/.exec(policy) ?? [];
      assert.equal(text.split(`nonce="${nonce}"`).length, 3);
      assert.equal(status, 200);
      assert.deepEqual([fields.etag, fields['cache-control']], [undefined, 'private, no-store']);
      seen.add(nonce);
    }
    assert.equal(seen.size, 4);
    const zipped = await ask(site.url, '/page', { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(zipped.fields['content-encoding'], 'gzip');
    const head = await ask(site.url, '/page', { method: 'HEAD' });
    assert.match(String(head.fields['content-security-policy']), /nonce-/);
    for (const path of ['/plain', '/a.json']) {
      const { fields } = await ask(site.url, path);
      assert.doesNotMatch(String(fields['content-security-policy']), /nonce/);
      assert.notEqual(fields.etag, undefined);
    }
  });

  test('is a variable of other policies, and absent where no policy has one', async (t) => {
    const own = `[headers.a]\nContent-Security-Policy = "script-src 'nonce-\${nonce}'"\n`;
    const site = await startSite(t, { ini: own, rules });
    const { fields, text } = await ask(site.url, '/page');
    const [, nonce = ''] = /'nonce-(.+)'/.exec(String(fields['content-security-policy'])) ?? [];
    assert.match(text, new RegExp(`nonce="${RegExp.escape(nonce)}"`));
    const without = await startSite(t, { rules });
    const plain = await ask(without.url, '/page');
    assert.equal(plain.text, content);
    assert.notEqual(plain.fields.etag, undefined);
    const asked =
      '[proxy.a]\nsource = http://127.0.0.1:9\n[proxy.a.request_headers]\nX = ${nonce}\n';
    await assert.rejects(startSite(t, { ini: asked }), /nonce/);
  });

  test('explain names what changes the fields', async (t) => {
    const site = await startSite(t, {
      ini: `[disk.site]
root = site
headers_file = _headers
[headers.all]
security = strict
[headers.other]
path = /other/*
X-A = b
`,
      files: { 'site/_headers': '/*\n  X-B: c\n', 'site/a.txt': 'a' },
      rules,
    });
    const explain = async (path: string) =>
      (await site.call('svc1.userinterface.explain', { path })).data.headers;
    assert.deepEqual(await explain('/a.txt'), [
      'line 1 of headers_file of [disk.site]',
      '[headers.all]',
    ]);
    assert.deepEqual(await explain('/other/x'), ['[headers.all]', '[headers.other]']);
    assert.deepEqual(await explain('/page'), ['[headers.all]']);
  });
});
