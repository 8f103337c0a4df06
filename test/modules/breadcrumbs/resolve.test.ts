import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import { replyField } from '../../../src/core/http/reply.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import type { Candidate, Rule, StoredRule } from '../../../src/modules/rules/rule.ts';
import { breadcrumbReply } from '../../../src/modules/breadcrumbs/reply.ts';
import {
  resolveKey,
  resolveVisit,
  type ResolvedBreadcrumb,
} from '../../../src/modules/breadcrumbs/resolve.ts';
import type { CandidateReads } from '../../../src/modules/rules/matcher.ts';
import { rulesAtTime, type RuleReader } from '../../../src/modules/rules/valid-rules.ts';
import {
  enginedataProblems,
  type EnginedataPlacing,
} from '../../../src/modules/rules/operations/enginedata.ts';
import { startSite } from '../../harness.ts';
import { someVisitor } from '../../visitor.ts';

/** Whether Waymark uses all members of an enginedata; unknown ones count as used. */
function validEnginedata(value: JsonObject, placing: EnginedataPlacing): boolean {
  return !enginedataProblems(value, placing).some(
    ({ waits, problem: { field, reason } }) =>
      waits !== undefined || (reason === 'missing' && /^enginedata\.\w+$/.test(field)),
  );
}

const origin = 'http://shop.example';

type Crumb = readonly [path: string, enginedata: JsonObject, more?: Partial<Rule>];

/** Reads of breadcrumbs, each inserted after the previous one. */
function rulesOf(crumbs: readonly Crumb[]): RuleReader {
  const stored = crumbs.map(([path, enginedata, more], at): StoredRule => {
    const rule = { id: `rule ${at}`, origin: '*', path, kind: 'resolve', enginedata } as const;
    return { rule: { ...rule, ...more }, seq: at + 1, insertedSeq: at + 1 };
  });
  const anyTime: CandidateReads = {
    exactRules: (wanted, path) =>
      stored
        .filter(({ rule }) => rule.origin === wanted && rule.path === path)
        .map(({ rule, seq, insertedSeq }): Candidate => {
          const { id, kind } = rule;
          const nothing = { lang: undefined, rve: undefined, designedAtMs: undefined };
          return { id, seq, insertedSeq, origin: wanted, path, kind, ...nothing };
        }),
    wildcardRules: () => [],
  };
  const ruleOf: RuleReader['ruleOf'] = ({ id }) => stored.find(({ rule }) => rule.id === id);
  return rulesAtTime({ anyTime, ruleOf }, 0);
}

function resolve(crumbs: readonly Crumb[], query = '') {
  const key = crumbs[0]?.[0] ?? 'none';
  return atOnce(resolveKey(rulesOf(crumbs), { key, ...visitFrom(origin, query) }));
}

function visitFrom(from: string, query = '') {
  return { origin: from, query, fields: {}, visitor: someVisitor() };
}

/** Requires that resolving is synchronous, because all facts about the visitor are known. */
function atOnce(resolved: ResolvedBreadcrumb | Promise<ResolvedBreadcrumb>): ResolvedBreadcrumb {
  assert.ok(!(resolved instanceof Promise));
  return resolved;
}

suite('the result of a breadcrumb', () => {
  const cases: readonly (readonly [
    title: string,
    enginedata: JsonObject,
    more: Partial<Rule>,
    comes: { readonly status: number; readonly target?: string; readonly content?: string },
  ])[] = [
    ['a path', { target: '/offers/' }, {}, { status: 302, target: '/offers/' }],
    [
      'another site',
      { target: 'https://other.example' },
      {},
      { status: 302, target: 'https://other.example/' },
    ],
    [
      'a path that is not ASCII',
      { target: '/é?ü#ö' },
      {},
      { status: 302, target: '/%C3%A9?%C3%BC#%C3%B6' },
    ],
    [
      'a host that is not ASCII',
      { target: 'https://bücher.example/' },
      {},
      { status: 302, target: 'https://xn--bcher-kva.example/' },
    ],
    ...[301, 302, 303, 307, 308].map(
      (status) =>
        [
          `a redirect with ${status}`,
          { target: '/x' },
          { httpresponse: status },
          { status, target: '/x' },
        ] as const,
    ),
    [
      'a target with a status that is not a redirect',
      { target: '/x' },
      { httpresponse: 404 },
      { status: 302, target: '/x' },
    ],
    [
      'a target whose own status wins over that of the rule',
      { target: '/x', status: 308 },
      { httpresponse: 301 },
      { status: 308, target: '/x' },
    ],
    ['a page', { html: '<b>hi</b>' }, {}, { status: 200, content: '<b>hi</b>' }],
    ['an empty page', { html: '' }, {}, { status: 200, content: '' }],
    ['a page with a status', { html: 'x' }, { httpresponse: 410 }, { status: 410, content: 'x' }],
    ['a target before a page', { target: '/x', html: 'x' }, {}, { status: 302, target: '/x' }],
    ['a bare status', { status: 410 }, {}, { status: 410 }],
    ['a bare status of the rule', {}, { httpresponse: 204 }, { status: 204 }],
  ];
  for (const [title, enginedata, more, comes] of cases) {
    test(title, () => {
      const { id, matched, contenttype, status, target, content } = resolve([
        ['k', enginedata, more],
      ]);
      const type = comes.content === undefined ? undefined : 'text/html; charset=utf-8';
      assert.deepEqual([id, matched, contenttype], ['rule 0', 'default', type]);
      const resolution = { status, target, content };
      assert.deepEqual(resolution, { target: undefined, content: undefined, ...comes });
    });
  }

  test('is not_found without a target, or with a redirect status alone', () => {
    for (const [enginedata, more] of [
      [{}, {}],
      [{ other: 1 }, {}],
      [{}, { httpresponse: 301 }],
      [{ status: 302 }, { httpresponse: 410 }],
    ] as const) {
      assert.throws(() => resolve([['k', enginedata, more]]), { code: 'not_found' });
    }
    assert.throws(() => resolve([]), { code: 'not_found' });
  });

  test('prefers a rule for the origin, and uses resolve rules only', () => {
    const rules = rulesOf([
      ['k', { target: '/everywhere' }],
      ['k', { target: '/here' }, { origin }],
      ['k', { target: '/elsewhere' }, { origin: 'http://other.example' }],
      ['/page', {}, { kind: 'content', content: 'x' }],
    ]);
    const targetAt = (at: string) =>
      atOnce(resolveKey(rules, { key: 'k', ...visitFrom(at) })).target;
    assert.equal(targetAt(origin), '/here');
    assert.equal(targetAt('http://third.example'), '/everywhere');
    assert.throws(() => resolveKey(rules, { key: '/page', ...visitFrom(origin) }), {
      code: 'not_found',
    });
  });
});

suite('keys that lead on to keys', () => {
  const chain = (hops: number, last: JsonObject = { target: '/end' }): readonly Crumb[] => [
    ...Array.from({ length: hops }, (_, at): Crumb => [
      `k${at}`,
      { target: `key:k${at + 1}`, forward_query: true },
    ]),
    [`k${hops}`, last],
  ];

  test('give the result of the last one', () => {
    const { id, target } = resolve(chain(3), 'a=1');
    assert.deepEqual([id, target], ['rule 3', '/end']);
    const html = resolve(chain(1, { html: 'x', status: 410 }));
    assert.deepEqual([html.status, html.content], [410, 'x']);
  });

  test('may lead over eight keys, both from a key and from a visit', () => {
    const visit = (crumbs: readonly Crumb[]) => {
      const rules = rulesOf(crumbs);
      const [first] = rules.exactRules('*', crumbs[0]?.[0] ?? '');
      const stored = first && rules.ruleOf(first);
      assert.ok(stored);
      return atOnce(resolveVisit(rules, { stored, capture: undefined }, visitFrom(origin)));
    };
    for (const come of [resolve, visit]) {
      assert.equal(come(chain(8)).target, '/end');
      assert.throws(() => come(chain(9)), { code: 'unprocessable' });
    }
  });

  test('fail if they lead in a circle or to a missing key', () => {
    const circles: readonly (readonly Crumb[])[] = [
      [['a', { target: 'key:a' }]],
      [
        ['a', { target: 'key:b' }],
        ['b', { target: 'key:a' }],
      ],
      [
        ['in', { target: 'key:a' }],
        ['a', { target: 'key:b' }],
        ['b', { target: 'key:a' }],
      ],
    ];
    for (const circle of circles) {
      assert.throws(() => resolve(circle), { code: 'unprocessable', message: /circle/ });
    }
    assert.throws(() => resolve([['a', { target: 'key:none' }]]), { code: 'not_found' });
  });
});

suite('the query of a visitor', () => {
  const cases: readonly (readonly [target: string, query: string, location: string])[] = [
    ['/a', 'x=1', '/a?x=1'],
    ['/a?y=2', 'x=1', '/a?y=2&x=1'],
    ['/a#there', 'x=1', '/a?x=1#there'],
    ['/a?y#there', 'x=1&x=2', '/a?y&x=1&x=2#there'],
    ['https://other.example', 'x=1', 'https://other.example/?x=1'],
    ['/a', '', '/a'],
    ['/a', 'u=//evil.example/', '/a?u=//evil.example/'],
  ];
  test('is forwarded only with forward_query', () => {
    for (const [target, query, location] of cases) {
      const forwarded = resolve([['k', { target, forward_query: true }]], query);
      assert.equal(forwarded.target, location);
      for (const forward_query of [false, 'yes', 1]) {
        const kept = resolve([['k', { target, forward_query }]], query);
        assert.equal(kept.target, resolve([['k', { target }]]).target);
      }
    }
  });

  test('cannot change the host or path of a target', () => {
    const pieces = fc.constantFrom(
      ...['/', '//', '\\', '@', ':', '.', '..', '%2e', '?', '#', '&', '\r\n', '\t', ' ', 'é'],
      ...['evil.example', 'http://evil.example', '%0d%0aX: y', '\ud800', '\u{1f600}', '\u3002'],
    );
    const texts = fc
      .array(fc.oneof(pieces, fc.string({ unit: 'grapheme' })), { maxLength: 8 })
      .map((parts) => parts.join(''));
    const starts = fc.constantFrom('/', '/a', 'https://other.example', 'https://other.example/b');
    fc.assert(
      fc.property(starts, texts, texts, (start, rest, query) => {
        const target = start.endsWith('e') ? `${start}/${rest}` : start + rest;
        fc.pre(validEnginedata({ target }, { kind: 'resolve', engine: undefined }));
        const resolution = resolve([['k', { target, forward_query: true }]], query);
        const location =
          replyField(breadcrumbReply(resolution, visitFrom(origin)), 'location') ?? '';
        assert.match(location, /^[\x21-\x7e]+$/);
        const wanted = start.startsWith('/') ? origin : 'https://other.example';
        assert.equal(new URL(location, `${origin}/svc1/userinterface.link.htm`).origin, wanted);
      }),
      { numRuns: 3_000 },
    );
  });
});

suite('the reply to a visitor', () => {
  const statusAndBody = (crumb: Crumb) => {
    const { status, body, fields } = breadcrumbReply(resolve([crumb]), visitFrom(origin));
    return { status, text: body.kind === 'bytes' ? body.bytes.toString() : '', fields };
  };

  test('of a redirect has a small page, which shows its target as text', () => {
    const { text, fields } = statusAndBody(['k', { target: `/a?b="><script>'&c` }]);
    assert.match(text, /<a href="\/a\?b=%22%3E%3Cscript%3E%27&amp;c">/);
    assert.doesNotMatch(text, /<script/);
    assert.equal(replyField({ fields }, 'cache-control'), 'private, no-store');
    assert.equal(replyField({ fields }, 'vary'), 'Accept');
    assert.equal(replyField({ fields }, 'content-length'), String(Buffer.byteLength(text)));
  });

  test("of a page has the rule's media type, any other reply has text/html", () => {
    const type = (crumb: Crumb) =>
      replyField({ fields: statusAndBody(crumb).fields }, 'content-type');
    const plain = { contenttype: 'text/plain' };
    assert.equal(type(['k', { html: 'x' }, plain]), 'text/plain');
    assert.equal(type(['k', { html: 'x' }]), 'text/html; charset=utf-8');
    assert.equal(type(['k', { target: '/x' }, plain]), 'text/html; charset=utf-8');
    assert.equal(type(['k', { status: 410 }, plain]), 'text/html; charset=utf-8');
  });

  test('has no content for a status without content', async (t) => {
    const statuses = [204, 205, 304, 410];
    const site = await startSite(t, {
      rules: statuses.map((status) => ({
        path: `/${status}`,
        kind: 'resolve',
        enginedata: { html: 'content', status },
      })),
    });
    for (const status of statuses) {
      const answer = await site.raw(
        `GET /${status} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      const [head = '', body] = answer.split('\r\n\r\n');
      assert.ok(head.startsWith(`HTTP/1.1 ${status} `), answer);
      const length = /^content-length: (\d+)$/im.exec(head)?.[1];
      const wanted = { 204: undefined, 205: '0', 304: undefined, 410: '7' }[status];
      assert.equal(length, wanted, String(status));
      assert.equal(body, status === 410 ? 'content' : '');
    }
  });
});
