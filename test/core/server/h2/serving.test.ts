import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { suite, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { startTlsSite } from '../tls/tls-rig.ts';
import { connectHttp2, readReply } from './client.ts';

const big = Buffer.alloc(3 << 20, '0123456789abcdef');
const files = {
  'site/index.html': '<p>home',
  'site/big.bin': big,
  'site/dir/index.html': 'a',
  'site/empty.txt': '',
};
const ini = '[disk.site]\nroot = site\n[disk.site.headers]\nX-Own[] = 1\nX-Own[] = 2\n';

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

suite('over HTTP/2', () => {
  test('a client that offers both protocols gets HTTP/2; one that offers none gets HTTP/1.1', async (t) => {
    const site = await startTlsSite(t);
    const offers = async (...ALPNProtocols: string[]) => {
      const socket = await site.shake({ servername: 'localhost', ALPNProtocols });
      return socket.alpnProtocol;
    };
    assert.equal(await offers('http/1.1', 'h2'), 'h2');
    assert.equal(await offers('http/1.1'), 'http/1.1');
    assert.equal(await offers('http/1.0'), 'http/1.0');
    assert.equal(await offers(), false);
    await assert.rejects(offers('spdy/3'), /no application protocol/i);
  });

  test('files are served whole, by HEAD, by range and as 304', async (t) => {
    const site = await startTlsSite(t, { files, ini });
    const client = await connectHttp2(t, site);
    const whole = await client.ask('/big.bin');
    assert.equal(whole.status, 200);
    assert.equal(digest(whole.body), digest(big));
    const { etag } = whole.headers;
    const head = await client.ask('/big.bin', { ':method': 'HEAD' });
    assert.deepEqual([head.status, head.headers['content-length']], [200, String(big.length)]);
    assert.equal(head.body.length, 0);
    const part = await client.ask('/big.bin', { range: 'bytes=1048570-2097160' });
    assert.equal(part.status, 206);
    assert.equal(digest(part.body), digest(big.subarray(1_048_570, 2_097_161)));
    const parts = await client.ask('/big.bin', { range: 'bytes=0-1,5-6' });
    assert.match(String(parts.headers['content-type']), /^multipart\/byteranges/);
    const beyond = await client.ask('/big.bin', { range: 'bytes=9999999-' });
    assert.equal(beyond.status, 416);
    const known = await client.ask('/big.bin', { 'if-none-match': etag });
    assert.deepEqual([known.status, known.body.length], [304, 0]);
    assert.equal((await client.ask('/empty.txt')).body.length, 0);
  });

  test('a cached response equals that of HTTP/1.1, without its connection headers', async (t) => {
    const site = await startTlsSite(t, { files, ini, tls: 'hsts = 1d' });
    const client = await connectHttp2(t, site);
    const over1 = await site.ask(`https://localhost:${site.tlsPort}/`);
    const own = new Set(['date', 'connection', 'keep-alive', ':status']);
    const fieldsOf = (headers: object) =>
      Object.entries(headers)
        .filter(([name]) => !own.has(name))
        .sort();
    for (const time of ['first', 'second', 'third']) {
      const { status, headers, body } = await client.ask('/');
      assert.equal(status, 200);
      assert.equal(body.toString(), over1.body);
      assert.ok(headers.date !== undefined);
      assert.equal(headers['x-own'], '1, 2');
      assert.deepEqual(fieldsOf(headers), fieldsOf(over1.headers), time);
    }
  });

  test('a redirect, an error and a compressed page equal those of HTTP/1.1', async (t) => {
    const content = 'text '.repeat(2_000);
    const rule = { path: '/page', kind: 'content', content, contenttype: 'text/plain' };
    const site = await startTlsSite(t, { files, ini, rules: [rule] });
    const client = await connectHttp2(t, site);
    const moved = await client.ask('/dir');
    assert.deepEqual([moved.status, moved.headers.location], [301, '/dir/']);
    assert.equal((await client.ask('/none')).status, 404);
    const denied = await client.ask('/', { ':method': 'DELETE' });
    assert.deepEqual([denied.status, denied.headers.allow], [405, 'GET, HEAD, OPTIONS']);
    let packed = await client.ask('/page', { 'accept-encoding': 'gzip' });
    while (packed.headers['content-encoding'] !== 'gzip') {
      packed = await client.ask('/page', { 'accept-encoding': 'gzip' });
    }
    assert.equal(gunzipSync(packed.body).toString(), content);
    assert.equal((await client.ask('/page')).body.toString(), content);
  });

  test('operations take content; too large content is refused while it arrives', async (t) => {
    const site = await startTlsSite(t);
    const client = await connectHttp2(t, site);
    const fields = { ':method': 'POST', apikey: site.adminKey, 'content-type': 'application/json' };
    const path = '/svc1/userinterface/insert';
    const rule = { path: '/a', kind: 'content', content: 'x'.repeat(300_000) };
    const inserted = await client.ask(path, fields, JSON.stringify({ v: rule }));
    assert.equal(inserted.status, 200);
    assert.equal((await client.ask('/a')).body.length, 300_000);
    const large = client.begin(path, fields, false);
    const reply = readReply(large);
    const chunk = Buffer.alloc(1 << 20, ' ');
    const feed = (): void => {
      while (!large.destroyed && !large.closed && large.write(chunk));
    };
    large.on('drain', feed).on('error', () => undefined);
    feed();
    assert.equal((await reply).status, 413);
    if (!large.closed) await once(large, 'close');
    assert.equal(large.rstCode, 0);
    assert.equal((await client.ask('/a')).status, 200, 'the connection goes on');
  });

  test('requests that arrive together see one state, those after a change the new one', async (t) => {
    const site = await startTlsSite(t);
    const client = await connectHttp2(t, site);
    const operation = async (name: string, v: object) => {
      const fields = { ':method': 'POST', apikey: site.adminKey };
      const given = { ...fields, 'content-type': 'application/json' };
      const reply = await client.ask(`/svc1/userinterface/${name}`, given, JSON.stringify({ v }));
      assert.equal(reply.status, 200, reply.body.toString());
      return (JSON.parse(reply.body.toString()) as { data: { id: string } }).data.id;
    };
    const asked = async () => {
      // Node writes the frames of one turn together.
      const replies = await Promise.all(
        ['/a', '/none', '/a', '/a'].map((path) => client.ask(path)),
      );
      return replies.map(({ status, body }) => (status === 200 ? body.toString() : status));
    };
    const id = await operation('insert', { path: '/a', kind: 'content', content: 'first' });
    assert.deepEqual(await asked(), ['first', 404, 'first', 'first']);
    await operation('edit', { id, content: 'second' });
    assert.deepEqual(await asked(), ['second', 404, 'second', 'second']);
  });

  test('a client that waits for 100 Continue gets it', async (t) => {
    const site = await startTlsSite(t);
    const client = await connectHttp2(t, site);
    const stream = client.begin(
      '/svc1/server/status',
      { ':method': 'POST', expect: '100-continue', apikey: site.adminKey },
      false,
    );
    const reply = readReply(stream);
    await once(stream, 'continue');
    stream.end('{"v":{}}');
    assert.equal((await reply).status, 200);
  });

  test('fetched content streams in both directions', async (t) => {
    const seen: (string | undefined)[] = [];
    const source = createServer((request, response) => {
      const { host, 'transfer-encoding': coding, te } = request.headers;
      seen.push(host, coding, String(te));
      request.pipe(response);
    }).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => source.close());
    const address = source.address();
    assert.ok(address !== null && typeof address === 'object');
    const enginedata = { source: `http://127.0.0.1:${address.port}/*`, methods: ['GET', 'POST'] };
    const site = await startTlsSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [{ path: '/echo/*', kind: 'content.fetch', enginedata }],
    });
    const client = await connectHttp2(t, site);
    const stream = client.begin('/echo/x', { ':method': 'POST', te: 'trailers' }, false);
    stream.write('first ');
    const [headers] = (await once(stream, 'response')) as [{ ':status': number }];
    assert.equal(headers[':status'], 200);
    const [first] = (await once(stream, 'data')) as [Buffer];
    assert.equal(first.toString(), 'first ');
    stream.end(big);
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(stream, 'end');
    assert.equal(digest(Buffer.concat(chunks)), digest(big));
    assert.deepEqual(seen, [`127.0.0.1:${address.port}`, 'chunked', 'undefined']);
  });

  test('an upload that its client resets half-way affects no other request', async (t) => {
    const source = createServer((request) => {
      request.once('data', () => source.emit('begun'));
      request.once('close', () => source.emit('broken'));
    }).listen(0, '127.0.0.1');
    await once(source, 'listening');
    t.after(() => source.close());
    const address = source.address();
    assert.ok(address !== null && typeof address === 'object');
    const enginedata = { source: `http://127.0.0.1:${address.port}/*`, methods: ['POST'] };
    const site = await startTlsSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [{ path: '/up/*', kind: 'content.fetch', enginedata }],
    });
    const client = await connectHttp2(t, site);
    const stream = client.begin('/up/a', { ':method': 'POST' }, false);
    const [begun, broken] = [once(source, 'begun'), once(source, 'broken')];
    stream.write('the beginning');
    await begun;
    stream.destroy();
    await broken;
    assert.equal((await client.ask('/svc1/health')).status, 200);
  });

  for (const framing of ['with a length', 'without one'] as const) {
    test(`a response ${framing} that cannot be finished resets its stream only`, async (t) => {
      const source = createServer((_request, response) => {
        if (framing === 'with a length') response.setHeader('content-length', '100000');
        response.write('some');
        setImmediate(() => response.destroy());
      }).listen(0, '127.0.0.1');
      await once(source, 'listening');
      t.after(() => source.close());
      const address = source.address();
      assert.ok(address !== null && typeof address === 'object');
      const enginedata = { source: `http://127.0.0.1:${address.port}/*` };
      const site = await startTlsSite(t, {
        ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
        rules: [{ path: '/cut/*', kind: 'content.fetch', enginedata }],
      });
      const client = await connectHttp2(t, site);
      await assert.rejects(client.ask('/cut/a'), /NGHTTP2_INTERNAL_ERROR/);
      assert.equal((await client.ask('/svc1/health')).status, 200);
    });
  }

  test('connections and requests are counted in the metrics', async (t) => {
    const site = await startTlsSite(t);
    const client = await connectHttp2(t, site);
    const stream = client.begin('/svc1/userinterface/get', { ':method': 'POST' }, false);
    stream.on('error', () => undefined);
    const { body } = await client.ask('/svc1/metrics');
    assert.match(body.toString(), /^waymark_connections 1$/m);
    assert.match(body.toString(), /^waymark_requests_in_flight 2$/m);
  });

  test('many requests at once each get their own response', async (t) => {
    const rules = Array.from({ length: 50 }, (_, at) => ({
      path: `/page/${at}`,
      kind: 'content',
      content: `${at}`.repeat(1 + at * 1_000),
    }));
    const site = await startTlsSite(t, { files, ini, rules });
    const client = await connectHttp2(t, site);
    const asked = [...rules, ...rules, ...rules].map(async ({ path, content }, at) => {
      const path_ = at % 7 === 0 ? '/big.bin' : path;
      const { body } = await client.ask(path_);
      assert.equal(digest(body), digest(at % 7 === 0 ? big : Buffer.from(content)), path_);
    });
    await Promise.all(asked);
  });
});

suite('when the server stops', () => {
  test('open requests end, and further ones are refused', async (t) => {
    const site = await startTlsSite(t, { files, ini });
    const client = await connectHttp2(t, site);
    const stream = client.begin('/big.bin');
    stream.pause();
    await once(stream, 'response');
    const goaway = once(client.session, 'goaway');
    const stopped = site.waymark.stop(10_000);
    const [code] = (await goaway) as [number];
    assert.equal(code, 0);
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.resume();
    await once(stream, 'end');
    assert.equal(digest(Buffer.concat(chunks)), digest(big));
    assert.deepEqual(await stopped, { cut: 0 });
  });

  test('responses that are not read within the grace period are cut off, and counted', async (t) => {
    const site = await startTlsSite(t, { files, ini });
    const client = await connectHttp2(t, site);
    const stream = client.begin('/big.bin');
    stream.on('error', () => undefined).pause();
    await once(stream, 'response');
    const closed = once(client.session, 'close');
    assert.deepEqual(await site.waymark.stop(100), { cut: 1 });
    await closed;
  });
});
