import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../../harness.ts';
import { rawSource } from '../../core/outbound/sources.ts';

/*
 * What a source gets of a request and a visitor of a response, in bytes: a proxy passes on or
 * refuses, it drops nothing without a word.
 */

/** A site that passes everything below `/` to an application. */
function siteFor(t: TestContext, origin: string) {
  return startSite(t, { ini: `[proxy.app]\nsource = ${origin}\ncache = yes\n` });
}

/** What the client gets for bytes, up to the end of its connection. */
async function answerOf(t: TestContext, port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return text;
}

/** A source that notes all that it gets up to a mark, and then answers and closes. */
async function noting(t: TestContext, end: string) {
  const got: string[] = [];
  const server = createServer((socket: Socket) => {
    let text = '';
    socket
      .on('error', () => undefined)
      .on('data', (chunk) => {
        text += chunk.toString('latin1');
        if (!text.endsWith(end)) return;
        got.push(text);
        socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
      });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got };
}

/** A request, what its source gets: request line, fields besides those of the proxy, content. */
interface RequestCase {
  readonly sent: string;
  readonly line: string;
  readonly fields: readonly string[];
  readonly content: string;
}

/** A request to the site: its line, its fields, its content. */
function message(line: string, fields: readonly string[] = [], content = ''): string {
  return [`${line} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...fields, '', content].join(
    '\r\n',
  );
}

const length = ['Content-Length: 3'];
const chunked = ['Transfer-Encoding: chunked'];
const chunks = '3\r\nabc\r\n0\r\n\r\n';

function withContent(method: string): Readonly<Record<string, RequestCase>> {
  const line = `${method} /a`;
  return {
    [`content of a ${method}`]: {
      sent: message(line, length, 'abc'),
      ...{ line, fields: ['content-length: 3'], content: 'abc' },
    },
    [`chunks of a ${method}`]: {
      sent: message(line, chunked, chunks),
      ...{ line, fields: ['transfer-encoding: chunked'], content: chunks },
    },
  };
}

const requests: Readonly<Record<string, RequestCase>> = {
  ...Object.assign(
    {},
    ...['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'SEARCH', 'QUERY'].map(withContent),
  ),
  'no content': { sent: message('GET /a'), line: 'GET /a', fields: [], content: '' },
  'a length of 0': {
    sent: message('DELETE /a', ['Content-Length: 0']),
    ...{ line: 'DELETE /a', fields: ['content-length: 0'], content: '' },
  },
  'no length of a POST': {
    sent: message('POST /a'),
    ...{ line: 'POST /a', fields: ['content-length: 0'], content: '' },
  },
  'fields that are repeated, empty, or beyond ASCII': {
    sent: message('GET /a', ['X-A: 1', 'X-B:', 'x-a: 2', 'X-C: \xe9', 'Range: bytes=0-']),
    line: 'GET /a',
    fields: ['x-a: 1, 2', 'x-b: ', 'x-c: \xe9', 'range: bytes=0-'],
    content: '',
  },
  'trailer fields': {
    sent: message('POST /a', [...chunked, 'Trailer: X-Sum'], '3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n'),
    line: 'POST /a',
    fields: ['trailer: X-Sum', 'transfer-encoding: chunked'],
    content: '3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n',
  },
  // RFC 9110 §7.6.1: a proxy has to leave them out.
  'fields that Connection names': {
    sent: message('GET /a', ['Connection: X-Hop', 'X-Hop: 1', 'Keep-Alive: 5', 'TE: trailers']),
    ...{ line: 'GET /a', fields: [], content: '' },
  },
  // A server may ignore an Upgrade (RFC 9110 §7.8); behind h2c, no rule of this server would hold.
  'an Upgrade to HTTP/2': {
    sent: [
      'GET /a HTTP/1.1',
      'Host: localhost',
      'Connection: close, Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
      '\r\n',
    ].join('\r\n'),
    ...{ line: 'GET /a', fields: [], content: '' },
  },
};

const ofProxy = /^(?:host|connection|via|forwarded|x-forwarded-[a-z]+):/;

suite('a source gets', () => {
  for (const [what, { sent, line, fields, content }] of Object.entries(requests)) {
    test(what, async (t) => {
      const source = await noting(t, content === '' ? '\r\n\r\n' : content);
      const site = await siteFor(t, source.origin);
      const answer = await answerOf(t, site.port, sent);
      assert.match(answer, /^HTTP\/1\.1 204 /);
      const [text = ''] = source.got;
      const end = text.indexOf('\r\n\r\n');
      const [first, ...lines] = text.slice(0, end).split('\r\n');
      assert.equal(first, `${line} HTTP/1.1`);
      assert.deepEqual(
        lines.filter((one) => !ofProxy.test(one)),
        fields,
      );
      assert.equal(text.slice(end + 4), content);
    });
  }
});

/** A response of a source, and what a visitor gets: an interim head, status, fields, content. */
interface ResponseCase {
  readonly sent: string;
  readonly method?: string;
  readonly ask?: readonly string[];
  /** Whether this server decides where the content ends: by a length, or in one chunk. */
  readonly isFramedHere?: boolean;
  readonly got: readonly string[];
}

const responses: Readonly<Record<string, ResponseCase>> = {
  'fields that are repeated or empty': {
    sent: 'HTTP/1.1 200 OK\r\nX-A: 1\r\nX-B:\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nok',
    got: ['200', 'X-A: 1', 'X-B: ', 'X-A: 2', 'Content-Length: 2', '', 'ok'],
  },
  'lines that end with LF alone': {
    sent: 'HTTP/1.1 200 OK\nX-A: 1\nContent-Length: 2\n\nok',
    got: ['200', 'X-A: 1', 'Content-Length: 2', '', 'ok'],
  },
  'HTTP/1.0 without a length': {
    sent: 'HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nok',
    isFramedHere: true,
    got: ['200', 'X-A: 1', '', 'ok'],
  },
  'HTTP/1.0 with LF alone': {
    sent: 'HTTP/1.0 404 Not here\nX-A: 1\n\nno',
    isFramedHere: true,
    got: ['404', 'X-A: 1', '', 'no'],
  },
  'an interim response': {
    sent: 'HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    got: ['103', 'Link: </a>', '', '200', 'Content-Length: 0', '', ''],
  },
  'an interim response that no one has registered': {
    sent: 'HTTP/1.1 199 Soon\r\nX-A: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    got: ['199', 'X-A: 1', '', '200', 'Content-Length: 0', '', ''],
  },
  'trailer fields, if it takes them': {
    sent: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n`,
    ask: ['TE: trailers'],
    got: ['200', '', '2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n'],
  },
  'the length for a HEAD': {
    sent: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n',
    method: 'HEAD',
    got: ['200', 'Content-Length: 9', '', ''],
  },
  // RFC 9110 §15.3.6: a 205 has no content.
  'a 205 without its content': {
    sent: 'HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nok',
    isFramedHere: true,
    got: ['205', '', ''],
  },
  'a 304 without the bytes behind it': {
    sent: 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 2\r\n\r\nok',
    ask: ['If-None-Match: "a"', 'Cache-Control: no-store'],
    got: ['304', 'ETag: "a"', '', ''],
  },
  'a 502 for a status line that is none': {
    sent: 'HELLO\r\nX-A: 1\r\n\r\n',
    got: ['502'],
  },
  'a 502 for a folded line': {
    sent: 'HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n',
    got: ['502'],
  },
  'a 502 for another protocol that it did not ask for': {
    sent: 'HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    got: ['502'],
  },
};

/** Fields of the connection and of this server. */
const ofServer =
  /^(?:Date|Connection|Keep-Alive|Via|Cache-Status|Transfer-Encoding|Trailer|Vary):/i;

suite('a visitor gets', () => {
  for (const [what, given] of Object.entries(responses)) {
    test(what, async (t) => {
      const { sent, method = 'GET', ask = [], isFramedHere = false, got } = given;
      const { origin } = await rawSource(t, Buffer.from(sent, 'latin1'));
      const site = await siteFor(t, origin);
      const text = await answerOf(t, site.port, message(`${method} /a`, ask));
      const last = text.lastIndexOf('\r\n\r\nHTTP/1.1 ');
      const end = text.indexOf('\r\n\r\n', last === -1 ? 0 : last + 4);
      const heads = text
        .slice(0, end)
        .split('\r\n')
        .filter((line) => !ofServer.test(line) && !(isFramedHere && isLength.test(line)))
        .map((line) => line.replace(/^HTTP\/1\.1 (\d+).*$/, '$1'));
      const content = text.slice(end + 4);
      const all = [...heads, '', isFramedHere ? content.replaceAll(chunkLine, '') : content];
      assert.deepEqual(all.slice(0, got.length), got, text);
    });
  }
});

const isLength = /^Content-Length:/i;
/** The lines of a chunk, and of the end of chunks. */
const chunkLine = /^\d\r\n(?:\r\n)?|(?<=[a-z])\r\n(?:0\r\n\r\n)?/g;

test('answers to a GET with content come from the source each time', async (t) => {
  let requests = 0;
  const { origin } = await rawSource(t, (socket) => {
    requests += 1;
    const content = String(requests);
    const fields = `Cache-Control: max-age=60\r\nContent-Length: ${content.length}`;
    socket.end(`HTTP/1.1 200 OK\r\n${fields}\r\nConnection: close\r\n\r\n${content}`);
  });
  const site = await siteFor(t, origin);
  const ask = async (content: string): Promise<string> => {
    const fields = content === '' ? [] : [`Content-Length: ${content.length}`];
    const text = await answerOf(t, site.port, message('GET /a', fields, content));
    return text.slice(text.indexOf('\r\n\r\n') + 4);
  };
  assert.deepEqual([await ask('one'), await ask('two')], ['1', '2']);
  // Without content, its answer is stored, and none of those before was.
  assert.deepEqual([await ask(''), await ask(''), await ask('one')], ['3', '3', '4']);
});
