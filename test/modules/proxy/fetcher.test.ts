import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { replyField } from '../../../src/core/http/reply.ts';
import { outboundConnectionsMax } from '../../../src/core/outbound/h1/http1-client.ts';
import type { ClientAddress } from '../../../src/core/values/network/peer.ts';
import type { FetchRule } from '../../../src/modules/proxy/fetch-plan.ts';
import { httpSource, rawSource } from '../../core/outbound/sources.ts';
import { fetchRule, front, replyText, testFetch, visit } from './fetch-rig.ts';

// The test measures memory in use, not memory that V8 has not collected yet.
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const echo = (request: IncomingMessage, response: ServerResponse): void => {
  response.end(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
};

suite('a fetched page', () => {
  test("is the source's answer to the same path and query", async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.writeHead(201, { ETag: '"1"' }).end(request.url);
    });
    const rule = fetchRule({ source: `${origin}/base/*` });
    const reply = await testFetch(t).respond(rule, visit({ path: '/shop/ä', query: 'b=1' }));
    assert.equal(reply.status, 201);
    assert.equal(reply.source, 'rule:r1');
    assert.equal(replyField(reply, 'etag'), '"1"');
    assert.equal(await replyText(reply), '/base/%C3%A4?b=1');
  });

  test('is requested with the fields of the client and those of the rule', async (t) => {
    const { origin } = await httpSource(t, echo);
    const rule = fetchRule({ source: `${origin}/*`, headers: { 'X-Key': 'k' } });
    const fields = { accept: 'text/css', cookie: 'a=b', apikey: 'secret', connection: 'close' };
    const got = await replyText(await testFetch(t).respond(rule, visit({ fields })));
    const headers = JSON.parse(got.replace('GET / ', '')) as Record<string, string>;
    assert.deepEqual(headers, {
      host: origin.slice('http://'.length),
      connection: 'keep-alive',
      accept: 'text/css',
      forwarded: 'for=192.0.2.7;host="visible.example";proto=http',
      'x-forwarded-for': '192.0.2.7',
      'x-forwarded-host': 'visible.example',
      'x-forwarded-proto': 'http',
      via: '1.1 waymark-r1',
      'x-key': 'k',
    });
  });

  test('that is small has a Content-Length, even if the source sends chunks', async (t) => {
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200);
      response.write('hel');
      response.end('lo');
    });
    const reply = await testFetch(t).respond(fetchRule({ source: `${origin}/*` }), visit());
    assert.equal(await replyText(reply), 'hello');
    if (reply.body.kind === 'bytes') assert.equal(replyField(reply, 'content-length'), '5');
    assert.equal(replyField(reply, 'transfer-encoding'), undefined);
  });

  const statuses: readonly (readonly [number, number | undefined, number])[] = [
    [200, undefined, 200],
    [200, 404, 404],
    [200, 200, 200],
    [201, 404, 201],
    [206, 404, 206],
    [301, 404, 301],
    [304, 404, 304],
    [404, 200, 404],
    [500, 200, 500],
    [599, undefined, 599],
  ];
  for (const [status, httpresponse, seen] of statuses) {
    test(`has status ${seen} for the source's ${status} and the rule's ${httpresponse ?? 'none'}`, async (t) => {
      const { origin } = await httpSource(t, (_, response) => response.writeHead(status).end());
      const rule = fetchRule(
        { source: `${origin}/*` },
        httpresponse === undefined ? {} : { httpresponse },
      );
      const reply = await testFetch(t).respond(rule, visit());
      assert.equal(reply.status, seen);
      await replyText(reply);
    });
  }

  const bodiless: readonly (readonly [string, string, number, string | undefined])[] = [
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 200, '5'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 200, undefined],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204, undefined],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: "x"\r\n\r\n', 304, '5'],
  ];
  for (const [method, answer, status, length] of bodiless) {
    test(`has no content: ${method}, ${answer.split('\r\n', 2).join(', ')}`, async (t) => {
      const { origin } = await rawSource(t, answer);
      const reply = await testFetch(t).respond(
        fetchRule({ source: `${origin}/*` }),
        visit({ method }),
      );
      assert.equal(reply.status, status);
      assert.equal(reply.body.kind, 'none');
      assert.equal(replyField(reply, 'content-length'), length);
    });
  }

  test("has no content if the rule sets 204, and the source's answer is discarded", async (t) => {
    const gone = Promise.withResolvers<undefined>();
    const { origin } = await httpSource(t, (_, response) => {
      response.on('close', () => {
        gone.resolve(undefined);
      });
      response.writeHead(200, { 'Content-Length': 100 }).write('half');
    });
    const rule = fetchRule({ source: `${origin}/*` }, { httpresponse: 204 });
    const reply = await testFetch(t).respond(rule, visit());
    assert.equal(reply.status, 204);
    assert.equal(reply.body.kind, 'none');
    assert.equal(replyField(reply, 'content-length'), undefined);
    await gone.promise;
  });

  test('may be a range: ranges and preconditions are forwarded', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      assert.equal(request.headers.range, 'bytes=0-1');
      assert.equal(request.headers['if-range'], '"x"');
      response.writeHead(206, { 'Content-Range': 'bytes 0-1/5', 'Content-Length': 2 }).end('he');
    });
    const fields = { range: 'bytes=0-1', 'if-range': '"x"' };
    const reply = await testFetch(t).respond(
      fetchRule({ source: `${origin}/*` }),
      visit({ fields }),
    );
    assert.equal(reply.status, 206);
    assert.equal(replyField(reply, 'content-range'), 'bytes 0-1/5');
    assert.equal(await replyText(reply), 'he');
  });

  test('redirects the client to the visible URL; the server does not follow', async (t) => {
    const asked: (string | undefined)[] = [];
    const { origin } = await httpSource(t, (request, response) => {
      asked.push(request.url);
      const to = request.url === '/base/a' ? `${origin}/base/b` : 'http://169.254.169.254/latest/';
      response.writeHead(302, { Location: to, 'Set-Cookie': ['a=1; Path=/', 'b=2'] }).end();
    });
    const rule = fetchRule({ source: `${origin}/base/*` });
    const fetch = testFetch(t);
    const inside = await fetch.respond(rule, visit({ path: '/shop/a' }));
    assert.equal(replyField(inside, 'location'), 'http://visible.example/shop/b');
    assert.ok(inside.fields.includes('a=1; Path=/shop/'));
    assert.ok(inside.fields.includes('b=2; Path=/shop/'));
    const outside = await fetch.respond(rule, visit({ path: '/shop/c' }));
    assert.equal(outside.status, 302);
    assert.deepEqual(asked, ['/base/a', '/base/c']);
  });
});

suite('a page that cannot be fetched', () => {
  test('does not reveal the source', async (t) => {
    const rule = fetchRule({ source: 'http://10.1.2.3/s3cret/*', headers: { key: 's3cret' } });
    await assert.rejects(testFetch(t).respond(rule, visit()), (thrown) => {
      assert.ok(thrown instanceof Error);
      assert.match(thrown.message, /not allowed/);
      assert.doesNotMatch(thrown.message, /10\.1|s3cret/);
      return true;
    });
  });

  const failing: readonly (readonly [string, string, FetchRule, string])[] = [
    ['no source', '/shop/', fetchRule({}), 'bad_gateway'],
    ['nobody there', '/shop/', fetchRule({ source: 'http://127.0.0.1:1/*' }), 'bad_gateway'],
    ['a dot segment', '/shop/../x', fetchRule({ source: 'http://127.0.0.1:1/a/*' }), 'not_found'],
  ];
  for (const [what, path, rule, code] of failing) {
    test(`fails with ${code}: ${what}`, async (t) => {
      await assert.rejects(testFetch(t).respond(rule, visit({ path })), { code });
    });
  }

  const meaningless = [
    '200 OK\r\nTransfer-Encoding: gzip',
    '200 OK\r\nTransfer-Encoding: gzip, chunked',
  ];
  for (const head of meaningless) {
    test(`fails with bad_gateway: ${head.replace('\r\n', ', ')}`, async (t) => {
      const chunks = '5\r\nhello\r\n0\r\n\r\n';
      const { origin } = await rawSource(t, `HTTP/1.1 ${head}\r\n\r\n${chunks}`);
      const rule = fetchRule({ source: `${origin}/*` });
      await assert.rejects(testFetch(t).respond(rule, visit()), { code: 'bad_gateway' });
    });
  }

  test('fails with gateway_timeout if the source does not answer in time', async (t) => {
    const { origin } = await rawSource(t, () => undefined);
    const fetch = testFetch(t, { timeoutMs: 50 });
    await assert.rejects(fetch.respond(fetchRule({ source: `${origin}/*` }), visit()), {
      code: 'gateway_timeout',
    });
  });

  const cuts: Readonly<Record<string, string>> = {
    'with a length': 'Content-Length: 100000',
    'in chunks': 'Transfer-Encoding: chunked',
  };
  for (const [what, field] of Object.entries(cuts)) {
    test(`is incomplete for the client too: ${what}`, async (t) => {
      const { origin } = await rawSource(t, (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${field}\r\n\r\n5\r\nhello\r\n`, () => {
          setImmediate(() => socket.destroy());
        });
      });
      const rule = fetchRule({ source: `${origin}/*` });
      const base = await front(t, { fetch: testFetch(t), rules: () => [rule] });
      const response = await fetch(`${base}/shop/`).catch(() => undefined);
      if (response?.status === 502) return;
      await assert.rejects(async () => response?.text());
    });
  }
});

suite('methods', () => {
  test('that a rule does not list get 405 with Allow', async (t) => {
    const fetch = testFetch(t);
    const read = fetchRule({ source: 'http://127.0.0.1:1/*' });
    await assert.rejects(fetch.respond(read, visit({ method: 'POST' })), {
      code: 'method_not_allowed',
      allow: ['GET', 'HEAD', 'OPTIONS'],
    });
    const write = fetchRule({ source: 'http://127.0.0.1:1/*', methods: ['POST', 'TRACE'] });
    for (const method of ['GET', 'TRACE', 'post']) {
      await assert.rejects(fetch.respond(write, visit({ method })), {
        code: 'method_not_allowed',
        allow: ['POST', 'OPTIONS'],
      });
    }
  });

  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'PURGE']) {
    test(`that a rule lists reach the source with their content: ${method}`, async (t) => {
      const { origin } = await httpSource(t, (request, response) => {
        void text(request).then((sent) => response.end(`${request.method} ${sent}`));
      });
      const rule = fetchRule({ source: `${origin}/*`, methods: [method] });
      for (const fields of [{}, { 'content-length': '5' }]) {
        const body = Readable.from(['he', 'llo']);
        const reply = await testFetch(t).respond(rule, visit({ method, body, fields }));
        assert.equal(await replyText(reply), `${method} hello`);
      }
      const bare = await testFetch(t).respond(rule, visit({ method }));
      assert.equal(await replyText(bare), `${method} `);
    });
  }

  test('with too much content get 413, at once if Content-Length says so', async (t) => {
    let requests = 0;
    const { origin } = await httpSource(t, (request, response) => {
      requests += 1;
      request.resume().on('end', () => response.end());
    });
    const rule = fetchRule({ source: `${origin}/*`, methods: ['POST'] });
    const fetch = testFetch(t, { bodyBytesMax: 8 });
    const post = (fields: Record<string, string>) =>
      fetch.respond(
        rule,
        visit({ method: 'POST', fields, body: Readable.from(['hello', ' world']) }),
      );
    await assert.rejects(post({ 'content-length': '11' }), { code: 'too_large' });
    assert.equal(requests, 0);
    await assert.rejects(post({}), { code: 'too_large' });
  });

  test('whose content the source does not read get its answer all the same', async (t) => {
    const { origin } = await rawSource(t, (socket) => {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno');
    });
    const rule = fetchRule({ source: `${origin}/*`, methods: ['POST'] });
    const body = new Readable({ read: () => undefined });
    body.push('never ending');
    const reply = await testFetch(t).respond(rule, visit({ method: 'POST', body }));
    assert.equal(reply.status, 401);
    assert.equal(await replyText(reply), 'no');
    assert.equal(body.destroyed, false, "the client's connection has to carry the answer");
  });
});

test('a request that no source accepts leaves its content unread', async (t) => {
  const body = new Readable({ read: () => undefined });
  const rule = fetchRule({ source: 'http://127.0.0.1:1/*', methods: ['POST'] });
  await assert.rejects(testFetch(t).respond(rule, visit({ method: 'POST', body })), {
    code: 'bad_gateway',
  });
  assert.equal(body.destroyed, false);
  assert.equal(body.listenerCount('data'), 0);
});

suite('a rule that fetches from its own site', () => {
  test('gets 508 after one round', async (t) => {
    const rules: FetchRule[] = [];
    const base = await front(t, { fetch: testFetch(t), rules: () => rules });
    rules.push(fetchRule({ source: `${base}/shop/*` }));
    const response = await fetch(`${base}/shop/a`);
    assert.equal(response.status, 508);
    assert.match(await response.text(), /508 Loop Detected/);
    assert.doesNotMatch(JSON.stringify([...response.headers]), /127\.0\.0\.1/);
  });

  test('through another rule gets 508 as well', async (t) => {
    const rules: FetchRule[] = [];
    const base = await front(t, { fetch: testFetch(t), rules: () => rules });
    rules.push(fetchRule({ source: `${base}/b/*` }, { id: 'a', path: '/a/*' }));
    rules.push(fetchRule({ source: `${base}/a/*` }, { id: 'b', path: '/b/*' }));
    assert.equal((await fetch(`${base}/a/`)).status, 508);
  });

  test('through other rules that end is no loop', async (t) => {
    const { origin } = await httpSource(t, echo);
    const rules: FetchRule[] = [];
    const base = await front(t, { fetch: testFetch(t), rules: () => rules });
    rules.push(fetchRule({ source: `${base}/b/*` }, { id: 'a', path: '/a/*' }));
    rules.push(fetchRule({ source: `${origin}/*` }, { id: 'b', path: '/b/*' }));
    const response = await fetch(`${base}/a/x`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('via'), '1.1 waymark, 1.1 waymark');
    assert.match(await response.text(), /"via":"1.1 waymark-a, 1.1 waymark-b"/);
  });
});

suite('streams', () => {
  const megabyte = Buffer.alloc(2 ** 20, 'x');

  /** Sends a number of mebibytes, no faster than the server reads them. */
  async function pour(response: ServerResponse, mebibytes: number): Promise<void> {
    response.writeHead(200, { 'Content-Length': mebibytes * megabyte.length });
    const content = Readable.from(Iterator.from(Array(mebibytes).keys()).map(() => megabyte));
    await pipeline(content, response).catch(() => undefined);
  }

  test('two slow readers of 256 MiB each are served within 100 MiB of memory', async (t) => {
    const { origin } = await httpSource(t, (_, response) => void pour(response, 256));
    const rule = fetchRule({ source: `${origin}/*` });
    const source = testFetch(t);
    const before = process.memoryUsage.rss();
    let most = before;
    const read = async (): Promise<number> => {
      const { body } = await source.respond(rule, visit());
      assert.ok(body.kind === 'stream');
      assert.equal(body.bytesLength, 2 ** 28);
      let bytes = 0;
      let measuredAt = 0;
      for await (const chunk of body.stream as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        assert.ok(body.stream.readableLength <= 2 ** 18, 'more is kept than was asked for');
        await turn();
        if (bytes < measuredAt) continue;
        measuredAt += 2 ** 24;
        collectGarbage();
        most = Math.max(most, process.memoryUsage.rss());
      }
      return bytes;
    };
    assert.deepEqual(await Promise.all([read(), read()]), [2 ** 28, 2 ** 28]);
    const grownMiB = Math.round((most - before) / 2 ** 20);
    t.diagnostic(`grew by ${grownMiB} MiB`);
    assert.ok(grownMiB < 100, `${grownMiB} MiB`);
  });

  test('an upload of 128 MiB is read as fast as the source reads', async (t) => {
    let taken = 0;
    const { origin } = await httpSource(t, (request, response) => {
      void (async () => {
        for await (const chunk of request as AsyncIterable<Buffer>) {
          taken += chunk.length;
          await turn();
        }
        response.end(String(taken));
      })();
    });
    let given = 0;
    let ahead = 0;
    const body = new Readable({
      read() {
        given += megabyte.length;
        ahead = Math.max(ahead, given - taken);
        this.push(given > 2 ** 27 ? null : megabyte);
      },
    });
    const rule = fetchRule({ source: `${origin}/*`, methods: ['PUT'] });
    const fetch = testFetch(t, { bodyBytesMax: 2 ** 27 });
    const reply = await fetch.respond(rule, visit({ method: 'PUT', body }));
    assert.equal(await replyText(reply), String(2 ** 27));
    // At most the kernel's buffers of both ends of a connection.
    assert.ok(ahead < 2 ** 25, `${ahead} bytes ahead`);
  });

  test('content arrives byte for byte', async (t) => {
    const sent = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * at) % 251));
    const { origin } = await httpSource(t, (_, response) => {
      response.write(sent.subarray(0, 1));
      setImmediate(() => {
        response.write(sent.subarray(1, 100_000));
        setImmediate(() => response.end(sent.subarray(100_000)));
      });
    });
    const rule = fetchRule({ source: `${origin}/*` });
    const base = await front(t, { fetch: testFetch(t), rules: () => [rule] });
    const got = Buffer.from(await (await fetch(`${base}/shop/`)).arrayBuffer());
    const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
    assert.equal(hash(got), hash(sent));
  });

  test('the request to the source is aborted when the client goes away', async (t) => {
    const gone = Promise.withResolvers<undefined>();
    const { origin } = await httpSource(t, (request, response) => {
      if (request.url === '/small') return void response.end('small');
      response.on('close', () => {
        gone.resolve(undefined);
      });
      void pour(response, 1_024);
    });
    const rule = fetchRule({ source: `${origin}/*` });
    const base = await front(t, { fetch: testFetch(t), rules: () => [rule] });
    const request = http.get(`${base}/shop/big`);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await once(response, 'data');
    response.on('error', () => undefined);
    request.destroy();
    await gone.promise;
    assert.equal(await (await fetch(`${base}/shop/small`)).text(), 'small');
  });

  test('the request to the source is aborted when the client goes away during its upload', async (t) => {
    const cut = Promise.withResolvers<string>();
    const arrived = Promise.withResolvers<undefined>();
    const { origin } = await httpSource(t, (request) => {
      request.on('error', (error: NodeJS.ErrnoException) => {
        cut.resolve(String(error.code));
      });
      request.on('data', () => {
        arrived.resolve(undefined);
      });
    });
    const rule = fetchRule({ source: `${origin}/*`, methods: ['POST'] });
    const base = await front(t, { fetch: testFetch(t), rules: () => [rule] });
    const request = http.request(`${base}/shop/`, { method: 'POST' });
    request.on('error', () => undefined);
    request.write('first');
    await arrived.promise;
    request.destroy();
    assert.equal(await cut.promise, 'ECONNRESET');
  });
});

test('addresses whose requests a source does not end leave places there to others', async (t) => {
  const responses: ServerResponse[] = [];
  const { origin, server } = await httpSource(t, (_, response) => {
    responses.push(response);
    response.write('x');
    server.emit('begun');
  });
  const rule = fetchRule({ source: `${origin}/*` });
  const fetch = testFetch(t);
  const ask = (address: ClientAddress, count: number): readonly Promise<string>[] =>
    Array.from({ length: count }, async () =>
      replyText(await fetch.respond(rule, visit({ address }))),
    );
  const begun = async (count: number): Promise<void> => {
    while (responses.length < count) await once(server, 'begun');
  };
  const half = outboundConnectionsMax / 2;
  const first = ask('192.0.2.1', half + 1);
  await begun(half);
  const second = ask('192.0.2.2', half);
  await begun(half + half / 2);
  const third = ask('192.0.2.3', 1);
  // Only the third address gets a place: those beyond the shares of the others wait.
  await begun(half + half / 2 + 1);
  responses.at(-1)?.end();
  assert.equal(await third[0], 'x');
  assert.equal(responses.length, half + half / 2 + 1);
  server.on('begun', () => responses.at(-1)?.end());
  for (const response of responses) response.end();
  assert.deepEqual(new Set(await Promise.all([...first, ...second])), new Set(['x']));
});
