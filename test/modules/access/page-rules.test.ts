import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { readTestConfig, startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { socketSource } from '../../core/server/h1/socket-source.ts';
import { connectHttp2 } from '../../core/server/h2/client.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';
import { ask } from '../files/disk-rig.ts';
import { basic, scryptLine } from './passwords.ts';

const section = '[access.staff]\npath =\npassword_file = users.txt\n';
const ini = `[fetch]\nallow_private = 127.0.0.0/8, ::1/128\n${section}`;
const files = { 'users.txt': scryptLine('ann', 'secret') };
const ann = { authorization: basic('ann', 'secret') };
const access = 'staff';

/** Page rules of all kinds with an access section, and open ones. */
function rulesOf(origin: string, live: string) {
  return [
    { path: '/page', kind: 'content', content: 'a page', access },
    { path: '/to', kind: 'resolve', enginedata: { target: '/secret-target' }, access },
    { path: '/html', kind: 'resolve', enginedata: { html: 'a breadcrumb' }, access },
    { path: '/over', kind: 'resolve', enginedata: { target: 'key:/html' } },
    { path: '/generic', kind: 'content', engine: 'html', enginedata: { page: '/page' } },
    { path: '/form', kind: 'insert-record', engine: 'html', table: 't', access },
    {
      ...{ path: '/rendered', kind: 'content', engine: 'template', access },
      enginedata: { page: '/frame.html', render: 'server', template: '{{ "from" }} a template' },
    },
    {
      ...{ path: '/frame.html', kind: 'content', contenttype: 'text/html' },
      content: '<!doctype html><title>t</title><main data-engine>frame</main>',
    },
    {
      ...{ path: '/app/*', kind: 'content.fetch', access },
      enginedata: { source: `${origin}/*`, methods: ['GET', 'HEAD', 'POST', 'OPTIONS'] },
    },
    {
      ...{ path: '/live', kind: 'content.fetch', access },
      enginedata: { source: live, methods: ['GET', 'UPGRADE'] },
    },
    { path: '/open', kind: 'content', content: 'open' },
    { path: '/app/open', kind: 'content', content: 'open too' },
  ];
}

const places = [
  ['/page', 'a page'],
  ['/html', 'a breadcrumb'],
  ['/to', 'secret-target'],
  ['/over', 'a breadcrumb'],
  ['/generic', 'a page'],
  ['/form', 'doctype'],
  ['/rendered', 'from a template'],
  ['/app/x', 'from the application'],
] as const;

/** Fields by which caches in front of a server store also what is private. */
const sharedCaches = [
  ...['cdn-cache-control', 'cloudflare-cdn-cache-control', 'surrogate-control'],
  ...['edge-control', 'x-accel-expires'],
];

async function sources(t: TestContext) {
  const requests: string[] = [];
  const app = await httpSource(t, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    assert.equal(request.headers.authorization, undefined, 'no source gets the password');
    response.setHeader('cache-control', 'public, max-age=600, s-maxage=900');
    for (const name of sharedCaches) response.setHeader(name, 'max-age=600');
    response.writeEarlyHints({ link: '</secret.css>; rel=preload; as=style' });
    request.resume().once('end', () => response.end('from the application'));
  });
  const live = await socketSource(t, (opened) => {
    requests.push('websocket');
    opened.send('from the websocket');
  });
  return { requests, rules: rulesOf(app.origin, live) };
}

suite('access of page rules', () => {
  test('asks for all kinds of rules, also cached and prepared answers', async (t) => {
    const { rules, requests } = await sources(t);
    const site = await startSite(t, { ini, files, rules });
    for (let turn = 0; turn < 2; turn += 1) {
      for (const [path, text] of places) {
        for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE']) {
          if (!['GET', 'HEAD'].includes(method) && ['/over', '/generic'].includes(path)) continue;
          const count = requests.length;
          const headers = { 'if-none-match': '*', range: 'bytes=0-1' };
          for (const more of [{}, headers]) {
            const refused = await ask(site.url, path, { method, headers: more });
            assert.equal(refused.status, 401, `${method} ${path}`);
            assert.match(refused.fields['www-authenticate'] ?? '', /^Basic realm="staff"/);
            assert.match(refused.fields['cache-control'] ?? '', /no-store/);
            assert.ok(!refused.text.includes(text), path);
          }
          assert.equal(requests.length, count, 'no source is asked');
        }
        const seen = await ask(site.url, path, { headers: ann });
        assert.notEqual(seen.status, 401, path);
        assert.match(`${seen.text} ${seen.fields.location ?? ''}`, new RegExp(text), path);
        assert.match(seen.fields['cache-control'] ?? '', /^private|^no-store/, path);
        for (const name of sharedCaches) assert.equal(seen.fields[name], undefined, name);
        const { etag } = seen.fields;
        if (etag === undefined) continue;
        const known = { 'if-none-match': etag };
        assert.equal((await ask(site.url, path, { headers: known })).status, 401, 'no 304');
        const again = await ask(site.url, path, { headers: { ...known, ...ann } });
        assert.equal(again.status, 304, path);
      }
    }
    assert.equal(requests.filter((one) => one === 'GET /x').length, 1, 'its answer is cached');
    for (const path of ['/open', '/app/open']) {
      assert.equal((await ask(site.url, path)).status, 200, path);
    }
  });

  test('asks under every spelling that reaches the rule', async (t) => {
    const { rules, requests } = await sources(t);
    const site = await startSite(t, { ini, files, rules });
    for (const path of ['/app/', '/app/%2e', '/%61pp/x', '/app//x', '/app/%6Fpen2', '/app/open/']) {
      assert.notEqual((await ask(site.url, path)).status, 200, path);
    }
    for (const path of ['/%70age', '/page?x']) {
      assert.equal((await ask(site.url, path)).status, 401, path);
    }
    assert.equal((await ask(site.url, '//page')).fields.location, '/page');
    assert.deepEqual(requests, []);
  });

  test('asks for websockets, and for what operations answer', async (t) => {
    const { rules, requests } = await sources(t);
    const site = await startSite(t, { ini, files, rules });
    const url = `${site.url.replace('http', 'ws')}/live`;
    const refused = new WebSocket(url);
    const [, answer] = (await once(refused, 'unexpected-response')) as [
      unknown,
      { statusCode: number; destroy(): void },
    ];
    assert.equal(answer.statusCode, 401);
    answer.destroy();
    assert.deepEqual(requests, []);
    const opened = new WebSocket(url, { headers: ann });
    t.after(() => {
      opened.terminate();
    });
    const [message] = (await once(opened, 'message')) as [Buffer];
    assert.equal(message.toString(), 'from the websocket');

    const where = { origin: site.url, path: '/page' };
    for (const [name, v] of [
      ['svc1.userinterface.get', where],
      ['svc1.userinterface.get_render', where],
      ['svc1.userinterface.get_resolve', { k: '/to' }],
      ['svc1.userinterface.get_resolve', { k: '/over' }],
    ] as const) {
      const denied = await site.call(name, v, { apikey: undefined });
      assert.equal(denied.error?.code, 'unauthenticated', name + JSON.stringify(v));
      const allowed = await site.call(name, v, { apikey: undefined, headers: ann });
      assert.equal(allowed.error, undefined, name + JSON.stringify(v));
      assert.equal(allowed.data.access, undefined, 'no page sees the name of the section');
      const headers = { ...ann, origin: 'https://evil.example' };
      const foreign = await site.call(name, v, { apikey: undefined, headers });
      assert.equal(foreign.error?.code, 'forbidden', name);
    }
    const socket = await site.socket();
    for (const name of ['svc1.userinterface.get_content', 'svc1.userinterface.follow']) {
      assert.equal((await socket.call(name, where)).error?.code, 'unauthenticated', name);
    }
    for (const k of ['/to', '/over']) {
      const link = `/svc1/userinterface/link.htm?k=${k}`;
      assert.equal((await ask(site.url, link)).status, 401, k);
      assert.notEqual((await ask(site.url, link, { headers: ann })).status, 401, k);
      assert.equal((await ask(site.url, link)).status, 401, k);
    }
  });

  test('holds for HTTP/2, and no early hints come before it', async (t) => {
    const { rules, requests } = await sources(t);
    const site = await startTlsSite(t, { ini, files, rules });
    const client = await connectHttp2(t, site);
    for (const [path] of places) {
      assert.equal((await client.ask(path)).status, 401, path);
      assert.notEqual((await client.ask(path, ann)).status, 401, path);
    }
    requests.length = 0;
    const post = { ':method': 'POST' };
    assert.equal((await client.ask('/app/y', post, 'x'.repeat(200_000))).status, 401);
    assert.equal((await client.ask('/app/y', { ...post, ...ann }, 'x')).status, 200);
    assert.deepEqual(requests, ['POST /y']);
  });

  test('holds in the preview of a draft', async (t) => {
    const site = await startSite(t, { ini, files });
    await site.call('svc1.draft.insert', { name: 'spring' });
    const v = { path: '/new', content: 'soon', access };
    await site.call('svc1.userinterface.insert', v, { draft: 'spring' });
    const { data } = await site.call('svc1.draft.preview', { draft: 'spring' });
    const opened = await fetch(data.url as string, { redirect: 'manual' });
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const preview = { cookie };
    assert.equal((await ask(site.url, '/new', { headers: preview })).status, 401);
    assert.match((await ask(site.url, '/new', { headers: { ...preview, ...ann } })).text, /soon/);
  });

  test('is explained, and adds to what protects the path', async (t) => {
    const more = '[access.office]\npath = /page\nallow = 127.0.0.0/8, ::1/128\n';
    const { rules } = await sources(t);
    const site = await startSite(t, { ini: ini + more, files, rules });
    const explain = async (v: object) =>
      (await site.call('svc1.userinterface.explain', v)).data as {
        access?: { rule: string; passes: boolean | null }[];
      };
    const passesOf = async (v: object) =>
      (await explain(v)).access?.map(({ rule, passes }) => [rule, passes]);
    const here = { path: '/page', ip: '127.0.0.1' };
    assert.deepEqual(await passesOf(here), [
      ['office', true],
      ['staff', null],
    ]);
    assert.deepEqual(await passesOf({ path: '/over' }), [['staff', null]]);
    assert.deepEqual(await passesOf({ k: '/over' }), [['staff', null]]);
    assert.deepEqual(await passesOf({ path: '/app/x' }), [['staff', null]]);
    assert.equal(await passesOf({ path: '/open' }), undefined);
    assert.equal((await ask(site.url, '/page')).status, 401);
  });
});

suite('a page rule with an access section that does not exist', () => {
  // §2.1: "Fields that were sent on insert or edit but were not valid at that moment. They are saved
  // here instead of the request being rejected."
  test('waits, is closed to everybody and named, also in an import', async (t) => {
    const site = await startSite(t, { ini, files });
    const v = { path: '/page', content: 'a page', access: 'staf' };
    const { data: saved } = await site.call('svc1.userinterface.insert', v);
    assert.deepEqual([saved.access, saved._unknowns_], [undefined, { access: 'staf' }]);
    assert.deepEqual(saved.problems, [
      {
        field: 'access',
        reason: 'missing',
        message:
          'The ini file has no section [access.staf]. Did you mean staff? The page is closed until then.',
        suggestion: 'staff',
      },
    ]);
    assert.equal((await ask(site.url, '/page', { headers: ann })).status, 403);
    await site.call('svc1.userinterface.invalidate', { id: saved.id });
    const ndjson = JSON.stringify({ ...v, enginecomments: 'imported' });
    const { data } = await site.call('svc1.userinterface.import', { ndjson });
    assert.deepEqual([data.imported, data.unknowns[0].problems[0].reason], [1, 'missing']);
    assert.equal((await ask(site.url, '/page', { headers: ann })).status, 403);
    const invalid = { path: '/other', content: 'x', access: 5 };
    const waiting = await site.call('svc1.userinterface.insert', invalid);
    assert.deepEqual(waiting.data.unknowns, ['access']);
    assert.equal((await ask(site.url, '/other', { headers: ann })).status, 403);
    const { data: why } = await site.call('svc1.userinterface.explain', { path: '/other' });
    assert.match(why.notes.join(), /not valid and waits/);
    await site.call('svc1.userinterface.edit', { id: waiting.data.id, access: null });
    assert.equal((await ask(site.url, '/other')).status, 200);
  });

  test('is open to those of the section as soon as that exists', async (t) => {
    const site = await startSite(t, { ini, files });
    const text = await readFile(site.iniFile, 'utf8');
    const later = { path: '/later', content: 'later', access: 'later' };
    const { data } = await site.call('svc1.userinterface.insert', later);
    assert.deepEqual(data.unknowns, ['access']);
    assert.equal((await ask(site.url, '/later', { headers: ann })).status, 403);
    await reload(site, `${text}\n${section.replaceAll('staff', 'later')}`);
    assert.equal((await ask(site.url, '/later')).status, 401);
    assert.equal((await ask(site.url, '/later', { headers: ann })).status, 200);
    const edited = await site.call('svc1.userinterface.edit', { id: data.id, content: 'edited' });
    assert.deepEqual([edited.data.access, edited.data._unknowns_], ['later', undefined]);
  });

  test('refuses for the client alone, beside other sections and without any', async (t) => {
    const shared = `[headers.edge]\n${sharedCaches.map((name) => `${name} = max-age=600\n`).join('')}`;
    for (const one of [`${ini}${shared}`, shared]) {
      const site = await startSite(t, { ini: one, files });
      const ndjson = JSON.stringify({ path: '/page', content: 'a page', access: 'staf' });
      await site.call('svc1.userinterface.import', { ndjson });
      const { status, fields } = await ask(site.url, '/page', { headers: ann });
      assert.deepEqual([status, fields['cache-control']], [403, 'no-store']);
      for (const name of sharedCaches) assert.equal(fields[name], undefined, name);
    }
  });

  test('is closed when a reload removes the section, with a line in the log', async (t) => {
    const { rules } = await sources(t);
    const site = await startSite(t, { ini, files, rules });
    const text = await readFile(site.iniFile, 'utf8');
    assert.equal((await ask(site.url, '/page', { headers: ann })).status, 200);
    const [kept] = (await site.call('svc1.userinterface.list', { path: '/page' })).data.rows;
    await reload(site, text.replace(section, ''));
    for (const [path] of places) {
      const { status, fields } = await ask(site.url, path, { headers: ann });
      assert.equal(status, 403, path);
      assert.match(fields['cache-control'] ?? '', /private|no-store/, path);
    }
    await site.untilLogged(
      /\d page rules name \[access\.staff\], which the ini file does not have/,
    );
    const edited = { id: kept.id, content: 'edited' };
    assert.equal((await site.call('svc1.userinterface.edit', edited)).error, undefined);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/page' });
    assert.deepEqual([data.access[0].passes, data.status], [false, 403]);
    const where = { origin: site.url, path: '/page' };
    const denied = await site.call('svc1.userinterface.get', where, { apikey: undefined });
    assert.equal(denied.error?.code, 'forbidden');
    await reload(site, text);
    assert.equal((await ask(site.url, '/page', { headers: ann })).text, 'edited');
    assert.equal((await ask(site.url, '/page')).status, 401);
  });
});

async function reload(site: TestSite, text: string): Promise<void> {
  await writeFile(site.iniFile, text);
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
}
