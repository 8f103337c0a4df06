import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage, type InformationEvent } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../../harness.ts';
import { httpSource, rawSource } from '../outbound/sources.ts';
import { AnswerReader } from './answers.ts';
import { connectHttp2, readReply } from '../server/h2/client.ts';
import { startTlsSite } from '../server/tls/tls-rig.ts';

/** Settings to fetch from this machine. */
const ini = '[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n';

suite('several sources of a page', () => {
  test('serve it while one of them is down; explain and the metrics show that', async (t) => {
    const { origin } = await httpSource(t, (_, response) => response.end('there'));
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const gone = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.close();
    const enginedata = { source: [`${gone}/*`, `${origin}/*`] };
    const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
    const site = await startSite(t, { ini, rules });
    for (let turn = 0; turn < 4; turn += 1) {
      const answer = await fetch(`${site.url}/far/a`);
      assert.equal(await answer.text(), 'there');
    }
    const { data } = await site.call('userinterface.explain', { path: '/far/a' });
    const [, note] = (data as { readonly notes: readonly string[] }).notes;
    assert.match(note ?? '', new RegExp(`^${gone} has failed and is set aside`));
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, new RegExp(`waymark_fetch_source_set_aside.source="${gone}". 1\n`));
    assert.match(metrics, new RegExp(`waymark_fetch_source_answers_total.source="${origin}". 4\n`));
    assert.match(site.logged(), /source failed; set aside for a pause/);
  });
});

suite('headers between a source and a client', () => {
  const ofOrigin = {
    'Set-Cookie': ['__Host-jwt=x; Path=/; Secure', 'jwt=x; Path=/', 'a=b'],
    'Strict-Transport-Security': 'max-age=9; includeSubDomains',
    'Clear-Site-Data': '"cookies"',
    'Service-Worker-Allowed': '/',
    'Report-To': '{}',
    NEL: '{}',
  };

  /** A site with a rule for each path, and the names of the fields that its source received. */
  async function start(t: TestContext, path: string, pass: readonly string[]) {
    let got: readonly string[] = [];
    const { origin } = await httpSource(t, ({ headers }, response) => {
      got = Object.keys(headers);
      const banners = { Server: 'old/1.0', 'X-Powered-By': 'old' };
      response.writeHead(200, { 'Content-Type': 'text/javascript', ...banners, ...ofOrigin }).end();
    });
    const rules = [
      { path, kind: 'content.fetch', enginedata: { source: `${origin}${path}`, pass } },
    ];
    const site = await startSite(t, { server: 'console = no', ini, rules });
    const headers = { X_Forwarded_For: '1.1.1.1', 'x-forwarded_host': 'evil', api_key: 'k' };
    const { headers: seen } = await fetch(`${site.url}/src/a`, { headers });
    return { seen, got: () => got };
  }

  test('apply to the path of the rule if that is a part of the site', async (t) => {
    const { seen, got } = await start(t, '/src/*', []);
    assert.deepEqual(seen.getSetCookie(), ['jwt=x; Path=/src/', 'a=b; Path=/src/']);
    for (const name of ['Server', 'X-Powered-By', ...Object.keys(ofOrigin)]) {
      if (name !== 'Set-Cookie') assert.equal(seen.get(name), null, name);
    }
    assert.deepEqual(
      got().filter((name) => /[^a-z-]/.test(name)),
      [],
    );
  });

  test('apply to the whole site if the rule covers it, or passes them on', async (t) => {
    const names = ['Server', 'X-Powered-By', 'api_key'];
    for (const [path, pass] of [
      ['/*', names],
      ['/src/*', [...names, ...Object.keys(ofOrigin)]],
    ] as const) {
      const { seen, got } = await start(t, path, pass);
      assert.deepEqual(seen.getSetCookie(), ofOrigin['Set-Cookie']);
      assert.equal(seen.get('Server'), 'old/1.0');
      assert.equal(seen.get('X-Powered-By'), 'old');
      for (const [name, value] of Object.entries(ofOrigin)) {
        if (name !== 'Set-Cookie') assert.equal(seen.get(name), value);
      }
      assert.deepEqual(
        got().filter((name) => /[^a-z-]/.test(name)),
        ['api_key'],
      );
    }
  });
});

test('the bytes of a file name from a source reach the client unchanged', async (t) => {
  for (const name of ['caf\xe9', 'caf\xc3\xa9', '\xe6\x97\xa5', 'plain']) {
    const field = `Content-Disposition: attachment; filename="${name}.pdf"`;
    const answer = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${field}\r\n\r\nok`;
    const { origin } = await rawSource(t, (socket) => {
      socket.write(answer, 'latin1');
    });
    const enginedata = { source: `${origin}/*`, methods: ['GET', 'POST'] };
    const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
    const site = await startSite(t, { ini, rules });
    const head = 'GET /far/a HTTP/1.1\r\nHost: localhost\r\n';
    const post = `POST /far/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na`;
    // Several requests on one connection.
    const socket = connect(site.port, '127.0.0.1');
    t.after(() => socket.destroy());
    const reader = new AnswerReader(socket);
    for (const request of [`${head}\r\n`, `${head}\r\n`, post]) {
      socket.write(request);
      const { fields, content } = await reader.next();
      assert.equal(content, 'ok');
      assert.ok(fields.includes(field), `${name}: ${fields.join(', ')}`);
    }
  }
});

suite('a page that cannot be served', () => {
  const files = {
    'site/index.html': 'home',
    'site/errors/404.html': '<h1>Nothing here</h1>',
    'site/errors/5xx.html': '<h1>Back soon</h1>',
    'shop/errors/404.html': '<h1>No such lamp</h1>',
    'docs/404.html': '<h1>No such chapter</h1>',
  };
  const mounts = `
[disk.site]
root = site
errors = errors
cache_control = max-age=60
[disk.site.headers]
X-Site = s
[disk.shop]
path = /lamps/
root = shop
errors = /errors
[disk.docs]
path = /docs/
root = docs
errors = /
symlinks = deny
`;
  const html = { Accept: 'text/html' };

  /** A site that fetches `/far/*` from a port without a server. */
  async function startBroken(t: TestContext) {
    const enginedata = { source: 'http://127.0.0.1:1/*' };
    const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
    return startSite(t, { ini: `${ini}${mounts}`, files, rules });
  }

  test('is replaced by the error page of the site for its status', async (t) => {
    const { url } = await startBroken(t);
    const cases: readonly (readonly [string, string, number, RegExp])[] = [
      ['GET', '/missing', 404, /^<h1>Nothing here<\/h1>$/],
      ['GET', '/lamps/missing', 404, /^<h1>No such lamp<\/h1>$/],
      ['GET', '/docs/missing', 404, /^<h1>No such chapter<\/h1>$/],
      ['GET', '/far/a', 502, /^<h1>Back soon<\/h1>$/],
      ['POST', '/', 405, /405 Method Not Allowed/],
    ];
    for (const [method, path, status, text] of cases) {
      const answer = await fetch(url + path, { method, headers: html });
      assert.equal(answer.status, status, path);
      assert.match(await answer.text(), text);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.equal(answer.headers.get('etag'), null);
      assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
    }
  });

  test('is replaced by the whole error page, also for ranges and conditional requests', async (t) => {
    const { url } = await startBroken(t);
    for (const headers of [{ Range: 'bytes=0-1' }, { 'If-None-Match': '*' }, {}]) {
      const answer = await fetch(`${url}/missing`, { headers: { ...html, ...headers } });
      assert.deepEqual([answer.status, await answer.text()], [404, '<h1>Nothing here</h1>']);
      assert.equal(answer.headers.get('x-site'), 's');
    }
    const head = await fetch(`${url}/missing`, { method: 'HEAD', headers: html });
    assert.deepEqual([head.status, head.headers.get('content-length')], [404, '21']);
  });

  test('is replaced by a line of text for clients that are not browsers', async (t) => {
    const { url } = await startBroken(t);
    const answer = await fetch(`${url}/far/a`, { headers: { Accept: '*/*' } });
    assert.match(await answer.text(), /^502 Bad Gateway\n/);
  });
});

test('a source that is down raises one event for its rule', async (t) => {
  const enginedata = { source: 'http://127.0.0.1:1/*', methods: ['GET', 'UPGRADE'] };
  const other = { source: 'http://127.0.0.1:2/*' };
  const site = await startSite(t, {
    ini,
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata },
      { path: '/off/*', kind: 'content.fetch', enginedata: other },
    ],
  });
  for (const path of ['/far/a', '/far/b', '/off/a', '/off/b']) {
    assert.equal((await fetch(site.url + path)).status, 502);
  }
  const { data } = await site.call('userinterface.list', {});
  const { rows } = data as { readonly rows: readonly { readonly id: string }[] };
  const events = async () => {
    const listed = await site.call('event.list', { type: 'error.detected' });
    return (listed.data as { readonly rows: readonly { readonly data: { id: string } }[] }).rows;
  };
  let told = await events();
  while (told.length < 2) told = await events();
  const ids = new Set(told.map((event) => event.data.id));
  assert.deepEqual(ids, new Set(rows.map(({ id }) => id)));
  // The two failures may be in different minutes.
  assert.ok(told.length <= 4);
  assert.match(JSON.stringify(told), /"code":"bad_gateway"/);
});

suite('an interim response (1xx) of a source', () => {
  const early =
    'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Own: o\r\n' +
    'Link: </b.js>; rel=preload; as=script\r\nKeep-Alive: timeout=9\r\nContent-Length: 9\r\n\r\n';
  const progress =
    'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 104 Going On\r\nUpload-Offset: 7\r\n\r\n';
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

  /** A source that sends interim responses, and the final one on request. */
  async function hinting(t: TestContext, ahead: string) {
    const asked = Promise.withResolvers<Socket>();
    const { origin } = await rawSource(t, (socket) => {
      socket.write(ahead);
      asked.resolve(socket);
    });
    const goOn = async (): Promise<void> => {
      (await asked.promise).write(answer);
    };
    const enginedata = { source: `${origin}/*` };
    return { goOn, rules: [{ path: '/far/*', kind: 'content.fetch', enginedata }] };
  }

  for (const cache of ['0', '1MiB']) {
    test(`reaches the client before the final response; cache = ${cache}`, async (t) => {
      const source = await hinting(t, early);
      const site = await startSite(t, {
        ...source,
        ini: ini.replace('cache = 0', `cache = ${cache}`),
      });
      const request = get(`${site.url}/far/a`);
      const [hints] = (await once(request, 'information')) as [InformationEvent];
      const link = '</a.css>; rel=preload, </b.js>; rel=preload; as=script';
      const fields = { link, 'x-own': 'o', via: '1.1 waymark' };
      assert.deepEqual([hints.statusCode, hints.headers], [103, fields]);
      await source.goOn();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      assert.deepEqual([response.statusCode, await text(response)], [200, 'ok']);
    });
  }

  test('is passed on with any status and any number of times', async (t) => {
    const source = await hinting(t, progress);
    const site = await startSite(t, { ...source, ini });
    const request = get(`${site.url}/far/a`);
    const said: unknown[] = [];
    request.on('information', ({ statusCode, headers }: InformationEvent) => {
      said.push([statusCode, headers['upload-offset']]);
    });
    await source.goOn();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(await text(response), 'ok');
    assert.deepEqual(said, [
      [102, undefined],
      [104, '7'],
    ]);
  });

  test('reaches a client over HTTP/2', async (t) => {
    const source = await hinting(t, early);
    const site = await startTlsSite(t, { ...source, ini });
    const client = await connectHttp2(t, site);
    const stream = client.session.request({ ':path': '/far/a' });
    const [hints] = (await once(stream, 'headers')) as [Record<string, unknown>];
    assert.equal(hints[':status'], 103);
    assert.match(String(hints.link), /a\.css.*b\.js/);
    assert.deepEqual([hints['x-own'], hints['content-length']], ['o', undefined]);
    await source.goOn();
    assert.equal((await readReply(stream)).body.toString(), 'ok');
  });

  test('is not sent to clients of HTTP/1.0', async (t) => {
    const source = await hinting(t, early);
    const site = await startSite(t, { ...source, ini });
    const answered = site.raw('GET /far/a HTTP/1.0\r\nHost: localhost\r\n\r\n');
    await source.goOn();
    assert.match(await answered, /^HTTP\/1\.1 200 OK\r\n/);
  });
});

suite('a response whose content has not begun', () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n';
  const rulesFor = (origin: string) => [
    { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } },
  ];

  for (const [coding, cache] of [
    ['identity', '0'],
    ['gzip', '0'],
    ['identity', '1MiB'],
  ] as const) {
    test(`reaches the client with its head at once: ${coding}, cache = ${cache}`, async (t) => {
      const asked = Promise.withResolvers<Socket>();
      const { origin } = await rawSource(t, (socket) => {
        socket.write(head);
        asked.resolve(socket);
      });
      const cached = ini.replace('cache = 0', `cache = ${cache}`);
      const site = await startSite(t, { rules: rulesFor(origin), ini: cached });
      const request = get(`${site.url}/far/a`, { headers: { 'Accept-Encoding': coding } });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      assert.equal(response.headers['content-type'], 'text/event-stream');
      (await asked.promise).end('data: a\n\n');
      const { length } = await text(response);
      assert.ok(length > 0);
    });
  }

  test('reaches the client with its head at once, byte for byte', async (t) => {
    const asked = Promise.withResolvers<Socket>();
    const name = 'Content-Disposition: attachment; filename="caf\xc3\xa9 \xe9.txt"';
    const { origin } = await rawSource(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${name}\r\nContent-Length: 1\r\n\r\n`, 'latin1');
      asked.resolve(socket);
    });
    const site = await startSite(t, { rules: rulesFor(origin), ini });
    const socket = connect(site.port, '127.0.0.1').setEncoding('latin1');
    t.after(() => socket.destroy());
    socket.write('GET /far/a HTTP/1.1\r\nHost: localhost\r\n\r\n');
    let answer = '';
    while (!answer.endsWith('\r\n\r\n')) answer += String((await once(socket, 'data'))[0]);
    assert.ok(answer.split('\r\n').includes(name), answer);
    (await asked.promise).write('a');
    assert.deepEqual(await once(socket, 'data'), ['a']);
  });

  test('reaches the client with its head at once, over HTTP/2', async (t) => {
    const asked = Promise.withResolvers<Socket>();
    const { origin } = await rawSource(t, (socket) => {
      socket.write(head);
      asked.resolve(socket);
    });
    const site = await startTlsSite(t, { rules: rulesFor(origin), ini });
    const stream = (await connectHttp2(t, site)).begin('/far/a');
    const [fields] = (await once(stream, 'response')) as [{ readonly 'content-type'?: string }];
    assert.equal(fields['content-type'], 'text/event-stream');
    (await asked.promise).end('data: a\n\n');
    assert.equal(await text(stream), 'data: a\n\n');
  });
});

suite('a client that waits for 100 Continue', () => {
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`;

  test('gets it when the source accepts the content, and not before', async (t) => {
    const { origin } = await httpSource(t, (request, response) => request.pipe(response));
    const methods = ['POST'];
    const site = await startSite(t, {
      ini,
      rules: [
        { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*`, methods } },
        {
          path: '/off/*',
          kind: 'content.fetch',
          enginedata: { source: 'http://127.0.0.1:1/*', methods },
        },
      ],
    });
    const socket = connect(site.port, '127.0.0.1').setEncoding('latin1');
    t.after(() => socket.destroy());
    socket.write(head('/far/a'));
    const [goOn] = (await once(socket, 'data')) as [string];
    assert.equal(goOn, 'HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('hello');
    let answer = '';
    while (!answer.endsWith('hello')) answer += String((await once(socket, 'data'))[0]);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.match(await site.raw(head('/off/a')), /^HTTP\/1\.1 502 /);
  });
});

suite('the trailers of a source', () => {
  const answer = [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n',
    '5\r\nhello\r\n',
    '0\r\nX-Sum: 5d41\r\nSet-Cookie: a=b\r\nContent-Type: text/html\r\nContent-Digest: d\r\n\r\n',
  ];
  for (const [what, apart] of [
    ['with the content', false],
    ['after the content', true],
  ] as const) {
    for (const te of ['trailers', 'gzip', undefined]) {
      test(`sent ${what} are passed on only for TE: trailers; here TE is ${te ?? 'absent'}`, async (t) => {
        const asked = Promise.withResolvers<Socket>();
        const { origin } = await rawSource(t, (socket) => {
          socket.write(apart ? answer.slice(0, 2).join('') : answer.join(''));
          asked.resolve(socket);
        });
        const enginedata = { source: `${origin}/*` };
        const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
        const site = await startSite(t, { rules, ini });
        const headers = te === undefined ? {} : { TE: te, Connection: 'TE' };
        const request = get(`${site.url}/far/a`, { headers });
        const [response] = (await once(request, 'response')) as [IncomingMessage];
        if (apart) (await asked.promise).write(answer[2] ?? '');
        assert.equal(await text(response), 'hello');
        const behind = te === 'trailers' ? ['X-Sum', '5d41', 'Content-Digest', 'd'] : [];
        assert.deepEqual(response.rawTrailers, behind);
      });
    }
  }

  const manyTimes = [
    'X-Sum: 1\r\nX-Sum: 2\r\nETag: "a"\r\nETag: "b"\r\nHTTP2-Settings: x\r\nKeep-Alive: x',
    { 'x-sum': '1, 2', etag: '"a"' },
  ] as const;
  for (const [what, said, te, behind] of [
    [
      'are passed on for TE: trailers',
      'X-Sum: 5d41\r\nContent-Type: text/html',
      'trailers',
      { 'x-sum': '5d41' },
    ],
    ['stays here where nobody takes it', 'X-Sum: 5d41', undefined, undefined],
    ['may be nothing', 'Content-Type: text/html', 'trailers', undefined],
    ['may say one thing twice', manyTimes[0], 'trailers', manyTimes[1]],
  ] as const) {
    test(`${what}, over HTTP/2`, async (t) => {
      const asked = Promise.withResolvers<Socket>();
      const { origin } = await rawSource(t, (socket) => {
        socket.write(answer.slice(0, 2).join(''));
        asked.resolve(socket);
      });
      const enginedata = { source: `${origin}/*` };
      const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
      const site = await startTlsSite(t, { rules, ini });
      const client = await connectHttp2(t, site);
      const stream = client.begin('/far/a', te === undefined ? {} : { te });
      let trailers: object | undefined;
      stream.on('trailers', (fields: object) => {
        trailers = Object.fromEntries(Object.entries(fields));
      });
      const reply = readReply(stream);
      (await asked.promise).write(`0\r\n${said}\r\n\r\n`);
      const { status, body } = await reply;
      assert.deepEqual([status, body.toString()], [200, 'hello']);
      assert.deepEqual(trailers, behind);
      if (!stream.closed) await once(stream, 'close');
      assert.equal(stream.rstCode, 0);
      assert.equal((await client.ask('/svc1/health')).status, 200);
    });
  }
});

suite('rules that fetch from each other', () => {
  /** A site with rules that fetch from the site itself. */
  async function startLoops(t: TestContext, sources: Readonly<Record<string, unknown>>) {
    const site = await startSite(t, { ini: ini.replace('cache = 0', 'cache = 1MiB') });
    const absolute = (source: unknown): unknown =>
      Array.isArray(source) ? source.map(absolute) : `${site.url}${String(source)}`;
    for (const [path, source] of Object.entries(sources)) {
      const rule = { path, kind: 'content.fetch', enginedata: { source: absolute(source) } };
      assert.ok('data' in (await site.call('userinterface.insert', rule)));
    }
    return site;
  }
  const contentOf = (path: string): string =>
    `/svc1/userinterface/get_content?_v.origin=http://localhost&_v.path=${path}`;

  const loops: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    'one from the other': { '/la': '/lb', '/lb': '/la' },
    'by way of a third': { '/la': '/lb', '/lb': '/lc', '/lc': '/la' },
    'below a wildcard': { '/la': '/ld/x', '/ld/*': '/la?*' },
    'with several sources': { '/la': ['/lb', '/lc'], '/lb': '/la', '/lc': ['/la', '/lb'] },
    'by way of get_content': { '/la': contentOf('/lb'), '/lb': contentOf('/la') },
  };
  for (const [what, sources] of Object.entries(loops)) {
    test(`${what} answer 508 at once`, async (t) => {
      const site = await startLoops(t, sources);
      const urls = [...Object.keys(sources), contentOf('/la')];
      const asked = urls.map((path) => site.url + path.replace('*', 'x'));
      // First one by one, then all at once, so that each waits for the others.
      for (const url of asked) assert.equal((await fetch(url)).status, 508, url);
      const statuses = await Promise.all(
        [...asked, ...asked].map(async (url) => (await fetch(url)).status),
      );
      assert.deepEqual([...new Set(statuses)], [508]);
    });
  }
});

suite('a response that a source cuts short', () => {
  const rulesFor = (source: string) => [
    { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${source}/*` } },
  ];
  const fresh = 'Cache-Control: max-age=60\r\n';
  const cached = ini.replace('cache = 0', 'cache = 1MiB');

  /** Requires a 502, or an incomplete response. */
  async function assertCut(url: string): Promise<void> {
    const answer = await fetch(url);
    if (answer.status === 502) return;
    await assert.rejects(answer.text());
  }

  test('by a TCP reset is cut short for the client, and not stored', async (t) => {
    let requests = 0;
    const { origin } = await rawSource(t, (socket) => {
      requests += 1;
      socket.write(`HTTP/1.1 200 OK\r\n${fresh}\r\nhalf`, () => {
        setImmediate(() => socket.resetAndDestroy());
      });
    });
    const site = await startSite(t, { ini: cached, rules: rulesFor(origin) });
    for (let count = 1; count <= 3; count += 1) {
      await assertCut(`${site.url}/far/a`);
      assert.equal(requests, count);
    }
  });

  const head = `HTTP/1.1 200 OK\r\n${fresh}Transfer-Encoding: chunked\r\n\r\n`;
  for (const cache of ['0', '1MiB']) {
    const iniHere = ini.replace('cache = 0', `cache = ${cache}`);

    test(`by a malformed first chunk is a 502; cache = ${cache}`, async (t) => {
      const { origin } = await rawSource(t, `${head}x\r\nhello\r\n0\r\n\r\n`);
      const site = await startSite(t, { ini: iniHere, rules: rulesFor(origin) });
      const place = `_v.origin=${site.url}&_v.path=/far/a`;
      const content = `${site.url}/svc1/userinterface/get_content?${place}`;
      for (const url of [`${site.url}/far/a`, `${site.url}/far/a`, content]) {
        const answer = await fetch(url);
        assert.equal(answer.status, 502);
        assert.match(
          await answer.text(),
          /The source could not be reached, or it ended the connection too early/,
        );
      }
    });

    test(`within its first chunk is never complete for the client; cache = ${cache}`, async (t) => {
      const { origin } = await rawSource(t, (socket) => {
        socket.write(head, () => setImmediate(() => socket.end('5\r\n')));
      });
      const site = await startSite(t, { ini: iniHere, rules: rulesFor(origin) });
      for (let count = 0; count < 2; count += 1) await assertCut(`${site.url}/far/a`);
    });
  }
});

suite('a response without a length that breaks off', () => {
  const causes = ['its source', 'the end of the server'] as const;
  for (const scheme of ['http', 'https'] as const) {
    for (const cause of causes) {
      test(`by ${cause} ends with a TCP reset for a client of HTTP/1.0, over ${scheme}`, async (t) => {
        const asked = Promise.withResolvers<Socket>();
        const { origin } = await rawSource(t, (socket) => {
          const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
          socket.write(`${head}5\r\nhello\r\n`);
          asked.resolve(socket);
        });
        const enginedata = { source: `${origin}/*` };
        const rules = [{ path: '/far/*', kind: 'content.fetch', enginedata }];
        const secure = scheme === 'https' && (await startTlsSite(t, { ini, rules }));
        const site = secure || (await startSite(t, { ini, rules }));
        const socket = secure ? await secure.shake() : connect(site.port, '127.0.0.1');
        t.after(() => socket.destroy());
        socket.write('GET /far/a HTTP/1.0\r\nHost: localhost\r\n\r\n');
        await once(socket, 'data');
        const broken = once(socket, 'error');
        socket.resume();
        if (cause === 'its source') (await asked.promise).destroy();
        else await site.waymark.stop(0);
        const [error] = (await broken) as [NodeJS.ErrnoException];
        assert.equal(error.code, 'ECONNRESET');
      });
    }
  }
});
