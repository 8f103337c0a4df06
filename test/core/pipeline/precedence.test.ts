import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { mountOf, openDescriptors } from '../../modules/files/disk-rig.ts';
import {
  askings,
  assertTrue,
  explain,
  createSiteParts,
  mountsOf,
  reasons,
  ruleSets,
  serve,
  shop,
  type RuleFields,
} from './explain-rig.ts';

suite('an explanation', () => {
  test('agrees with the reply for random rules, files and requests', async (t) => {
    const ground = await createSiteParts(t);
    const all = mountsOf(ground.folder);
    const sites = fc.record({ rules: ruleSets(ground.source), mounts: fc.subarray([...all]) });
    await fc.assert(
      fc.asyncProperty(
        sites,
        fc.array(askings, { minLength: 1, maxLength: 8 }),
        async ({ rules, mounts }, requests) => {
          const site = ground.siteOf(rules, mounts);
          for (const request of requests) {
            const before = ground.fetches();
            const explained = explain(site, request);
            assert.equal(ground.fetches(), before, 'an explanation asks no other server');
            assertTrue(explained, await serve(site, request));
            const { id } = explained.winner ?? {};
            const winner = rules.find((_, at) => `rule ${at + 1}` === id);
            assert.equal(winner?._unknowns_, undefined, 'a rule that waits answers nothing');
            // The same explanation after the reply has filled the caches.
            assert.deepEqual(explain(site, request), explained);
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test('reads one state of the rules, and leaves no file open', async (t) => {
    const ground = await createSiteParts(t);
    const site = ground.siteOf([], [mountOf(join(ground.folder, 'site'))]);
    const large = { path: '/b/large.bin' };
    assert.equal(explain(site, large).status, 200);
    assert.equal(openDescriptors(ground.folder), 0);
    await rm(join(ground.folder, 'site/b/large.bin'));
    assert.deepEqual(reasons(explain(site, large).tried), ['disk: site no_file']);
  });

  test('names up to a hundred candidates of a source, including the one that answers', async (t) => {
    const ground = await createSiteParts(t);
    const rules = Array.from({ length: 130 }, (_, at): RuleFields => ({ path: '/a', rve: at }));
    const mounts = Array.from({ length: 130 }, (_, at) =>
      mountOf(join(ground.folder, at === 120 ? 'site' : 'nowhere'), { name: `mount ${at}` }),
    );
    const { winner, tried } = explain(ground.siteOf(rules, mounts), { path: '/a' });
    assert.deepEqual(winner, { source: 'disk', mount: 'mount 120', status: 200 });
    const [disk, stored] = tried;
    assert.deepEqual([disk?.candidates.length, disk?.omitted], [100, 30]);
    assert.equal(disk?.candidates.at(-1)?.mount, 'mount 120');
    assert.deepEqual([stored?.candidates.length, stored?.omitted], [100, 30]);
    assert.equal(stored?.candidates[0]?.id, 'rule 130');
  });
});

test('rules with an invalid origin are named, and match nothing', async (t) => {
  const ground = await createSiteParts(t);
  const waits = { _unknowns_: { origin: 'ftp://x' } };
  const rules = [{ path: '/x', ...waits }, { path: '/x*', ...waits }, { path: '/x' }];
  const { winner, tried } = explain(ground.siteOf(rules), { path: '/x' });
  assert.equal(winner?.id, 'rule 3');
  assert.deepEqual(reasons(tried).slice(0, 3), [
    'stored: rule 3',
    'stored: rule 1 waits',
    'stored: rule 2 waits',
  ]);
});

suite('why a rule does not win', () => {
  const cases: readonly (readonly [
    code: string,
    winner: RuleFields,
    loser: RuleFields,
    sentence: string,
    lang?: string,
  ])[] = [
    [
      'language_excluded',
      { path: '/*' },
      { path: '/a', lang: 'de' },
      'The client excludes its language, de.',
      'en, de;q=0',
    ],
    [
      'any_origin',
      { path: '/*', origin: shop },
      { path: '/a' },
      `It applies to every origin; another rule applies to ${shop}.`,
    ],
    [
      'wildcard',
      { path: '/a' },
      { path: '/a*', rve: 9 },
      'It is a wildcard; another rule has exactly the path /a.',
    ],
    [
      'shorter_wildcard',
      { path: '/a*' },
      { path: '/*', rve: 9 },
      'Another rule has the longer wildcard /a*.',
    ],
    [
      'language',
      { path: '/a', lang: 'en' },
      { path: '/a', rve: 9 },
      'The client prefers en; this rule has no language.',
      'en',
    ],
    [
      'lower_rve',
      { path: '/a', rve: 0.5 },
      { path: '/a', designed_at: '2026-01-01T00:00:00.000Z' },
      'Its rve is 0; another rule has 0.5.',
    ],
    [
      'older_design',
      { path: '/a', designed_at: '2026-01-01T00:00:00.000Z' },
      { path: '/a' },
      'It was designed at an unknown time, another rule at 2026-01-01T00:00:00.000Z.',
    ],
    [
      'older_insert',
      { path: '/a' },
      { path: '/a' },
      'It was inserted as change 1, before the one with 2.',
    ],
  ];
  for (const [code, winner, loser, says, lang] of cases) {
    test(code, async (t) => {
      const ground = await createSiteParts(t);
      const explained = explain(ground.siteOf([loser, winner]), { path: '/a', lang });
      assert.deepEqual(explained.winner, { source: 'stored', id: 'rule 2', status: 200 });
      const [, stored] = explained.tried;
      const name = { kind: 'content', origin: '*' };
      assert.deepEqual(stored?.candidates, [
        { ...name, id: 'rule 2', origin: winner.origin ?? '*', path: winner.path },
        { ...name, id: 'rule 1', path: loser.path, lost: { code, says } },
      ]);
    });
  }

  test('an earlier source answers', async (t) => {
    const { folder, source, siteOf } = await createSiteParts(t);
    const far: RuleFields = { path: '/a', kind: 'content.fetch', enginedata: { source } };
    const site = siteOf([{ path: '/a' }, { path: '/*' }, far], [mountOf(join(folder, 'site'))]);
    const { tried } = explain(site, { path: '/a' });
    assert.deepEqual(reasons(tried), [
      'disk: site',
      'stored: rule 1 earlier_source',
      'stored: rule 2 wildcard',
      'content.fetch: rule 3 earlier_source',
    ]);
    assert.equal(
      tried[1]?.candidates[0]?.lost?.says,
      'The source disk comes first, and disk:site answers.',
    );
  });
});

suite('notes', () => {
  const cases: readonly (readonly [
    title: string,
    rule: RuleFields,
    status: number | null,
    notes: readonly string[],
    method?: string,
  ])[] = [
    [
      'a folder is requested without its final slash',
      { path: '/none' },
      301,
      ['It is a folder: the server redirects to /a/.'],
    ],
    [
      'the generic page is the built-in one',
      { path: '/a', engine: 'html', httpresponse: 404 },
      404,
      ['It shows the built-in generic page.'],
    ],
    [
      'the server renders the template',
      { path: '/a', engine: 'template', enginedata: { render: 'server', template: '' } },
      200,
      ['It shows the built-in generic page.', 'The server renders its template.'],
    ],
    [
      'the generic page of the rule is missing',
      { path: '/a', engine: 'html', enginedata: { page: '/none' } },
      200,
      ['It shows the built-in generic page: nothing is at /none.'],
    ],
    [
      'the rule sets the status of the generic page',
      { path: '/a', engine: 'html', httpresponse: 404, enginedata: { page: '/gone' } },
      410,
      ['It shows the generic page /gone, which rule:gone answers with 410.'],
    ],
    [
      'the generic page comes from another server',
      { path: '/a', engine: 'html', enginedata: { page: '/far' } },
      null,
      ['It shows the generic page /far, which rule:far answers.'],
    ],
    [
      'a generic page without content is requested with HEAD',
      { path: '/a', engine: 'html', httpresponse: 204, enginedata: { page: '/head' } },
      null,
      ['It shows the generic page /head, which rule:head answers.'],
    ],
    [
      'a page comes from another server',
      { path: '/a', kind: 'content.fetch', enginedata: { source: 'http://far.example/' } },
      null,
      ['The source decides the status; explain sends it no request.'],
    ],
    [
      'the status of another server is replaced',
      {
        path: '/a',
        kind: 'content.fetch',
        httpresponse: 203,
        enginedata: { source: 'http://far.example/' },
      },
      null,
      ['The source decides the status; explain sends it no request; 203 replaces its 200.'],
    ],
    [
      'a rule names no source',
      { path: '/a', kind: 'content.fetch', enginedata: {} },
      502,
      ['This page has no usable source.'],
    ],
    [
      'a breadcrumb has a target',
      { path: '/a', kind: 'resolve', enginedata: { target: '/b', status: 307 } },
      307,
      ['It leads to /b.'],
    ],
    [
      'a breadcrumb has no target',
      { path: '/a', kind: 'resolve', enginedata: {} },
      404,
      ['This breadcrumb has no target yet.'],
    ],
    [
      'a breadcrumb appends the capture to its target',
      { path: '/a*', kind: 'resolve', enginedata: { target: 'https://far.example/b*' } },
      302,
      ['It leads to https://far.example/b.'],
    ],
    ['a page is read only', { path: '/a' }, 405, ['This page can only be read.'], 'POST'],
  ];
  for (const [title, rule, status, notes, method = 'GET'] of cases) {
    test(title, async (t) => {
      const { folder, source, siteOf } = await createSiteParts(t);
      const far = { kind: 'content.fetch' } as const;
      const others: readonly RuleFields[] = [
        { id: 'gone', path: '/gone', httpresponse: 410 },
        { ...far, id: 'far', path: '/far', enginedata: { source } },
        { ...far, id: 'head', path: '/head', enginedata: { source, methods: ['HEAD'] } },
      ];
      const mounts = [mountOf(join(folder, 'docs/b'), { path: '/a/', listing: true })];
      const site = siteOf([...others, rule], rule.path.startsWith('/a') ? [] : mounts);
      const explained = explain(site, { path: '/a', method });
      assert.deepEqual([explained.status, explained.notes], [status, notes]);
    });
  }
});
