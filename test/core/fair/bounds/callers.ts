import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TokenBuckets } from '../../../../src/core/fair/token-buckets.ts';
import { silentLog } from '../../../../src/core/report/log.ts';
import { Permissions } from '../../../../src/modules/acme/permissions.ts';
import { AttemptLimiter } from '../../../../src/modules/webhooks/attempt-limiter.ts';
import { startSite, type Answer } from '../../../harness.ts';
import { basic, scryptLine } from '../../../modules/access/passwords.ts';
import { loginIni, startProvider } from '../../../modules/login/provider.ts';
import { TestVisitor } from '../../../modules/login/visitor.ts';
import { addressA, addressB, behindProxy, floodWith, newKey, pageOf, type Row } from './row.ts';

/** Bounds of calls, sign-ins and work in the background. */
export const callerRows: readonly Row[] = [
  {
    bound: 'uploads at the same time',
    of: ['modules/assets/upload/upload-content.ts'],
    limits: ['uploads'],
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
    of: ['modules/login/provider.ts'],
    limits: ['sign_ins'],
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
    of: ['modules/access/passwords.ts'],
    limits: ['password_checks'],
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
    of: ['modules/status/state-watcher.ts'],
    limits: ['live_state'],
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
    of: ['core/fair/shared-limits.ts'],
    limits: ['subscriptions'],
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
    of: ['modules/drafts/operations/drafts.ts'],
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
    of: ['core/fair/token-buckets.ts'],
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
    of: ['modules/acme/permissions.ts'],
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
    of: ['modules/webhooks/attempt-limiter.ts'],
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
