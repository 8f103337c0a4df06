import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import fc from 'fast-check';
import { headerFieldsMax } from '../../../src/core/http/limits.ts';
import { type ReadHead, readHead } from '../../../src/core/http/reading/head.ts';
import { Failure } from '../../../src/core/values/failure.ts';

const host = 'Host: localhost\r\n';

/** Reads a head that ends with an empty line; undefined for one that is refused. */
function read(text: string): ReadHead | undefined {
  const head = text.endsWith('\r\n\r\n') ? readHead(text.slice(0, -2)) : undefined;
  return head instanceof Failure ? undefined : head;
}

suite('the head of a request', () => {
  test('is read unchanged, without the blanks around values', () => {
    const fields =
      'hOST:localhost\r\nX-A: \t a b\t \r\nX-Empty:\r\nConnection: Keep-Alive \r\nX-A: \xe9\r\n';
    assert.deepEqual(read(`HEAD /a%20b/?c=d&[e] HTTP/1.1\r\n${fields}\r\n`), {
      method: 'HEAD',
      url: '/a%20b/?c=d&[e]',
      version: '1.1',
      fields: [
        ...['hOST', 'localhost', 'X-A', 'a b', 'X-Empty', ''],
        ...['Connection', 'Keep-Alive', 'X-A', '\xe9'],
      ],
      shouldKeepAlive: true,
      framing: 0,
      expect: undefined,
      upgrade: undefined,
    });
  });

  const refused: Readonly<Record<string, string>> = {
    'a fragment of a line': `GET / HTTP/1.1\r\nHost: a\r\n\r`,
    'a byte over 127 in its target': `GET /\xe9 HTTP/1.1\r\n${host}\r\n`,
    'two blanks in its first line': `GET  / HTTP/1.1\r\n${host}\r\n`,
    'a bare line feed': `GET / HTTP/1.1\r\nHost: a\n\r\n\r\n`,
    'a bare carriage return': `GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n`,
    'a folded line': `GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`,
    'a blank before a colon': `GET / HTTP/1.1\r\nHost : localhost\r\n\r\n`,
    'a line without a colon': `GET / HTTP/1.1\r\n${host}X\r\n\r\n`,
    'a field without a name': `GET / HTTP/1.1\r\n${host}: x\r\n\r\n`,
    'a control character in a value': `GET / HTTP/1.1\r\n${host}X: \0\r\n\r\n`,
    'DEL in a value': `GET / HTTP/1.1\r\n${host}X: \x7f\r\n\r\n`,
    'two lengths': `GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n`,
    'chunks and a length':
      'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n',
    'a length with a leading zero': 'GET / HTTP/1.1\r\nContent-Length: 01\r\n\r\n',
    'another coding than chunks': 'GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
  };
  for (const [what, text] of Object.entries(refused)) {
    test(`is refused with ${what}`, () => {
      assert.equal(read(text), undefined);
    });
  }

  const said: readonly (readonly [lines: string, said: Partial<ReadHead>])[] = [
    ['Connection: close', { shouldKeepAlive: false }],
    ['Connection: a\r\nconnection: b ,CLOSE', { shouldKeepAlive: false }],
    ['Proxy-Connection: close', { shouldKeepAlive: true }],
    ['content-length: 5', { framing: 5 }],
    ['transfer-ENCODING: Chunked', { framing: 'chunked' }],
    ['Expect: 100-continue', { expect: '100-continue' }],
    ['Upgrade: h2c', { upgrade: undefined }],
    ['Upgrade: websocket\r\nConnection: keep-alive, Upgrade', { upgrade: 'websocket' }],
  ];
  for (const [lines, expected] of said) {
    test(`says of its connection: ${lines.replaceAll('\r\n', ' | ')}`, () => {
      const head: Partial<ReadHead> = read(`GET / HTTP/1.1\r\n${host}${lines}\r\n\r\n`) ?? {};
      assert.deepEqual({ ...head, ...expected }, head);
    });
  }

  test('of HTTP/1.0 is the last one, unless it says otherwise', () => {
    const ends = ['', 'Connection: keep-alive\r\n', 'Connection: keep-alive, close\r\n'];
    const last = ends.map((line) => read(`GET / HTTP/1.0\r\n${line}\r\n`)?.shouldKeepAlive);
    assert.deepEqual(last, [false, true, false]);
    assert.equal(read('GET / HTTP/1.7\r\n\r\n')?.version, '1.1');
  });

  test('is read as Node’s own parser reads it', async (t) => {
    const askNode = await startParser(t);
    let compared = 0;
    const property = fc.asyncProperty(anyHead, async (text) => {
      const head = read(text);
      if (head === undefined || head.framing !== 0 || head.expect !== undefined) return;
      if (head.fields.length > 2 * headerFieldsMax || head.upgrade !== undefined) return;
      const asNode = await askNode(Buffer.from(text, 'latin1'));
      // Node's parser is stricter about targets, which validation refuses here.
      if (asNode === undefined) return;
      compared += 1;
      const { method, url, fields, shouldKeepAlive } = head;
      assert.deepEqual(asNode, { method, url, fields, shouldKeepAlive });
    });
    await fc.assert(property, { numRuns: 600 });
    assert.ok(compared > 100, `only ${compared} of 600 were compared`);
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
 * another request follows on the same connection; undefined for one that it refuses.
 */
async function startParser(t: TestContext) {
  const server = createServer({ requireHostHeader: false }).listen(0, '127.0.0.1');
  server.maxHeadersCount = headerFieldsMax + 1;
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const last = Buffer.from('GET /last HTTP/1.1\r\n\r\n');
  type AsNode = Pick<ReadHead, 'method' | 'url' | 'fields' | 'shouldKeepAlive'>;
  return async (bytes: Buffer): Promise<AsNode | undefined> => {
    const socket: Socket = connect(port, '127.0.0.1');
    const heads: AsNode[] = [];
    const done = new Promise<void>((resolve) => {
      server.removeAllListeners('request');
      server.on('request', (message: IncomingMessage, response: ServerResponse) => {
        const { method = '', url = '', rawHeaders: fields } = message;
        const { shouldKeepAlive } = response;
        if (url !== '/last') heads.push({ method, url, fields, shouldKeepAlive });
        if (url === '/last' || !shouldKeepAlive) resolve();
        response.end();
      });
      socket.resume().once('close', () => {
        resolve();
      });
    });
    socket.write(Buffer.concat([bytes, last]));
    await done;
    socket.destroy();
    return heads[0];
  };
}
