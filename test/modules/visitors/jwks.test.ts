import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { suite, test } from 'node:test';
import {
  createRemoteKeySet,
  fetchJwks,
  jwksFreshMs,
  jwksRetryMs,
  jwksStaleMs,
} from '../../../src/modules/visitors/jwks.ts';
import { httpSource, oneAddress, testDialler } from '../../core/outbound/sources.ts';
import { type Issuer, newIssuer } from './issuer.ts';

/** A key set whose source and clock the test changes. */
function keySet(keys: readonly Issuer[]) {
  const state = {
    nowMs: Date.UTC(2026, 0, 31),
    keys: keys as readonly Issuer[] | Error,
    fetches: 0,
    failures: 0,
  };
  const set = createRemoteKeySet({
    fetchKeys: () => {
      state.fetches += 1;
      if (state.keys instanceof Error) return Promise.reject(state.keys);
      return Promise.resolve({ keys: state.keys.map(({ jwk }) => jwk) });
    },
    now: () => state.nowMs,
    failed: () => {
      state.failures += 1;
    },
  });
  const has = async ({ jwk: { kid } }: Issuer): Promise<boolean> => {
    const token = { payload: '', signature: '' };
    try {
      await set.keyOf({ alg: 'ES256', ...(kid !== undefined && { kid }) }, token);
      return true;
    } catch {
      return false;
    }
  };
  return { state, has };
}

suite('the keys of an issuer', async () => {
  const one = await newIssuer('one');
  const two = await newIssuer('two');

  test('are fetched for the first token, and cached', async () => {
    const { state, has } = keySet([one]);
    assert.equal(state.fetches, 0);
    assert.deepEqual(await Promise.all([has(one), has(one), has(one)]), [true, true, true]);
    assert.equal(await has(one), true);
    assert.equal(state.fetches, 1);
  });

  test('are fetched again for a token with an unknown key, but not for each', async () => {
    const { state, has } = keySet([one]);
    assert.equal(await has(one), true);
    state.keys = [one, two];
    for (let sent = 0; sent < 5; sent += 1) assert.equal(await has(two), false);
    assert.equal(state.fetches, 1, 'a moment ago the keys were fetched');
    state.nowMs += jwksRetryMs;
    assert.equal(await has(two), true);
    assert.equal(state.fetches, 2);
  });

  test('are fetched again when they are old; requests meanwhile use the previous ones', async () => {
    const { state, has } = keySet([one]);
    assert.equal(await has(one), true);
    state.keys = [two];
    state.nowMs += jwksFreshMs;
    assert.equal(await has(one), true);
    assert.equal(await has(one), false, 'a key that was withdrawn');
    assert.equal(await has(two), true);
    assert.equal(state.fetches, 2);
  });

  test('stay valid for a day if they cannot be fetched', async () => {
    const { state, has } = keySet([one]);
    assert.equal(await has(one), true);
    state.keys = new Error('down');
    state.nowMs += jwksFreshMs;
    for (let sent = 0; sent < 5; sent += 1) assert.equal(await has(one), true);
    assert.deepEqual([state.fetches, state.failures], [2, 1]);
    state.nowMs += jwksStaleMs - jwksFreshMs;
    assert.equal(await has(one), false);
    assert.equal(await has(one), false);
    assert.equal(state.fetches, 3);
    state.keys = [one];
    state.nowMs += jwksRetryMs;
    assert.equal(await has(one), true);
  });

  test('are missing if the first fetch fails, which is not repeated for each token', async () => {
    const { state, has } = keySet([]);
    state.keys = new Error('down');
    for (let sent = 0; sent < 5; sent += 1) assert.equal(await has(one), false);
    assert.deepEqual([state.fetches, state.failures], [1, 1]);
  });
});

suite('a URL of keys', () => {
  const refused: readonly (readonly [title: string, listener: RequestListener])[] = [
    ['that never answers', () => undefined],
    [
      'whose answer never ends',
      (_, response) => {
        response.write('{"keys":[');
        const dripping = setInterval(() => response.write(' '), 20);
        response.on('close', () => {
          clearInterval(dripping);
        });
      },
    ],
    [
      'whose answer is too large',
      (_, response) => {
        const chunk = Buffer.alloc(1 << 16, ' ');
        const more = (): void => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on('drain', more);
        more();
      },
    ],
    ['that fails', (_, response) => response.writeHead(500).end('{"keys":[]}')],
    [
      'that redirects',
      (_, response) => response.writeHead(302, { location: 'http://127.0.0.2/' }).end(),
    ],
    ['that has no JSON', (_, response) => response.end('<html>')],
    ['that breaks off', (_, response) => response.destroy()],
  ];
  for (const [title, listener] of refused) {
    test(`${title} is refused`, async (t) => {
      const { origin } = await httpSource(t, listener);
      const asked = fetchJwks(testDialler(t), new URL(origin), { timeoutMs: 300 });
      await assert.rejects(asked);
    });
  }

  test('is requested with its path and query', async (t) => {
    const { origin } = await httpSource(t, (request, response) => {
      response.end(JSON.stringify({ url: request.url, accept: request.headers.accept }));
    });
    const url = new URL('/keys?v=1', origin);
    assert.deepEqual(await fetchJwks(testDialler(t), url, { timeoutMs: 5_000 }), {
      url: '/keys?v=1',
      accept: 'application/jwk-set+json, application/json',
    });
  });

  test('is not requested from a private address', async (t) => {
    let asked = 0;
    const { port } = await httpSource(
      t,
      (_, response) => {
        asked += 1;
        response.end('{}');
      },
      '127.0.0.2',
    );
    const dialler = testDialler(t, { allowPrivate: oneAddress });
    const url = new URL(`http://127.0.0.2:${port}/`);
    await assert.rejects(fetchJwks(dialler, url, { timeoutMs: 5_000 }), { code: 'bad_gateway' });
    assert.equal(asked, 0);
  });
});
