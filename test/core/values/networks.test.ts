import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { cidrsContain, parseCidr } from '../../../src/core/values/network/cidr.ts';
import { comparableAddress, Networks } from '../../../src/core/values/network/networks.ts';

// Few distinct bytes, so that addresses often lie within networks.
const byte = fc.constantFrom(0, 1, 10, 127, 128, 255);
const group = fc.constantFrom('0', '1', 'db8', '2001', 'FFFF', '00a0');
const ipv4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join('.'));
const ipv6 = fc
  .tuple(fc.array(group, { maxLength: 8 }), fc.nat(8), fc.boolean())
  .map(([groups, at, isWhole]) =>
    isWhole
      ? [...groups, ...Array.from({ length: 8 - groups.length }, () => '0')].join(':')
      : `${groups.slice(0, at).join(':')}::${groups.slice(at).join(':')}`,
  );
const odd = fc.constantFrom(
  ...['', '::ffff:10.1.2.3', '::ffff:a01:203', '::10.1.2.3', '::1%eth0', '01.2.3.4', '1.2.3', '1'],
  ...[':::', '1:2:3:4:5:6:7:8:9', '1::2::3', '12345::', 'g::', '::ffff:0:0/96', '10.0.0.0/08'],
);
const address = fc.oneof(ipv4, ipv6, odd);
const network = fc.oneof(
  address,
  fc.tuple(ipv4, fc.integer({ min: 0, max: 33 })).map((parts) => parts.join('/')),
  fc.tuple(ipv6, fc.integer({ min: 0, max: 129 })).map((parts) => parts.join('/')),
  fc.tuple(address, fc.constantFrom('', '-1', '1000', 'x', '00')).map((parts) => parts.join('/')),
);

suite('networks', () => {
  test('contain an address if one of them does', () => {
    fc.assert(
      fc.property(fc.array(network, { minLength: 1, maxLength: 6 }), address, (texts, visitor) => {
        const valid = texts.filter((text) => parseCidr(text) !== undefined);
        for (const text of texts) {
          assert.equal(Networks.parse([text]) !== undefined, valid.includes(text), text);
        }
        const networks = Networks.parse(valid);
        const number = comparableAddress(visitor);
        const cidrs = valid.flatMap((text) => parseCidr(text) ?? []);
        assert.equal(
          number !== undefined && networks?.contains(number) === true,
          cidrsContain(cidrs, visitor),
        );
      }),
      { numRuns: 5_000 },
    );
  });

  test('are invalid as a whole if one text is not a network', () => {
    assert.equal(Networks.parse(['10.0.0.0/8', 'nonsense']), undefined);
    assert.deepEqual(Networks.parse(['10.0.0.0/8'])?.texts, ['10.0.0.0/8']);
  });
});
