import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import {
  preparableRequest,
  type PreparableRequest,
} from '../../../src/core/pipeline/preparable-request.ts';
import { PreparedReplies, withOwnId } from '../../../src/core/pipeline/prepared.ts';
import { basic, scryptLine } from '../../modules/access/passwords.ts';
import { readTestConfig, startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { newIssuer } from '../../modules/visitors/issuer.ts';
import { randomRuns } from '../../random-runs.ts';

interface Answered {
  readonly status: number;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Sends a request with exactly these headers. */
function ask(
  { port }: Pick<TestSite, 'port'>,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: 'localhost', method, path, headers }, (response) => {
      let body = '';
      response.setEncoding('latin1').on('data', (text: string) => (body += text));
      response.on('end', () => {
        const { date: _date, ...fields } = response.headers;
        resolve({ status: response.statusCode ?? 0, fields, body });
      });
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

/**
 * Sends requests on one connection, each after the response to the one before, and calls the
 * functions in between; resolves to the responses, without their Date.
 */
async function askInTurn(
  port: number,
  steps: readonly (string | (() => Promise<unknown>))[],
): Promise<string[]> {
  const socket = connect(port, '127.0.0.1');
  const answers: string[] = [];
  for (const step of steps) {
    if (typeof step !== 'string') {
      await step();
      continue;
    }
    socket.write(step);
    let answer = '';
    while (!isWhole(answer)) {
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      answer += chunk.toString('latin1');
    }
    answers.push(answer.replace(/\r\nDate: [^\r\n]*/, '').replace(/\([0-9a-f-]{36}\)/, ''));
  }
  socket.destroy();
  return answers;
}

function isWhole(answer: string): boolean {
  const [head = '', ...content] = answer.split('\r\n\r\n');
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (content.length === 0) return false;
  const hasContent = length !== undefined && !head.startsWith('HTTP/1.1 304');
  return !hasContent || content.join('\r\n\r\n').length === Number(length);
}

/** A header that makes the server build the response anew, and changes nothing in it. */
const odd = { 'X-Odd': '1' };

/** Repeats a request until the response is as expected: the server checks the disk only now and then. */
async function askUntil(
  site: TestSite,
  path: string,
  isSo: (answer: Answered) => boolean,
): Promise<void> {
  const givesUpAtMs = Date.now() + 10_000;
  while (Date.now() < givesUpAtMs) {
    if (isSo(await ask(site, path))) return;
  }
  assert.fail(`${path} never became what it should`);
}

suite('a page that is requested often', () => {
  test('has the same response each time, on one connection and on several', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: {
        'site/large.txt': 'x'.repeat(100_000),
        'site/file.txt': 'file \xe9',
        'site/empty.txt': '',
        'site/dir/index.html': 'x',
      },
      rules: [{ path: '/page', content: 'page' }],
    });
    for (const path of [
      '/file.txt',
      '/large.txt',
      '/empty.txt',
      '/page',
      '/dir',
      '/dir/',
      '/none',
    ]) {
      const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n`;
      const plain = await askInTurn(site.port, Array(5).fill(`${head}\r\n`));
      const [first = ''] = plain;
      assert.deepEqual(plain, Array(5).fill(first), path);
      const etag = /\r\nETag: ([^\r\n]*)/i.exec(first)?.[1];
      if (etag === undefined) continue;
      const known = await askInTurn(
        site.port,
        Array(5).fill(`${head}If-None-Match: ${etag}\r\n\r\n`),
      );
      assert.match(known[0] ?? '', /^HTTP\/1\.1 304 /);
      assert.deepEqual(known, Array(5).fill(known[0]), path);
    }
    const lines = site.logged().match(/ (?:200|301|304|404) GET localhost\/\S* \d+ B /g);
    assert.equal(lines?.length, 7 * 5 + 5 * 5);
  });

  test('is not sent to a request whose Host and target only resemble its URL', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/sub/p.html', content: 'page' }] });
    const asked = (host: string, target: string): string =>
      `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const page = asked('localhost', '/sub/p.html');
    for (const [host, target, status] of [
      ['localhost/sub', '/p.html', 400],
      ['localhost', 'sub/p.html', 400],
      ['localhost/sub/p.html', '', 400],
      ['localhost:0', '/sub/p.html', 400],
      ['localhost', '/sub%2Fp.html', 404],
      ['localhost', '/sub//p.html', 308],
      ['localhost', '/sub/p.html%e9', 404],
      ['localhost', '/sub/p.html%3F', 404],
      ['LOCALHOST:80', '/sub/p%2Ehtml', 200],
    ] as const) {
      for (const before of [[], [page]]) {
        const answers = await askInTurn(site.port, [page, page, ...before, asked(host, target)]);
        assert.match(answers.at(-1) ?? '', new RegExp(`^HTTP/1.1 ${status} `), host + target);
      }
    }
  });

  test('is up to date within a connection', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/page', content: '0' }] });
    const { data } = await site.call('svc1.userinterface.list', {});
    const id = data.rows[0].id as string;
    const edits = (content: string) => () =>
      site.call('svc1.userinterface.edit', { id, content, contenttype: 'text/plain' });
    const head = 'GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const answers = await askInTurn(site.port, [
      ...[head, head, head, edits('1'), head, head, head, edits('2'), head],
    ]);
    const contents = answers.map((answer) => answer.at(-1));
    assert.deepEqual(contents, ['0', '0', '0', '1', '1', '1', '2']);
  });

  test('is sent in order with pipelined requests', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/page', content: 'page' }] });
    const head = 'GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const post =
      'POST /svc1/userinterface/get HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}';
    const last = head.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    const answer = await site.raw(head.repeat(3) + post + head + last + head);
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['200', '200', '200', '400', '200', '200']);
  });

  test('has new content as soon as an edit is acknowledged', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/page', content: '0' }] });
    const { data } = await site.call('svc1.userinterface.list', {});
    const id = data.rows[0].id as string;
    for (let edit = 1; edit <= 50; edit += 1) {
      await site.call('svc1.userinterface.edit', { id, content: String(edit) });
      for (let visit = 0; visit < 2; visit += 1) {
        assert.equal((await ask(site, '/page')).body, String(edit));
      }
    }
    const other = await site.call('svc1.userinterface.insert', { path: '/p*', content: 'x' });
    assert.equal(other.error, undefined);
    assert.equal((await ask(site, '/page')).body, '50');
  });

  test('is replaced by a file, and returns when the file is removed', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: { 'site/other.txt': 'other' },
      rules: [{ path: '/page.txt', content: 'stored' }],
    });
    assert.equal((await ask(site, '/page.txt')).body, 'stored');
    await writeFile(join(site.folder, 'site/page.txt'), 'file');
    await askUntil(site, '/page.txt', ({ body }) => body === 'file');
    await rm(join(site.folder, 'site/page.txt'));
    await askUntil(site, '/page.txt', ({ body }) => body === 'stored');
  });

  test('gets a 304 for a client that has it, whoever requested it before', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/page', content: 'x' }] });
    const { etag } = (await ask(site, '/page')).fields as { etag: string };
    const has = { 'If-None-Match': etag };
    for (const headers of [
      has,
      has,
      { ...has, 'If-Modified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    ]) {
      const { status, body, fields } = await ask(site, '/page', { headers });
      assert.deepEqual([status, body, fields.etag], [304, '', etag]);
    }
    assert.equal(
      (await ask(site, '/page', { headers: { 'If-None-Match': '"other"' } })).status,
      200,
    );
    assert.equal((await ask(site, '/page', { headers: { 'If-None-Match': '*' } })).status, 304);
    assert.equal((await ask(site, '/page')).status, 200);
  });

  test('has the headers of the current configuration', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\ncache_control = max-age=1\n',
      files: { 'site/page.txt': 'x' },
    });
    assert.equal((await ask(site, '/page.txt')).fields['cache-control'], 'max-age=1');
    const ini = await readFile(site.iniFile, 'utf8');
    await writeFile(site.iniFile, ini.replace('max-age=1', 'max-age=2'));
    site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    assert.equal((await ask(site, '/page.txt')).fields['cache-control'], 'max-age=2');
  });

  test('has Server-Timing for callers with the scope only', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/page', content: 'x' }] });
    for (let turn = 0; turn < 2; turn += 1) {
      assert.equal((await ask(site, '/page')).fields['server-timing'], undefined);
      const told = await ask(site, '/page', { headers: { apikey: site.adminKey } });
      assert.match(String(told.fields['server-timing']), /^waymark;desc="rule:/);
    }
  });

  test('has a line in the access log for each request', async (t) => {
    const site = await startSite(t, {
      ini: '[log]\nformat = json\n',
      rules: [{ path: '/page', content: 'four' }],
    });
    for (let visit = 0; visit < 3; visit += 1) await ask(site, '/page?q=1');
    await site.waymark.stop(1_000);
    const lines = site
      .logged()
      .split('\n')
      .filter((line) => line.includes('"target":"/page?q=1"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(lines.length, 3);
    const [first, ...others] = lines.map(({ time: _time, ms: _ms, ...line }) => line);
    for (const line of others) assert.deepEqual(line, first);
    assert.deepEqual(
      [first?.status, first?.bytes, first?.host],
      [200, 4, `localhost:${site.port}`],
    );
  });
});

const id = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

suite('a missing page that is requested often', () => {
  test('has another id each time, and a line with it in the access log', async (t) => {
    const site = await startSite(t, { ini: '[log]\nformat = json\n' });
    const ids: string[] = [];
    for (const accept of ['*/*', 'text/html', '*/*', 'text/html', 'text/html']) {
      const { status, fields, body } = await ask(site, '/none', { headers: { accept } });
      assert.equal(status, 404);
      const isPage = accept === 'text/html';
      assert.match(String(fields['content-type']), isPage ? /^text\/html/ : /^text\/plain/);
      const [own = '', ...others] = body.match(id) ?? [];
      assert.deepEqual(others, []);
      ids.push(own);
    }
    assert.equal(new Set(ids).size, 5);
    await site.waymark.stop(1_000);
    const lines = site.logged().split('\n');
    for (const own of ids) {
      const [line = '', ...others] = lines.filter((one) => one.includes(own));
      assert.match(line, /"status":404,/);
      assert.equal(others.length, 0);
    }
  });

  test('is there as soon as its insert is acknowledged, and gone with the invalidation', async (t) => {
    const site = await startSite(t);
    for (const lang of [undefined, 'de']) {
      for (let visit = 0; visit < 3; visit += 1) {
        assert.equal((await ask(site, '/page')).status, 404);
      }
      const v = { path: '/page', content: 'x', ...(lang && { lang }) };
      const { data } = await site.call('svc1.userinterface.insert', v);
      assert.equal((await ask(site, '/page')).status, 200);
      const { id: rule } = data;
      const { data: dry } = await site.call('svc1.userinterface.invalidate', { id: rule });
      await site.call('svc1.userinterface.invalidate', { id: rule, confirm: dry.digest });
    }
    assert.equal((await ask(site, '/page')).status, 404);
  });

  test('has the error page of the mount', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\nerrors = errors\n',
      files: { 'site/errors/404.html': '<h1>Lost</h1>' },
    });
    for (const accept of ['text/html', '*/*', 'text/html', '*/*']) {
      const { status, body } = await ask(site, '/none', { headers: { accept } });
      assert.deepEqual([status, body.includes('Lost')], [404, accept === 'text/html']);
    }
  });

  test('is only for those who may know that', async (t) => {
    const site = await startSite(t, {
      ini:
        '[access.staff]\npath = /staff/*\npassword_file = users.txt\n' +
        '[access.asked]\npath = /asked/*\nforward = http://127.0.0.1:1/\n',
      files: { 'users.txt': scryptLine('ann', 'secret') },
    });
    const ann = { authorization: basic('ann', 'secret') };
    const bob = { authorization: basic('bob', 'secret') };
    for (let turn = 0; turn < 4; turn += 1) {
      const found = await ask(site, '/staff/none', { headers: ann });
      assert.deepEqual([found.status, found.fields['cache-control']], [404, 'no-store']);
      assert.equal((await ask(site, '/staff/none')).status, 401);
      assert.equal((await ask(site, '/staff/none', { headers: bob })).status, 401);
      assert.equal((await ask(site, '/asked/none')).status, 503);
    }
  });

  test('leads those elsewhere whom a redirect is for', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\nredirects = _redirects\n',
      files: { 'site/_redirects': '/none /de/ 302 Language=de\n' },
    });
    for (let turn = 0; turn < 3; turn += 1) {
      for (const [language, status] of [
        ['en', 404],
        ['de', 302],
      ] as const) {
        const headers = { 'accept-language': language };
        assert.equal((await ask(site, '/none', { headers })).status, status);
      }
    }
  });

  test('is refused when a rate is used up', async (t) => {
    const site = await startSite(t, { ini: '[rate.all]\nrate = 3/d\n' });
    const statuses: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) statuses.push((await ask(site, '/none')).status);
    assert.deepEqual(statuses, [404, 404, 404, 429, 429]);
  });
});

suite('get_render of a page', () => {
  const render = (origin: string, path = '/page') =>
    `/svc1/userinterface/get_render?_v.origin=${origin}&_v.path=${path}`;

  test('has new data as soon as an edit is acknowledged', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.userinterface.insert', { path: '/page', content: 'x' });
    for (let rve = 1; rve <= 20; rve += 1) {
      await site.call('svc1.userinterface.edit', { id: data.id, enginedata: { rve } });
      for (let visit = 0; visit < 2; visit += 1) {
        const { body } = await ask(site, render(site.url));
        assert.equal(JSON.parse(body).data.enginedata.rve, rve);
      }
    }
  });

  test('names a user to that user only, by header or cookie', async (t) => {
    const issuer = await newIssuer('one');
    const sites = {
      field: { server: 'trust_proxy = 127.0.0.1/32', ini: '[auth]\nuser_header = X-User\n' },
      cookie: { ini: '[auth]\njwt_jwks = keys.json\n' },
    };
    for (const [how, setting] of Object.entries(sites)) {
      const site = await startSite(t, {
        ...setting,
        files: { 'keys.json': JSON.stringify({ keys: [issuer.jwk] }) },
        rules: [{ path: '/page', content: 'x' }],
      });
      for (const user of [undefined, 'ada', undefined, 'grace', undefined]) {
        const token = await issuer.sign({ claims: { sub: user } });
        const headers = how === 'field' ? { 'X-User': user ?? '' } : { Cookie: `jwt=${token}` };
        const asked = user === undefined ? {} : { headers };
        const { body } = await ask(site, render(site.url), asked);
        assert.equal(JSON.parse(body).data.user?.name, user, how);
      }
    }
  });

  test('gets a 304 for a client that has it, and is compressed for one that accepts that', async (t) => {
    const enginedata = { html: '<p>long</p>'.repeat(1_000) };
    const site = await startSite(t, { rules: [{ path: '/page', content: 'x', enginedata }] });
    const path = render(site.url);
    const { fields, body } = await ask(site, path);
    const has = { 'If-None-Match': String(fields.etag) };
    assert.equal((await ask(site, path, { headers: has })).status, 304);
    assert.equal((await ask(site, path, { headers: has })).status, 304);
    const wants = { 'Accept-Encoding': 'gzip' };
    const givesUpAtMs = Date.now() + 10_000;
    let coded = await ask(site, path, { headers: wants });
    while (coded.fields['content-encoding'] === undefined && Date.now() < givesUpAtMs) {
      coded = await ask(site, path, { headers: wants });
    }
    assert.equal(coded.fields.vary, 'Accept-Encoding, Origin');
    assert.notEqual(coded.fields.etag, fields.etag);
    assert.equal(gunzipSync(Buffer.from(coded.body, 'latin1')).toString(), body);
  });

  for (const origins of ['*', 'http://a.example, http://b.example']) {
    test(`is readable by pages of the allowed origins only: ${origins}`, async (t) => {
      const site = await startSite(t, {
        ini: `[auth]\ncors_origins = ${origins}\n`,
        rules: [{ path: '/page', content: 'x' }],
      });
      for (let turn = 0; turn < 2; turn += 1) {
        for (const page of ['a', 'b', 'c', '']) {
          const origin = `http://${page}.example`;
          const headers: Record<string, string> = page === '' ? {} : { Origin: origin };
          const { fields } = await ask(site, render(site.url), { headers });
          const isOpen = page === 'a' || page === 'b';
          assert.equal(
            fields['access-control-allow-origin'],
            page === '' ? undefined : origins === '*' ? '*' : isOpen ? origin : undefined,
          );
          assert.equal(fields.vary, 'Origin');
        }
      }
    });
  }
});

suite('a page from the cache', () => {
  /** A site with a page of a source that counts its requests. */
  async function start(t: TestContext, fields: Readonly<Record<string, string | string[]>> = {}) {
    let asked = 0;
    const { origin } = await httpSource(t, (_, response) => {
      asked += 1;
      response.writeHead(200, { 'Cache-Control': 'max-age=600', ...fields }).end(`page ${asked}`);
    });
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n[log]\nformat = json\n',
      rules: [
        {
          path: '/far/*',
          kind: 'content.fetch',
          enginedata: { source: `${origin}/*`, pass: ['Cookie'] },
        },
      ],
    });
    await kept(site, {});
    return { site, page: (headers = {}) => ask(site, '/far/page', { headers }) };
  }

  test('is a hit for all clients, each with a line in the log', async (t) => {
    const { site, page } = await start(t);
    for (let count = 0; count < 20; count += 1) {
      const { status, fields, body } = await page();
      assert.deepEqual([status, body], [200, 'page 1']);
      assert.match(String(fields['cache-status']), /^waymark; hit; ttl=\d+$/);
    }
    const hits = site.logged().match(/"cache":"hit"/g) ?? [];
    assert.ok(hits.length >= 20, `${hits.length} lines`);
  });

  test('is fetched again right after a purge', async (t) => {
    const { site, page } = await start(t);
    for (let round = 1; round <= 10; round += 1) {
      for (let count = 0; count < 3; count += 1) await page();
      await site.call('svc1.cache.purge', { all: true });
      const { fields, body } = await page();
      assert.match(String(fields['cache-status']), /fwd=uri-miss/);
      assert.equal(body, `page ${round + 1}`);
    }
  });

  test('is fetched again for a client that requests it (Cache-Control)', async (t) => {
    const { page } = await start(t);
    for (const directive of ['no-cache', 'max-age=0', 'no-store']) {
      const before = (await page()).body;
      await page();
      const { fields, body } = await page({ 'Cache-Control': directive });
      assert.match(String(fields['cache-status']), /fwd=/, directive);
      assert.notEqual(body, before);
    }
  });

  test('differs by language', async (t) => {
    const { page } = await start(t, { Vary: 'Accept-Language' });
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await page()).body, 'page 1');
      assert.equal((await page({ 'Accept-Language': 'de' })).body, 'page 2');
    }
  });

  test('differs for an empty header', async (t) => {
    const { page } = await start(t, { Vary: 'Accept-Language' });
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await page()).body, 'page 1');
      assert.equal((await page({ 'Accept-Language': '' })).body, 'page 2');
    }
  });

  test('differs by each line of Vary', async (t) => {
    const { page } = await start(t, {
      'Cache-Control': 'public, max-age=600',
      Vary: ['Accept-Language', 'Cookie'],
    });
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await page()).body, 'page 1');
      assert.equal((await page({ Cookie: 'user=ann' })).body, 'page 2');
      assert.equal((await page({ Cookie: 'user=ben' })).body, 'page 3');
    }
  });

  test('has one Date header', async (t) => {
    const { site } = await start(t);
    const request = 'GET /far/page HTTP/1.1\r\nHost: localhost\r\n\r\n';
    for (const answer of await askInTurn(site.port, Array<string>(5).fill(request))) {
      assert.match(answer, /^HTTP\/1.1 200 OK\r\n[^]*page 2$/);
      assert.doesNotMatch(answer, /\r\nDate:/i);
    }
  });
});

const fieldSets: readonly Readonly<Record<string, string>>[] = [
  {},
  { Accept: 'text/html', 'User-Agent': 'x', Cookie: 'a=b' },
  { 'accept-language': 'de' },
  { 'Accept-Language': 'en-GB, de;q=0.5' },
  { 'Accept-Language': 'fr, *;q=0' },
  { 'Accept-Encoding': 'gzip, br' },
  { 'Accept-Encoding': 'identity;q=0' },
  { 'If-None-Match': '"x"' },
  { 'If-None-Match': '*' },
  { 'If-None-Match': '"far"' },
  { 'Cache-Control': 'min-fresh=900' },
  { 'If-Modified-Since': new Date(Date.UTC(2100, 0)).toUTCString() },
  { Range: 'bytes=0-0' },
  { Host: 'other.example' },
  { Origin: 'http://other.example' },
  { Connection: 'close' },
];
const targets = [
  '/page',
  '/page?x',
  '/file.txt',
  '/empty',
  '/dir',
  '/dir/',
  '/none',
  '/%70age',
  '/gone',
  '/far/page',
  '/svc1/userinterface/get_render?_v.origin=http://localhost&_v.path=/page',
  '/svc1/userinterface/get?_v.origin=http://other.example&_v.path=/page',
];

test('no response depends on earlier requests', async (t) => {
  const { origin } = await httpSource(t, (_, response) => {
    response.writeHead(200, { 'Cache-Control': 'max-age=600', ETag: '"far"' }).end('far');
  });
  const site = await startSite(t, {
    ini:
      '[disk.site]\nroot = site\ncache_control = max-age=5\n' +
      '[fetch]\nallow_private = 127.0.0.0/8\n',
    files: { 'site/file.txt': 'file', 'site/dir/index.html': '<p>', 'site/empty': '' },
    rules: [
      { path: '/page', content: 'no language' },
      { path: '/page', content: 'deutsch', lang: 'de' },
      { path: '/page', content: 'other', origin: 'http://other.example', lang: 'en' },
      { path: '/gone', content: 'gone', httpresponse: 410 },
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } },
    ],
  });
  for (const headers of [{}, { Host: 'other.example' }]) await kept(site, headers);
  const made = await site.call('svc1.userinterface.insert', {
    path: '/page',
    content: '0',
    rve: 1,
  });
  let edits = 0;
  const step = fc.record({
    target: fc.constantFrom(...targets),
    headers: fc.constantFrom(...fieldSets),
    method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST'),
    hasTag: fc.boolean(),
    isEdited: fc.integer({ min: 0, max: 9 }).map((die) => die === 0),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      let tag: unknown;
      for (const { target, headers, method, hasTag, isEdited } of steps) {
        if (isEdited) {
          edits += 1;
          const v = { id: made.data.id as string, content: String(edits) };
          await site.call('svc1.userinterface.edit', v);
        }
        const fields = {
          ...headers,
          ...(hasTag && typeof tag === 'string' && { 'If-None-Match': tag }),
        };
        const answer = await ask(site, target, { method, headers: fields });
        const found = await ask(site, target, { method, headers: { ...fields, ...odd } });
        assert.deepEqual(comparable(answer), comparable(found));
        tag = answer.fields.etag;
      }
    }),
    { numRuns: randomRuns(60) },
  );
});

/** Removes what differs each time: the id in an error page, and the age of a cached response. */
function comparable({ body, fields, ...rest }: Answered): Answered {
  const { age: _age, 'cache-status': status, ...others } = fields;
  return {
    ...rest,
    body: body.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'id'),
    fields: { ...others, status: String(status).replace(/ttl=\d+/, 'ttl') },
  };
}

/** Repeats a request until the cache has the response of the source. */
async function kept(site: TestSite, headers: Record<string, string>): Promise<void> {
  let status: unknown;
  while (!String(status).startsWith('waymark; hit')) {
    status = (await ask(site, '/far/page', { headers })).fields['cache-status'];
  }
}

/** A request that may have a prepared answer, with its value of Accept. */
function preparable(accept = '*/*'): PreparableRequest {
  const head = {
    ...{ method: 'GET', url: '/', version: '1.1' as const, target: '/' },
    fields: ['Host', 'shop.example', 'Accept', accept],
  };
  return preparableRequest(head, 'http') ?? assert.fail();
}

const moment = { serving: {} as never, period: 0, nowMs: 0 };

test('a failure is prepared for one value of Accept, with an id for each request', () => {
  const prepared = new PreparedReplies();
  const body = { kind: 'bytes', bytes: Buffer.from('Quote 1.') } as const;
  const reply = { status: 404, fields: [], body, source: 'none', reason: 'not_found' } as const;
  const address = '127.0.0.1';
  const kept = { ...reply, failureId: '1' };
  prepared.keep(preparable(), moment, { reply: kept, address });
  assert.equal(prepared.find(preparable(), moment, address), undefined, 'it is not reusable');
  const again = { reply: { ...kept, isReusable: true }, address } as const;
  prepared.keep(preparable(), moment, again);
  assert.equal(prepared.find(preparable(), moment, address), undefined, 'it has failed once');
  prepared.keep(preparable(), moment, again);
  const found = prepared.find(preparable(), moment, address) ?? assert.fail();
  const { content, failureId, reason } = withOwnId(found, () => '2');
  assert.deepEqual([content, failureId, reason], ['Quote 2.', '2', 'not_found']);
  assert.equal(prepared.find(preparable('text/html'), moment, address), undefined);
});

test('an answer with a field that cannot be sent is not prepared', () => {
  const asked = preparable();
  for (const [value, isPrepared] of [
    ['text/plain', true],
    ['caf\u00e9', true],
    ['a/b\r\nx-more: 1', false],
    ['\u0100', false],
  ] as const) {
    const prepared = new PreparedReplies();
    const fields = ['Content-Type', value];
    const body = { kind: 'bytes', bytes: Buffer.from('a') } as const;
    const reply = { status: 200, fields, body, source: 'rule:1', isReusable: true } as const;
    prepared.keep(asked, moment, { reply, address: '127.0.0.1' });
    assert.equal(prepared.find(asked, moment, '127.0.0.1') !== undefined, isPrepared, value);
  }
});
