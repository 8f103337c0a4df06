import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseRequest } from '../../../src/core/http/reading/target.ts';
import { parseCidr } from '../../../src/core/values/network/cidr.ts';
import { clientAddress, unknownAddress, type Peer } from '../../../src/core/values/network/peer.ts';

const trustProxy = ['10.0.0.0/8', '::1', '2001:db8:aaaa::/48']
  .map(parseCidr)
  .filter((cidr) => cidr !== undefined);

function enter(
  given: Readonly<Record<string, string>>,
  {
    peer = '10.0.0.1',
    listener = 'tcp',
    host = 'inner.example:8080',
  }: { readonly peer?: string; readonly listener?: Peer['listener']; readonly host?: string } = {},
): { readonly address: string; readonly origin: string } {
  const rawFields = ['Host', host, ...Object.entries(given).flat()];
  const { address, target } = parseRequest(
    {
      method: 'GET',
      target: '/',
      httpVersion: '1.1',
      rawFields,
      scheme: 'http',
      peer: { listener, address: clientAddress(peer), local: () => 'localhost' },
    },
    { trustProxy },
  );
  return { address, origin: target.origin };
}

const inner = 'http://inner.example:8080';
const peer = '10.0.0.1';

const believed: readonly (readonly [
  fields: Readonly<Record<string, string>>,
  address: string,
  origin: string,
])[] = [
  [{}, peer, inner],
  // RFC 7239 §4 to §6.
  [{ Forwarded: 'for=192.0.2.7' }, '192.0.2.7', inner],
  [{ Forwarded: 'For="192.0.2.7:4711"' }, '192.0.2.7', inner],
  [{ Forwarded: 'for="[2001:DB8:0::7]:4711"' }, '2001:db8::7', inner],
  [{ Forwarded: 'for="[2001:db8::7]"' }, '2001:db8::7', inner],
  [{ Forwarded: 'for="2001:db8::7"' }, '2001:db8::7', inner],
  [{ Forwarded: 'for="[::ffff:192.0.2.7]"' }, '192.0.2.7', inner],
  [{ Forwarded: 'for="\\192.0.2.7"' }, '192.0.2.7', inner],
  [
    { Forwarded: 'for=192.0.2.7;proto=https;host=shop.example' },
    '192.0.2.7',
    'https://shop.example',
  ],
  [{ Forwarded: 'proto=HTTPS; host="Shop.Example:443"' }, peer, 'https://shop.example'],
  [{ Forwarded: 'for=192.0.2.7;proto=https' }, '192.0.2.7', 'https://inner.example:8080'],
  [{ Forwarded: 'by=10.0.0.1;for=192.0.2.7;secret=a' }, '192.0.2.7', inner],
  [{ Forwarded: ';for=192.0.2.7;' }, '192.0.2.7', inner],
  [{ Forwarded: ', for=192.0.2.7 , ' }, '192.0.2.7', inner],
  [{ Forwarded: 'for=198.51.100.1, for=192.0.2.7' }, '192.0.2.7', inner],
  [{ Forwarded: 'for=198.51.100.1, for=192.0.2.7, for=10.2.2.2' }, '192.0.2.7', inner],
  [{ Forwarded: 'for=10.3.3.3, for=10.2.2.2' }, '10.3.3.3', inner],
  [{ Forwarded: 'for=192.0.2.7, for="[2001:db8:aaaa::1]:80"' }, '192.0.2.7', inner],
  [{ Forwarded: 'host=evil.example;proto=https, for=192.0.2.7' }, '192.0.2.7', inner],
  [{ Forwarded: 'for=unknown' }, unknownAddress, inner],
  [{ Forwarded: 'for=_hidden' }, unknownAddress, inner],
  [{ Forwarded: 'for="_hidden:_port"' }, unknownAddress, inner],
  [{ Forwarded: 'for=192.0.2.7, for=unknown, for=10.2.2.2' }, unknownAddress, inner],
  [{ Forwarded: 'for=192.0.2.7, proto=http' }, peer, inner],
  // The client cannot hide its address by hops that it invents.
  [{ Forwarded: 'for=garbage, for=192.0.2.7' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': 'garbage, 192.0.2.7' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': '127.0.0.1, 192.0.2.7' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': '", 192.0.2.7' }, '192.0.2.7', inner],
  // X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
  [{ 'X-Forwarded-For': '192.0.2.7' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': '198.51.100.1,192.0.2.7,10.2.2.2' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': '192.0.2.7:4711' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': '2001:DB8::7' }, '2001:db8::7', inner],
  [{ 'X-Forwarded-For': '[2001:db8::7]:4711' }, '2001:db8::7', inner],
  [{ 'X-Forwarded-For': '::ffff:192.0.2.7' }, '192.0.2.7', inner],
  [{ 'X-Forwarded-For': 'unknown' }, unknownAddress, inner],
  [{ 'X-Forwarded-Proto': 'https' }, peer, 'https://inner.example:8080'],
  [{ 'X-Forwarded-Proto': 'wss' }, peer, 'https://inner.example:8080'],
  [{ 'X-Forwarded-Proto': 'https, http' }, peer, inner],
  [{ 'X-Forwarded-Host': 'evil.example, shop.example' }, peer, 'http://shop.example'],
  [
    {
      'X-Forwarded-For': '192.0.2.7',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'Shop.Example:443',
    },
    '192.0.2.7',
    'https://shop.example',
  ],
  [
    { Forwarded: 'for=192.0.2.7', 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Proto': 'https' },
    '192.0.2.7',
    'https://inner.example:8080',
  ],
];

/** Fields of which one is malformed: their client would seem to be the proxy. */
const malformed: readonly Readonly<Record<string, string>>[] = [
  { Forwarded: '' },
  { Forwarded: ',' },
  { Forwarded: ';' },
  { Forwarded: 'for' },
  { Forwarded: 'for=' },
  { Forwarded: 'for="192.0.2.7' },
  { Forwarded: 'for=192.0.2.7"' },
  { Forwarded: 'for= 192.0.2.7' },
  { Forwarded: 'for=[2001:db8::7]' },
  { Forwarded: 'for="[2001:db8::7"' },
  { Forwarded: 'for=192.0.2.256' },
  { Forwarded: 'for=192.0.2' },
  { Forwarded: 'for="192.0.2.7:999999"' },
  { Forwarded: 'for="192.0.2.7:"' },
  { Forwarded: 'for=0x7f000001' },
  { Forwarded: 'for=localhost' },
  { Forwarded: 'for=_' },
  { Forwarded: 'for="[fe80::1%eth0]"' },
  { Forwarded: 'for=192.0.2.7;for=192.0.2.8' },
  { Forwarded: 'for=192.0.2.7;proto=ftp' },
  { Forwarded: 'for=192.0.2.7;proto=""' },
  { Forwarded: 'for=192.0.2.7;host=""' },
  { Forwarded: 'for=192.0.2.7;host="a/b"' },
  { Forwarded: 'for=192.0.2.7;host="user@shop.example"' },
  { Forwarded: '=a, for=192.0.2.7' },
  { Forwarded: 'for="a, for=192.0.2.7' },
  { Forwarded: 'nonsense', 'X-Forwarded-For': '192.0.2.7' },
  { 'X-Forwarded-For': '' },
  { 'X-Forwarded-For': ' , ' },
  { 'X-Forwarded-For': 'localhost' },
  { 'X-Forwarded-For': '192.0.2.7, garbage' },
  { 'X-Forwarded-For': '"192.0.2.7"' },
  { 'X-Forwarded-For': '"' },
  { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Proto': 'gopher' },
  { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Proto': '' },
  { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Host': 'a b' },
  { 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Host': 'shop.example, ../' },
];

suite('forwarding headers', () => {
  for (const [fields, address, origin] of believed) {
    test(`${JSON.stringify(fields)} is ${address} at ${origin}`, () => {
      assert.deepEqual(enter(fields), { address, origin });
    });
  }

  for (const fields of malformed) {
    test(`${JSON.stringify(fields)} is refused`, () => {
      assert.throws(() => enter(fields), /malformed/);
    });
  }

  test('are ignored from an untrusted client', () => {
    const fields = {
      Forwarded: 'for=192.0.2.7;proto=https;host=evil.example',
      'X-Forwarded-For': '192.0.2.7',
    };
    for (const stranger of ['198.51.100.9', '11.0.0.1', '::2', unknownAddress]) {
      const seen = enter(fields, { peer: stranger });
      assert.deepEqual(seen, { address: stranger, origin: inner });
    }
  });

  test('are trusted over a unix socket', () => {
    const fields = { 'X-Forwarded-For': '192.0.2.7' };
    const socket = { peer: unknownAddress, listener: 'unix' } as const;
    assert.equal(enter(fields, socket).address, '192.0.2.7');
    assert.equal(enter({}, socket).address, unknownAddress);
  });

  test('are refused if two kinds contradict each other', () => {
    // A proxy that appends to one kind passes on the other kind from the client.
    for (const fields of [
      { Forwarded: 'for=192.0.2.7', 'X-Forwarded-For': '192.0.2.8' },
      { Forwarded: 'proto=https', 'X-Forwarded-For': '192.0.2.8' },
      { Forwarded: 'for=10.0.0.1', 'X-Forwarded-For': '192.0.2.8' },
      {
        Forwarded: 'for=192.0.2.8;proto=https',
        'X-Forwarded-For': '192.0.2.8',
        'X-Forwarded-Proto': 'http',
      },
      {
        Forwarded: 'for=192.0.2.8;host=admin.example',
        'X-Forwarded-For': '192.0.2.8',
        'X-Forwarded-Host': 'shop.example',
      },
    ]) {
      assert.throws(() => enter(fields), /disagree/);
    }
  });

  test('are trusted from a proxy over an IPv6 socket', () => {
    const fields = { 'X-Forwarded-For': '192.0.2.7' };
    assert.equal(enter(fields, { peer: '::ffff:10.0.0.1' }).address, '192.0.2.7');
    assert.equal(enter(fields, { peer: '::1' }).address, '192.0.2.7');
    assert.equal(enter({}, { peer: '::ffff:192.0.2.9' }).address, '192.0.2.9');
  });

  test('do not replace a missing or malformed Host', () => {
    const fields = { 'X-Forwarded-Host': 'shop.example' };
    assert.throws(() => enter(fields, { host: 'a b' }), /Host field is not a host/);
  });

  test('are read for at most 32 hops', () => {
    const proxies = Array.from({ length: 500 }, () => '10.1.1.1').join(', ');
    assert.equal(enter({ 'X-Forwarded-For': `192.0.2.7, ${proxies}` }).address, '10.1.1.1');
  });
});
