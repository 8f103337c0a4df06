import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  seedCookie,
  seedInCookie,
  seedOf,
  visitorSeeds,
} from '../../../src/modules/visitors/bucket.ts';

suite('the seed of a visitor', () => {
  const address = '192.0.2.7';
  test('is the same each time, and differs by address and browser', () => {
    const seed = seedOf({ 'user-agent': 'a' }, address);
    assert.equal(seedOf({ 'user-agent': 'a' }, address), seed);
    assert.notEqual(seedOf({ 'user-agent': 'b' }, address), seed);
    assert.notEqual(seedOf({ 'user-agent': 'a' }, '192.0.2.8'), seed);
    assert.ok(seed >= 0 && seed < visitorSeeds);
  });

  test('stays when the address changes, if the browser keeps the cookie', () => {
    for (const seed of [0, 7, visitorSeeds - 1]) {
      const [pair = '', ...attributes] = seedCookie(seed, { secure: false }).split('; ');
      const others = ['', 'a=1; ', 'waymark_lots=00001; '];
      for (const before of others) {
        assert.equal(seedOf({ cookie: `${before}${pair}; b=2` }, '203.0.113.9'), seed);
      }
      assert.deepEqual(attributes, ['Path=/', 'Max-Age=31536000', 'HttpOnly', 'SameSite=Lax']);
    }
    assert.match(seedCookie(1, { secure: true }), /; Secure$/);
  });

  test('is not read from another cookie', () => {
    for (const cookie of [
      ...['', 'waymark_lot=', 'waymark_lot=0000', 'waymark_lot=000000', 'waymark_lot=GGGGG'],
      ...['xwaymark_lot=00001', 'waymark_lot=-0001', 'WAYMARK_LOT=00001', 'waymark_lot="00001"'],
    ]) {
      assert.equal(seedInCookie({ cookie }), undefined, cookie);
    }
  });

  test('spreads visitors evenly', () => {
    const seeds = Array.from({ length: 4_000 }, (_, at) => seedOf({}, `192.0.2.${at}`));
    const low = seeds.filter((seed) => seed < visitorSeeds / 2).length;
    assert.ok(low > 1_850 && low < 2_150, `${low} of 4000 in the lower half`);
  });
});
