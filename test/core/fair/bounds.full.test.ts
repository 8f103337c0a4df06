import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { TokenBuckets } from '../../../src/core/fair/token-buckets.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { Permissions } from '../../../src/modules/acme/permissions.ts';
import { AttemptLimiter } from '../../../src/modules/webhooks/attempt-limiter.ts';
import { loginIni, startProvider } from '../../modules/login/provider.ts';
import { TestVisitor } from '../../modules/login/visitor.ts';
import { basic, scryptLine } from '../../modules/access/passwords.ts';
import { startSite, type Answer, type TestSite } from '../../harness.ts';

/**
 * A bound of the server. A takes all that it can get of it, and goes on; B is served within twice
 * the time that it takes alone.
 */
interface Row {
  readonly bound: string;
  readonly start: (t: TestContext) => Promise<Attacked>;
}

interface Attacked {
  /** One request of B; rejects if it is not served. */
  readonly ask: (at: number) => Promise<unknown>;
  /** Begins the attack of A; resolves when A has all that it can get. */
  readonly attack: () => Promise<unknown>;
}

const [addressA, addressB] = ['198.51.100.1', '192.0.2.1'] as const;
const behindProxy = { server: 'trust_proxy = 127.0.0.1' };

async function newKey(site: TestSite, ...scopes: readonly string[]): Promise<string> {
  const { data } = await site.call('svc1.key.insert', { name: 'A', scopes });
  return (data as { readonly key: string }).key;
}

/** Repeats requests of A without an end, so many at a time. */
function floodWith(
  t: TestContext,
  count: number,
  ask: (at: number) => Promise<unknown>,
): Promise<unknown> {
  const ended = new AbortController();
  t.after(() => {
    ended.abort();
  });
  let [at, served] = [0, 0];
  const begun = Promise.withResolvers<undefined>();
  const go = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      at += 1;
      await ask(at).catch(() => undefined);
      // A refusal comes at once: the client is one of many, and not the machine itself.
      await delay(20);
      served += 1;
      if (served === 3) begun.resolve(undefined);
    }
  };
  for (let one = 0; one < count; one += 1) void go();
  return begun.promise;
}

async function pageOf(site: TestSite, path: string, from: string, more = {}): Promise<void> {
  const headers = { 'x-forwarded-for': from, ...more };
  const response = await fetch(site.url + path, { headers });
  await response.arrayBuffer();
  assert.equal(response.status, 200, `${path} of ${from}`);
}

const rows: readonly Row[] = [
  {
    bound: 'uploads at the same time',
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'design');
      const head = (at: number): string =>
        `PUT /svc1/asset/slow-${at}.bin HTTP/1.1\r\nHost: a\r\napikey: ${apikey}\r\n` +
        'Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n';
      return {
        async ask(at) {
          const answer = await fetch(`${site.url}/svc1/asset/b-${at}.txt`, {
            ...{ method: 'PUT', body: 'B', headers: { apikey: site.adminKey } },
          });
          assert.equal(answer.status, 200, await answer.text());
        },
        async attack() {
          const begun = Promise.withResolvers<undefined>();
          let places = 0;
          for (let at = 0; at < 100; at += 1) {
            const socket = connect(site.port, '127.0.0.1').on('error', () => undefined);
            t.after(() => socket.destroy());
            socket.write(head(at));
            socket.once('data', () => {
              places += 1;
              if (places === 16) begun.resolve(undefined);
            });
          }
          await begun.promise;
        },
      };
    },
  },
  {
    bound: 'sign-ins that ask the provider',
    async start(t) {
      const provider = await startProvider(t);
      const site = await startSite(t, { ...behindProxy, ini: loginIni(provider) });
      let held = 0;
      const full = Promise.withResolvers<undefined>();
      const stranger = new TestVisitor();
      return {
        async ask() {
          const visitor = new TestVisitor();
          provider.behave = {};
          const { status } = await visitor.follow(`${site.url}/svc1/login/sign-in`);
          assert.equal(status, 404, 'the front page, which this site does not have');
          assert.ok(visitor.cookies.size > 0);
        },
        async attack() {
          const url = await stranger.upToCallback(`${site.url}/svc1/login/sign-in`);
          provider.behave = {
            holds(path) {
              if (path === '/token') held += 1;
              if (held === 32) full.resolve(undefined);
              return path === '/token';
            },
          };
          const fields = { 'x-forwarded-for': addressA };
          for (let at = 0; at < 200; at += 1)
            void stranger.open(url, fields).catch(() => undefined);
          await full.promise;
        },
      };
    },
  },
  {
    bound: 'slow checks of passwords',
    async start(t) {
      const lines = Array.from({ length: 40 }, (_, at) => scryptLine(`b${at}`, 'right'));
      const site = await startSite(t, {
        ...behindProxy,
        ini: '[access.all]\npassword_file = users\n[disk.site]\nroot = site\n',
        files: { users: `${lines.join('\n')}\n`, 'site/a.txt': 'a' },
      });
      const signed = (name: string, password: string): object => ({
        authorization: basic(name, password),
      });
      return {
        ask: (at) => pageOf(site, '/a.txt', addressB, signed(`b${at}`, 'right')),
        attack: () =>
          floodWith(t, 64, (at) => pageOf(site, '/a.txt', addressA, signed(`c${at}`, 'wrong'))),
      };
    },
  },
  {
    bound: 'clients that watch the state (server.subscribe)',
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'read');
      const watch = async (key: string): Promise<Answer> => {
        const socket = await site.socket(key);
        t.after(() => {
          socket.websocket.terminate();
        });
        return socket.call('svc1.server.subscribe', { topics: ['keys'] });
      };
      return {
        ask: () => watch(site.adminKey),
        attack: async () => Promise.allSettled(Array.from({ length: 100 }, () => watch(apikey))),
      };
    },
  },
  {
    bound: 'subscriptions to changes',
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'read');
      const follow = async (key: string, count: number): Promise<void> => {
        const socket = await site.socket(key);
        t.after(() => {
          socket.websocket.terminate();
        });
        for (let at = 0; at < count; at += 1) {
          await socket.call('svc1.userinterface.subscribe', { path: '/x' });
        }
      };
      return {
        ask: () => follow(site.adminKey, 1),
        attack: () => Promise.allSettled(Array.from({ length: 20 }, () => follow(apikey, 60))),
      };
    },
  },
  {
    bound: 'open drafts',
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'draft');
      return {
        async ask(at) {
          const made = await site.call('svc1.draft.insert', { name: `b${at}` });
          assert.equal(made.error, undefined);
        },
        async attack() {
          for (let at = 0; at < 520; at += 20) {
            const some = Array.from({ length: 20 }, (_, one) =>
              site.call('svc1.draft.insert', { name: `a${at + one}` }, { apikey }),
            );
            await Promise.all(some);
          }
          const more = await site.call('svc1.draft.insert', { name: 'more' }, { apikey });
          assert.equal(more.error?.code, 'conflict');
        },
      };
    },
  },
  {
    bound: 'buckets of a rate by a field',
    start() {
      const buckets = new TokenBuckets({ monotonicMs: () => 0 });
      const take = (client: string, from: string): boolean =>
        buckets.take({ rate: 'api', client, from, intervalMs: 60_000, burst: 10 }).isTaken;
      return Promise.resolve({
        ask(at) {
          assert.ok(take(`b${at}`, addressB));
          return Promise.resolve();
        },
        attack() {
          for (let at = 0; at < 210_000; at += 1) take(`a${at}`, addressA);
          return Promise.resolve();
        },
      });
    },
  },
  {
    bound: 'questions whether a name may get a certificate on demand',
    start(t) {
      const ask = (): Promise<number> => delay(20, 404);
      const permissions = new Permissions(ask, { log: silentLog, now: Date.now });
      const attack = (at: number): Promise<unknown> => permissions.of(`a${at}.example`, addressA);
      return Promise.resolve({
        ask: async (at) => {
          assert.equal(await permissions.of(`b${at}.example`, `192.0.2.${at}`), 'refused');
        },
        attack: () => floodWith(t, 300, attack),
      });
    },
  },
  {
    bound: 'attempts to receivers of webhooks, with long bodies',
    start() {
      const endless = { isSpent: false, spend: () => undefined, wakeLater: () => undefined };
      const limiter = new AttemptLimiter(endless);
      const take = (receiver: string) =>
        limiter.acquire({ wake: () => undefined }, 1_000_000, receiver);
      return Promise.resolve({
        ask() {
          const release = take('healthy.example');
          assert.ok(release !== undefined);
          release();
          return Promise.resolve();
        },
        attack() {
          while (take('slow.example') !== undefined);
          return Promise.resolve();
        },
      });
    },
  },
];

const rounds = 7;

/** The median of the times of some requests one after the other, in ms. */
async function medianMs(ask: (at: number) => Promise<unknown>, from: number): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < rounds; at += 1) {
    const beganMs = performance.now();
    await ask(from + at);
    times.push(performance.now() - beganMs);
  }
  return times.toSorted((one, other) => one - other)[(rounds - 1) / 2] ?? 0;
}

/** What a busy machine may add to any time. */
const noiseMs = 150;

suite('one client takes all that it can, and another is served in twice its time alone', () => {
  for (const { bound, start } of rows) {
    test(bound, async (t) => {
      const { ask, attack } = await start(t);
      await ask(0);
      const alone = await medianMs(ask, 1);
      await attack();
      const beside = await medianMs(ask, 1 + rounds);
      t.diagnostic(`${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside the other`);
      assert.ok(beside <= 2 * alone + noiseMs, `${beside} ms, and ${alone} ms alone`);
    });
  }
});
