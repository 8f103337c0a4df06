import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseCidr, type Cidr } from '../../../src/core/values/network/cidr.ts';
import { addressProblem } from '../../../src/core/outbound/address.ts';

const cidrs = (...texts: string[]): Cidr[] => texts.flatMap((text) => parseCidr(text) ?? []);

suite('without allow_private, an address', () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    unspecified: ['0.0.0.0', '0.1.2.3', '::', '0:0:0:0:0:0:0:0'],
    loopback: ['127.0.0.1', '127.255.255.254', '127.8.8.8', '::1', '0:0:0:0:0:0:0:1'],
    private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    'link-local': ['169.254.0.1', '169.254.255.255', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
    metadata: ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16'],
    'unique local': ['fc00::1', 'fd12:3456:789a::1', 'fdff:ffff::1'],
    'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
    broadcast: ['255.255.255.255'],
    reserved: [
      ...['240.0.0.1', '254.255.255.255', '192.0.0.1', '192.0.0.192', '192.88.99.1'],
      ...['192.0.2.1', '198.51.100.7', '203.0.113.9', '2001:db8::1', '3fff::1'],
      ...['198.18.0.1', '198.19.255.255', '2001:2::1', '2001:10::1', '2001:20::1', '2001:30::1'],
      ...['100::1', 'fec0::1', '5f00::1', '2001:1::1', '192.31.196.1', '192.52.193.1'],
    ],
    'outside global unicast': [
      ...['::7f00:1', '::127.0.0.1', '::10.0.0.1', '::2', '::8.8.8.8', '4000::1', '8000::1'],
      ...['100:0:0:1::1', '200::1', '1fff::1', 'e000::1', 'fe00::1'],
    ],
    NAT64: ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '64:ff9b:1:ffff::a00:1'],
    'IPv4-translated': ['::ffff:0:127.0.0.1', '::ffff:0:7f00:1'],
    '6to4': ['2002:7f00:1::', '2002:a9fe:a9fe::1', '2002:808:808::1'],
    Teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  };
  for (const [kind, addresses] of Object.entries(refused)) {
    for (const address of addresses) {
      test(`is refused as ${kind}: ${address}`, () => {
        assert.equal(addressProblem(address, []), `${address} (${kind}) is not in allow_private`);
      });
    }
  }

  const mapped: Readonly<Record<string, string>> = {
    '::ffff:127.0.0.1': 'loopback',
    '::ffff:7f00:1': 'loopback',
    '0:0:0:0:0:ffff:7f00:0001': 'loopback',
    '::FFFF:10.0.0.1': 'private',
    '::ffff:a9fe:a9fe': 'metadata',
    '::ffff:0.0.0.0': 'unspecified',
  };
  for (const [address, kind] of Object.entries(mapped)) {
    test(`is refused as ${kind} in its IPv6 form: ${address}`, () => {
      assert.match(addressProblem(address, []) ?? '', new RegExp(`\\(${kind}\\)`));
    });
  }

  const notAddresses = ['', 'localhost', '127.1', '0x7f.0.0.1', '0177.0.0.1', '2130706433'];
  for (const text of [...notAddresses, '1.2.3.4.5', '256.1.1.1', '[::1]', '1.2.3.4:80', ':::']) {
    test(`is refused as malformed: ${JSON.stringify(text)}`, () => {
      assert.equal(addressProblem(text, []), `${JSON.stringify(text)} is not an IP address`);
    });
  }

  const allowed = [
    ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0'],
    ...['126.255.255.255', '128.0.0.1', '169.253.255.255', '169.255.0.1', '172.15.255.255'],
    ...['172.32.0.1', '192.167.255.255', '192.169.0.1', '198.17.255.255', '198.20.0.1'],
    ...['223.255.255.255', '::ffff:8.8.8.8', '2606:4700:4700::1111', '2001:4860:4860::8888'],
    ...['2003::1', '2a00::1', '2001:200::1', '3ffe::1', '2400:cb00::1'],
  ];
  for (const address of allowed) {
    test(`is allowed if it is public: ${address}`, () => {
      assert.equal(addressProblem(address, []), undefined);
    });
  }
});

suite('allow_private', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['127.0.0.0/8', '127.0.0.1', true],
    ['127.0.0.0/8', '::ffff:127.0.0.1', true],
    ['127.0.0.0/8', '::ffff:7f00:1', true],
    ['127.0.0.0/8', '::1', false],
    ['127.0.0.0/8', '10.0.0.1', false],
    ['127.0.0.0/8', '::127.0.0.1', false],
    ['127.0.0.0/8', '64:ff9b::7f00:1', false],
    ['127.0.0.0/8', '2002:7f00:1::', false],
    ['127.0.0.0/8', '::ffff:0:127.0.0.1', false],
    ['64:ff9b::/96', '64:ff9b::7f00:1', true],
    ['64:ff9b::/96', '127.0.0.1', false],
    ['::ffff:127.0.0.1', '127.0.0.1', true],
    ['::1', '::1', true],
    ['::1', '0:0:0:0:0:0:0:1', true],
    ['::1', '::2', false],
    ['::/0', '127.0.0.1', false],
    ['0.0.0.0/0', '::1', false],
    ['0.0.0.0/0', '192.168.0.1', true],
    ['10.1.0.0/16', '10.1.255.255', true],
    ['10.1.0.0/16', '10.2.0.0', false],
    ['169.254.0.0/24', '169.254.169.254', false],
    ['169.254.169.254', '169.254.169.254', true],
    ['fe80::/10', 'fe80::1%eth0', true],
  ];
  for (const [named, address, allowed] of cases) {
    test(`${named} ${allowed ? 'allows' : 'does not allow'} ${address}`, () => {
      assert.equal(addressProblem(address, cidrs(named)) === undefined, allowed);
    });
  }
});
