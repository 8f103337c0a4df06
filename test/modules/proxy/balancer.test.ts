import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { silentLog } from '../../../src/core/report/log.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import type { ClientAddress } from '../../../src/core/values/network/peer.ts';
import {
  Balancer,
  stickyCookie,
  withoutSourceCookie,
} from '../../../src/modules/proxy/balancer.ts';
import { fetchPlan, sourceTargets } from '../../../src/modules/proxy/fetch-plan.ts';
import { SourceHealth } from '../../../src/modules/proxy/source-health.ts';
import { fetchRule, visit } from './fetch-rig.ts';

const names = ['a', 'b', 'c'] as const;

/** Sources a, b and c with a balance, whose order of a request is a text such as `abc`. */
function rig(enginedata: JsonObject) {
  const health = new SourceHealth({ monotonicMs: () => 1_000, log: silentLog });
  const source = names.map((name) => `http://${name}.example/*`);
  const plan = fetchPlan(fetchRule({ source, ...enginedata }));
  const balancer = new Balancer(health);
  const targets = sourceTargets(plan, visit());
  const order = (request = visit()): string =>
    balancer
      .order(plan, targets, request)
      .map((target) => target.source.origin.charAt('http://'.length))
      .join('');
  const firsts = (count: number): string =>
    Array.from({ length: count }, () => order().charAt(0)).join('');
  const cookieOf = (name: string, origin = 'http://visible.example'): string | undefined => {
    const target = targets.find((one) => one.source.origin.includes(`/${name}.`));
    assert.ok(target);
    return stickyCookie(plan, target, visit({ origin }));
  };
  const fail = (name: string): void => {
    const attempt = health.start(`http://${name}.example`);
    attempt.failed();
    attempt.ended();
  };
  return { plan, health, order, firsts, cookieOf, fail };
}

const from = (address: ClientAddress) => visit({ address });
const withCookie = (cookie: string) => visit({ fields: { cookie } });
const valueOf = (cookie = ''): string => cookie.slice(0, cookie.indexOf(';'));

suite('the source of a request', () => {
  test('is the next one by its weight, without runs of the heaviest one', () => {
    assert.equal(rig({ balance: 'turn' }).firsts(6), 'abcabc');
    const { firsts } = rig({ balance: 'turn', weights: [5, 1, 1] });
    assert.equal(firsts(7), 'aabacaa');
    assert.equal(firsts(7), 'aabacaa');
  });

  test('is the one with the fewest open requests for its weight', () => {
    const { health, order } = rig({ weights: [4, 1, 1] });
    const open = [1, 2, 3].map(() => health.start('http://a.example'));
    health.start('http://b.example');
    assert.equal(order(), 'cab');
    for (const one of open) one.ended();
    assert.equal(order().charAt(0), 'a');
  });

  test('in turn does not depend on how long the requests take', () => {
    const { health, firsts } = rig({ balance: 'turn' });
    health.start('http://a.example');
    assert.equal(firsts(3), 'abc');
  });

  test('is one of weight 0 only while all others are set aside', () => {
    for (const balance of ['least', 'turn', 'cookie', 'address']) {
      const { order, fail } = rig({ balance, weights: [0, 1, 1] });
      for (const last of [order(), order(), order(from('192.0.2.9'))]) {
        assert.equal(last.charAt(2), 'a', balance);
      }
      fail('b');
      fail('c');
      assert.equal(order().charAt(0), 'a', balance);
    }
  });

  test('stays the same for an address, whatever happens to the others', () => {
    const { order, fail } = rig({ balance: 'address' });
    const addresses = Array.from(
      { length: 300 },
      (_, at) => `192.0.${at >> 8}.${at & 255}` as const,
    );
    const before = addresses.map((address) => order(from(address)));
    for (const name of names) {
      const count = before.filter((one) => one.startsWith(name)).length;
      assert.ok(count > 60 && count < 140, `${name}: ${count}`);
    }
    fail('b');
    for (const [at, address] of addresses.entries()) {
      const wanted = before[at]?.replace('b', '').concat('b');
      assert.equal(order(from(address)), wanted);
    }
    assert.equal(order(from('2001:db8::1')), order(from('2001:db8::2')));
  });

  test('has a share of the addresses by its weight', () => {
    const { order } = rig({ balance: 'address', weights: [8, 1, 1] });
    const firsts = Array.from({ length: 1_000 }, (_, at) =>
      order(from(`198.51.${at >> 8}.${at & 255}`)).charAt(0),
    );
    const share = firsts.filter((name) => name === 'a').length;
    assert.ok(share > 740 && share < 860, String(share));
  });

  test('is the one in the cookie of the visitor, while it is not set aside', () => {
    const { order, cookieOf, fail } = rig({ balance: 'cookie', weights: [8, 1, 0] });
    const sent = withCookie(`other=1; ${valueOf(cookieOf('b'))}; waymark_source=12345678`);
    for (let turn = 0; turn < 4; turn += 1) assert.equal(order(sent).charAt(0), 'b');
    // To empty a source, give it the weight 0: it keeps its visitors and gets no new ones.
    assert.equal(order(withCookie(valueOf(cookieOf('c')))).charAt(0), 'c');
    fail('b');
    assert.equal(order(sent), 'acb');
  });

  test('is any one for a forged cookie', () => {
    const { order } = rig({ balance: 'cookie' });
    for (const value of ['', 'x', '__proto__', 'a'.repeat(5_000), ';;;=;', 'http://a.example']) {
      assert.equal(order(withCookie(`waymark_source=${value}`)).length, 3, value);
    }
  });

  test('gets its share of new visitors: a few of them see a new version', () => {
    const { firsts } = rig({ balance: 'cookie', weights: [18, 1, 1] });
    assert.equal(firsts(20).replaceAll('a', '').length, 2);
  });
});

suite('the cookie of a source', () => {
  test('belongs to the path of the rule, and names no address', () => {
    const { cookieOf } = rig({ balance: 'cookie' });
    const words = '; Path=/shop/; HttpOnly; SameSite=Lax';
    assert.match(cookieOf('a') ?? '', new RegExp(`^waymark_source=[0-9a-f]{8}${words}$`));
    assert.ok(cookieOf('a', 'https://visible.example')?.endsWith(`${words}; Secure`));
    assert.notEqual(cookieOf('a'), cookieOf('b'));
  });

  test('is set once, and only if the plan says so', () => {
    const { plan, cookieOf } = rig({ balance: 'cookie' });
    const [target] = sourceTargets(plan, visit());
    assert.ok(target);
    assert.equal(stickyCookie(plan, target, withCookie(valueOf(cookieOf('a')))), undefined);
    assert.equal(rig({ balance: 'address' }).cookieOf('a'), undefined);
  });
});

test('the cookie of a source is not among those for the source', () => {
  for (const [sent, wanted] of [
    ['a=1; waymark_source=12345678; b=2', 'a=1; b=2'],
    ['waymark_source=1; waymark_source=2', undefined],
    ['waymark_source=1', undefined],
    ['a=waymark_source', 'a=waymark_source'],
    ['a=1', 'a=1'],
    [undefined, undefined],
  ] as const) {
    assert.equal(withoutSourceCookie(sent), wanted);
  }
});
