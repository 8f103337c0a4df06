import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  proxyHeader,
  proxyVersions,
  readProxyHeader,
} from '../../../src/core/http/reading/proxy-protocol.ts';

const signature = '0d0a0d0a000d0a515549540a';
const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');

/** What a header is: the client, `-` for none, or the word for no header. */
function readAs(header: string | Buffer): string {
  const read = readProxyHeader(typeof header === 'string' ? Buffer.from(header, 'latin1') : header);
  if (typeof read === 'string') return read;
  const { client, length } = read;
  return `${client === undefined ? '-' : `${client.address} ${client.port}`} ${length}`;
}

suite('the header of the PROXY protocol', () => {
  for (const [header, wanted] of [
    ['PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\nGET /', '192.0.2.1 1234 40'],
    ['PROXY TCP6 2001:db8::1 ::1 1 443\r\n', '2001:db8::1 1 34'],
    ['PROXY TCP6 ::ffff:192.0.2.1 ::1 1 443\r\n', '192.0.2.1 1 39'],
    ['PROXY UNKNOWN\r\n', '- 15'],
    ['PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n', '- 43'],
    ['', 'incomplete'],
    ['PRO', 'incomplete'],
    ['PROXY TCP4 192.0.2.1 ', 'incomplete'],
    ['\r\n\r', 'incomplete'],
    [`PROXY UNKNOWN ${'x'.repeat(100)}`, 'malformed'],
    [`PROXY UNKNOWN ${'x'.repeat(100)}\r\n`, 'malformed'],
    ['GET / HTTP/1.1\r\n', 'malformed'],
    ['proxy TCP4 192.0.2.1 192.0.2.2 1 80\r\n', 'malformed'],
    ['PROXY TCP4 2001:db8::1 ::1 1 80\r\n', 'malformed'],
    ['PROXY TCP6 192.0.2.1 192.0.2.2 1 80\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.999 192.0.2.2 1 80\r\n', 'malformed'],
    ['PROXY TCP4 010.0.0.1 192.0.2.2 1 80\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.1 192.0.2.2 70000 80\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n', 'malformed'],
    ['PROXY TCP4  192.0.2.1 192.0.2.2 1 80\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.1\n192.0.2.2 1 80\r\n', 'malformed'],
    [bytes(`${signature} 21 11 000c c0000201 c0000202 04d2 0050 47`), '192.0.2.1 1234 28'],
    [bytes(`${signature} 21 11 0011 c0000201 c0000202 04d2 0050 0400026162`), '192.0.2.1 1234 33'],
    [
      bytes(`${signature} 21 21 0024 ${'20'.repeat(32)} 0001 0002`),
      `${'2020:'.repeat(8).slice(0, -1)} 1 52`,
    ],
    [bytes(`${signature} 20 00 0000`), '- 16'],
    [bytes(`${signature} 20 11 000c c0000201 c0000202 04d2 0050`), '- 28'],
    [bytes(`${signature} 21 31 0001 00`), '- 17'],
    [bytes(`${signature} 21 11 000c c000`), 'incomplete'],
    [bytes(`${signature} 21 11 0004 c0000201`), 'malformed'],
    [bytes(`${signature} 11 11 000c c0000201 c0000202 04d2 0050`), 'malformed'],
    [bytes(`${signature} 22 11 000c c0000201 c0000202 04d2 0050`), 'malformed'],
    [bytes(`${signature} 21 11 ffff`), 'malformed'],
  ] as const) {
    test(`${JSON.stringify(header.toString('latin1'))} → ${wanted}`, () => {
      assert.equal(readAs(header as Buffer), wanted);
    });
  }

  test('names the client that it was made for, however it is cut', () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(address, fc.constantFrom(...proxyVersions), (client, version) => {
        const header = proxyHeader(version, client);
        const read = readProxyHeader(Buffer.concat([header, Buffer.from('GET')]));
        assert.ok(typeof read === 'object' && read.client !== undefined);
        assert.equal(read.length, header.length);
        assert.deepEqual(proxyHeader(version, read.client.address), header);
        for (let at = 0; at < header.length; at += 1) {
          assert.equal(readProxyHeader(header.subarray(0, at)), 'incomplete');
        }
      }),
      { numRuns: 200 },
    );
  });

  test('says that it does not know the client without an address', () => {
    for (const version of proxyVersions) {
      for (const address of ['', 'unknown']) {
        assert.match(readAs(proxyHeader(version, address)), /^- /);
      }
      assert.match(readAs(proxyHeader(version, 'fe80::1%eth0')), /^fe80::1 0 /);
    }
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (random) => {
        readProxyHeader(Buffer.from(random));
        readProxyHeader(Buffer.concat([bytes(signature), random]));
        readProxyHeader(Buffer.concat([Buffer.from('PROXY TCP'), random]));
      }),
    );
  });
});
