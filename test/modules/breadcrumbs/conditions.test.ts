import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Visitor } from '../../../src/core/http/visitor.ts';
import { EvaluationContext } from '../../../src/core/pipeline/conditions/condition.ts';
import { conditionTypes, parseConditions } from '../../../src/core/pipeline/conditions/table.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { unknownAddress } from '../../../src/core/values/network/peer.ts';
import {
  type TestRequest,
  createSiteParts,
  explain,
  serve,
  shop,
} from '../../core/pipeline/explain-rig.ts';
import { someVisitor } from '../../visitor.ts';

type Who = Omit<TestRequest, 'path'>;

/** A condition, requests that meet it, and requests that do not, with the explanation. */
const cases: readonly (readonly [
  condition: JsonObject,
  holds: readonly Who[],
  fails: readonly (readonly [who: Who, says: string])[],
])[] = [
  [
    { user: ['ann', 'bob'] },
    [{ visitor: { user: { name: 'bob', roles: [] } } }],
    [
      [{}, 'It applies to the users ann, bob; the visitor is not signed in.'],
      [
        { visitor: { user: { name: 'Ann', roles: ['ann'] } } },
        'It applies to the users ann, bob; the visitor is Ann.',
      ],
    ],
  ],
  [
    { user: '*' },
    [{ visitor: { user: { name: 'eve', roles: [] } } }],
    [[{}, 'It applies to signed-in users; the visitor is not signed in.']],
  ],
  [
    { role: ['editor', 'owner'] },
    [{ visitor: { user: { name: 'ann', roles: ['x', 'owner'] } } }],
    [
      [{}, 'It applies to users with the role editor, owner; the visitor is not signed in.'],
      [
        { visitor: { user: { name: 'editor', roles: [] } } },
        'It applies to users with the role editor, owner; the visitor has no roles.',
      ],
      [
        { visitor: { user: { name: 'ann', roles: ['reader'] } } },
        'It applies to users with the role editor, owner; the visitor has reader.',
      ],
    ],
  ],
  [
    { country: ['ch', 'LI'] },
    [{ visitor: { country: 'CH' } }, { visitor: { country: 'LI' } }],
    [
      [{}, "It applies to visitors in CH, LI; the visitor's location is unknown."],
      [{ visitor: { country: 'DE' } }, 'It applies to visitors in CH, LI; the visitor is in DE.'],
    ],
  ],
  [
    { lang: 'de' },
    [{ lang: 'de' }, { lang: 'en;q=0.5, de-CH' }, { lang: 'DE' }, { lang: '*, de;q=0.1' }],
    [
      [{}, 'It applies to visitors who prefer de; the visitor prefers no language.'],
      [{ lang: 'en, de;q=0.9' }, 'It applies to visitors who prefer de; the visitor prefers en.'],
      [{ lang: 'den' }, 'It applies to visitors who prefer de; the visitor prefers den.'],
      [
        { lang: 'de;q=0' },
        'It applies to visitors who prefer de; the visitor prefers no language.',
      ],
    ],
  ],
  [
    { lang: ['de-CH', 'fr'] },
    [{ lang: 'de-ch' }, { lang: 'fr-CA' }],
    [[{ lang: 'de' }, 'It applies to visitors who prefer de-ch, fr; the visitor prefers de.']],
  ],
  [
    { device: ['mobile', 'tablet'] },
    [{ visitor: { devices: ['mobile', 'ios'] } }, { visitor: { devices: ['tablet'] } }],
    [
      [{}, "It applies to the devices mobile, tablet; the visitor's device is unknown."],
      [
        { visitor: { devices: ['desktop', 'macos'] } },
        "It applies to the devices mobile, tablet; the visitor's device is desktop, macos.",
      ],
    ],
  ],
  [
    { region: ['CH-ZH', 'Vaud'] },
    [{ visitor: { regions: ['zh', 'ch-zh', 'zurich'] } }, { visitor: { regions: ['vaud'] } }],
    [
      [{}, "It applies to visitors in ch-zh, vaud; the visitor's location is unknown."],
      [
        { visitor: { regions: ['be'] } },
        'It applies to visitors in ch-zh, vaud; the visitor is in be.',
      ],
    ],
  ],
  [
    { city: 'Zürich' },
    [{ visitor: { cities: ['zurich', 'zürich'] } }],
    [
      [
        { visitor: { cities: ['bern'] } },
        'It applies to visitors in zürich; the visitor is in bern.',
      ],
    ],
  ],
  [
    { place: ['shop-7', 'shop-8'] },
    [{ visitor: { place: 'shop-8' } }],
    [
      [{}, 'It applies to nodes at shop-7, shop-8; this node has no [node] place.'],
      [
        { visitor: { place: 'shop-9' } },
        'It applies to nodes at shop-7, shop-8; this node is at shop-9.',
      ],
    ],
  ],
  [
    { caller: ['navigation', 'iframe'] },
    [
      { visitor: { fields: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } } },
      { visitor: { fields: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' } } },
      { visitor: { fields: { accept: 'text/html,*/*;q=0.8' } } },
    ],
    [
      [
        { visitor: { fields: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' } } },
        'It applies to callers of the kind navigation, iframe; this request is of the kind image.',
      ],
      [
        { visitor: { fields: { 'sec-fetch-dest': 'constructor' } } },
        'It applies to callers of the kind navigation, iframe; this request is of the kind fetch.',
      ],
      [
        { visitor: { fields: { accept: 'image/avif,image/webp,*/*' } } },
        'It applies to callers of the kind navigation, iframe; this request is of the kind image.',
      ],
      [
        { visitor: { fields: { accept: '*/*' } } },
        'It applies to callers of the kind navigation, iframe; this request is of the kind api.',
      ],
    ],
  ],
  [
    { referer: ['news.example', '*.shop.example'] },
    [
      { visitor: { fields: { referer: 'https://NEWS.example/a' } } },
      { visitor: { fields: { referer: 'http://www.shop.example:81/' } } },
    ],
    [
      [
        {},
        'It applies to visits from pages of news.example, *.shop.example; the request has no Referer.',
      ],
      [
        { visitor: { fields: { referer: 'https://shop.example/' } } },
        'It applies to visits from pages of news.example, *.shop.example; this visit comes from shop.example.',
      ],
      [
        { visitor: { fields: { referer: 'javascript:news.example' } } },
        'It applies to visits from pages of news.example, *.shop.example; the request has no Referer.',
      ],
    ],
  ],
  [
    { query: { ref: ['a', 'b c'], 'x&y': '*' } },
    [{ query: 'ref=b+c&x%26y' }, { query: 'x%26y=1&ref=z&ref=a' }],
    [
      [{}, 'It needs ref=a or b c and x&y in the query.'],
      [{ query: 'ref=a' }, 'It needs ref=a or b c and x&y in the query.'],
      [{ query: 'ref=A&x%26y=1' }, 'It needs ref=a or b c and x&y in the query.'],
    ],
  ],
  [
    { ip: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1'] },
    [
      { visitor: { address: '10.1.2.3' } },
      { visitor: { address: '192.0.2.1' } },
      { visitor: { address: '2001:db8:1::1' } },
      { visitor: { address: '::ffff:10.1.2.3' } },
    ],
    [
      [
        { visitor: { address: '192.0.2.2' } },
        "It applies to addresses in 10.0.0.0/8, 2001:db8::/32, 192.0.2.1; the visitor's address is 192.0.2.2.",
      ],
      [
        { visitor: { address: unknownAddress } },
        "It applies to addresses in 10.0.0.0/8, 2001:db8::/32, 192.0.2.1; the visitor's address is unknown.",
      ],
    ],
  ],
  [
    { after: '2026-02-01', before: '2026-03-01T00:00:00+01:00' },
    [
      { visitor: { nowMs: Date.UTC(2026, 1, 1) } },
      { visitor: { nowMs: Date.UTC(2026, 1, 28, 22, 59, 59, 999) } },
    ],
    [
      [
        { visitor: { nowMs: Date.UTC(2026, 1, 1) - 1 } },
        'It begins at 2026-02-01T00:00:00.000Z; it is 2026-01-31T23:59:59.999Z.',
      ],
      [
        { visitor: { nowMs: Date.UTC(2026, 1, 28, 23) } },
        'It ended at 2026-02-28T23:00:00.000Z; it is 2026-02-28T23:00:00.000Z.',
      ],
    ],
  ],
  [{ percent: 100 }, [{ visitor: { seed: 1 } }, { visitor: { seed: 2 } }], []],
  [
    { percent: 0 },
    [],
    [
      [
        { visitor: { seed: 1 } },
        'It applies to 0 % of the visitors, the buckets from 0 to 0; this visitor has the bucket 99.4193.',
      ],
    ],
  ],
  [{}, [{}, { lang: 'de' }], []],
  [
    { user: Array.from({ length: 20 }, (_, at) => `u${at}`) },
    [],
    [
      [
        {},
        'It applies to the users u0, u1, u2, u3, u4, u5, u6, u7 and 12 more; ' +
          'the visitor is not signed in.',
      ],
    ],
  ],
];

for (const [condition, holds, fails] of cases) {
  const written = JSON.stringify(condition).slice(0, 70);
  test(`${written} holds for matching visitors, and explain says why for others`, async (t) => {
    const enginedata = { target: '/all', when: [{ if: condition, target: '/some', status: 307 }] };
    const site = (await createSiteParts(t)).siteOf([
      { path: '/crumb', kind: 'resolve', enginedata },
    ]);
    const ask = async (who: Who) => {
      const asking = { ...who, path: '/crumb' };
      const { tried } = explain(site, asking);
      const [branch] = tried[1]?.candidates[0]?.branches ?? [];
      const { status } = await serve(site, asking);
      return { status, lost: branch?.lost };
    };
    for (const who of holds) {
      assert.deepEqual(await ask(who), { status: 307, lost: undefined }, JSON.stringify(who));
    }
    for (const [who, says] of fails) {
      const { status, lost } = await ask(who);
      assert.equal(status, 302, JSON.stringify(who));
      assert.equal(lost?.says, says);
      assert.ok(Object.hasOwn(condition, lost.code), lost.code);
    }
  });
}

suite('a condition declares what it reads', () => {
  for (const { name } of conditionTypes) {
    test(`of the visitor, in needs and Vary: ${name}`, () => {
      const written = cases.filter(([condition]) => name in condition);
      assert.notEqual(written.length, 0, 'has no case above');
      for (const [{ [name]: value = null }, holds, fails] of written) {
        for (const { visitor, lang } of [...holds, ...fails.map(([who]) => who)]) {
          const recorded = recordReads(someVisitor({ ...visitor, lang }));
          const [condition] = parseConditions({ [name]: value }).conditions;
          const context = new EvaluationContext('rule', { visitor: recorded.visitor, query: '' });
          if (condition?.holds(context) === false) condition.explain(context);
          const { needs = {}, vary = [] } = condition?.type ?? {};
          const declared = [...Object.keys(needs), ...vary.map((field) => field.toLowerCase())];
          for (const read of recorded.reads) assert.ok(declared.includes(read), read);
        }
      }
    });
  }
});

/** A visitor, and the names of the needs and request fields behind the properties that are read. */
function recordReads(visitor: Visitor): { readonly visitor: Visitor; readonly reads: Set<string> } {
  const reads = new Set<string>();
  const reading =
    <A extends unknown[], T>(read: (...args: A) => T, ...names: readonly string[]) =>
    (...args: A): T => {
      for (const name of names) reads.add(name);
      return read(...args);
    };
  return {
    reads,
    visitor: {
      ...visitor,
      user: reading(() => visitor.user(), 'user', 'authorization', 'cookie'),
      location: reading(() => visitor.location(), 'location'),
      language: reading(() => visitor.language(), 'accept-language'),
      devices: reading(() => visitor.devices(), 'user-agent'),
      bucket: reading((rule: string) => visitor.bucket(rule), 'cookie', 'user-agent'),
      field(name) {
        reads.add(name);
        return visitor.field(name);
      },
    },
  };
}

suite('branches', () => {
  const siteOf = async (t: Parameters<typeof createSiteParts>[0], enginedata: JsonObject) =>
    (await createSiteParts(t)).siteOf([{ path: '/crumb', kind: 'resolve', enginedata }]);
  const branchesOf = (site: Awaited<ReturnType<typeof siteOf>>, who: Who = {}) =>
    (explain(site, { ...who, path: '/crumb' }).tried[1]?.candidates[0]?.branches ?? []).map(
      ({ branch, lost }) => (lost === undefined ? branch : `${branch} ${lost.code}`),
    );

  test('are tried in order, with all conditions, and explain says why each lost', async (t) => {
    const site = await siteOf(t, {
      target: '/all',
      when: [
        { if: { country: 'CH', lang: 'de' }, target: '/a' },
        { if: { weekday: 'monday' }, target: '/b' },
        { if: { lang: 'fr' }, target: '/c' },
        { if: {}, target: '/d' },
        { if: {}, target: '/e' },
      ],
    });
    const fromCH = { visitor: { country: 'CH' } };
    const rest = ['when[4] earlier_branch', 'default earlier_branch'];
    assert.deepEqual(branchesOf(site, fromCH), [
      'when[0] lang',
      'when[1] invalid',
      'when[2] lang',
      'when[3]',
      ...rest,
    ]);
    assert.deepEqual(branchesOf(site, { ...fromCH, lang: 'de' }), [
      'when[0]',
      'when[1] earlier_branch',
      'when[2] earlier_branch',
      'when[3] earlier_branch',
      ...rest,
    ]);
    assert.equal(branchesOf(site, { lang: 'de' })[0], 'when[0] country');
  });

  test('split visitors by percentage, each visitor always the same way', async (t) => {
    const site = await siteOf(t, {
      status: 404,
      when: [
        { if: { percent: 30 }, status: 401 },
        { if: { percent: 30 }, status: 402 },
        { if: { percent: 20, lang: 'de' }, status: 403 },
      ],
    });
    const counts = new Map<number, number>();
    for (let seed = 0; seed < 4_000; seed += 1) {
      const asking = { path: '/crumb', visitor: { seed } };
      const { status } = await serve(site, asking);
      assert.equal((await serve(site, asking)).status, status);
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    const share = (status: number) => (counts.get(status) ?? 0) / 40;
    assert.ok(Math.abs(share(401) - 30) < 3, `${share(401)} %`);
    assert.ok(Math.abs(share(402) - 30) < 3, `${share(402)} %`);
    assert.ok(Math.abs(share(404) - 40) < 3, `${share(404)} %`);
  });

  test('of two breadcrumbs split the same visitors differently', async (t) => {
    const enginedata = { status: 404, when: [{ if: { percent: 50 }, status: 401 }] };
    const site = (await createSiteParts(t)).siteOf(
      ['/one', '/two'].map((path) => ({ path, kind: 'resolve', enginedata })),
    );
    const ways = new Set<string>();
    for (let seed = 0; seed < 100; seed += 1) {
      const one = await serve(site, { path: '/one', visitor: { seed } });
      const two = await serve(site, { path: '/two', visitor: { seed } });
      ways.add(`${one.status} ${two.status}`);
    }
    assert.equal(ways.size, 4);
  });

  test('may lead to another key, whose branches explain shows as well', async (t) => {
    const ground = await createSiteParts(t);
    const site = ground.siteOf([
      {
        path: 'start',
        kind: 'resolve',
        enginedata: { target: '/all', when: [{ if: { country: 'CH' }, target: 'key:swiss' }] },
      },
      {
        path: 'swiss',
        kind: 'resolve',
        enginedata: { target: '/de', when: [{ if: { lang: 'fr' }, target: '/fr' }] },
      },
    ]);
    const visitor = someVisitor({ country: 'CH', lang: 'fr' });
    const request = { key: 'start', origin: shop, query: '', fields: {}, visitor };
    const { winner, notes, tried } = site.explainKey(request);
    assert.equal(winner?.id, 'rule 2');
    assert.deepEqual(notes, ['It leads to /fr.']);
    assert.deepEqual(
      tried.map(({ key, candidates }) => [
        key,
        candidates[0]?.branches?.map(({ lost }) => lost?.code),
      ]),
      [
        ['start', [undefined, 'earlier_branch']],
        ['swiss', [undefined, 'earlier_branch']],
      ],
    );
    const resolved = await site.resolve({
      ...request,
      client: { fields: {}, visitor, isForeign: false },
    });
    assert.deepEqual(
      [resolved.id, resolved.matched, resolved.target],
      ['rule 2', 'when[0]', '/fr'],
    );
  });
});

suite('the capture of a wildcard', () => {
  const cases: readonly (readonly [path: string, target: string, visited: string, to: string])[] = [
    ['/old/*', '/new/*', '/old/a/b', '/new/a/b'],
    ['/old/*', '/new/*', '/old/', '/new/'],
    ['/old/*', '/new', '/old/a', '/new'],
    ['/old/*', 'https://far.example/*', '/old/a é?b#c', 'https://far.example/a%20%C3%A9%3Fb%23c'],
    ['/old/*', '/search?q=*', '/old/a&b=c/d', '/search?q=a%26b%3Dc%2Fd'],
    ['/go*', 'https://far.example/*', '/go//evil.example/', 'https://far.example///evil.example/'],
    ['/go*', 'https://far.example/*', '/go@evil.example/', 'https://far.example/@evil.example/'],
    ['/go*', '/*', '/go//evil.example', 'nowhere'],
    ['/go*', '/*', '/go/evil.example', 'nowhere'],
    ['/go*', '/.*', '/go./a', 'nowhere'],
    ['/go*', '/a/*', '/go..', 'nowhere'],
    ['/go', '/a*', '/go', '/a*'],
  ];
  for (const [path, target, visited, to] of cases) {
    test(`${path} to ${target}, visited as ${visited}`, async (t) => {
      const rule = { path, kind: 'resolve', enginedata: { target } } as const;
      const site = (await createSiteParts(t)).siteOf([rule]);
      const { notes, status } = explain(site, { path: visited });
      if (to === 'nowhere') assert.equal(status, 404);
      else assert.deepEqual(notes, [`It leads to ${to}.`]);
    });
  }
});
