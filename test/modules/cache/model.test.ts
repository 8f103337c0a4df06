import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { formatHttpDate } from '../../../src/core/http/date.ts';
import { noBody, replyField, type Reply } from '../../../src/core/http/reply.ts';
import type { ContentRequest } from '../../../src/core/http/request.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { cachedFetch } from '../../../src/modules/cache/cached-fetch.ts';
import { openCacheStore, prepareCacheStore } from '../../../src/modules/cache/open-cache-store.ts';
import type { FetchRule } from '../../../src/modules/proxy/fetch-plan.ts';
import type { Fetcher } from '../../../src/modules/proxy/fetcher.ts';
import { temporaryFolder } from '../../folder.ts';
import { fetchRule, visit } from '../proxy/fetch-rig.ts';
import { randomRuns } from '../../random-runs.ts';

/** The Cache-Control of a page, and how long it may be used, in seconds. */
interface Policy {
  readonly cacheControl: string;
  readonly lifetime: number;
  /** How much longer during a validation in the background, and while the source is down. */
  readonly staleWhile: number;
  readonly staleDown: number;
  /** Whether other clients may get it, and whether that holds for a request with credentials. */
  readonly isShared: boolean;
  readonly isPublic: boolean;
  readonly variesByLanguage: boolean;
}

const hour = 3_600;
const policies: readonly Policy[] = (
  [
    ['max-age=60', 60, 0, hour, true, false, false],
    ['max-age=60, must-revalidate', 60, 0, 0, true, true, false],
    ['max-age=60, public', 60, 0, hour, true, true, true],
    ['s-maxage=30, max-age=90', 30, 0, 0, true, true, false],
    ['max-age=20, stale-while-revalidate=40', 20, 40, hour, true, false, true],
    ['max-age=20, stale-if-error=7200', 20, 0, 7_200, true, false, false],
    ['no-cache', 0, 0, 0, true, false, true],
    ['max-age=60, no-cache', 0, 0, 0, true, false, false],
    ['private, max-age=60', 0, 0, 0, false, false, false],
    ['no-store', 0, 0, 0, false, false, true],
    ['max-age=0', 0, 0, hour, true, false, false],
  ] as const
).map(([cacheControl, lifetime, staleWhile, staleDown, isShared, isPublic, variesByLanguage]) => ({
  cacheControl,
  lifetime,
  staleWhile,
  staleDown,
  isShared,
  isPublic,
  variesByLanguage,
}));

/** The content of a response: how it came about. */
interface Page {
  readonly serial: number;
  readonly ask: string;
  readonly path: string;
  readonly version: number;
  readonly language: string;
  readonly user: string;
  readonly plan: string;
}

interface Asking {
  readonly path: number;
  readonly language: string;
  readonly user: string;
  /** The field that names the user. */
  readonly by: (typeof userFields)[number];
  readonly cacheControl: string;
}

const userFields = ['authorization', 'cookie', 'x-user', 'x-country'] as const;

type Step =
  | { readonly do: 'ask'; readonly asking: readonly Asking[] }
  | { readonly do: 'pass'; readonly seconds: number }
  | { readonly do: 'change' | 'write' | 'purge'; readonly path: number }
  | { readonly do: 'edit' }
  | { readonly do: 'race'; readonly asking: Asking; readonly by: 'write' | 'purge' }
  | { readonly do: 'down'; readonly isDown: boolean };

const paths = fc.nat(policies.length - 1);
const asking: fc.Arbitrary<Asking> = fc.record({
  path: paths,
  language: fc.constantFrom('de', 'en', 'de, en', 'EN,de', 'de;q=x', 'de,;q=1'),
  user: fc.constantFrom('', '', '', 'ann', 'bob'),
  by: fc.constantFrom(...userFields),
  cacheControl: fc.constantFrom('', '', '', '', 'no-cache', 'max-age=10', 'only-if-cached'),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      asking: fc.array(asking, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      seconds: fc.constantFrom(1, 9, 19, 31, 61, 4_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('change' as const, 'write' as const, 'purge' as const),
      path: paths,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('edit' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('race' as const),
      asking,
      by: fc.constantFrom('write' as const, 'purge' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('down' as const), isDown: fc.boolean() }) },
);

/** Sources that record all requests, and the responses that a cache may reuse. */
class World {
  nowMs = Date.UTC(2026, 0, 2);
  isDown = false;
  plan = 0;
  readonly versions = policies.map(() => 1);
  /** Behind which answers of a page have to be, by their serial. */
  readonly after = policies.map(() => 0);
  /** When an answer was last said to hold, by its page, version and language. */
  readonly #confirmed = new Map<string, number>();
  /** Asks that the source was contacted for. */
  readonly #contacts = new Set<string>();
  serial = 0;

  readonly source: Fetcher = {
    respond: async (rule, request) => {
      await turn();
      return this.#answer(rule, request);
    },
    explain: () => ({ status: null }),
    upgrade: () => Promise.reject(new Error('no websockets here')),
  };

  #answer(rule: FetchRule, { path, method, fields }: ContentRequest): Reply {
    const number = Number(path.slice('/shop/'.length));
    const policy = policies[number];
    assert.ok(policy !== undefined);
    this.#contacts.add(fields['x-ask'] ?? '');
    if (this.isDown) throw new Failure('bad_gateway', 'It is down.');
    if (method === 'PUT') return { status: 204, fields: [], body: noBody, source: 'rule:r1' };
    this.serial += 1;
    const version = this.versions[number] ?? 0;
    const language = policy.variesByLanguage ? (fields['accept-language'] ?? '') : '';
    const page: Page = {
      serial: this.serial,
      ask: fields['x-ask'] ?? '',
      path,
      version,
      language,
      user: userFields.map((name) => fields[name] ?? '').join(''),
      plan: rule.enginedata?.source as string,
    };
    const tag = `"${version}.${canonical(language)}.${page.plan}"`;
    const isKnown = fields['if-none-match']?.includes(tag) === true;
    this.#confirmed.set(keyOf(page), this.nowMs);
    return {
      status: isKnown ? 304 : 200,
      fields: [
        ...['Cache-Control', policy.cacheControl, 'ETag', tag, 'Date', formatHttpDate(this.nowMs)],
        ...(policy.variesByLanguage ? ['Vary', 'Accept-Language'] : []),
      ],
      body: isKnown ? noBody : { kind: 'bytes', bytes: Buffer.from(JSON.stringify(page)) },
      source: 'rule:r1',
    };
  }

  /** Checks a response; `startedAfter` is the value of `after` when the request was sent. */
  check(asked: Asking, ask: string, reply: Reply, startedAfter: number): void {
    if (reply.status === 504 && asked.cacheControl === 'only-if-cached') return;
    assert.equal(reply.status, 200);
    assert.ok(reply.body.kind === 'bytes');
    const page = JSON.parse(reply.body.bytes.toString()) as Page;
    const policy = policies[asked.path];
    assert.ok(policy !== undefined);
    const details = `${JSON.stringify({ asked, ask, page, policy })} ${replyField(reply, 'cache-status') ?? ''}`;
    assert.equal(page.path, `/shop/${asked.path}`, details);
    if (policy.variesByLanguage) {
      assert.equal(canonical(page.language), canonical(asked.language), details);
    }
    if (page.ask !== ask) {
      assert.ok(policy.isShared, `private: ${details}`);
      assert.ok(page.user === '' || policy.isPublic, `of another client: ${details}`);
    }
    assert.ok(page.serial > startedAfter, `purged: ${details}`);
    assert.equal(page.plan, `http://source.example/${this.plan}/*`, details);
    this.#checkAge(asked, ask, page, policy, details);
  }

  #checkAge(asked: Asking, ask: string, page: Page, policy: Policy, details: string): void {
    if (this.#contacts.has(ask) && !this.isDown) {
      // A request that reaches the source gets the current version.
      if (asked.cacheControl === 'no-cache')
        assert.equal(page.version, this.versions[asked.path], details);
    } else if (asked.cacheControl === 'no-cache') assert.fail(`not validated: ${details}`);
    const confirmedMs = this.#confirmed.get(keyOf(page));
    assert.ok(confirmedMs !== undefined, details);
    const age = (this.nowMs - confirmedMs) / 1000;
    const stale = this.isDown ? Math.max(policy.staleDown, policy.staleWhile) : policy.staleWhile;
    assert.ok(age <= policy.lifetime + stale, `${age} s old: ${details}`);
    if (asked.cacheControl === 'max-age=10') assert.ok(age <= 10, `${age} s old: ${details}`);
  }
}

/** The canonical form of a list of languages. */
function canonical(language: string): string {
  return language
    .toLowerCase()
    .split(',')
    .map((one) => one.trim())
    .sort()
    .join();
}

function keyOf({ path, version, language, plan }: Page): string {
  return [path, version, canonical(language), plan].join('|');
}

async function run(t: TestContext, steps: readonly Step[]): Promise<void> {
  const world = new World();
  const data = await temporaryFolder(t);
  await prepareCacheStore(data);
  const config = { server: { data, workers: 1 }, fetch: { cacheBytesMax: 1e8 } };
  const answers = openCacheStore(config, {
    now: () => world.nowMs,
    uptimeMs: () => world.nowMs,
    log: silentLog,
  });
  let ids = 0;
  const fetch = cachedFetch({
    fetch: world.source,
    answers,
    now: () => world.nowMs,
    newId: () => `answer-${(ids += 1)}`,
    via: { ofLog: 'waymark', ofNode: 'waymark' },
    identityFields: ['x-user', 'x-country'],
  });
  const rules = new Map<number, FetchRule>();
  const rule = (): FetchRule => {
    const source = `http://source.example/${world.plan}/*`;
    const made =
      rules.get(world.plan) ??
      fetchRule({ source, methods: ['GET', 'PUT'], pass: ['authorization', 'cookie'] });
    rules.set(world.plan, made);
    return made;
  };

  const ask = async (asked: Asking): Promise<void> => {
    const id = `ask-${(ids += 1)}`;
    const fields = {
      'x-ask': id,
      'accept-language': asked.language,
      ...(asked.user !== '' && { [asked.by]: asked.user }),
      ...(asked.cacheControl !== '' && { 'cache-control': asked.cacheControl }),
    };
    const startedAfter = world.after[asked.path] ?? 0;
    try {
      const reply = await fetch.respond(rule(), visit({ path: `/shop/${asked.path}`, fields }));
      world.check(asked, id, reply, startedAfter);
    } catch (thrown) {
      if (!(thrown instanceof Failure) || !world.isDown) throw thrown;
    }
  };
  const invalidate = async (by: 'write' | 'purge', path: number): Promise<void> => {
    if (by === 'purge')
      await answers.purge({ kind: 'prefix', prefix: `http://visible.example/shop/${path}` });
    else if (!world.isDown)
      await fetch.respond(rule(), visit({ path: `/shop/${path}`, method: 'PUT' }));
    else return;
    // Path 1 is a prefix of path 10.
    for (const [other] of policies.entries()) {
      const isMeant = by === 'purge' ? String(other).startsWith(String(path)) : other === path;
      if (isMeant) world.after[other] = world.serial;
    }
  };

  for (const one of steps) {
    switch (one.do) {
      case 'ask':
        await Promise.all(one.asking.map(ask));
        break;
      case 'pass':
        world.nowMs += one.seconds * 1000;
        break;
      case 'change':
        world.versions[one.path] = (world.versions[one.path] ?? 0) + 1;
        break;
      case 'write':
      case 'purge':
        await invalidate(one.do, one.path);
        break;
      case 'edit':
        world.plan += 1;
        break;
      case 'race': {
        // Requested before, answered after: no later request may get it.
        const before = ask(one.asking);
        await invalidate(one.by, one.asking.path);
        await Promise.all([before, ask(one.asking)]);
        break;
      }
      case 'down':
        world.isDown = one.isDown;
    }
    await turn();
  }
  await answers.close();
}

test('after any sequence of requests, no client gets a stale, foreign or purged response', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => run(t, steps)),
    { numRuns: randomRuns(60) },
  );
});
