import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { type TestContext, suite, test } from 'node:test';
import { orderCertificate } from '../../../src/modules/acme/acme-order.ts';
import { acmeInfoMs } from '../../../src/modules/acme/limits.ts';
import {
  type RenewalInfo,
  acmeInfoMsMax,
  acmeInfoMsMin,
  readRenewalInfo,
} from '../../../src/modules/acme/renewal-info.ts';
import { type AcmeServer, startAcmeServer } from './server.ts';

type Options = Omit<Parameters<typeof startAcmeServer>[1], 'httpPort' | 'tlsPort'>;

const start = (t: TestContext, options: Options = {}) =>
  startAcmeServer(t, { httpPort: 1, tlsPort: 1, ...options });

function ask(
  { directory, ca }: AcmeServer,
  { signal } = new AbortController(),
): Promise<RenewalInfo | undefined> {
  const trusted = { ca, allowPrivate: ['127.0.0.1'] };
  return readRenewalInfo({ directory, ...trusted, certificateId: 'AQ.Ag', nowMs: 0, signal });
}

const suggestedWindow = { start: '2026-01-02T04:00:00Z', end: '2026-01-03T04:00:00Z' };

suite('what an ACME server says about a renewal', () => {
  test('is its window, with the page that says why', async (t) => {
    const asked: string[] = [];
    const server = await start(t, {
      renewalInfo(id) {
        asked.push(id);
        return { suggestedWindow, explanationURL: 'https://ca.example/why' };
      },
    });
    assert.deepEqual(await ask(server), {
      startMs: Date.parse(suggestedWindow.start),
      endMs: Date.parse(suggestedWindow.end),
      why: 'https://ca.example/why',
      holdsMs: acmeInfoMs,
    });
    assert.deepEqual(asked, ['AQ.Ag']);
    assert.deepEqual(server.requests, ['GET /dir', 'GET /renewal-info/AQ.Ag']);
  });

  test('is nothing if it does not know the question', async (t) => {
    assert.equal(await ask(await start(t)), undefined);
  });

  test('is refused if it is no window, or an error', async (t) => {
    const swapped = { start: suggestedWindow.end, end: suggestedWindow.start };
    for (const answer of [{}, { suggestedWindow: 7 }, { suggestedWindow: swapped }]) {
      const server = await start(t, { renewalInfo: () => answer });
      await assert.rejects(ask(server), /is no window/);
    }
    const refusing = await start(t, {
      renewalInfo: () => ({}),
      refuse: (path) =>
        path === '/dir' ? undefined : { status: 404, type: 'malformed', detail: 'no' },
    });
    await assert.rejects(ask(refusing), /127\.0\.0\.1:\d+ answers 404\.$/);
  });

  test('is not waited for when the server stops', async (t) => {
    const stop = new AbortController();
    const server = await start(t, {
      renewalInfo: () => ({}),
      refuse: (path) => {
        if (path === '/dir') return undefined;
        stop.abort();
        return 'silence';
      },
    });
    await assert.rejects(ask(server, stop));
  });

  for (const [field, holdsMs] of [
    ['21600', 21_600_000],
    ['0', acmeInfoMsMin],
    ['999999999', acmeInfoMsMax],
    ['soon', acmeInfoMs],
  ] as const) {
    test(`holds for ${holdsMs / 1_000} s with Retry-After ${field}`, async (t) => {
      const server = await start(t, {
        renewalInfo: () => ({ suggestedWindow }),
        retryAfter: field,
      });
      assert.equal((await ask(server))?.holdsMs, holdsMs);
    });
  }
});

suite('an order that replaces a certificate', () => {
  test('names it and its profile; if another one has, it is an order without', async (t) => {
    const server = await start(t, {
      refuse: (path) =>
        path.startsWith('/authorization')
          ? { status: 403, type: 'unauthorized', detail: 'not today' }
          : undefined,
    });
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const order = {
      ...{ directory: server.directory, ca: server.ca, allowPrivate: ['127.0.0.1'] },
      ...{ email: undefined, binding: undefined, host: 'shop.example', replaces: 'AQ.Ag' },
      accountKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      profile: 'shortlived',
      challenges: ['http-01'] as const,
    };
    const how = {
      saveChallenge: () => Promise.resolve(),
      signal: new AbortController().signal,
    };
    for (let count = 0; count < 2; count += 1) {
      await assert.rejects(orderCertificate(order, how), /not today/);
    }
    assert.deepEqual(
      server.orders.map(({ replaces, profile }) => [replaces, profile]),
      [
        ['AQ.Ag', 'shortlived'],
        [undefined, 'shortlived'],
      ],
    );
  });
});
