import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { type TestContext, suite, test } from 'node:test';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import type { Reply } from '../../../src/core/http/reply.ts';
import {
  createResponseCompressor,
  responsesCompressedAtOnceMax,
} from '../../../src/modules/compression/compressors.ts';
import { withCompression } from '../../../src/modules/proxy/response-compression.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startSite } from '../../harness.ts';
import { decoded, texts } from '../compression/codings.ts';
import { ask, eventually } from '../files/disk-rig.ts';
import { fetchRule, visit } from './fetch-rig.ts';

const text = texts(20_000);
const plain = { 'content-type': 'text/plain' };

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** A site that fetches from a source; resolves to its URL. */
async function start(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const { origin } = await httpSource(t, answer);
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [
      {
        path: '/far/*',
        kind: 'content.fetch',
        enginedata: { source: `${origin}/*`, methods: ['GET', 'HEAD', 'PUT'] },
      },
    ],
  });
  return site.url;
}

/** A source of one answer. */
function always(headers: Headers, body: Buffer = text, status = 200) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    request.resume();
    response.writeHead(status, headers as http.OutgoingHttpHeaders);
    response.end(request.method === 'HEAD' ? undefined : body);
  };
}

/** Sends a request; resolves to the response before its content is read. */
function begin(url: string, headers: http.OutgoingHttpHeaders): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    http.get(`${url}/far/x`, { headers, agent: false }, resolve).once('error', reject);
  });
}

suite('fetched text', () => {
  test('is compressed, whether it arrives at once or in pieces', async (t) => {
    const large = texts(3_000_000);
    const url = await start(t, (request, response) => {
      const isLarge = request.url === '/large';
      const length =
        request.url === '/chunked'
          ? {}
          : { 'content-length': isLarge ? large.length : text.length };
      response.writeHead(200, { ...plain, ...length, etag: '"x"', 'accept-ranges': 'bytes' });
      response.end(isLarge ? large : text);
    });
    for (const path of ['/far/small', '/far/large', '/far/chunked']) {
      const content = path === '/far/large' ? large : text;
      for (const coding of ['zstd', 'br', 'gzip']) {
        const { status, fields, bytes } = await ask(url, path, {
          headers: { 'accept-encoding': coding },
        });
        assert.equal(status, 200);
        assert.equal(fields['content-encoding'], coding);
        assert.equal(fields.vary, 'Accept-Encoding');
        assert.equal(fields.etag, 'W/"x"');
        assert.equal(fields['accept-ranges'], undefined);
        const length = fields['content-length'];
        if (length !== undefined) assert.equal(length, String(bytes.length));
        assert.ok(bytes.length < content.length && decoded(bytes, coding).equals(content));
      }
      const { fields, bytes } = await ask(url, path);
      assert.deepEqual(
        [fields['content-encoding'], fields.vary, fields.etag, fields['accept-ranges']],
        [undefined, 'Accept-Encoding', '"x"', 'bytes'],
      );
      assert.ok(bytes.equals(content));
    }
  });

  test('has the same fields for a HEAD', async (t) => {
    const url = await start(t, always({ ...plain, etag: '"x"', 'content-length': '20000' }));
    const headers = { 'accept-encoding': 'gzip' };
    const { fields, bytes } = await ask(url, '/far/x', { method: 'HEAD', headers });
    assert.equal(bytes.length, 0);
    assert.equal(fields['content-encoding'], 'gzip');
    assert.equal(fields['content-length'], undefined);
    assert.deepEqual([fields.etag, fields.vary], ['W/"x"', 'Accept-Encoding']);
  });

  const untouched: readonly (readonly [
    title: string,
    headers: Headers,
    body?: Buffer,
    status?: number,
  ])[] = [
    ['is no text', { 'content-type': 'image/png' }],
    ['has no type', {}],
    ['is an event stream', { 'content-type': 'text/event-stream' }],
    ['is compressed already', { ...plain, 'content-encoding': 'x-own' }],
    ['has to stay as it is', { ...plain, 'cache-control': ['max-age=60', 'public, no-transform'] }],
    ['is signed', { ...plain, 'content-digest': 'sha-256=:x:' }],
    ['is short', plain, texts(1_023)],
    ['is empty', plain, Buffer.alloc(0)],
    ['is an error', plain, text, 404],
  ];
  for (const [title, headers, body = text, status = 200] of untouched) {
    test(`is not compressed if it ${title}`, async (t) => {
      const url = await start(t, always({ etag: '"x"', ...headers }, body, status));
      const seen = await ask(url, '/far/x', { headers: { 'accept-encoding': 'gzip' } });
      assert.equal(seen.status, status);
      // The cache adds the Vary that a content coding implies.
      const vary = headers['content-encoding'] === undefined ? undefined : 'Accept-Encoding';
      assert.deepEqual([seen.fields.etag, seen.fields.vary], ['"x"', vary]);
      assert.equal(seen.fields['content-encoding'], headers['content-encoding']);
      assert.ok(seen.bytes.equals(body));
    });
  }

  test('is not compressed if a trailer has its digest', async () => {
    const reply: Reply = {
      status: 200,
      fields: ['Content-Type', 'text/plain', 'Trailer', 'X-A, Repr-Digest'],
      body: { kind: 'bytes', bytes: text },
      source: 'rule:r1',
    };
    const fetch = {
      respond: () => Promise.resolve(reply),
      explain: () => ({ status: null }),
      upgrade: () => Promise.resolve(reply),
    };
    const request = visit({ fields: { 'accept-encoding': 'gzip' } });
    const compressor = createResponseCompressor();
    assert.equal(await withCompression(fetch, compressor).respond(fetchRule({}), request), reply);
  });

  test('is not compressed if the client sends no-transform', async (t) => {
    const url = await start(t, always(plain));
    const headers = { 'accept-encoding': 'gzip', 'cache-control': 'no-cache, no-transform' };
    const { fields, bytes } = await ask(url, '/far/x', { headers });
    assert.deepEqual([fields['content-encoding'], fields.vary], [undefined, undefined]);
    assert.ok(bytes.equals(text));
  });

  test('is not compressed if it would not become smaller', async (t) => {
    const random = Buffer.from(
      Array.from({ length: 5_000 }, () => Math.floor(Math.random() * 256)),
    );
    const url = await start(t, always({ ...plain, etag: '"x"' }, random));
    const { fields, bytes } = await ask(url, '/far/x', { headers: { 'accept-encoding': 'gzip' } });
    assert.deepEqual([fields['content-encoding'], fields.etag], [undefined, '"x"']);
    assert.equal(fields.vary, 'Accept-Encoding');
    assert.ok(bytes.equals(random));
  });
});

suite('validators of fetched text', () => {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    request.resume();
    const tag = { etag: '"x"', vary: 'Cookie' };
    const { 'if-none-match': known, 'if-match': wanted, range } = request.headers;
    if (wanted !== undefined && wanted !== '"x"') response.writeHead(412).end();
    else if (request.method === 'PUT') response.writeHead(204, tag).end();
    else if (known?.includes('"x"') === true) {
      response.writeHead(304, { ...tag, 'content-length': text.length }).end();
    } else if (range !== undefined) {
      const part = { 'content-range': 'bytes 0-1/20000', 'content-length': '2' };
      response.writeHead(206, { ...plain, ...tag, ...part }).end(text.subarray(0, 2));
    } else response.writeHead(200, { ...plain, ...tag }).end(text);
  };

  test('match in the weak form that the client got', async (t) => {
    const url = await start(t, answer);
    for (const [known, etag] of [
      ['W/"x"', 'W/"x"'],
      ['"x"', '"x"'],
      ['"y", W/"x"', 'W/"x"'],
    ] as const) {
      const headers = { 'accept-encoding': 'gzip', 'if-none-match': known };
      const { status, fields } = await ask(url, '/far/x', { headers });
      assert.deepEqual(
        [status, fields.etag, fields.vary, fields['content-encoding']],
        [304, etag, 'Cookie, Accept-Encoding', undefined],
      );
      assert.equal(fields['content-length'], undefined);
    }
  });

  test('of a range are those of the source', async (t) => {
    const url = await start(t, answer);
    const headers = { 'accept-encoding': 'gzip', range: 'bytes=0-1' };
    const { status, fields, bytes } = await ask(url, '/far/x', { headers });
    assert.deepEqual(
      [status, fields.etag, fields.vary, fields['content-encoding']],
      [206, '"x"', 'Cookie, Accept-Encoding', undefined],
    );
    assert.ok(bytes.equals(text.subarray(0, 2)));
  });

  test('that are dates never combine a range with compressed content', async (t) => {
    const date = 'Fri, 02 Jan 2026 12:00:00 GMT';
    const url = await start(t, ({ headers: { range }, url: path }, response) => {
      const type = path === '/film' ? { 'content-type': 'video/mp4' } : plain;
      const fields = { ...type, 'last-modified': date };
      if (range === undefined) response.writeHead(200, fields).end(text);
      else {
        response.writeHead(206, { ...fields, 'content-range': 'bytes 0-1/20000' });
        response.end(text.subarray(0, 2));
      }
    });
    const part = { range: 'bytes=0-1', 'if-range': date };
    const cases = [
      ['/far/x', { ...part, 'accept-encoding': 'gzip' }, 200, 'gzip'],
      ['/far/x', { ...part, 'accept-encoding': 'identity' }, 200, undefined],
      ['/far/film', { ...part, 'accept-encoding': 'gzip' }, 206, undefined],
    ] as const;
    for (const [path, headers, seen, coding] of cases) {
      const { status, fields } = await ask(url, path, { headers });
      assert.deepEqual([status, fields['content-encoding']], [seen, coding], path);
    }
  });

  test('work in If-Match, although the content was read compressed', async (t) => {
    const url = await start(t, answer);
    const read = await ask(url, '/far/x', { headers: { 'accept-encoding': 'br' } });
    const put = async (ifMatch: string | undefined) =>
      (await ask(url, '/far/x', { method: 'PUT', headers: { 'if-match': ifMatch } })).status;
    assert.equal(await put(read.fields.etag), 204);
    assert.equal(await put('W/"y"'), 412);
  });

  test('are forwarded unchanged, whatever their quotes contain', async (t) => {
    const url = await start(t, (request, response) => {
      request.resume();
      response.writeHead(204, { 'x-if-match': request.headers['if-match'] }).end();
    });
    for (const [sent, come] of [
      ['"aW/"', '"aW/"'],
      ['W/"aW/"', '"aW/"'],
      ['"aW/","b", W/"W/"', '"aW/","b", "W/"'],
    ] as const) {
      const { fields } = await ask(url, '/far/x', { method: 'PUT', headers: { 'if-match': sent } });
      assert.equal(fields['x-if-match'], come);
    }
  });
});

suite('compression of a stream', () => {
  const decoders = { zstd: createZstdDecompress, br: createBrotliDecompress, gzip: createGunzip };
  for (const [coding, createDecoder] of Object.entries(decoders)) {
    test(`delivers ${coding} content soon after the source has sent it`, async (t) => {
      const sent: ServerResponse[] = [];
      const url = await start(t, (_, response) => {
        response.writeHead(200, plain).write('first\n');
        sent.push(response);
      });
      const message = await begin(url, { 'accept-encoding': coding });
      assert.equal(message.headers['content-encoding'], coding);
      const decoder = message.pipe(createDecoder());
      for (const line of ['first\n', 'second\n', 'third\n']) {
        if (line !== 'first\n') sent[0]?.write(line);
        const [chunk] = (await once(decoder, 'data')) as [Buffer];
        assert.equal(chunk.toString(), line);
      }
      sent[0]?.end();
      await once(decoder, 'end');
    });
  }

  test('aborts the request to the source when the client goes away', async (t) => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const url = await start(t, (_, response) => {
      response.on('close', () => {
        resolve(undefined);
      });
      response.writeHead(200, plain).write(text);
    });
    const message = await begin(url, { 'accept-encoding': 'gzip' });
    message.on('error', () => undefined).destroy();
    await promise;
  });

  test('breaks off the reply when the source breaks off', async (t) => {
    const sent: ServerResponse[] = [];
    const url = await start(t, (_, response) => {
      response.writeHead(200, plain).write(text);
      sent.push(response);
    });
    const message = await begin(url, { 'accept-encoding': 'gzip' });
    message.on('data', () => sent[0]?.destroy());
    await assert.rejects(once(message, 'end'));
    assert.equal(message.complete, false);
  });

  test('leaves half of the places to others; further responses are sent uncompressed', async (t) => {
    const sent: ServerResponse[] = [];
    const url = await start(t, (_, response) => {
      response.writeHead(200, { ...plain, etag: '"x"' }).write(text);
      sent.push(response);
    });
    const open = await Promise.all(
      Array.from({ length: responsesCompressedAtOnceMax / 2 }, () =>
        begin(url, { 'accept-encoding': 'gzip' }),
      ),
    );
    assert.ok(open.every(({ headers }) => headers['content-encoding'] === 'gzip'));
    const over = await begin(url, { 'accept-encoding': 'gzip' });
    assert.deepEqual(
      [over.headers['content-encoding'], over.headers.etag, over.headers.vary],
      [undefined, '"x"', 'Accept-Encoding'],
    );
    for (const message of [...open, over]) message.on('error', () => undefined).destroy();
    // Aborted responses do not count any more.
    const next = await eventually(
      async () => {
        const message = await begin(url, { 'accept-encoding': 'gzip' });
        message.on('error', () => undefined).destroy();
        return message.headers['content-encoding'];
      },
      (coding) => coding === 'gzip',
    );
    assert.equal(next, 'gzip');
  });
});
