import assert from 'node:assert/strict';
import { appendFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { openNetworkFile, parseNetworkFile } from '../../../src/modules/access/network-file.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { temporaryFolder } from '../../folder.ts';
import { readTestConfig, startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { connectHttp2 } from '../../core/server/h2/client.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';

const files = { 'site/a.txt': 'a file', 'site/free/b.txt': 'free' };
const rules = [
  { path: '/page', kind: 'content', content: 'a page' },
  { path: '/to', kind: 'resolve', enginedata: { target: '/page' } },
];
const disk = '[disk.site]\nroot = site\n';

/** The statuses of several requests, one after the other. */
async function statuses(
  count: number,
  url: string,
  init: (at: number) => RequestInit = () => ({}),
): Promise<readonly number[]> {
  const found: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const reply = await fetch(url, { redirect: 'manual', ...init(at) });
    await reply.arrayBuffer();
    found.push(reply.status);
  }
  return found;
}

/** The status of an attempt to open a websocket; 101 if it opens. */
async function websocketStatus(url: string): Promise<number> {
  const socket = new WebSocket(url);
  return new Promise((resolve) => {
    socket.once('open', () => {
      socket.terminate();
      resolve(101);
    });
    socket.once('unexpected-response', (_, { statusCode = 0 }) => {
      socket.terminate();
      resolve(statusCode);
    });
    socket.on('error', () => undefined);
  });
}

suite('[rate.<name>]', () => {
  test('holds for all that answers below its paths, together', async (t) => {
    const { origin } = await httpSource(t, (_, response) => response.end('application'));
    const site = await startSite(t, {
      ...{ files, rules },
      ini: `${disk}[proxy.app]\npath = /app/\nsource = ${origin}\n[rate.all]\nrate = 7/h\nexcept = /free/*\n`,
    });
    const places = ['/a.txt', '/page', '/to', '/app/x', '/svc1/docs/', '/none', '/A.txt'];
    for (const place of places) {
      const [status = 0] = await statuses(1, site.url + place);
      assert.notEqual(status, 429, place);
    }
    for (const place of [...places, '/svc1/userinterface/get', '/svc1/console/']) {
      assert.deepEqual(await statuses(1, site.url + place), [429], place);
    }
    assert.equal(await websocketStatus(`${site.url.replace('http', 'ws')}/svc1/ws`), 429);
    assert.equal(await websocketStatus(`${site.url.replace('http', 'ws')}/app/live`), 429);
    assert.deepEqual(await statuses(3, `${site.url}/free/b.txt`), [200, 200, 200]);
  });

  test('holds for the messages of a websocket, by the path of their operation', async (t) => {
    const site = await startSite(t, {
      ...{ files, rules },
      ini:
        `${disk}[rate.get]\npath = /svc1/userinterface/*\nrate = 4/h\n` +
        '[rate.key]\npath = /svc1/webhook/*\nrate = 2/h\nby = key\n',
    });
    const socket = await site.socket();
    const where = { origin: site.url, path: '/page' };
    const codes: (string | undefined)[] = [];
    const call = async (name: string, v: object = {}): Promise<void> => {
      codes.push((await socket.call(name, v)).error?.code);
    };
    for (let at = 0; at < 3; at += 1) await call('svc1.userinterface.get', where);
    assert.deepEqual(await statuses(1, `${site.url}/svc1/userinterface/none`), [404]);
    await call('svc1.userinterface.get', where);
    await call('svc1.userinterface.get', { path: 7 });
    await call('svc1.session.read');
    const [limited] = ['rate_limited'];
    assert.deepEqual(codes, [undefined, undefined, undefined, limited, limited, undefined]);
    codes.length = 0;
    assert.deepEqual(
      await statuses(2, `${site.url}/svc1/webhook/list`, () => ({
        headers: { apikey: site.adminKey },
      })),
      [200, 200],
    );
    await call('svc1.session.authenticate', { apikey: site.adminKey });
    await call('svc1.webhook.list');
    assert.deepEqual(codes, [undefined, limited]);
  });

  test('holds for what operations answer of a page, so that there is no way around it', async (t) => {
    const asked: string[] = [];
    const app = await httpSource(t, ({ url = '' }, response) => {
      asked.push(url);
      response.setHeader('cache-control', 'no-store').end('from the application');
    });
    const ini =
      `[proxy.app]\npath = /api/\nsource = ${app.origin}\n` +
      '[rate.api]\npath = /api/*\nrate = 3/h\n[rate.go]\npath = /go\nrate = 2/h\n' +
      '[rate.all]\npath = /*\nrate = 24/h\n';
    const breadcrumb = { path: '/go', kind: 'resolve', enginedata: { html: 'here' } };
    const site = await startSite(t, { ini, rules: [breadcrumb] });
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/api/x`;
    const content = `${site.url}/svc1/userinterface/get_content?${place}`;
    assert.deepEqual(await statuses(2, content), [200, 200]);
    const socket = await site.socket();
    const v = { origin: site.url, path: '/api/y' };
    const get = async () => (await socket.call('svc1.userinterface.get_content', v)).error?.code;
    assert.deepEqual([await get(), await get()], [undefined, 'rate_limited']);
    assert.deepEqual(await statuses(1, content), [429]);
    assert.deepEqual(await statuses(1, `${site.url}/api/x`), [429]);
    assert.equal(asked.length, 3);
    const link = `${site.url}/svc1/userinterface/link.htm?k=/go`;
    assert.deepEqual(await statuses(3, link), [200, 200, 429]);
    const resolve = `${site.url}/svc1/userinterface/get_resolve?_v.k=/go`;
    assert.deepEqual(await statuses(1, resolve), [429]);
    // Each of these ten has counted once for the rate of all paths; that of /api/x was refused.
    assert.deepEqual((await statuses(20, `${site.url}/none`)).indexOf(429), 24 - 10);
  });

  test('counts a path that leads to another one inside the server for both, once each', async (t) => {
    const site = await startSite(t, {
      files: {
        'site/limited/a.txt': 'a file',
        'site/_redirects': '/line /limited/a.txt 200!\n/late /limited/a.txt 200\n',
      },
      ini:
        `${disk}redirects = _redirects\n[rewrite.open]\nmatch = ^/open/(.*)$\nto = /limited/$1\n` +
        '[rate.limited]\npath = /limited/*\nrate = 5/h\n[rate.open]\npath = /open/*\nrate = 2/h\n' +
        '[rate.all]\npath = /*\nrate = 20/h\n',
    });
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/open/a.txt`;
    const ways = ['/open/a.txt', '/line', '/late', '/limited/a.txt'];
    for (const path of [...ways, `/svc1/userinterface/get_content?${place}`]) {
      assert.deepEqual(await statuses(1, site.url + path), [200], path);
    }
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, /waymark_rate_requests_total\{.*rate="all".*result="passed"\} 6/);
    for (const path of [...ways, `/svc1/userinterface/get_content?${place}`]) {
      assert.deepEqual(await statuses(1, site.url + path), [429], path);
    }
  });

  test('holds for both addresses of breadcrumbs, whichever it names', async (t) => {
    const breadcrumb = { path: '/go', kind: 'resolve', enginedata: { html: 'here' } };
    const [dotted, plain] = ['/svc1/userinterface.link.htm', '/svc1/userinterface/link.htm'];
    for (const path of [dotted, plain, '/svc1/userinterface/*']) {
      const ini = `[rate.link]\npath = ${path}\nrate = 4/h\n`;
      const site = await startSite(t, { ini, rules: [breadcrumb] });
      assert.deepEqual(await statuses(2, `${site.url}${dotted}?k=/go`), [200, 200], path);
      assert.deepEqual(await statuses(3, `${site.url}${plain}?k=/go`), [200, 200, 429], path);
      assert.deepEqual(await statuses(1, `${site.url}${dotted}?k=/go`), [429], path);
    }
  });

  test('counts a wrong key as one, whatever asks for it', async (t) => {
    const site = await startSite(t, {
      ...{ files, rules },
      ini: `${disk}[log]\nexplain = yes\n[rate.key]\nrate = 1000/h\nby = key\n`,
    });
    const wrong = () => ({ headers: { apikey: `wmk_${'x'.repeat(43)}` } });
    const found = await statuses(21, `${site.url}/svc1/webhook/list`, wrong);
    assert.deepEqual(found, [...Array<number>(20).fill(401), 429]);
  });

  test('says what is left, and counts prepared answers', async (t) => {
    const site = await startSite(t, { files, ini: `${disk}[rate.slow]\nrate = 60/h\nburst = 5\n` });
    assert.deepEqual(await statuses(7, `${site.url}/a.txt`), [200, 200, 200, 200, 200, 429, 429]);
    const refused = await fetch(`${site.url}/a.txt`, { headers: { accept: 'text/plain' } });
    assert.equal(refused.status, 429);
    const wait = refused.headers.get('retry-after') ?? '';
    assert.match(wait, /^[1-6]\d$/);
    assert.equal(refused.headers.get('ratelimit-policy'), '"slow";q=60;w=3600');
    assert.equal(refused.headers.get('ratelimit'), `"slow";r=0;t=${wait}`);
    assert.equal(refused.headers.get('cache-control'), 'no-store');
    const says = await refused.text();
    assert.ok(says.includes(`Too many requests: the next one may come in ${wait} s`), says);
  });

  test('counts users, keys and fields, and the address of the others', async (t) => {
    const site = await startSite(t, {
      ...{ files, rules },
      server: 'trust_proxy = 127.0.0.0/8',
      ini:
        `${disk}[auth]\nuser_header = X-User\n` +
        '[rate.user]\npath = /page\nrate = 2/h\nby = user\n' +
        '[rate.key]\npath = /a.txt\nrate = 2/h\nby = key\n' +
        '[rate.field]\npath = /to\nrate = 2/h\nby = field:X-Plan\nstatus = 503\n',
    });
    const user = (name: string) => () => ({ headers: { 'x-user': name } });
    assert.deepEqual(await statuses(3, `${site.url}/page`, user('ann')), [200, 200, 429]);
    assert.deepEqual(await statuses(3, `${site.url}/page`, user('bob')), [200, 200, 429]);
    assert.deepEqual(await statuses(3, `${site.url}/page`), [200, 200, 429]);
    const key = (apikey: string) => () => ({ headers: { apikey } });
    assert.deepEqual(await statuses(3, `${site.url}/a.txt`, key(site.adminKey)), [200, 200, 429]);
    // Keys that are none do not get a rate each.
    const wrong = (at: number) => ({ headers: { apikey: `wmk_${at}${'x'.repeat(40)}` } });
    assert.deepEqual(await statuses(4, `${site.url}/a.txt`, wrong), [200, 200, 429, 429]);
    const plan = (at: number) => ({ headers: { 'x-plan': at < 3 ? 'a' : 'b' } });
    assert.deepEqual(await statuses(4, `${site.url}/to`, plan), [302, 302, 503, 302]);
  });

  test('counts an address of IPv6 by its network, and leaves out exempt networks', async (t) => {
    const site = await startSite(t, {
      ...{ files },
      server: 'trust_proxy = 127.0.0.0/8',
      ini: `${disk}[rate.all]\nrate = 2/h\nexempt = 10.0.0.0/8, fd00::/8\n`,
    });
    const from = (address: (at: number) => string) => (at: number) => ({
      headers: { 'x-forwarded-for': address(at) },
    });
    const url = `${site.url}/a.txt`;
    const sameNetwork = from((at) => `2001:db8:1:2::${at + 1}`);
    assert.deepEqual(await statuses(3, url, sameNetwork), [200, 200, 429]);
    const networks = from((at) => `2001:db8:1:${at + 3}::1`);
    assert.deepEqual(await statuses(3, url, networks), [200, 200, 200]);
    assert.deepEqual(
      await statuses(
        3,
        url,
        from(() => '10.1.2.3'),
      ),
      [200, 200, 200],
    );
    assert.deepEqual(
      await statuses(
        3,
        url,
        from(() => '::ffff:10.1.2.3'),
      ),
      [200, 200, 200],
    );
  });

  test('counts an address that a client invents as its own', async (t) => {
    const site = await startSite(t, { files, ini: `${disk}[rate.all]\nrate = 3/h\n` });
    const invented = (at: number) => ({
      headers: {
        'x-forwarded-for': `192.0.2.${at}`,
        forwarded: `for=192.0.2.${at}`,
        'x-real-ip': `192.0.2.${at}`,
      },
    });
    assert.deepEqual(await statuses(4, `${site.url}/a.txt`, invented), [200, 200, 200, 429]);
  });

  test('counts requests of HTTP/2 and of HTTP/1.1 together', async (t) => {
    const site = await startTlsSite(t, { files, ini: `${disk}[rate.all]\nrate = 4/h\n` });
    const client = await connectHttp2(t, site);
    const found: (number | undefined)[] = [];
    for (let at = 0; at < 6; at += 1) found.push((await client.ask('/a.txt')).status);
    assert.deepEqual(found, [200, 200, 200, 200, 429, 429]);
  });

  test('counts pipelined requests one by one', async (t) => {
    const site = await startSite(t, { files, ini: `${disk}[rate.all]\nrate = 3/h\n` });
    const { port, host } = new URL(site.url);
    const socket = connect(Number(port), '127.0.0.1');
    t.after(() => socket.destroy());
    const line = `GET /a.txt HTTP/1.1\r\nHost: ${host}\r\n`;
    socket.write(`${line}\r\n`.repeat(5) + `${line}Connection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    const found = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(found, ['200', '200', '200', '429', '429', '429']);
  });

  test('survives a reload, is explained, logged and counted', async (t) => {
    const ini = `${disk}[log]\nformat = json\n[rate.all]\nrate = 3/d\nexcept = /svc1/*\n`;
    const site = await startSite(t, { files, ini });
    assert.deepEqual(await statuses(4, `${site.url}/a.txt`), [200, 200, 200, 429]);
    site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    assert.deepEqual(await statuses(1, `${site.url}/a.txt`), [429]);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/a.txt' });
    assert.deepEqual(data.notes, ['[rate.all] lets each address ask 3 times a day, 3 at once.']);
    await site.untilLogged(/"status":429.*"source":"rate:all"/);
    const headers = { apikey: site.adminKey };
    const metrics = await (await fetch(`${site.url}/svc1/metrics`, { headers })).text();
    assert.match(metrics, /waymark_rate_requests_total\{.*rate="all".*result="passed"\} 3/);
    assert.match(metrics, /waymark_rate_requests_total\{.*rate="all".*result="refused"\} 2/);
  });

  test('of 0 refuses all', async (t) => {
    const site = await startSite(t, {
      files,
      ini: `${disk}[rate.off]\npath = /a.txt\nrate = 0/m\n`,
    });
    assert.deepEqual(await statuses(2, `${site.url}/a.txt`), [429, 429]);
    assert.deepEqual(await statuses(1, `${site.url}/free/b.txt`), [200]);
  });
});

suite('deny_file', () => {
  test('refuses the networks of a file, and follows its changes', async (t) => {
    const folder = await temporaryFolder(t);
    const file = join(folder, 'blocked.txt');
    await writeFile(
      file,
      '# who floods us\n198.51.100.0/24 ; since May\n\nnothing\n2001:db8::/32\n',
    );
    let nowMs = 0;
    const warned: string[] = [];
    const failures: string[] = [];
    const log = {
      ...silentLog,
      warn: (_: object, text: string) => warned.push(text),
      error: (_: object, text: string) => failures.push(text),
    };
    const opened = openNetworkFile(file, { now: () => nowMs, log });
    assert.ok(opened.contains('192.0.2.1'), 'nobody gets in before the file is read');
    await opened.ready();
    const found = (): readonly boolean[] =>
      ['198.51.100.7', '2001:db8:1::1', '192.0.2.1', 'unix'].map((one) => opened.contains(one));
    assert.deepEqual(found(), [true, true, false, false]);
    assert.deepEqual(warned, [
      'file of networks: line 4: write a network such as 10.0.0.0/8; it is left out',
    ]);
    await appendFile(file, '192.0.2.0/24\n');
    nowMs += 5_000;
    while (!opened.contains('192.0.2.1')) await nextTurn();
    assert.deepEqual(found(), [true, true, true, false]);
    await rm(file);
    nowMs += 5_000;
    while (failures.length === 0) {
      opened.contains('192.0.2.1');
      await nextTurn();
    }
    assert.deepEqual(found(), [true, true, true, false], 'the former version counts');
  });

  test('may have 100,000 lines', () => {
    const lines = Array.from(
      { length: 100_000 },
      (_, at) => `10.${(at >> 8) & 255}.${at & 255}.${at >> 16}/32`,
    );
    const { networks, problem } = parseNetworkFile(lines.join('\n'));
    assert.equal(problem, undefined);
    assert.equal(networks.texts.length, 100_000);
  });

  test('is part of an access rule', async (t) => {
    const site = await startSite(t, {
      files: { ...files, 'blocked.txt': '198.51.100.0/24\n' },
      server: 'trust_proxy = 127.0.0.0/8',
      ini: `${disk}[access.all]\ndeny_file = blocked.txt\n`,
    });
    const from = (address: string) => () => ({ headers: { 'x-forwarded-for': address } });
    assert.deepEqual(await statuses(1, `${site.url}/a.txt`, from('198.51.100.9')), [403]);
    assert.deepEqual(await statuses(1, `${site.url}/a.txt`, from('192.0.2.9')), [200]);
  });
});
