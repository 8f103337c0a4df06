import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { rawHttp2Source, rawSource } from '../../core/outbound/sources.ts';
import { fieldBlock, flags, frame, uint32 } from '../../core/server/h2/raw-client.ts';

/**
 * How a source of HTTP/1 answers: what it sends at once, and what it does once the visitor has the
 * head. `whole` is the content, if the protocol says that it is complete.
 */
interface Row {
  readonly name: string;
  readonly first: string;
  readonly then: (socket: Socket) => void;
  readonly whole?: string;
}

const part = 'a part of the page '.repeat(100);
const hex = part.length.toString(16);
const fin = (socket: Socket): void => void socket.end();
const reset = (socket: Socket): void => void socket.resetAndDestroy();
const send =
  (text: string, next?: (socket: Socket) => void) =>
  (socket: Socket): void => {
    socket.write(text, () => next?.(socket));
  };
const head = (version: string, ...lines: readonly string[]): string =>
  [`HTTP/${version} 200 OK`, 'Cache-Control: max-age=600', ...lines, '', ''].join('\r\n');
const sized = (length: number): string => `Content-Length: ${length}`;
const chunked = 'Transfer-Encoding: chunked';
const html = 'Content-Type: text/html';
const brotli = 'Content-Encoding: br';

const http1: readonly Row[] = [
  ...['1.0', '1.1'].flatMap((version): Row[] => [
    {
      name: `HTTP/${version}, Content-Length: all of it`,
      first: head(version, sized(2 * part.length)) + part,
      then: send(part),
      whole: part + part,
    },
    {
      name: `HTTP/${version}, Content-Length: the connection ends earlier`,
      first: head(version, sized(2 * part.length)) + part,
      then: fin,
    },
    {
      name: `HTTP/${version}, Content-Length: a reset`,
      first: head(version, sized(2 * part.length)) + part,
      then: reset,
    },
    {
      name: `HTTP/${version}, until the connection ends: it ends`,
      first: head(version, 'Connection: close') + part,
      then: fin,
      whole: part,
    },
    {
      name: `HTTP/${version}, until the connection ends: a reset`,
      first: head(version, 'Connection: close') + part,
      then: reset,
    },
    {
      name: `HTTP/${version}, compressed, Content-Length: the connection ends earlier`,
      first: head(version, html, brotli, sized(2 * part.length)) + part,
      then: fin,
    },
    {
      name: `HTTP/${version}, compressed here, until the connection ends: a reset`,
      first: head(version, html, 'Connection: close') + part,
      then: reset,
    },
  ]),
  {
    name: 'chunked: the last chunk',
    first: `${head('1.1', chunked)}${hex}\r\n${part}\r\n`,
    then: send('0\r\n\r\n'),
    whole: part,
  },
  {
    name: 'chunked, compressed: the last chunk',
    first: `${head('1.1', chunked, brotli)}${hex}\r\n${part}\r\n`,
    then: send('0\r\nX-After: a\r\n\r\n'),
    whole: part,
  },
  {
    name: 'chunked, compressed here: the connection ends between two chunks',
    first: `${head('1.1', chunked, html)}${hex}\r\n${part}\r\n`,
    then: fin,
  },
  ...(
    [
      ['the connection ends between two chunks', fin],
      ['the connection ends in a chunk', send('5\r\nab', fin)],
      ['the connection ends in the last chunk', send('0\r\n', fin)],
      ['the connection ends in the trailers', send('0\r\nX-A: 1\r\n', fin)],
      ['a reset', reset],
      ['what is no chunk', send('zz\r\nab\r\n')],
    ] as const
  ).map(([name, then]): Row => ({
    name: `chunked: ${name}`,
    first: `${head('1.1', chunked)}${hex}\r\n${part}\r\n`,
    then,
  })),
  // RFC 9112 §6.1, §6.3 and §7: a coding that is not `chunked` alone was not requested, and where
  // such content ends is a guess.
  ...['xchunked', 'identity', 'chunked, chunked', 'gzip, chunked', 'chunked, gzip', 'gzip', ''].map(
    (coding): Row => ({
      name: `Transfer-Encoding: ${coding}`,
      first: `${head('1.1', `Transfer-Encoding: ${coding}`)}${hex}\r\n${part}\r\n0\r\n\r\n`,
      then: fin,
    }),
  ),
  {
    name: 'Transfer-Encoding twice',
    first: `${head('1.1', chunked, chunked)}${hex}\r\n${part}\r\n0\r\n\r\n`,
    then: fin,
  },
  {
    name: 'HTTP/1.0, Transfer-Encoding: identity',
    first: `${head('1.0', 'Transfer-Encoding: identity')}${part}`,
    then: fin,
  },
];

/** A source of HTTP/2: `end` is what it does after the head and the first part. */
interface Http2Row {
  readonly name: string;
  readonly contentLength?: number;
  readonly coding?: string;
  readonly end: (stream: number) => readonly (Buffer | 'FIN' | 'reset')[];
  readonly whole?: string;
}

const data = (stream: number, flag = 0, content = part): Buffer =>
  frame('DATA', flag, stream, content);
const resetBy = (code: number) => (stream: number) => [
  frame('RST_STREAM', 0, stream, uint32(code)),
];
const goaway = (stream: number, code: number): Buffer =>
  frame('GOAWAY', 0, 0, Buffer.concat([uint32(stream), uint32(code)]));
const { END_STREAM, END_HEADERS } = flags;

const http2: readonly Http2Row[] = [
  { name: 'END_STREAM', end: (id) => [data(id, END_STREAM)], whole: part + part },
  { name: 'END_STREAM alone', end: (id) => [data(id, END_STREAM, '')], whole: part },
  {
    name: 'END_STREAM with trailers',
    end: (id) => [frame('HEADERS', END_STREAM | END_HEADERS, id, fieldBlock([['x-after', '1']]))],
    whole: part,
  },
  {
    name: 'END_STREAM, then RST_STREAM with NO_ERROR (RFC 9113 §8.1)',
    end: (id) => [data(id, END_STREAM), ...resetBy(0)(id)],
    whole: part + part,
  },
  {
    name: 'GOAWAY, then END_STREAM',
    end: (id) => [goaway(id, 0), data(id, END_STREAM), 'FIN'],
    whole: part + part,
  },
  {
    name: 'content-length and END_STREAM',
    contentLength: 2 * part.length,
    end: (id) => [data(id, END_STREAM)],
    whole: part + part,
  },
  ...[undefined, 2 * part.length].flatMap((contentLength): Http2Row[] =>
    (
      [
        ['RST_STREAM with NO_ERROR', resetBy(0)],
        ['RST_STREAM with INTERNAL_ERROR', resetBy(2)],
        ['RST_STREAM with REFUSED_STREAM', resetBy(7)],
        ['RST_STREAM with CANCEL', resetBy(8)],
        ['RST_STREAM with HTTP_1_1_REQUIRED', resetBy(13)],
        ['GOAWAY, then the end of the connection', (id) => [goaway(id, 0), 'FIN']],
        ['GOAWAY for an earlier stream', () => [goaway(0, 0), 'FIN']],
        ['GOAWAY with an error', (id) => [goaway(id, 2), 'FIN']],
        ['the end of the connection', () => ['FIN']],
        ['a reset of the connection', () => ['reset']],
      ] satisfies readonly (readonly [string, Http2Row['end']])[]
    ).map(([name, end]) => {
      const sizes = contentLength === undefined ? {} : { contentLength };
      return {
        name: `${name}${contentLength === undefined ? '' : ', content-length'}`,
        end,
        ...sizes,
      };
    }),
  ),
  {
    name: 'END_STREAM before the content-length',
    contentLength: 3 * part.length,
    end: (id) => [data(id, END_STREAM)],
  },
  {
    name: 'END_STREAM with trailers before the content-length',
    contentLength: 3 * part.length,
    end: (id) => [frame('HEADERS', END_STREAM | END_HEADERS, id, fieldBlock([['x-after', '1']]))],
  },
  ...['chunked', 'xchunked', 'identity'].map((coding) => ({
    name: `transfer-encoding: ${coding} (RFC 9113 §8.2.2)`,
    coding,
    end: (id: number) => [data(id, END_STREAM)],
  })),
  {
    name: 'END_STREAM behind the content-length',
    contentLength: part.length + 1,
    end: (id) => [data(id, END_STREAM)],
  },
];

suite('what a visitor gets, and the cache stores, when a source ends', () => {
  const cleanups: (() => unknown)[] = [];
  const t = { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) } as TestContext;
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });
  let site: TestSite;
  let [asked, row1, row2] = [0, http1[0], http2[0]];
  /** Resolves when the visitor has the head. */
  let shown = Promise.withResolvers<undefined>();

  before(async () => {
    const old = await rawSource(t, (socket) => {
      asked += 1;
      const row = row1;
      socket.write(row?.first ?? '');
      void shown.promise.then(() => row?.then(socket));
    });
    const port = await rawHttp2Source(t, (socket, stream) => {
      asked += 1;
      const row = row2;
      const size = row?.contentLength;
      const fields = [
        ...([
          [':status', '200'],
          ['cache-control', 'max-age=600'],
        ] as const),
        ...(size === undefined ? [] : [['content-length', String(size)] as const]),
        ...(row?.coding === undefined ? [] : [['transfer-encoding', row.coding] as const]),
      ];
      socket.write(frame('HEADERS', END_HEADERS, stream, fieldBlock(fields)));
      socket.write(data(stream));
      void shown.promise.then(() => {
        for (const one of row?.end(stream) ?? []) {
          if (one === 'FIN') socket.end();
          else if (one === 'reset') socket.resetAndDestroy();
          else socket.write(one);
        }
      });
    });
    const usual = 'timeout = 1h\nretries = 0';
    site = await startSite(t, {
      ini: `[proxy.one]\npath = /1\nsource = ${old.origin}\n${usual}\n
[proxy.two]\npath = /2\nsource = http://127.0.0.1:${port}\nhttp_version = 2\n${usual}`,
    });
  });

  /** What a visitor gets: the content, or undefined if it is cut or an error. */
  async function visit(path: string, method: string): Promise<string | undefined> {
    shown = Promise.withResolvers<undefined>();
    // Text is compressed on its way; what is compressed already, and the rest, is not.
    const headers = { 'accept-encoding': 'gzip' };
    const request = http.request(site.url + path, { method, headers, agent: false });
    request.end(method === 'POST' ? 'a' : undefined);
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    shown.resolve(undefined);
    try {
      const content = await text(answer);
      return answer.statusCode === 200 ? content : undefined;
    } catch {
      return undefined;
    }
  }

  async function failed(): Promise<number> {
    const { data: listed } = await site.call('svc1.source.list', {});
    const { rows } = listed as { readonly rows: readonly { readonly failed: number }[] };
    return rows.reduce((sum, row) => sum + row.failed, 0);
  }

  async function check(path: string, whole: string | undefined): Promise<void> {
    const [askedBefore, failedBefore] = [asked, await failed()];
    for (const time of [1, 2]) {
      assert.equal(await visit(path, 'GET'), whole, `GET ${time}`);
    }
    assert.equal(asked - askedBefore, whole === undefined ? 2 : 1, 'requests to the source');
    assert.equal(await visit(path, 'POST'), whole, 'POST');
    assert.equal((await failed()) - failedBefore, whole === undefined ? 3 : 0, 'counted');
  }

  for (const [at, row] of http1.entries()) {
    test(`${row.name}: ${row.whole === undefined ? 'cut' : 'whole'}`, async () => {
      row1 = row;
      await check(`/1/${at}`, row.whole);
    });
  }
  for (const [at, row] of http2.entries()) {
    test(`HTTP/2, ${row.name}: ${row.whole === undefined ? 'cut' : 'whole'}`, async () => {
      row2 = row;
      await check(`/2/${at}`, row.whole);
    });
  }
});
