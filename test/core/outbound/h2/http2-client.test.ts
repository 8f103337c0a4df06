import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import type { SourceResponse } from '../../../../src/core/outbound/exchange.ts';
import { httpSource, outbound, selfSigned, testDialler } from '../sources.ts';

type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** A server of HTTP/2 in the clear, or over TLS. */
async function source(
  t: TestContext,
  answer: Answer,
  made: Http2Server = createServer({ maxSessionMemory: 100 }),
) {
  const sessions: ServerHttp2Session[] = [];
  made.on('session', (session) => sessions.push(session));
  made.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined);
    answer(stream, headers);
  });
  made.listen(0, '127.0.0.1');
  await once(made, 'listening');
  t.after(async () => {
    for (const session of sessions) session.destroy();
    made.close();
    await once(made, 'close');
  });
  const { port } = made.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port, sessions };
}

async function textOf(answer: SourceResponse): Promise<string> {
  const content = answer.content();
  return (Buffer.isBuffer(content) ? content : await buffer(content)).toString();
}

const isHttp2 = true;

suite('a request over HTTP/2', () => {
  test('has its method, authority, path, fields, content and trailers; so has the answer', async (t) => {
    const seen: IncomingHttpHeaders[] = [];
    const { origin } = await source(t, (stream, headers) => {
      seen.push(headers);
      const trailers = new Promise<IncomingHttpHeaders>((resolve) => {
        stream.once('trailers', resolve);
      });
      void buffer(stream).then(async (body) => {
        const sent = await trailers;
        stream.additionalHeaders({ ':status': 103, link: '</a>' });
        stream.respond({ ':status': 201, 'x-two': ['1', '2'] }, { waitForTrailers: true });
        stream.once('wantTrailers', () => {
          stream.sendTrailers({ 'x-after': String(sent['x-sum']) });
        });
        stream.end(`got ${body.toString()}`);
      });
    });
    const dialler = testDialler(t, { isHttp2 });
    const interim: number[] = [];
    const answer = await dialler.send(
      outbound(origin, {
        ...{ method: 'PUT', target: '/a?b', fields: ['host', 'app.test', 'x-a', '1', 'x-a', '2'] },
        body: Readable.from(['hello']),
        trailers: () => ['X-Sum', 'caf\u00e9'],
        interim: (status) => interim.push(status),
      }),
    );
    assert.equal(await textOf(answer), 'got hello');
    assert.deepEqual([answer.status, interim], [201, [103]]);
    assert.deepEqual(answer.fields.slice(0, 4), ['x-two', '1', 'x-two', '2']);
    assert.deepEqual(answer.trailers(), ['x-after', 'caf\u00e9']);
    const [headers = {}] = seen;
    assert.deepEqual(
      [':method', ':path', ':authority', ':scheme', 'x-a'].map((name) => headers[name]),
      ['PUT', '/a?b', 'app.test', 'http', '1, 2'],
    );
  });

  test('with an Expect sends its content when the server says 100, and not to a refusal', async (t) => {
    let bytes = 0;
    const { origin } = await source(t, (stream, { ':path': path, expect }) => {
      assert.equal(expect, '100-continue');
      stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
      if (path === '/no') stream.respond({ ':status': 417 }, { endStream: true });
      else {
        stream.additionalHeaders({ ':status': 100 });
        stream.once('end', () => {
          stream.respond({ ':status': 200 }, { endStream: true });
        });
      }
    });
    const dialler = testDialler(t, { isHttp2 });
    const ask = async (target: string) => {
      const body = Readable.from(['hello']);
      const expected = { method: 'POST', body, expectsContinue: true };
      return (await dialler.send(outbound(origin, { target, ...expected }))).status;
    };
    assert.deepEqual([await ask('/no'), bytes], [417, 0]);
    assert.deepEqual([await ask('/yes'), bytes], [200, 5]);
  });

  test('shares sessions, also beyond the streams that one may have', async (t) => {
    let [open, most] = [0, 0];
    const server = createServer({ settings: { maxConcurrentStreams: 5 } });
    const waiting: ServerHttp2Stream[] = [];
    const { origin, sessions } = await source(
      t,
      (stream) => {
        most = Math.max(most, (open += 1));
        waiting.push(stream);
        if (waiting.length < 12) return;
        for (const one of waiting) {
          if (!one.destroyed && !one.headersSent)
            one.respond({ ':status': 200 }, { endStream: true });
        }
      },
      server,
    );
    const dialler = testDialler(t, { isHttp2 });
    await dialler
      .send(outbound(origin, { signal: AbortSignal.timeout(50) }))
      .catch(() => undefined);
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => dialler.send(outbound(origin))),
    );
    assert.ok(answers.every(({ status }) => status === 200));
    assert.ok(sessions.length <= 4, `${sessions.length} sessions`);
    assert.ok(most >= 12);
  });

  test('is repeated over a new session if the server ends the one that it had', async (t) => {
    const { origin, sessions } = await source(t, (stream, { ':path': path }) => {
      if (path === '/last' && sessions.length === 1) stream.session?.destroy();
      else stream.respond({ ':status': 200 }, { endStream: true });
    });
    const dialler = testDialler(t, { isHttp2 });
    assert.equal((await dialler.send(outbound(origin))).status, 200);
    assert.equal((await dialler.send(outbound(origin, { target: '/last' }))).status, 200);
    sessions.at(-1)?.goaway();
    assert.equal((await dialler.send(outbound(origin))).status, 200);
    assert.ok(sessions.length >= 2);
  });

  test('with long content that its reader leaves alone stops no other one', async (t) => {
    const { origin } = await source(t, (stream, { ':path': path }) => {
      stream.respond({ ':status': 200 });
      stream.end(path === '/long' ? Buffer.alloc(8 << 20) : 'short');
    });
    const dialler = testDialler(t, { isHttp2 });
    const long = await Promise.all(
      [1, 2, 3, 4].map(() => dialler.send(outbound(origin, { target: '/long' }))),
    );
    const contents = long.map((answer) => answer.content());
    for (let turn = 0; turn < 3; turn += 1) {
      assert.equal(await textOf(await dialler.send(outbound(origin))), 'short');
    }
    for (const content of contents) {
      assert.equal((await buffer(content as Readable)).length, 8 << 20);
    }
  });

  test('fails if the answer stalls, breaks off, or is reset', async (t) => {
    const { origin } = await source(t, (stream, { ':path': path }) => {
      if (path === '/silent') return;
      if (path === '/reset') {
        stream.close(2);
        return;
      }
      stream.respond({ ':status': 200, ...(path === '/short' && { 'content-length': '9' }) });
      stream.write('part');
      if (path === '/short') stream.end();
      if (path === '/broken') setImmediate(() => stream.destroy(new Error('broken')));
    });
    const [patient, brief] = [
      testDialler(t, { isHttp2 }),
      testDialler(t, { isHttp2, timeoutMs: 200 }),
    ];
    for (const [target, dialler, code] of [
      ['/silent', brief, 'gateway_timeout'],
      ['/stalled', brief, 'gateway_timeout'],
      ['/reset', patient, 'bad_gateway'],
      ['/broken', patient, 'bad_gateway'],
      ['/short', patient, 'bad_gateway'],
    ] as const) {
      const answer = dialler.send(outbound(origin, { target })).then(textOf);
      await assert.rejects(answer, { code }, target);
    }
  });

  test('ends at the server when its client goes away', async (t) => {
    const closed = Promise.withResolvers<number>();
    const { origin } = await source(t, (stream) => {
      stream.once('close', () => {
        closed.resolve(stream.rstCode);
      });
      controller.abort();
    });
    const controller = new AbortController();
    const { signal } = controller;
    await assert.rejects(testDialler(t, { isHttp2 }).send(outbound(origin, { signal })));
    assert.equal(await closed.promise, 8);
  });

  test('is not sent if its client went away before there was a session', async (t) => {
    const paths: unknown[] = [];
    const { port } = await source(t, (stream, headers) => {
      paths.push(headers[':path']);
      stream.respond({ ':status': 204 }, { endStream: true });
    });
    // A server whose first frame comes when it is told to.
    const [asked, open] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const slow = createTcpServer((socket) => {
      asked.resolve(undefined);
      void open.promise.then(() => {
        pipeline(socket, connect(port, '127.0.0.1'), socket, () => undefined);
      });
    });
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    t.after(() => slow.close());
    const origin = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const dialler = testDialler(t, { isHttp2 });
    const controller = new AbortController();
    const left = dialler.send(outbound(origin, { target: '/left', controller }));
    const stays = dialler.send(outbound(origin, { target: '/stays' }));
    await asked.promise;
    controller.abort();
    await assert.rejects(left);
    open.resolve(undefined);
    assert.equal((await stays).status, 204);
    assert.deepEqual(paths, ['/stays']);
  });

  test('over TLS needs a server that offers HTTP/2', async (t) => {
    const certificate = selfSigned('localhost');
    const { port } = await source(
      t,
      (stream) => {
        stream.respond({ ':status': 200 }, { endStream: true });
      },
      createSecureServer(certificate),
    );
    const dialler = testDialler(t, { isHttp2, ca: [certificate.cert] });
    const answer = await dialler.send(outbound(`https://localhost:${port}`));
    assert.equal(answer.status, 200);
    await assert.rejects(testDialler(t, { isHttp2 }).send(outbound(`https://localhost:${port}`)));
    const old = await httpSource(t, (_, response) => response.end());
    await assert.rejects(dialler.send(outbound(old.origin)), { code: 'bad_gateway' });
  });

  test('to a server that floods it with fields fails alone', async (t) => {
    const { origin } = await source(t, (stream, { ':path': path }) => {
      const fields = Object.fromEntries(
        Array.from({ length: path === '/many' ? 500 : 0 }, (_, at) => [`x-${at}`, 'x'.repeat(200)]),
      );
      stream.respond({ ':status': 200, ...fields }, { endStream: true });
    });
    const dialler = testDialler(t, { isHttp2 });
    await assert.rejects(dialler.send(outbound(origin, { target: '/many' })));
    assert.equal((await dialler.send(outbound(origin))).status, 200);
  });
});
