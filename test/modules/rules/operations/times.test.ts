import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';

const berlin = '2999-12-01T08:00[Europe/Berlin]';
const stored = '2999-12-01T07:00:00.000Z[Europe/Berlin]';
const rule = 'svc1.userinterface';

async function explained(site: TestSite, v: object): Promise<readonly string[]> {
  const { data } = await site.call(`${rule}.explain`, v);
  const candidates = data.tried.flatMap((source: { candidates: object[] }) => source.candidates);
  return candidates.map(({ lost }: { lost?: { code: string } }) => lost?.code ?? 'answers');
}

suite('from and until of a page rule', () => {
  test('are stored in UTC with their time zone, and can be sent back', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(`${rule}.insert`, { path: '/a', content: 'a', from: berlin });
    assert.equal((await fetch(`${site.url}/a`)).status, 404);
    const { id } = data;
    const read = async () => (await site.call(`${rule}.read`, { id })).data;
    assert.equal((await read()).from, stored);
    const again = await site.call(`${rule}.edit`, { id, from: stored, until: '2999-12-02T00:00Z' });
    assert.equal(again.error, undefined);
    assert.deepEqual(
      [(await read()).from, (await read()).until],
      [stored, '2999-12-02T00:00:00.000Z'],
    );
    const freed = await site.call(`${rule}.edit`, { id, from: null });
    assert.equal(await (await fetch(`${site.url}/a`)).text(), 'a');
    const undo = { id, from: String(freed.data.seq) };
    const { digest: confirm } = (await site.call(`${rule}.invalidate`, undo)).data;
    await site.call(`${rule}.invalidate`, { ...undo, confirm });
    assert.equal((await fetch(`${site.url}/a`)).status, 404, 'the undo brings from back');
  });

  test('never extend what a rule answers if they are not valid', async (t) => {
    const site = await startSite(t);
    for (const [until, says] of [
      ['2999-12-01T08:00', /Which time zone/],
      ['2027-03-28T02:30[Europe/Berlin]', /skip 2027-03-28T02:30/],
      ['2999-12-01T08:00[Europe/Nowhere]', /no time zone/],
      ['soon', /no date-time/],
      [5, /has to be/],
    ] as const) {
      const { data } = await site.call(`${rule}.insert`, { path: '/a', content: 'a', until });
      const [problem] = data.problems;
      assert.equal(problem.field, 'until');
      assert.match(problem.message, says);
      assert.deepEqual(data.unknowns, ['until']);
    }
    assert.equal((await fetch(`${site.url}/a`)).status, 404);
    assert.deepEqual(new Set(await explained(site, { path: '/a' })), new Set(['waits']));
  });

  test('say so if the rule never answers', async (t) => {
    const site = await startSite(t);
    const v = { path: '/a', content: 'a', from: berlin, until: '2999-12-01T07:00Z' };
    const { data } = await site.call(`${rule}.insert`, v);
    assert.deepEqual(
      data.problems.map(({ field, reason }: Record<string, string>) => [field, reason]),
      [['until', 'no_effect']],
    );
  });

  test('decide at the time that an explanation or a list names', async (t) => {
    const rules = [
      { path: '/a', content: 'old', until: '2998-01-01T00:00Z' },
      { path: '/a', content: 'new', from: '2998-01-01T00:00Z' },
    ];
    const site = await startSite(t, { rules });
    assert.equal(await (await fetch(`${site.url}/a`)).text(), 'old');
    assert.deepEqual(await explained(site, { path: '/a' }), ['answers', 'not_yet']);
    const later = { path: '/a', at: '2998-01-01T00:00:00Z' };
    assert.deepEqual(await explained(site, later), ['answers', 'ended']);
    for (const [at, content] of [
      ['2997-12-31T23:59:59Z', 3],
      ['2998-01-01T01:00[Europe/Berlin]', 3],
    ] as const) {
      const { data } = await site.call(`${rule}.list`, { valid_at: at });
      assert.deepEqual([data.rows.length, data.rows[0].content_bytes], [1, content]);
    }
    assert.equal((await site.call(`${rule}.list`, { valid_at: 'x' })).error?.code, 'invalid');
  });

  test('hide no other rule from every visitor', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a', content: 'always' }] });
    const v = { path: '/a', content: 'sale', rve: 1, until: berlin };
    const { data } = await site.call(`${rule}.insert`, v);
    assert.deepEqual(data.problems ?? [], []);
  });

  test('are as they were at a moment of the past', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(`${rule}.insert`, { path: '/a', content: 'a' });
    const { seq, id } = data;
    await site.call(`${rule}.edit`, { id, until: '2020-01-01T00:00Z' });
    assert.deepEqual(await explained(site, { path: '/a' }), ['ended']);
    assert.deepEqual(await explained(site, { path: '/a', as_of: String(seq) }), ['answers']);
  });

  test('are listed in order, in pages, live and in a draft', async (t) => {
    const rules = [
      { path: '/a', content: 'a', from: '2999-01-02T00:00Z', until: '2999-01-04T00:00Z' },
      { path: '/b', content: 'b', until: '2999-01-03T01:00[Europe/Berlin]' },
      { path: '/past', content: 'c', until: '2020-01-01T00:00Z' },
    ];
    const site = await startSite(t, { rules });
    const all = ['/a begins', '/b ends', '/a ends'];
    const list = async (v: object, options = {}) => {
      const { data } = await site.call(`${rule}.times`, v, options);
      return {
        ...data,
        shown: data.rows.map((row: Record<string, string>) => `${row.path} ${row.what}`),
      };
    };
    assert.deepEqual((await list({})).shown, all);
    const first = await list({ limit: 2 });
    assert.deepEqual(first.shown, all.slice(0, 2));
    assert.equal(first.rows[1].time_zone, 'Europe/Berlin');
    assert.deepEqual((await list({ after: first.next })).shown, all.slice(2));
    const bounds = { from: '2019-01-01T00:00Z', until: '2999-01-03T00:00Z' };
    assert.deepEqual((await list(bounds)).shown, ['/past ends', '/a begins']);
    await site.call('svc1.draft.insert', { name: 'd' });
    await site.call(`${rule}.insert`, { path: '/d', content: 'd', from: berlin }, { draft: 'd' });
    assert.deepEqual((await list({}, { draft: 'd' })).shown, [...all, '/d begins']);
    assert.deepEqual((await list({})).shown, all);
  });

  test('count for visitors to the millisecond, and for caches', async (t) => {
    const headers = { 'Cache-Control': 'max-age=3600' };
    const site = await startSite(t, { rules: [{ path: '/*', content: 'else', headers }] });
    const untilMs = Date.now() + 1_200;
    const until = new Date(untilMs).toISOString();
    await site.call(`${rule}.insert`, { path: '/a', content: 'a', headers, until });
    const seen = new Set<string>();
    for (let isOver = false; !isOver;) {
      const askedMs = Date.now();
      const answer = await fetch(`${site.url}/a`);
      const text = await answer.text();
      seen.add(text);
      isOver = askedMs >= untilMs;
      if (isOver) assert.equal(text, 'else');
      if (Date.now() < untilMs) assert.equal(text, 'a');
      if (text === 'a') assert.equal(answer.headers.get('cache-control'), 'max-age=0');
      else assert.equal(answer.headers.get('cache-control'), 'max-age=3600');
    }
    assert.deepEqual([...seen], ['a', 'else']);
  });

  test('count for caches of a page that shows another one, too', async (t) => {
    const headers = { 'Cache-Control': 'max-age=3600' };
    const until = new Date(Date.now() + 600_000).toISOString();
    const generic = { kind: 'content', engine: 'html', enginedata: { page: '/shell' } };
    const site = await startSite(t, {
      ini: '[disk.www]\nroot = www\nredirects = _redirects\n',
      files: { 'www/_redirects': '/alias /shell 200!\n/always /fixed 200!\n' },
      rules: [
        { path: '/shell', kind: 'content', content: '<main>', headers, until },
        { path: '/fixed', kind: 'content', content: 'fixed', headers },
        { path: '/app', ...generic },
      ],
    });
    for (const [path, isLimited] of [
      ['/shell', true],
      ['/app', true],
      ['/alias', true],
      ['/always', false],
    ] as const) {
      const answer = await fetch(site.url + path);
      assert.equal(answer.status, 200, path);
      const seconds = Number(/max-age=(\d+)/.exec(answer.headers.get('cache-control') ?? '')?.[1]);
      assert.equal(seconds < 600, isLimited, `${path}: ${answer.headers.get('cache-control')}`);
    }
  });

  test('limit breadcrumbs, by their own path and by their keys', async (t) => {
    const to = (target: string) => ({ kind: 'resolve', enginedata: { target } });
    const rules = [
      { path: '/go', ...to('key:shop') },
      { path: 'shop', ...to('/old') },
      { path: 'shop', rve: 1, ...to('/winter'), from: berlin },
    ];
    const site = await startSite(t, { rules });
    const answer = await fetch(`${site.url}/go`, { redirect: 'manual' });
    assert.equal(answer.headers.get('location'), '/old');
    const k = { k: 'shop', origin: site.url };
    assert.deepEqual(await explained(site, k), ['answers', 'not_yet']);
    assert.deepEqual(await explained(site, { ...k, at: '2999-12-01T07:00:00Z' }), [
      ...['answers', 'lower_rve'],
    ]);
  });
});
