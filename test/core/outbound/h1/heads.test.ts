import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { headerBlockBytesMax } from '../../../../src/core/http/limits.ts';
import type { OutgoingRequest } from '../../../../src/core/outbound/outgoing-request.ts';
import { requestCode } from '../../../../src/core/outbound/failure.ts';
import {
  HeadReader,
  parseResponseHead as parseFor,
  requestHead,
} from '../../../../src/core/outbound/h1/heads.ts';
import {
  ChunkedContent,
  CloseDelimitedContent,
  SizedContent,
} from '../../../../src/core/outbound/h1/response-content.ts';

/** A request, by default a GET without content. */
function request(options: Partial<OutgoingRequest> = {}): OutgoingRequest {
  const origin = 'http://src.example:8080';
  return { origin, target: '/a?b', method: 'GET', fields: [], body: undefined, ...options };
}

function headOf(options: Partial<OutgoingRequest> = {}): string {
  return requestHead(request(options), new URL('http://src.example:8080')).text;
}

/** The lines of a head between the request line with Host and Connection, and its end. */
function linesOf(options: Partial<OutgoingRequest>): readonly string[] {
  return headOf(options).split('\r\n').slice(3, -2);
}

suite('the head of a request', () => {
  const body = Readable.from(['content']);

  test('has the method, the target, Host and the given fields', () => {
    assert.equal(
      headOf({ fields: ['accept', '*/*', 'x-a', 'caf\xe9', 'x-b', ''] }),
      'GET /a?b HTTP/1.1\r\nhost: src.example:8080\r\nconnection: keep-alive\r\n' +
        'accept: */*\r\nx-a: caf\xe9\r\nx-b: \r\n\r\n',
    );
    assert.match(headOf({ method: 'PURGE' }), /^PURGE /);
  });

  test('has one Host field, the given one', () => {
    assert.equal(
      headOf({ fields: ['Host', 'other.example'] }),
      'GET /a?b HTTP/1.1\r\nhost: other.example\r\nconnection: keep-alive\r\n\r\n',
    );
  });

  const framings: readonly (readonly [string, Partial<OutgoingRequest>, readonly string[]])[] = [
    ['no content', {}, []],
    ['no content of a DELETE', { method: 'DELETE' }, []],
    ['no content of a POST', { method: 'POST' }, ['content-length: 0']],
    ['a length of 0', { method: 'DELETE', fields: ['Content-Length', '0'] }, ['content-length: 0']],
    ['a length', { body, fields: ['Content-Length', '7'] }, ['content-length: 7']],
    ['no length', { body }, ['transfer-encoding: chunked']],
    ['bytes', { body: Buffer.from('bytes') }, ['content-length: 5']],
    ['no bytes', { body: Buffer.alloc(0) }, []],
    ['no bytes of a PUT', { method: 'PUT', body: Buffer.alloc(0) }, ['content-length: 0']],
    [
      'an Expect',
      { body, expectsContinue: true },
      ['transfer-encoding: chunked', 'expect: 100-continue'],
    ],
    ['another protocol', { upgrade: 'a, b/2' }, ['upgrade: a, b/2']],
  ];
  for (const [what, options, lines] of framings) {
    test(`frames its content: ${what}`, () => {
      assert.deepEqual(linesOf(options), lines);
      const isUpgrade = options.upgrade !== undefined;
      assert.match(headOf(options), isUpgrade ? /^connection: upgrade\r$/m : /^connection: keep-/m);
    });
  }

  const refused: Readonly<Record<string, Partial<OutgoingRequest>>> = {
    'a line end in the target': { target: '/a HTTP/1.1\r\nx: y' },
    'a target that is not a path': { target: 'http://other.example/' },
    'a space in the method': { method: 'GET /' },
    'a line end in a value': { fields: ['x', 'a\r\nb: c'] },
    'a line end in Host': { fields: ['host', 'a\r\nb: c'] },
    'a line end in the protocol': { upgrade: 'a\r\nb: c' },
    'a line end in a name': { fields: ['x\r\ny', 'z'] },
    'a space in a name': { fields: ['x y', 'z'] },
    'an empty name': { fields: ['', 'z'] },
    'a control character': { fields: ['x', 'a\0'] },
    'a character that is not a byte': { fields: ['x', '€'] },
    'Transfer-Encoding': { fields: ['Transfer-Encoding', 'chunked'] },
    'a length without content': { fields: ['content-length', '5'] },
    'a length that is no number': { body, fields: ['content-length', '5, 5'] },
    'two lengths': { body, fields: ['content-length', '5', 'Content-Length', '5'] },
    Connection: { fields: ['connection', 'close'] },
  };
  for (const [what, options] of Object.entries(refused)) {
    test(`is refused with ${what}`, () => {
      assert.throws(() => headOf(options), { code: requestCode });
    });
  }
});

function parseResponseHead(text: string, method = 'GET') {
  const head = parseFor(text, method);
  assert.ok(typeof head !== 'string');
  return head;
}

const ok = 'HTTP/1.1 200 OK\r\n';
const length = 'Content-Length: 5\r\n';

suite('the head of a response', () => {
  test('has the fields as they were sent, without the spaces around values', () => {
    const fields = 'cONTENT-lENGTH: 5\r\nX-A: \t a b\t \r\nX-Empty:\r\nX-A: \xe9\r\n';
    const head = parseResponseHead(`HTTP/1.1 404 Not Found\r\n${fields}`);
    assert.equal(head?.status, 404);
    assert.deepEqual(head.fields, [
      ...['cONTENT-lENGTH', '5', 'X-A', 'a b', 'X-Empty', '', 'X-A', '\xe9'],
    ]);
  });

  const statuses: Readonly<Record<string, number>> = {
    'HTTP/1.1 200\r\n': 200,
    'HTTP/1.0 200 \r\n': 200,
    'HTTP/1.1 103 Early Hints\r\n': 103,
    'HTTP/1.1 599 caf\xe9\r\n': 599,
    'HTTP/1.1 999 \0\r\n': 999,
  };
  for (const [line, status] of Object.entries(statuses)) {
    test(`has the status of ${JSON.stringify(line)}`, () => {
      assert.equal(parseResponseHead(line + length)?.status, status);
    });
  }

  const chunked = 'Transfer-Encoding: chunked\r\n';
  const framings: readonly (readonly [string, new (length: number) => object])[] = [
    [ok + length, SizedContent],
    [`${ok}Content-Length: 0\r\n`, SizedContent],
    [`${ok}Transfer-Encoding: Chunked\r\n`, ChunkedContent],
    [`${ok}Transfer-Encoding: \t chunked \r\n`, ChunkedContent],
    [`HTTP/1.0 200 OK\r\n${chunked}`, ChunkedContent],
    [ok, CloseDelimitedContent],
    ['HTTP/1.0 200 OK\r\n', CloseDelimitedContent],
    ['HTTP/1.1 204 No Content\r\n', SizedContent],
    [`HTTP/1.1 204 No Content\r\n${chunked}`, SizedContent],
    ['HTTP/1.1 304 Not Modified\r\n', SizedContent],
  ];
  for (const [head, content] of framings) {
    test(`decides how content is framed: ${JSON.stringify(head)}`, () => {
      assert.ok(parseResponseHead(head)?.content instanceof content);
    });
  }

  for (const status of ['103 Early Hints', '204 No Content', '304 Not Modified']) {
    test(`says that there is no content, whatever length it names: ${status}`, () => {
      const { content } = parseResponseHead(`HTTP/1.1 ${status}\r\n${length}`) ?? {};
      assert.equal(content?.isComplete, true);
    });
  }

  test('says that an answer to a HEAD has no content', () => {
    assert.equal(parseResponseHead(ok + length, 'HEAD')?.content.isComplete, true);
  });

  test('has lines that end with LF alone (RFC 9112 §2.2)', () => {
    const fields = ['A', 'b', 'Content-Length', '5'];
    for (const text of [
      'HTTP/1.1 200 OK\nA: b\nContent-Length: 5\n',
      'HTTP/1.0 200\nA:\tb \r\nContent-Length:5\n',
      'HTTP/1.1 200 OK\r\nA: b\nContent-Length: 5\r\n',
    ]) {
      assert.deepEqual(parseResponseHead(text)?.fields, fields, JSON.stringify(text));
    }
  });

  test('has a Content-Length without leading zeros, which some clients read as octal', () => {
    const head = parseResponseHead(`${ok}Content-Length: ${'0'.repeat(40)}5\r\n`);
    assert.deepEqual(head?.fields, ['Content-Length', '5']);
  });

  const lifetimes: readonly (readonly [string, number | undefined])[] = [
    [ok + length, undefined],
    [`${ok}${length}Keep-Alive: timeout=5\r\n`, 5],
    [`${ok}${length}Keep-Alive: Timeout=60, max=100\r\n`, 60],
    [`${ok}${length}Keep-Alive: max=1000, timeout=7\r\n`, 7],
    [`${ok}${length}Keep-Alive: max=1000\r\n`, undefined],
    [`${ok}${length}Keep-Alive: timeout=soon\r\n`, undefined],
    [`${ok}${length}Keep-Alive: xtimeout=5\r\n`, undefined],
    [`${ok}${length}Connection: Close\r\n`, 0],
    [`${ok}${length}Connection: x, close\r\nKeep-Alive: timeout=5\r\n`, 0],
    [`${ok}${length}Connection: close\r\nConnection: keep-alive\r\n`, 0],
    [`HTTP/1.0 200 OK\r\n${length}`, 0],
    [`HTTP/1.0 200 OK\r\n${length}Connection: keep-alive\r\n`, undefined],
    ['HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n', 0],
    [ok, 0],
  ];
  for (const [head, seconds] of lifetimes) {
    test(`says how long the connection stays open: ${JSON.stringify(head)}`, () => {
      const parsed = parseResponseHead(head);
      assert.ok(parsed);
      assert.equal(parsed.keepAliveSeconds, seconds);
    });
  }

  const invalid: Readonly<Record<string, string>> = {
    'another version': `HTTP/1.2 200 OK\r\n${length}`,
    'a version with more digits': `HTTP/1.10 200 OK\r\n${length}`,
    'a status of two digits': `HTTP/1.1 20 OK\r\n${length}`,
    'a status of four digits': `HTTP/1.1 2000 OK\r\n${length}`,
    'a status below 100': `HTTP/1.1 099 OK\r\n${length}`,
    'two spaces before the status': `HTTP/1.1  200 OK\r\n${length}`,
    'an empty line before it': `\r\n${ok}${length}`,
    'an empty line in it': `${ok}${length}\r\n`,
    'a line end within LF': `${ok}X: a\n\n${length}`,
    'no end of its last line': `${ok}Content-Length: 5`,
    'a bare carriage return': `${ok}X: a\rb\r\n${length}`,
    'a control character in a value': `${ok}X: a\x01b\r\n${length}`,
    'a folded line': `${ok}X: a\r\n b\r\n${length}`,
    'a space before a colon': `${ok}Content-Length : 5\r\n`,
    'a line without a colon': `${ok}X\r\n${length}`,
    'a field without a name': `${ok}: x\r\n${length}`,
    'two lengths': `${ok}${length}Content-Length: 6\r\n`,
    'the same length twice': ok + length + length,
    'two lengths in one field': `${ok}Content-Length: 5, 5\r\n`,
    'an empty length': `${ok}Content-Length:\r\n`,
    'a length with a sign': `${ok}Content-Length: +5\r\n`,
    'a length beyond 2^53': `${ok}Content-Length: ${'9'.repeat(16)}\r\n`,
    'a length before a transfer coding': `${ok}${length}${chunked}`,
    'a length after a transfer coding': `${ok}${chunked}${length}`,
  };
  for (const [what, text] of Object.entries(invalid)) {
    test(`is refused with ${what}`, () => {
      assert.equal(parseResponseHead(text), undefined);
    });
  }

  const codings = [
    ...['xchunked', 'chunkedx', 'identity', 'chunked, chunked', 'gzip, chunked', 'chunked, gzip'],
    ...['gzip', '', ',', 'chunked,', 'chunked;a=b', '"chunked"', 'chunked identity', 'cow'],
  ];
  for (const coding of codings) {
    test(`is refused with a transfer coding that was not requested: ${coding}`, () => {
      const field = `Transfer-Encoding: ${coding}\r\n`;
      for (const version of ['HTTP/1.1', 'HTTP/1.0']) {
        assert.equal(parseFor(`${version} 200 OK\r\n${field}`, 'GET'), 'coding', version);
      }
      for (const head of [field + chunked, chunked + field, field + length, length + field]) {
        assert.equal(parseFor(ok + head, 'GET'), 'coding', head);
      }
      assert.equal(parseFor(ok + field, 'HEAD'), 'coding');
      assert.equal(parseFor(`HTTP/1.1 304 Not Modified\r\n${field}`, 'GET'), 'coding');
    });
  }

  test('is refused with `chunked` in two fields', () => {
    assert.equal(parseFor(ok + chunked + chunked, 'GET'), 'coding');
  });

  test('is refused with more bytes than a header section may have', () => {
    assert.equal(parseFor(`${ok}A: ${'a'.repeat(headerBlockBytesMax)}\r\n`, 'GET'), 'too_large');
  });
});

suite('the reader of heads', () => {
  const head = ok + length;

  test('returns a head and the bytes after it, in any fragmentation', () => {
    const bytes = Buffer.from(`${head}\r\nhello`);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const reader = new HeadReader();
      const first = reader.read(bytes.subarray(0, cut));
      const read = first === 'incomplete' ? reader.read(bytes.subarray(cut)) : first;
      assert.ok(typeof read !== 'string');
      assert.equal(read.text, head);
      assert.ok('hello'.startsWith(read.rest.toString()));
    }
    const reader = new HeadReader();
    const reads = Array.from(bytes.subarray(0, -5), (byte) => reader.read(Buffer.of(byte)));
    assert.deepEqual(reads.pop(), { text: head, rest: Buffer.alloc(0) });
    assert.ok(reads.every((read) => read === 'incomplete'));
  });

  for (const ends of ['\r\n\r\n', '\n\n', '\n\r\n', '\r\n\n']) {
    test(`ends a head at its empty line, in any fragmentation: ${JSON.stringify(ends)}`, () => {
      const last = ends.slice(0, ends.indexOf('\n') + 1);
      for (const content of ['', 'x', '\n', '\r\n', '\n\n', '\r\n\r\n']) {
        const bytes = Buffer.from(`HTTP/1.1 200 OK${ends}${content}`);
        for (let cut = 1; cut < bytes.length; cut += 1) {
          const reader = new HeadReader();
          const first = reader.read(bytes.subarray(0, cut));
          const isWhole = typeof first !== 'string';
          const read = isWhole ? first : reader.read(bytes.subarray(cut));
          assert.ok(typeof read !== 'string');
          assert.equal(read.text, `HTTP/1.1 200 OK${last}`);
          const rest = read.rest.toString() + (isWhole ? bytes.subarray(cut).toString() : '');
          assert.equal(rest, content);
        }
      }
    });
  }

  test('returns one head after the other', () => {
    const reader = new HeadReader();
    assert.equal(reader.read(Buffer.from('HTTP/1.1 103 Early')), 'incomplete');
    const interim = reader.read(Buffer.from(` Hints\r\n\r\n${head}\r\nhello`));
    assert.ok(typeof interim !== 'string');
    assert.equal(interim.text, 'HTTP/1.1 103 Early Hints\r\n');
    const final = reader.read(interim.rest);
    assert.ok(typeof final !== 'string');
    assert.deepEqual([final.text, final.rest.toString()], [head, 'hello']);
  });

  test('ends where a head has no end', () => {
    const reader = new HeadReader();
    const endless = Buffer.alloc(headerBlockBytesMax, 'x');
    assert.equal(reader.read(endless), 'incomplete');
    assert.equal(reader.read(endless), 'too_large');
  });
});
