import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../harness.ts';
import { ask } from '../static/disk-rig.ts';
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
