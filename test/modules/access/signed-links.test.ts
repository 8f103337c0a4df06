import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { signedQuery, verifyLink } from '../../../src/modules/access/signed-links.ts';
import { pathOf } from '../../request-path.ts';
import { runHere } from '../../cli/here.ts';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { ask, eventually } from '../files/disk-rig.ts';
import { basic, scryptLine } from './passwords.ts';

const key = randomBytes(32);

suite('a signed link', () => {
  test('opens its page, by GET and HEAD, until it ends', async (t) => {
    const seen: string[] = [];
    const app = await httpSource(t, (request, response) => {
      seen.push(`${request.method ?? ''} ${request.url ?? ''}`);
      response.setHeader('cache-control', 'public, max-age=60').end('from the application');
    });
    const site = await startSite(t, {
      ini: `
[disk.site]
root = site
[proxy.app]
path = /internal/app/
source = ${app.origin}
[access.internal]
path = /internal/*
satisfy = any
password_file = users.txt
link_key_file = links.key
`,
      files: {
        'site/internal/a b.txt': 'a file',
        'users.txt': scryptLine('ann', 'secret'),
        'links.key': `${key.toString('base64')}\n`,
      },
      rules: [{ path: '/internal/page', kind: 'content', content: 'a page' }],
    });
    const sign = async (path: string, time = '24h'): Promise<string> => {
      const words = ['link', 'sign', site.url + path, '--for', time, '--config', site.iniFile];
      const { code, out, err } = await runHere(words);
      assert.equal(code, 0, err);
      return out.trim().slice(site.url.length);
    };
    for (const [path, text] of [
      ['/internal/a%20b.txt', 'a file'],
      ['/internal/page?x=1', 'a page'],
      ['/internal/app/x?a=1&expires=2', 'from the application'],
    ] as const) {
      const link = await sign(path);
      for (const turn of [1, 2]) {
        assert.equal((await ask(site.url, path)).status, 401, `${turn} ${path}`);
        const opened = await ask(site.url, link);
        assert.deepEqual([opened.status, opened.text], [200, text], link);
        assert.match(opened.fields['cache-control'] ?? '', /private/);
        assert.equal((await ask(site.url, link, { method: 'HEAD' })).status, 200);
        assert.equal((await ask(site.url, link, { method: 'POST' })).status, 401);
        for (const other of [
          link.replace('/internal/', '/internal/other/'),
          link.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
          link.replace('expires=', 'expires=9'),
          `${link}&x=1`,
          link.replace('?', '?y=1&'),
        ]) {
          assert.equal((await ask(site.url, other)).status, 401, other);
        }
        const host = { host: 'other.example' };
        assert.equal((await ask(site.url, link, { headers: host })).status, 401);
      }
    }
    assert.deepEqual(seen, ['GET /internal/app/x?a=1&expires=2'], 'one request, without the link');
    const ended = `/internal/page?${signedQuery(
      key,
      { origin: site.url, path: pathOf('/internal/page').path, query: '' },
      Math.floor(Date.now() / 1_000) - 1,
    )}`;
    assert.equal((await ask(site.url, ended)).status, 401);
    const ann = { authorization: basic('ann', 'secret') };
    assert.equal((await ask(site.url, ended, { headers: ann })).status, 200);
    const place = {
      origin: site.url,
      path: '/internal/page',
      query: (await sign('/internal/page')).split('?')[1],
    };
    const get = await site.call('svc1.userinterface.get_render', place, { apikey: undefined });
    assert.equal(get.error, undefined);

    const link = await sign('/internal/page');
    const file = join(site.folder, 'links.key');
    const fresh = randomBytes(32).toString('base64');
    await writeFile(file, `${fresh}\n${key.toString('base64')}\n`);
    const next = await sign('/internal/page');
    await eventually(
      async () => (await ask(site.url, next)).status,
      (status) => status === 200,
    );
    assert.equal((await ask(site.url, link)).status, 200, 'the former key still verifies');
    await writeFile(file, `${fresh}\n`);
    await eventually(
      async () => (await ask(site.url, link)).status,
      (status) => status === 401,
    );
    await rm(file);
    await eventually(
      async () => (await ask(site.url, next)).status,
      (status) => status === 401,
    );
    assert.match(site.logged(), /the keys of signed links cannot be read/);
  });

  test('is refused with a reason if nothing else lets in', async (t) => {
    const site = await startSite(t, {
      ini: '[access.a]\npath = /page\nlink_key_file = links.key\n',
      files: { 'links.key': key.toString('base64') },
      rules: [{ path: '/page', kind: 'content', content: 'page' }],
    });
    const place = { origin: site.url, path: pathOf('/page').path, query: '' };
    const ended = await ask(site.url, `/page?${signedQuery(key, place, 1_000)}`);
    assert.equal(ended.status, 403);
    assert.match(ended.text, /This link has ended/);
    assert.equal((await ask(site.url, '/page')).status, 403);
    for (const [words, wanted] of [
      [['/page', '--for', '1h'], /Give a whole URL/],
      [[`${site.url}/open`, '--for', '1h'], /No \[access\.<name>\] protects/],
      [[`${site.url}/page`, '--for', 'soon'], /write a time from 1s to 3650d/],
    ] as const) {
      const refused = await runHere(['link', 'sign', ...words, '--config', site.iniFile]);
      assert.match(refused.err, wanted);
      assert.equal(refused.out, '');
    }
    await assert.rejects(
      startSite(t, { ini: '[access.a]\nlink_key_file = k\n', files: { k: 'short' } }),
      /`link_key_file` = `k` has no key in line 1: it must be 32 bytes in base64; make one with/,
    );
  });

  test('covers every part of its URL', () => {
    const text = fc.stringMatching(/^[a-z&=]{0,8}$/);
    const parts = fc.record({ path: text, query: text, expires: fc.integer({ min: 1, max: 9 }) });
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const placeOf = ({ path, query }: { path: string; query: string }) => ({
          ...{ origin: 'http://a', path: pathOf(`/${path}`).path, query },
        });
        const signed = signedQuery(key, placeOf(one), one.expires);
        const own = verifyLink([key], { ...placeOf(one), query: signed }, 0);
        assert.deepEqual(own, { state: 'valid', query: one.query });
        assert.equal(verifyLink([], { ...placeOf(one), query: signed }, 0).state, 'wrong');
        const time = one.expires * 1_000;
        assert.equal(verifyLink([key], { ...placeOf(one), query: signed }, time).state, 'ended');
        const moved = { ...placeOf(other), query: signed };
        if (other.path !== one.path) assert.equal(verifyLink([key], moved, 0).state, 'wrong');
      }),
    );
  });
});
