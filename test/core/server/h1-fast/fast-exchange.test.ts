import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import fc from 'fast-check';
import { headerFieldsMax } from '../../../../src/core/http/limits.ts';
import { RequestScanner } from '../../../../src/core/http/reading/request-scanner.ts';
import {
  type PlainHead,
  readSimpleHead,
} from '../../../../src/core/server/h1-fast/fast-exchange.ts';

const host = 'Host: localhost\r\n';

suite('the head of an ordinary request', () => {
  test('is read unchanged, without the blanks around values', () => {
    const fields =
      'hOST:localhost\r\nX-A: \t a b\t \r\nX-Empty:\r\nConnection: Keep-Alive \r\nX-A: \xe9\r\n';
    assert.deepEqual(readSimpleHead(`HEAD /a%20b/?c=d&[e] HTTP/1.1\r\n${fields}\r\n`), {
      method: 'HEAD',
      url: '/a%20b/?c=d&[e]',
      version: '1.1',
      fields: [
        ...['hOST', 'localhost', 'X-A', 'a b', 'X-Empty', ''],
        ...['Connection', 'Keep-Alive', 'X-A', '\xe9'],
      ],
      shouldKeepAlive: true,
    });
    const bare: PlainHead = {
      ...{ method: 'GET', url: '/', version: '1.1', fields: [] },
      shouldKeepAlive: true,
    };
    assert.deepEqual(readSimpleHead('GET / HTTP/1.1\r\n\r\n'), bare);
  });

  const others: Readonly<Record<string, string>> = {
    'of another method': `POST / HTTP/1.1\r\n${host}\r\n`,
    'of another version': `GET / HTTP/1.0\r\n${host}\r\n`,
    'with a target that is no path': `GET http://localhost/ HTTP/1.1\r\n${host}\r\n`,
    'with a fragment': `GET /#a HTTP/1.1\r\n${host}\r\n`,
    'with a byte over 127 in its target': `GET /\xe9 HTTP/1.1\r\n${host}\r\n`,
    'with two blanks in its first line': `GET  / HTTP/1.1\r\n${host}\r\n`,
    'behind an empty line': `\r\nGET / HTTP/1.1\r\n${host}\r\n`,
    'with more fields than there may be': `GET / HTTP/1.1\r\n${'A: a\r\n'.repeat(101)}\r\n`,
    'that is not whole': `GET / HTTP/1.1\r\n${host}`,
    'whose line has no end': `GET / HTTP/1.1\r\nHost: a\r\n\r`,
    'that has content behind it': `GET / HTTP/1.1\r\n${host}\r\nx`,
    'that has an empty line behind it': `GET / HTTP/1.1\r\n${host}\r\n\r\n`,
    'that has another behind it': `GET / HTTP/1.1\r\n${host}\r\n`.repeat(2),
    'with a bare line feed': `GET / HTTP/1.1\r\nHost: a\n\r\n\r\n`,
    'with a bare carriage return': `GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n`,
    'with a folded line': `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`,
    'with a blank before a colon': `GET / HTTP/1.1\r\nHost : localhost\r\n\r\n`,
    'with a line without a colon': `GET / HTTP/1.1\r\n${host}X\r\n\r\n`,
    'with a field without a name': `GET / HTTP/1.1\r\n${host}: x\r\n\r\n`,
    'with a control character in a value': `GET / HTTP/1.1\r\n${host}X: \0\r\n\r\n`,
    'with DEL in a value': `GET / HTTP/1.1\r\n${host}X: \x7f\r\n\r\n`,
  };
  for (const [what, text] of Object.entries(others)) {
    test(`is not one ${what}`, () => {
      assert.equal(readSimpleHead(text), undefined);
    });
  }

  const aboutTheHop = [
    ...['Connection: keep-alive, close', 'Connection: Upgrade', 'connection:'],
    ...['Content-Length: 0', 'CONTENT-LENGTH: 5', 'Transfer-Encoding: chunked', 'Trailer: X'],
    ...['transfer-encoding:', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk', 'TE: trailers'],
    ...['Expect: 100-continue', 'Proxy-Connection: keep-alive'],
  ];
  for (const line of aboutTheHop) {
    test(`has no header about framing or the connection: ${line}`, () => {
      assert.equal(readSimpleHead(`GET / HTTP/1.1\r\n${host}${line}\r\n\r\n`), undefined);
    });
  }

  test('is read the same by the request scanner and by Node’s parser', async (t) => {
    const askNode = await startParser(t);
    let read = 0;
    const property = fc.asyncProperty(anyHead, async (text) => {
      const head = readSimpleHead(text);
      if (head === undefined) return;
      read += 1;
      const bytes = Buffer.from(text, 'latin1');
      const scanner = new RequestScanner();
      assert.equal(scanner.read(bytes, 0), bytes.length);
      assert.ok(scanner.refusal === undefined && scanner.isBetweenMessages);
      assert.deepEqual(await askNode(bytes), head);
    });
    await fc.assert(property, { numRuns: 600 });
    assert.ok(read > 100, `only ${read} of 600 were plain`);
  });
});

const odds = (usual: string, ...odd: readonly string[]) =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, fc.constantFrom(...odd));
const characters = (pool: string, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...pool.split('')), maxLength });
const visible = Array.from({ length: 94 }, (_, at) => String.fromCharCode(0x21 + at)).join('');

const target = fc.oneof(
  { weight: 6, arbitrary: characters("/aZ09?.~!$&'()*+,;=:@%[]_-", 12).map((rest) => `/${rest}`) },
  characters(`${visible}\xe9\t`, 8),
);
const name = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...['Host', 'Accept', 'accept', 'Cookie', 'Connection', 'Keep-Alive', 'Range', 'If-Match'],
      ...['X_Y', "!#$%&'*+.^`|~", 'Content-Type', 'Authorization', 'Transfer', 'Content-Lengt'],
    ),
  },
  {
    weight: 2,
    arbitrary: fc.string({ unit: fc.constantFrom(...'aB9-_!|'.split('')), minLength: 1 }),
  },
  fc.constantFrom(
    'Content-Length',
    'Transfer-Encoding',
    'Upgrade',
    'TE',
    'Expect',
    '',
    'a b',
    ' a',
  ),
);
const value = fc.oneof(
  { weight: 3, arbitrary: characters(`${visible} \t\x80\xe9\xff`, 20) },
  { weight: 2, arbitrary: fc.constantFrom('keep-alive', ' KEEP-alive\t', 'close', '0', 'chunked') },
  characters('a\0\r\n\x7f\x0b', 3),
);
const field = fc
  .tuple(name, odds(':', ' :', ''), odds(' ', '', '\t '), value, odds('\r\n', '\n', '\r', '\r\n '))
  .map((parts) => parts.join(''));
const anyHead = fc
  .tuple(
    odds('GET ', 'HEAD ', 'GET  ', 'get ', 'POST ', '\r\nGET '),
    target,
    odds(' HTTP/1.1\r\n', ' HTTP/1.0\r\n', ' HTTP/1.1\n', ' HTTP/1.1 \r\n', '\r\n'),
    fc.array(field, { maxLength: 4 }).map((fields) => fields.join('')),
    // Sometimes about the highest allowed number of fields.
    odds('', ...[97, 98, 99, 100].map((count) => 'X: a\r\n'.repeat(count))),
    odds('\r\n', '', '\n', '\r\n\r\n', '\r\nx'),
  )
  .map((parts) => parts.join(''));

/**
 * A server of Node's with the same strictness. The function returns how it reads a head that
 * another request follows on the same connection; it rejects if the server reads neither that
 * request nor `Connection: close`.
 */
async function startParser(t: TestContext) {
  const server = createServer({ requireHostHeader: false }).listen(0, '127.0.0.1');
  server.maxHeadersCount = headerFieldsMax + 1;
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const last = Buffer.from('GET /last HTTP/1.1\r\n\r\n');
  return async (bytes: Buffer): Promise<PlainHead> => {
    const socket: Socket = connect(port, '127.0.0.1');
    const heads: PlainHead[] = [];
    const read = new Promise<void>((resolve, reject) => {
      server.removeAllListeners('request');
      server.on('request', (message: IncomingMessage, response: ServerResponse) => {
        const { method, url = '', rawHeaders: fields } = message;
        const { shouldKeepAlive } = response;
        assert.ok(method === 'GET' || method === 'HEAD');
        if (url !== '/last') {
          heads.push({ method, url, version: '1.1', fields, shouldKeepAlive });
        }
        if (url === '/last' || !shouldKeepAlive) resolve();
        response.end();
      });
      socket.resume().once('close', () => {
        reject(new Error('the parser has refused it'));
      });
    });
    socket.write(Buffer.concat([bytes, last]));
    await read;
    socket.destroy();
    assert.equal(heads.length, 1);
    return heads[0] ?? assert.fail();
  };
}
