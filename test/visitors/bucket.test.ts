import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { visitorLots } from '../../src/model/limits.ts';
import { knownLot, lotCookie, lotOf } from '../../src/visitors/bucket.ts';

suite('where a visitor stands among all', () => {
  const address = '192.0.2.7';
  test('is the same each time, and another for another address or browser', () => {
    const lot = lotOf({ 'user-agent': 'a' }, address);
    assert.equal(lotOf({ 'user-agent': 'a' }, address), lot);
    assert.notEqual(lotOf({ 'user-agent': 'b' }, address), lot);
    assert.notEqual(lotOf({ 'user-agent': 'a' }, '192.0.2.8'), lot);
    assert.ok(lot >= 0 && lot < visitorLots);
  });

  test('stays when the address changes, for who keeps the cookie', () => {
    for (const lot of [0, 7, visitorLots - 1]) {
      const [pair = '', ...attributes] = lotCookie(lot, { secure: false }).split('; ');
      const others = ['', 'a=1; ', 'waymark_lots=00001; '];
      for (const before of others) {
        assert.equal(lotOf({ cookie: `${before}${pair}; b=2` }, '203.0.113.9'), lot);
      }
      assert.deepEqual(attributes, ['Path=/', 'Max-Age=31536000', 'HttpOnly', 'SameSite=Lax']);
    }
    assert.match(lotCookie(1, { secure: true }), /; Secure$/);
  });

  test('is not read from a cookie that is none of ours', () => {
    for (const cookie of [
      ...['', 'waymark_lot=', 'waymark_lot=0000', 'waymark_lot=000000', 'waymark_lot=GGGGG'],
      ...['xwaymark_lot=00001', 'waymark_lot=-0001', 'WAYMARK_LOT=00001', 'waymark_lot="00001"'],
    ]) {
      assert.equal(knownLot({ cookie }), undefined, cookie);
    }
  });

  test('spreads visitors evenly', () => {
    const lots = Array.from({ length: 4_000 }, (_, at) => lotOf({}, `192.0.2.${at}`));
    const low = lots.filter((lot) => lot < visitorLots / 2).length;
    assert.ok(low > 1_850 && low < 2_150, `${low} of 4000 in the lower half`);
  });
});
