import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { readPlainAnswer } from '../../../src/outbound/fast/plain-answer.ts';

const ok = 'HTTP/1.1 200 OK\r\n';
const length = 'Content-Length: 5\r\n';

suite('the plain head of an answer', () => {
  test('is read as it was sent, but for the blanks around values', () => {
    const fields = 'cONTENT-lENGTH: 5\r\nX-A: \t a b\t \r\nX-Empty:\r\nX-A: \xe9\r\n';
    assert.deepEqual(readPlainAnswer(`HTTP/1.1 404 Not Found\r\n${fields}`), {
      status: 404,
      fields: ['cONTENT-lENGTH', '5', 'X-A', 'a b', 'X-Empty', '', 'X-A', '\xe9'],
      contentLength: 5,
      idleSeconds: undefined,
    });
  });

  const statuses: Readonly<Record<string, number>> = {
    'HTTP/1.1 200\r\n': 200,
    'HTTP/1.1 200 \r\n': 200,
    'HTTP/1.1 599 caf\xe9\r\n': 599,
  };
  for (const [line, status] of Object.entries(statuses)) {
    test(`has its status in ${JSON.stringify(line)}`, () => {
      assert.equal(readPlainAnswer(line + length)?.status, status);
    });
  }

  const lengths: readonly (readonly [string, number | undefined])[] = [
    [ok + length, 5],
    [`${ok}Content-Length: 0\r\n`, 0],
    [`${ok}Transfer-Encoding: Chunked\r\n`, undefined],
    ['HTTP/1.1 204 No Content\r\n', 0],
    ['HTTP/1.1 304 Not Modified\r\n', 0],
    [`HTTP/1.1 304 Not Modified\r\n${length}`, 0],
  ];
  for (const [head, expected] of lengths) {
    test(`says how long the content is: ${JSON.stringify(head)}`, () => {
      const read = readPlainAnswer(head);
      assert.ok(read);
      assert.equal(read.contentLength, expected);
    });
  }

  for (const fields of ['', 'Keep-Alive: timeout=5\r\n', 'Connection: keep-alive\r\n']) {
    test(`says that its connection is not kept: ${JSON.stringify(fields)}`, () => {
      const read = readPlainAnswer(`${ok}${length}Connection: Close\r\n${fields}`);
      assert.deepEqual([read?.contentLength, read?.idleSeconds], [5, 0]);
    });
  }

  const idle: readonly (readonly [string, number | undefined])[] = [
    ['timeout=5', 5],
    ['Timeout=60, max=100', 60],
    ['max=1000, timeout=7', 7],
    ['max=1000', undefined],
    ['timeout=soon', undefined],
    ['xtimeout=5', undefined],
  ];
  for (const [value, seconds] of idle) {
    test(`says how long its connection is kept: ${value}`, () => {
      const kept = `Connection: Keep-Alive\r\nKeep-Alive: ${value}\r\n`;
      assert.equal(readPlainAnswer(ok + length + kept)?.idleSeconds, seconds);
    });
  }

  const others: Readonly<Record<string, string>> = {
    'of another version': `HTTP/1.0 200 OK\r\n${length}`,
    'of a version with more digits': `HTTP/1.10 200 OK\r\n${length}`,
    'that comes ahead of another': `HTTP/1.1 103 Early Hints\r\n${length}`,
    'with a status that is none': `HTTP/1.1 600 OK\r\n${length}`,
    'with a status of two digits': `HTTP/1.1 20 OK\r\n${length}`,
    'with two blanks before its status': `HTTP/1.1  200 OK\r\n${length}`,
    'with a control character in its first line': `HTTP/1.1 200 \0\r\n${length}`,
    'behind an empty line': `\r\n${ok}${length}`,
    'with content behind it': `${ok}${length}\r\n`,
    'that is not whole': `${ok}Content-Length: 5`,
    'with a bare line feed': `${ok}X: a\n${length}`,
    'with a bare carriage return': `${ok}X: a\rb\r\n${length}`,
    'with a folded line': `${ok}X: a\r\n b\r\n${length}`,
    'with a blank before a colon': `${ok}Content-Length : 5\r\n`,
    'with a line without a colon': `${ok}X\r\n${length}`,
    'with a field without a name': `${ok}: x\r\n${length}`,
    'with more fields than there may be': `${ok}${length}${'A: a\r\n'.repeat(100)}`,
    'that is larger than it may be': `${ok}${length}A: ${'a'.repeat(33_000)}\r\n`,
    'that says no length': ok,
    'that says two lengths': `${ok}${length}Content-Length: 6\r\n`,
    'that says its length twice': ok + length + length,
    'that says two lengths in one field': `${ok}Content-Length: 5, 5\r\n`,
    'that says no length but an empty one': `${ok}Content-Length:\r\n`,
    'with a signed length': `${ok}Content-Length: +5\r\n`,
    'with a length in octal': `${ok}Content-Length: 05\r\n`,
    'with a length that no number can hold': `${ok}Content-Length: ${'9'.repeat(16)}\r\n`,
    'with a length beside chunks': `${ok}${length}Transfer-Encoding: chunked\r\n`,
    'with chunks beside a length': `${ok}Transfer-Encoding: chunked\r\n${length}`,
    'whose chunks are compressed': `${ok}Transfer-Encoding: gzip, chunked\r\n`,
    'with chunks twice': `${ok}${'Transfer-Encoding: chunked\r\n'.repeat(2)}`,
    'with chunks of a 204': 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n',
    'that says more of its connection': `${ok}${length}Connection: close, x-a\r\n`,
    'that names fields in Connection': `${ok}${length}Connection: keep-alive, x\r\n`,
    'that goes over to another protocol': `${ok}${length}Upgrade: h2c\r\n`,
  };
  for (const [what, text] of Object.entries(others)) {
    test(`is not one ${what}`, () => {
      assert.equal(readPlainAnswer(text), undefined);
    });
  }
});
