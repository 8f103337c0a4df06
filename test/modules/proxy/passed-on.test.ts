import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import {
  connect,
  createServer,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { startSite, type TestSite } from '../../harness.ts';
import { httpSource, rawHttp2Source, rawSource } from '../../core/outbound/sources.ts';
import { fieldBlock, flags, frame } from '../../core/server/h2/raw-client.ts';
import { readReply } from '../../core/server/h2/client.ts';

/** What a visitor sees. */
interface Answered {
  readonly status: number | undefined;
  readonly via: string | undefined;
  readonly text: string;
}

type Version = '1.0' | '1.1' | '2';

suite('a proxy passes on', () => {
  const cleanups: (() => unknown)[] = [];
  const t = { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) } as TestContext;
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });
  let site: TestSite;
  /** The fields of the last request to a source. */
  let got: IncomingHttpHeaders = {};
  let asked = 0;

  before(async () => {
    const { origin, server } = await httpSource(t, ({ headers, url = '' }, response) => {
      [got, asked] = [headers, asked + 1];
      const status = Number(/\d{3}$/.exec(url)?.[0] ?? 200);
      const lifetime = url.includes('key') ? 'no-store' : 'max-age=60';
      response.writeHead(status, { 'cache-control': lifetime }).end(`status ${status}`);
    });
    server.on('upgrade', ({ headers }, socket) => {
      got = headers;
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    });
    const two = createServer().on('stream', (stream: ServerHttp2Stream, headers) => {
      [got, asked] = [headers, asked + 1];
      stream.respond({ ':status': 200 });
      stream.end('status 200');
    });
    const sessions = new Set<ServerHttp2Session>();
    two.on('session', (session) => sessions.add(session));
    two.listen(0, '127.0.0.1');
    await once(two, 'listening');
    t.after(async () => {
      for (const session of sessions) session.destroy();
      two.close();
      await once(two, 'close');
    });
    const old = await rawSource(t, (socket) => {
      socket.end('HTTP/1.0 999 Odd\r\nCache-Control: max-age=60\r\n\r\nstatus 999');
    });
    const odd = await rawHttp2Source(t, (socket, stream) => {
      const fields = [
        [':status', '999'],
        ['cache-control', 'max-age=60'],
      ] as const;
      socket.write(frame('HEADERS', flags.END_HEADERS, stream, fieldBlock(fields)));
      socket.write(frame('DATA', flags.END_STREAM, stream, 'status 999'));
    });
    const { port } = two.address() as AddressInfo;
    site = await startSite(t, {
      ini: `[fetch]\nallow_private = 127.0.0.0/8
[proxy.one]\npath = /one\nsource = ${origin}
[proxy.two]\npath = /two\nsource = http://127.0.0.1:${port}\nhttp_version = 2
[proxy.old]\npath = /old\nsource = ${old.origin}
[proxy.odd]\npath = /odd\nsource = http://127.0.0.1:${odd}\nhttp_version = 2`,
      rules: [
        ['/rule/*', { as: 'application', source: origin }],
        ['/passing/*', { source: `${origin}/*`, pass: ['apikey', 'authorization'] }],
        ['/plain/*', { source: `${origin}/*` }],
      ].map(([path, enginedata]) => ({ path, kind: 'content.fetch', enginedata })),
    });
  });

  async function ask(
    version: Version,
    path: string,
    fields: Readonly<Record<string, string>> = {},
    method = 'GET',
  ): Promise<Answered> {
    if (version === '2') {
      const session = connect(site.url);
      const head: OutgoingHttpHeaders = { ':path': path, ':method': method, ...fields };
      const { status, headers, body } = await readReply(session.request(head));
      session.close();
      return { status, via: headers.via, text: body.toString() };
    }
    const lines = Object.entries({ Host: new URL(site.url).host, ...fields, Connection: 'close' });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const content = fields.Trailer === undefined ? '' : `0\r\n${fields.Trailer}: 1\r\n\r\n`;
    const raw = await site.raw(`${method} ${path} HTTP/${version}\r\n${head}\r\n${content}`);
    return {
      status: Number(/^HTTP\/1\.1 (\d+)/.exec(raw)?.[1]),
      via: /^Via: (.*)\r$/im.exec(raw)?.[1],
      text: raw.slice(raw.indexOf('\r\n\r\n') + 4),
    };
  }

  for (const version of ['1.0', '1.1', '2'] as const) {
    for (const [path, own] of [
      ['/one/a', '1.1'],
      ['/two/a', '2'],
      ['/rule/a', '1.1'],
    ] as const) {
      test(`Via with the version of a request in HTTP/${version} and of the answer: ${path}`, async () => {
        for (const method of ['GET', 'DELETE']) {
          const { via } = await ask(version, `${path}?${version}`, { via: '1.0 before' }, method);
          assert.match(via ?? '', new RegExp(`^${own} \\S+$`));
          assert.match(
            got.via ?? '',
            new RegExp(`^1\\.0 before, ${version.replace('.', '\\.')} \\S+-`),
          );
        }
      });
    }
  }

  test('Via with HTTP/1.0 of a source, whichever client reads it', async () => {
    for (const [method, fields] of [
      ['GET', {}],
      ['DELETE', {}],
      ['POST', { 'Transfer-Encoding': 'chunked', Trailer: 'X-Sum' }],
    ] as const) {
      const { via, status } = await ask('1.1', '/old/a', fields, method);
      assert.match(via ?? '', /^1\.0 \S+$/, method);
      assert.equal(status, 999);
    }
  });

  for (const path of ['/one/999', '/odd/999', '/old/999', '/rule/999', '/one/299', '/one/799']) {
    const expected = Number(path.slice(-3));
    test(`a status that the server does not know: ${path}`, async () => {
      const before = asked;
      for (const version of ['1.1', '2', '1.0'] as const) {
        const { status, text } = await ask(version, path);
        assert.equal(status, expected, version);
        assert.match(text, new RegExp(`status ${expected}`), version);
      }
      // A cache knows nothing about a status beyond those of HTTP.
      if (/one|rule/.test(path)) assert.equal(asked - before, expected < 600 ? 1 : 3);
    });
  }

  const sources = ['/one/key', '/two/key', '/rule/key', '/passing/key'];
  for (const path of sources) {
    test(`the keys of an application, and none of its own: ${path}`, async () => {
      const foreign: readonly (readonly [string, string])[] = [
        ['apikey', 'sb_anon'],
        ['apikey', 'a wmkey_1'],
        ['authorization', 'Bearer eyJhbGciOiJub25lIn0.e30.'],
        ['authorization', 'ApiKey abc'],
        ['authorization', 'Basic d21rX3g6eA=='],
      ];
      const own: readonly (readonly [string, string])[] = [
        ['apikey', site.adminKey],
        ['apikey', 'wmk_unknown'],
        ['apikey', `x, ${site.adminKey}`],
        ['apikey', 'wms_01234567_x'],
        ['authorization', 'Bearer wmb_token'],
        ['authorization', `Bearer ${site.adminKey}`],
        ['authorization', `bearer  ${site.adminKey}`],
        ['authorization', `Token ${site.adminKey}`],
        ['authorization', site.adminKey],
        ['authorization', `Bearer x, Bearer ${site.adminKey}`],
      ];
      for (const version of ['1.1', '2'] as const) {
        for (const [name, value] of foreign) {
          await ask(version, path, { [name]: value });
          assert.equal(got[name], value, version);
        }
        for (const [name, value] of own) {
          await ask(version, path, { [name]: value });
          assert.doesNotMatch(JSON.stringify(got), /wm[ksb]_[\w-]/, `${version} ${name}: ${value}`);
          assert.equal(got.apikey, undefined);
        }
      }
    });
  }

  test('the key of an application that opens a websocket', async () => {
    const open = async (path: string, headers: Readonly<Record<string, string>>): Promise<void> => {
      const socket = new WebSocket(site.url.replace('http', 'ws') + path, { headers });
      await once(socket, 'error');
    };
    for (const path of ['/one/live', '/rule/live']) {
      await open(path, { apikey: 'sb_anon', authorization: 'Bearer abc' });
      assert.deepEqual([got.apikey, got.authorization], ['sb_anon', 'Bearer abc']);
      await open(path, { apikey: site.adminKey, authorization: `Token ${site.adminKey}` });
      assert.deepEqual([got.apikey, got.authorization], [undefined, undefined]);
    }
  });

  test('no key to a source that is no application', async () => {
    await ask('1.1', '/plain/a', { apikey: 'sb_anon', authorization: 'Bearer abc' });
    assert.deepEqual([got.apikey, got.authorization], [undefined, undefined]);
  });

  test('the key of an application as often as it likes: it is no wrong key', async () => {
    for (let at = 0; at < 40; at += 1) await ask('1.1', '/one/often', { apikey: 'sb_anon' });
    const { data } = await site.call('svc1.server.status', {});
    assert.ok(data !== undefined);
    assert.equal((await ask('1.1', '/one/often', { apikey: site.adminKey })).status, 200);
  });
});
