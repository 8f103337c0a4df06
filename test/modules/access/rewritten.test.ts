import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { ask } from '../files/disk-rig.ts';
import { basic, scryptLine } from './passwords.ts';

const files = {
  'site/internal/a.txt': 'inside',
  'site/_redirects': '/line /internal/a.txt 200!\n',
  'users.txt': scryptLine('ann', 'secret'),
  'others.txt': scryptLine('bob', 'hidden'),
};
const rewrites = `
[disk.site]
root = site
redirects = _redirects
[rewrite.open]
match = ^/open/(.*)$
to = /internal/$1
[rewrite.staff]
match = ^/staff/(.*)$
to = /internal/$1
`;
const ann = { headers: { authorization: basic('ann', 'secret') } };

suite('a path that leads to another one inside the server', () => {
  test('is protected by the access rules of both', async (t) => {
    const ini = `${rewrites}
[access.internal]
path = /internal/*
password_file = users.txt
[access.staff]
path = /staff/*
allow = 192.0.2.1
`;
    const site = await startSite(t, { files, ini });
    for (const path of ['/open/a.txt', '/line', '/internal/a.txt', '/open/none']) {
      assert.equal((await ask(site.url, path)).status, 401, path);
    }
    for (let time = 0; time < 3; time += 1) {
      for (const path of ['/open/a.txt', '/line', '/internal/a.txt']) {
        const { status, text } = await ask(site.url, path, ann);
        assert.deepEqual([status, text], [200, 'inside'], path);
      }
      assert.equal((await ask(site.url, '/open/a.txt')).status, 401, 'without a password again');
      assert.equal((await ask(site.url, '/staff/a.txt', ann)).status, 403, 'the first path counts');
    }
  });

  test('asks for a password once, where one rule protects both', async (t) => {
    const ini = `${rewrites}\n[access.all]\npath = /*\npassword_file = users.txt\n`;
    const site = await startSite(t, { files, ini });
    for (const path of ['/open/a.txt', '/line']) {
      assert.equal((await ask(site.url, path)).status, 401);
      const { status, text } = await ask(site.url, path, ann);
      assert.deepEqual([status, text], [200, 'inside'], path);
    }
  });

  test('opens with its breadcrumb and its page for the password of their section', async (t) => {
    const seen: unknown[] = [];
    const app = await httpSource(t, (request, response) => {
      seen.push(request.headers.authorization);
      response.setHeader('content-type', 'text/html').end('a source');
    });
    const ini = `[proxy.app]\npath = /all/app/\nsource = ${app.origin}
[access.all]\npath = /all/*\npassword_file = users.txt
[access.other]\npath = /other/*\npassword_file = others.txt\n`;
    const rules = [
      { path: '/all/html', kind: 'resolve', enginedata: { html: 'inside' } },
      { path: '/other/html', kind: 'resolve', enginedata: { html: 'of others' } },
      { path: '/all/over', kind: 'resolve', enginedata: { target: 'key:/all/html' } },
      { path: '/all/out', kind: 'resolve', enginedata: { target: 'key:/other/html' } },
      { path: '/all/page', kind: 'content', content: 'inside' },
      { path: '/other/page', kind: 'content', content: 'of others' },
      ...['/all/page', '/other/page', '/all/app/'].map((page) => ({
        ...{ path: `/all/shows${page}`, kind: 'content', engine: 'html', enginedata: { page } },
      })),
    ];
    const site = await startSite(t, { files, ini, rules });
    for (let time = 0; time < 2; time += 1) {
      for (const path of ['/all/over', '/all/shows/all/page', '/all/shows/all/app/']) {
        assert.equal((await ask(site.url, path)).status, 401, path);
        const { status, text } = await ask(site.url, path, ann);
        assert.deepEqual([status, text], [200, path.includes('app') ? 'a source' : 'inside']);
      }
      for (const path of ['/all/out', '/all/shows/other/page']) {
        assert.equal((await ask(site.url, path, ann)).status, 401, path);
      }
    }
    assert.ok(seen.length > 0 && seen.every((one) => one === undefined), 'no source gets it');
  });

  test('is opened by one password of two sections, if it is right for both', async (t) => {
    const ini = `[disk.site]\nroot = site\n[access.all]\npassword_file = users.txt
[access.internal]\npath = /internal/*\npassword_file = others.txt\n`;
    const both = `${files['others.txt']}\n${scryptLine('eve', 'known')}`;
    const all = { ...files, 'users.txt': `${files['users.txt']}\n${both}`, 'others.txt': both };
    const site = await startSite(t, { files: all, ini });
    const statusOf = async (name: string, password: string) =>
      (
        await ask(site.url, '/internal/a.txt', {
          headers: { authorization: basic(name, password) },
        })
      ).status;
    assert.equal(await statusOf('eve', 'known'), 200);
    assert.equal(await statusOf('ann', 'secret'), 401);
    assert.equal((await ask(site.url, '/internal/a.txt')).status, 401);
  });

  test('is not opened by the password of another rule', async (t) => {
    const ini = `${rewrites}
[access.open]
path = /open/*
password_file = users.txt
[access.internal]
path = /internal/*
password_file = others.txt
`;
    const site = await startSite(t, { files, ini });
    assert.equal((await ask(site.url, '/open/a.txt', ann)).status, 401);
    assert.equal((await ask(site.url, '/internal/a.txt', ann)).status, 401);
  });
});
