import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../../../src/core/values/failure.ts';
import { TokenBuckets } from '../../../../src/core/fair/token-buckets.ts';
import { createKeyRates } from '../../../../src/core/operations/keys/key-rates.ts';
import { startSite, type Answer } from '../../../harness.ts';
import { transports } from '../../../modules/status/transports.ts';

suite('the rate of a key', () => {
  /** The number of calls that pass, and the Retry-After of the first refused one. */
  function burst(
    rates: ReturnType<typeof createKeyRates>,
    calls: number,
    caller: { readonly keyId: string | undefined; readonly rate: number | undefined },
  ): readonly [number, number | undefined] {
    for (let call = 0; call < calls; call += 1) {
      try {
        rates.count(caller);
      } catch (error) {
        assert.ok(error instanceof Failure && error.code === 'rate_limited', String(error));
        return [call, error.retryAfterSeconds];
      }
    }
    return [calls, undefined];
  }

  for (const rate of [1, 3, 7, 1000, 30_011]) {
    test(`of ${rate}: a second's worth at once, and as much after each second`, () => {
      let nowMs = 5;
      const rates = createKeyRates(new TokenBuckets({ monotonicMs: () => nowMs }));
      const caller = { keyId: 'a', rate };
      assert.deepEqual(burst(rates, 2 * rate, caller), [rate, 1]);
      assert.deepEqual(burst(rates, 1, { keyId: 'b', rate }), [1, undefined]);
      for (let second = 0; second < 3; second += 1) {
        nowMs += 1000;
        assert.deepEqual(burst(rates, 2 * rate, caller), [rate, 1]);
      }
      nowMs += 3_600_000;
      assert.deepEqual(burst(rates, 2 * rate, caller), [rate, 1], 'no more is ever saved up');
    });
  }

  test('is restored one operation at a time', () => {
    let nowMs = 0;
    const rates = createKeyRates(new TokenBuckets({ monotonicMs: () => nowMs }));
    assert.deepEqual(burst(rates, 9, { keyId: 'a', rate: 4 }), [4, 1]);
    nowMs += 250;
    assert.deepEqual(burst(rates, 9, { keyId: 'a', rate: 4 }), [1, 1]);
  });

  test('does not limit callers without a key or a rate', () => {
    const rates = createKeyRates(new TokenBuckets({ monotonicMs: () => 0 }));
    assert.deepEqual(burst(rates, 99, { keyId: undefined, rate: undefined }), [99, undefined]);
    assert.deepEqual(burst(rates, 99, { keyId: 'a', rate: undefined }), [99, undefined]);
  });
});

for (const [name, open] of Object.entries(transports)) {
  test(`a key that calls too often over ${name} gets 429, and others go on`, async (t) => {
    const site = await startSite(t);
    const made = await site.call('svc1.key.insert', { name: 'slow', scopes: ['read'], rate: 1 });
    assert.equal(made.data.rate, 1);
    const listed = await site.call('svc1.key.list', {});
    assert.deepEqual(
      listed.data.rows.map((row: { rate?: number }) => row.rate),
      [undefined, 1],
    );
    const call = await open({ ...site, adminKey: made.data.key as string, call: slowly });
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => call('svc1.server.status', {})),
    );
    const codes = new Set(answers.map(({ error }) => error?.code));
    assert.deepEqual(codes, new Set([undefined, 'rate_limited']));
    assert.equal((await site.call('svc1.server.status', {})).error, undefined);

    function slowly(operation: string, v: object): Promise<Answer> {
      return site.call(operation, v, { apikey: made.data.key as string });
    }
  });
}

test('the ini file sets the rate of keys without their own', async (t) => {
  const site = await startSite(t, { ini: '[auth]\nkey_rate = 1\n' });
  const response = await Promise.all(
    Array.from({ length: 40 }, () =>
      fetch(`${site.url}/svc1/server/status`, { headers: { apikey: site.adminKey } }),
    ),
  );
  const refused = response.filter(({ status }) => status === 429);
  assert.ok(refused.length > 0 && refused.length < 40, String(refused.length));
  assert.match(refused[0]?.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
});
