import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { rangesMax } from '../../../src/core/http/representation/ranges.ts';
import { socketPingsMax } from '../../../src/core/server/websocket/session.ts';
import { socketFragmentsMax } from '../../../src/core/server/websocket/socket.ts';
import type { LimitName } from '../../../src/core/values/limit.ts';
import { type TestSite, startSite } from '../../harness.ts';
import { httpSource } from '../outbound/sources.ts';
import { frame, opcodes, openRaw } from '../server/websocket/socket-rig.ts';
import { openSocket, readToClose } from './raw-client.ts';

const files = { 'site/page.txt': 'x'.repeat(1_000), 'site/big.bin': Buffer.alloc(8 << 20, 'x') };
const ini = '[disk.site]\nroot = site\n[log]\nformat = json\n';
const host = 'Host: localhost\r\n';

/** The attacks of a hostile client, by the limit that they meet. */
type Attack = (t: TestContext, site: TestSite) => Promise<void>;

function start(t: TestContext, server = ''): Promise<TestSite> {
  return startSite(t, { files, ini, server });
}

/** Sends until the server stops reading. */
async function sendOn(socket: Socket, piece: string): Promise<void> {
  while (socket.writable && !socket.destroyed) {
    socket.write(piece);
    await turn();
  }
}

const attacks: Readonly<Partial<Record<LimitName, Attack>>> = {
  target_size: async (_, site) => {
    const answer = await site.raw(`GET /?${'x'.repeat(9_000)} HTTP/1.1\r\n${host}\r\n`);
    assert.match(answer, /^HTTP\/1\.1 414 /);
  },
  header_size: async (_, site) => {
    for (const fields of [`X: ${'y'.repeat(60_000)}\r\n`, 'X: y\r\n'.repeat(99) + host]) {
      const answer = await site.raw(`GET / HTTP/1.1\r\n${host}${fields}\r\n`);
      assert.match(answer, /^HTTP\/1\.1 431 /);
    }
  },
  ranges: async (_, site) => {
    const list = Array.from({ length: 5_000 }, (__, at) => `${at}-${at}`);
    for (const [ranges, status, length] of [
      [list.slice(0, 2_000), 200, 1_000],
      [list.slice(0, rangesMax + 1), 200, 1_000],
      [list.slice(0, rangesMax), 206, rangesMax],
    ] as const) {
      const reply = await fetch(`${site.url}/page.txt`, {
        headers: { range: `bytes=${ranges.join()}` },
      });
      assert.equal(reply.status, status);
      assert.equal((await reply.text()).length, length);
    }
  },
  content_size: async (t, site) => {
    const url = `${site.url}/svc1/userinterface/get`;
    const announced = await fetch(url, { method: 'POST', body: 'x'.repeat(300_000) });
    assert.equal(announced.status, 413);
    const socket = await openSocket(t, site.port);
    const answer = readToClose(socket);
    socket.write(
      `POST /svc1/userinterface/get HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`,
    );
    await sendOn(socket, `4000\r\n${'x'.repeat(0x4000)}\r\n`);
    assert.match(await answer, /^HTTP\/1\.1 413 [^]*\r\nConnection: close\r\n[^]*too_large/);
  },
  content_coding: async (_, site) => {
    const bomb = gzipSync(Buffer.alloc(16 << 20));
    for (const coding of ['gzip', 'br', 'zstd', 'deflate', 'x-gzip', 'gzip, gzip']) {
      const reply = await fetch(`${site.url}/svc1/userinterface/get`, {
        method: 'POST',
        headers: { 'content-encoding': coding, 'content-type': 'application/json' },
        body: bomb,
      });
      assert.equal(reply.status, 415, coding);
      assert.match(await reply.text(), /"code":"invalid".*uncompressed/);
    }
    const plain = await fetch(`${site.url}/svc1/userinterface/get`, {
      method: 'POST',
      headers: { 'content-encoding': 'identity' },
      body: '{"v":{"path":"/page.txt"}}',
    });
    assert.notEqual(plain.status, 415);
  },
  unread_content: async (t, site) => {
    const flood = async (coding: string) => {
      const socket = await openSocket(t, site.port, { allowHalfOpen: true });
      const answer = readToClose(socket);
      socket.write(`GET /page.txt HTTP/1.1\r\n${host}${coding}\r\n\r\n`);
      await sendOn(socket, `4000\r\n${'x'.repeat(0x4000)}\r\n`);
      assert.match(await answer, /^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*x{1000}$/);
    };
    await Promise.all(
      ['Transfer-Encoding: chunked', 'Content-Length: 9007199254740991'].map(flood),
    );
  },
  websocket_frames: async (t, site) => {
    const text = '{"a":"svc1.userinterface.get"}';
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]);
    const pieces = Buffer.concat(
      Array.from({ length: socketFragmentsMax + 1 }, (_, at) =>
        frame(at === 0 ? opcodes.text : opcodes.continuation, ' ', { fin: false }),
      ),
    );
    for (const [bytes, code] of [
      [head, 1009],
      [pieces, 1008],
      [frame(opcodes.text, text, { rsv: 4 }), 1002],
      [frame(opcodes.text, text, { masked: false }), 1002],
      [frame(opcodes.continuation, text), 1002],
      [frame(opcodes.text, Buffer.from([0xff])), 1007],
    ] as const) {
      const client = await openRaw(t, site.port);
      client.send(bytes);
      assert.equal(await client.closed, code);
    }
  },
  websocket_pings: async (t, site) => {
    const client = await openRaw(t, site.port);
    client.send(Buffer.concat(Array(socketPingsMax).fill(frame(opcodes.ping, 'a'))));
    for (let at = 0; at < socketPingsMax; at += 1) {
      assert.equal((await client.next()).opcode, opcodes.pong);
    }
    client.send(frame(opcodes.ping, 'a'));
    const goodbye = await client.next();
    assert.equal(goodbye.opcode, opcodes.close);
    client.send(frame(opcodes.close, goodbye.payload));
    assert.equal(await client.closed, 1008);
  },
};

suite('a hostile client', () => {
  for (const [limit, attack] of Object.entries(attacks)) {
    test(`meets the limit ${limit}, has one line in the log, and disturbs no other client`, async (t) => {
      const site = await start(t);
      await attack(t, site);
      await attack(t, site);
      assert.equal((await fetch(`${site.url}/page.txt`)).status, 200);
      const lines = site
        .logged()
        .split('\n')
        .filter((line) => line.includes('"limit":'));
      assert.equal(lines.length, 1, lines.join('\n'));
      const { limit: name, address, level } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
      assert.deepEqual([name, address, level], [limit, '127.0.0.1', 40]);
    });
  }

  test('gets no more connections than the limit of its address; other addresses are not affected', async (t) => {
    const site = await start(t, 'connections_per_address = 3');
    const sockets = [];
    for (let at = 0; at < 3; at += 1) sockets.push(await openSocket(t, site.port));
    for (let at = 0; at < 3; at += 1) {
      const refused = await openSocket(t, site.port);
      assert.equal(await readToClose(refused), '');
    }
    const other = connect({ host: '127.0.0.1', port: site.port, localAddress: '127.0.0.2' });
    other.write(`GET /page.txt HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    assert.match(await readToClose(other), /^HTTP\/1\.1 200 /);
    assert.equal(site.logged().match(/"limit":"connections_per_address"/g)?.length, 1);
    const [first] = sockets;
    first?.write(`GET /page.txt HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    assert.match(await readToClose(first ?? assert.fail()), /^HTTP\/1\.1 200 /);
    const next = await openSocket(t, site.port);
    next.write(`GET /page.txt HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    assert.match(await readToClose(next), /^HTTP\/1\.1 200 /);
  });

  test('may be a trusted proxy, which the limit of an address does not bind', async (t) => {
    const site = await start(t, 'connections_per_address = 1\ntrust_proxy = 127.0.0.1');
    await openSocket(t, site.port);
    await openSocket(t, site.port);
    assert.equal((await fetch(`${site.url}/page.txt`)).status, 200);
    assert.ok(!site.logged().includes('"limit":'));
  });

  test('gets its response also if it closes its side after the request', async (t) => {
    const site = await start(t);
    for (const [path, status] of [
      ['/page.txt', '200'],
      ['/big.bin', '200'],
      ['/svc1/userinterface/get?_v.path=/x', '400'],
    ] as const) {
      const socket = await openSocket(t, site.port);
      socket.end(`GET ${path} HTTP/1.1\r\n${host}\r\n`);
      const [head = '', content] = (await readToClose(socket)).split('\r\n\r\n');
      assert.equal(head.slice(9, 12), status);
      assert.notEqual(content, '');
    }
  });

  test('cannot send a source more content than max_body', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      request.resume().once('end', () => response.end('taken'));
    });
    const site = await startSite(t, {
      files,
      ini: `${ini}[fetch]\nallow_private = 127.0.0.0/8\nmax_body = 1KiB\n`,
      rules: [
        {
          path: '/far/*',
          kind: 'content.fetch',
          enginedata: { source: `${origin}/*`, methods: ['POST'] },
        },
      ],
    });
    const post = async (bytes: number) => {
      const body = Readable.toWeb(Readable.from([Buffer.alloc(bytes)]));
      return fetch(`${site.url}/far/page`, { method: 'POST', body, duplex: 'half' });
    };
    assert.equal((await post(1_024)).status, 200);
    assert.equal((await post(1_025)).status, 413);
    assert.equal(site.logged().match(/"limit":"content_size"/g)?.length, 1);
  });

  test('that disconnects while a source is working aborts the request to the source', async (t) => {
    const asked = Promise.withResolvers<undefined>();
    const left = Promise.withResolvers<undefined>();
    const { origin } = await httpSource(t, (request) => {
      request.once('close', left.resolve);
      asked.resolve(undefined);
    });
    const site = await startSite(t, {
      files,
      ini: `${ini}[fetch]\nallow_private = 127.0.0.0/8\n`,
      rules: [{ path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } }],
    });
    const socket = await openSocket(t, site.port);
    socket.write(`GET /far/page HTTP/1.1\r\n${host}\r\n`);
    await asked.promise;
    socket.end();
    await left.promise;
  });
});

suite('an operation whose content arrives late', () => {
  test('is not run if its key was revoked meanwhile', async (t) => {
    const site = await startSite(t);
    const { data: key } = await site.call('svc1.key.insert', { name: 'd', scopes: ['design'] });
    const content = JSON.stringify({ v: { path: '/late', kind: 'content', content: 'x' } });
    const socket = await openSocket(t, site.port);
    socket.write(
      `POST /svc1/userinterface/insert HTTP/1.1\r\nHost: localhost\r\napikey: ${key.key}\r\n` +
        'Content-Type: application/json\r\nExpect: 100-continue\r\nConnection: close\r\n' +
        `Content-Length: ${content.length}\r\n\r\n`,
    );
    const [goOn] = (await once(socket, 'data')) as [Buffer];
    assert.match(goOn.toString(), /^HTTP\/1\.1 100 /);
    await site.call('svc1.key.revoke', { id: key.id });
    socket.write(content);
    assert.match(await readToClose(socket), /^HTTP\/1\.1 401 /);
    const { data } = await site.call('svc1.userinterface.list', { path: '/late' });
    assert.deepEqual(data.rows, []);
  });
});
