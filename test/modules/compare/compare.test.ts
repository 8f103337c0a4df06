import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../harness.ts';

const rule = 'svc1.userinterface';
const draft = 'spring';

interface Row {
  readonly url?: string;
  readonly key?: string;
  readonly differs: readonly string[];
  readonly diff?: string;
  readonly branches?: readonly {
    readonly branch: string;
    readonly differs: readonly string[];
    readonly live?: object;
    readonly draft?: object;
  }[];
}

async function siteWithDraft(
  t: Parameters<typeof startSite>[0],
  rules: readonly object[],
  more: Parameters<typeof startSite>[1] = {},
): Promise<TestSite> {
  const site = await startSite(t, { rules, ...more });
  await site.call('svc1.draft.insert', { name: draft });
  return site;
}

async function edit(site: TestSite, path: string, fields: object): Promise<Answer> {
  const { data } = await site.call(`${rule}.list`, { path });
  const found = data.rows.find((row: { path: string }) => row.path === path);
  return site.call(`${rule}.edit`, { id: found.id, ...fields }, { draft });
}

async function compare(
  site: TestSite,
  v: object = {},
): Promise<Answer & { readonly rows: ReadonlyMap<string, Row> }> {
  const answer = await site.call('svc1.draft.compare', { draft, ...v });
  const rows = (answer.data?.rows ?? []) as readonly Row[];
  return { ...answer, rows: new Map(rows.map((row) => [row.url ?? row.key ?? '', row])) };
}

const text = (lines: readonly string[]): string => lines.join('\n');
const poem = Array.from({ length: 40 }, (_, at) => `line ${at}`);

const browserFields = {
  accept: 'text/html',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
};

suite('draft.compare', () => {
  test('shows the lines that differ, of text that is not too long', async (t) => {
    const site = await siteWithDraft(t, [
      { path: '/poem', kind: 'content', content: text(poem) },
      { path: '/long', kind: 'content', content: 'a\n'.repeat(400_000) },
    ]);
    await edit(site, '/poem', { content: text(poem.with(20, 'another').toSpliced(30, 1)) });
    await edit(site, '/long', { content: 'b\n'.repeat(400_000) });
    const { rows } = await compare(site);
    assert.deepEqual(rows.get('/poem')?.differs, ['content']);
    assert.equal(
      rows.get('/poem')?.diff,
      text([
        ...['@@ -19,5 +19,5 @@', ' line 18', ' line 19', '-line 20', '+another'],
        ...[' line 21', ' line 22', '@@ -29,5 +29,4 @@', ' line 28', ' line 29', '-line 30'],
        ...[' line 31', ' line 32', ''],
      ]),
    );
    assert.deepEqual(rows.get('/long')?.differs, ['content']);
    assert.equal(rows.get('/long')?.diff, undefined);
  });

  test('answers each branch of a breadcrumb, also over its keys', async (t) => {
    const when = [
      { if: { device: 'mobile' }, target: '/m' },
      { if: { country: ['DE'] }, target: 'key:de' },
    ];
    const site = await siteWithDraft(t, [
      { kind: 'resolve', path: 'sale', enginedata: { when, target: '/all' } },
      { kind: 'resolve', path: 'de', enginedata: { target: '/de' } },
      { kind: 'resolve', path: '/go', enginedata: { when, target: '/all' } },
    ]);
    await edit(site, 'de', { enginedata: { target: '/deutsch' } });
    const { data, rows } = await compare(site, { keys: 'sale', urls: '/go' });
    assert.deepEqual([data.compared, data.differing], [2, 2]);
    for (const name of ['sale', '/go']) {
      const row = rows.get(name);
      assert.deepEqual(row?.differs, ['branches'], name);
      assert.deepEqual(row.branches, [
        {
          branch: 'when[1] → key de → default',
          differs: ['target'],
          live: { conditions: [{ country: ['DE'] }, null], status: 302, target: '/de' },
          draft: { conditions: [{ country: ['DE'] }, null], status: 302, target: '/deutsch' },
        },
      ]);
    }
    const fewer = { enginedata: { when: when.toSpliced(1), target: '/all' } };
    await edit(site, 'sale', fewer);
    const again = await compare(site, { keys: 'sale' });
    const [branch] = again.rows.get('sale')?.branches ?? [];
    assert.deepEqual([branch?.live !== undefined, branch?.draft], [true, undefined]);
  });

  test('answers what the draft changes in pages', async (t) => {
    const rules = Array.from({ length: 5 }, (_, at) => ({ path: `/p${at}`, content: 'live' }));
    const site = await siteWithDraft(t, rules);
    for (const { path } of rules) await edit(site, path, { content: 'drafted' });
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const { data, rows } = await compare(site, { limit: 4, ...(after && { after }) });
      assert.equal(data.total, 5);
      seen.push(...rows.keys());
      after = data.next;
    } while (after !== null);
    assert.deepEqual(seen.toSorted(), ['/p0', '/p1', '/p2', '/p3', '/p4']);
    const many = text(Array.from({ length: 1_001 }, (_, at) => `/${at}`));
    assert.equal((await compare(site, { urls: many })).error?.code, 'too_large');
  });

  test('answers the URLs of the sitemap, live and in the draft', async (t) => {
    const sitemap = (...urls: readonly string[]): object => ({
      ...{ contenttype: 'application/xml', kind: 'content' },
      content: `<urlset>${urls.map((url) => `<url><loc> ${url}</loc></url>`).join('')}</urlset>`,
    });
    const site = await siteWithDraft(t, [
      { path: '/a', kind: 'content', content: 'live' },
      { path: '/b', kind: 'content', content: 'live' },
    ]);
    const { error } = await compare(site, { list: 'sitemap' });
    assert.equal(error?.code, 'not_found');
    const [a, b, c] = ['/a', '/b?x=1&amp;y=2', '/c'].map((path) => site.url + path);
    const index = `<sitemapindex><sitemap><loc>${site.url}/one.xml</loc></sitemap></sitemapindex>`;
    await site.call(`${rule}.insert`, { path: '/sitemap.xml', kind: 'content', content: index });
    const live = sitemap(a ?? '', b ?? '', 'https://elsewhere.example/');
    await site.call(`${rule}.insert`, { path: '/one.xml', ...live });
    await edit(site, '/one.xml', sitemap(a ?? '', c ?? ''));
    await site.call(`${rule}.insert`, { path: '/c', content: 'new' }, { draft });
    const first = await compare(site, { list: 'sitemap', limit: 2 });
    assert.deepEqual(
      [first.data.compared, first.data.total, first.data.next],
      [2, 3, `${site.url}/b?x=1&y=2`],
    );
    const last = await compare(site, { list: 'sitemap', limit: 2, after: first.data.next });
    assert.deepEqual([...last.rows.keys()], [c]);
    assert.equal(last.data.next, null);
  });

  test('reads a sitemap up to a number of URLs, however many it has', async (t) => {
    const origin = 'http://shop.example';
    const many = (count: number): string => `<loc>${origin}/a</loc>`.repeat(count);
    const site = await siteWithDraft(t, [], {
      ini: '[disk.files]\nroot = files\n',
      files: {
        'files/sitemap.xml': `<sitemapindex>${many(40_000)}</sitemapindex>`,
        'files/a': `<urlset><loc>${origin}/b</loc>${many(40_000)}</urlset>`,
        'files/other': `<urlset>${many(50_001)}</urlset>`,
      },
    });
    const { data, error } = await compare(site, { list: 'sitemap', origin });
    assert.equal(error, undefined);
    assert.deepEqual([data.compared, data.total], [2, 2]);
    const content = `<sitemapindex><loc>${origin}/other</loc></sitemapindex>`;
    const page = { path: '/sitemap.xml', origin, kind: 'content', content };
    await rm(join(site.folder, 'files/sitemap.xml'));
    assert.equal((await site.call(`${rule}.insert`, page)).error, undefined);
    const refused = await compare(site, { list: 'sitemap', origin });
    assert.equal(refused.error?.code, 'too_large');
  });

  test('answers the most visited pages and breadcrumbs of the last days', async (t) => {
    const site = await siteWithDraft(t, [
      { path: '/a b ü', kind: 'content', content: 'live' },
      { path: '/b', kind: 'content', content: 'live' },
      { path: 'go', kind: 'resolve', enginedata: { target: '/b' } },
    ]);
    assert.equal((await compare(site, { list: 'visited' })).data.compared, 0);
    const paths = ['/b', '/b', '/a%20b%20%C3%BC', '/missing', '/svc1/server/status', '/b?q=secret'];
    const key = '/svc1/userinterface.link.htm?k=go';
    for (const path of [...paths, key]) {
      await (await fetch(site.url + path, { redirect: 'manual', headers: browserFields })).text();
    }
    await edit(site, '/b', { content: 'drafted' });
    await edit(site, '/a b ü', { content: 'drafted' });
    await edit(site, 'go', { enginedata: { target: '/c' } });
    const { data, rows } = await compare(site, { list: 'visited', days: 2 });
    assert.deepEqual([data.compared, data.total, data.next], [3, 3, null]);
    assert.deepEqual([...rows.keys()], ['/b', '/a%20b%20%C3%BC', 'go']);
    const top = await compare(site, { list: 'visited', limit: 1 });
    assert.deepEqual([...top.rows.keys()], ['/b']);
  });

  test('compares content that is too long to show', async (t) => {
    const site = await siteWithDraft(t, [{ path: '/big', kind: 'content', content: 'x' }]);
    const start = 'x'.repeat(5 * 2 ** 20);
    await edit(site, '/big', { content: `${start}1` });
    assert.ok((await compare(site)).rows.get('/big')?.differs.includes('content'));
    const { data } = await site.call(`${rule}.list`, { path: '/big' });
    await site.call(`${rule}.edit`, { id: data.rows[0].id, content: `${start}2` });
    assert.deepEqual((await compare(site)).rows.get('/big')?.differs, ['content']);
    await site.call(`${rule}.edit`, { id: data.rows[0].id, content: `${start}1` });
    assert.equal((await compare(site)).data.differing, 0);
  });
});
