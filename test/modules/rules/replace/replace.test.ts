import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';
import { stateOf } from '../../nodes/rig.ts';

const rule = 'svc1.userinterface';
const text = { find: 'Kai', with: 'Bo' };
const draft = 'spring';

/** A site with pages that have a text, one without it, and an empty draft. */
async function start(t: TestContext, contents = ['Kai one', 'two Kai, Kai', 'none']) {
  const site = await startSite(t);
  const ids: string[] = [];
  // One after the other: lists have them in this order.
  for (const [at, content] of contents.entries()) {
    const v = { path: `/p/${at}`, kind: 'content', content };
    ids.push((await site.call(`${rule}.insert`, v)).data.id as string);
  }
  await site.call('svc1.draft.insert', { name: draft });
  return { site, ids };
}

async function pagesOf(site: TestSite, more: object = {}, envelope: object = {}) {
  const { data } = await site.call(`${rule}.replace`, { ...text, ...more }, envelope);
  const rows = data.rows as readonly { readonly id: string; readonly seq: number }[];
  return Object.fromEntries(rows.map(({ id, seq }) => [id, seq]));
}

function contentAt({ url }: TestSite, path: string): Promise<string> {
  return fetch(url + path).then((answer) => answer.text());
}

suite('find and replace', () => {
  test('reports what it would change, and replaces it in a draft alone', async (t) => {
    const { site, ids } = await start(t);
    const { data } = await site.call(`${rule}.replace`, text);
    assert.deepEqual(
      [data.done, data.examined, data.next, data.rows.map(({ count }: { count: number }) => count)],
      [false, 3, null, [1, 2]],
    );
    assert.deepEqual(data.rows[0].found, [
      { field: 'content', before: '', found: 'Kai', replaced: 'Bo', after: ' one' },
    ]);
    const pages = await pagesOf(site, {}, { draft });
    const call = () => site.call(`${rule}.replace`, { ...text, pages }, { draft, vk: 'once' });
    const done = await call();
    assert.deepEqual([done.data.done, done.data.pages], [true, 2]);
    const again = await call();
    assert.deepEqual([again.replayed, again.data], [true, done.data]);
    assert.equal(await contentAt(site, '/p/1'), 'two Kai, Kai');
    const read = await site.call(`${rule}.read`, { id: ids[1] }, { draft });
    assert.equal(read.data.content, 'two Bo, Bo');
    const { data: changes } = await site.call('svc1.draft.changes', { draft });
    assert.equal(changes.rows.length, 2);
    assert.deepEqual(await pagesOf(site, {}, { draft }), {});
    await stateOf(site, 1);
  });

  test('finds by origin, path and kind, in pages of a list', async (t) => {
    const { site, ids } = await start(t, ['Kai', 'Kai', 'Kai']);
    const [first] = ids;
    assert.deepEqual(Object.keys(await pagesOf(site, { path: '/p/0' })), [first]);
    assert.deepEqual(await pagesOf(site, { origin: 'https://other.example' }), {});
    assert.deepEqual(await pagesOf(site, { kind: 'resolve' }), {});
    const { data } = await site.call(`${rule}.replace`, { ...text, limit: 2 });
    const rest = await site.call(`${rule}.replace`, { ...text, after: data.next });
    assert.deepEqual([data.rows.length, rest.data.rows.length, rest.data.next], [2, 1, null]);
  });

  test('names the pages that have changed since the report, and replaces none', async (t) => {
    const { site, ids } = await start(t);
    const pages = await pagesOf(site);
    await site.call(`${rule}.edit`, { id: ids[0], content: 'Kai, later' });
    const { error } = await site.call(`${rule}.replace`, { ...text, pages }, { draft });
    assert.equal(error?.code, 'precondition_failed');
    assert.match(error.message, /^Nothing was replaced: \/p\/0 \([\w-]+\) changed since/);
    const { data } = await site.call('svc1.draft.changes', { draft });
    assert.deepEqual(data.rows, []);
  });

  test('refuses a page that would not be valid, and says so before', async (t) => {
    const { site } = await start(t, []);
    const made = await site.call(`${rule}.insert`, {
      ...{ path: 'sale', kind: 'resolve', enginedata: { target: 'https://a.example/' } },
    });
    const v = { find: 'https://a.example/', with: 'no target' };
    const { data } = await site.call(`${rule}.replace`, v);
    assert.match(data.rows[0].problem, /enginedata would not be valid/);
    const pages = { [made.data.id]: data.rows[0].seq };
    const { error } = await site.call(`${rule}.replace`, { ...v, pages }, { draft });
    assert.match(error?.message ?? '', /^Nothing was replaced\. sale \(/);
    const other = { find: 'none', with: '', pages };
    const absent = await site.call(`${rule}.replace`, other, { draft });
    assert.match(absent.error?.message ?? '', /has no such text/);
  });

  test('leaves values alone that wait in _unknowns_', async (t) => {
    const { site } = await start(t, []);
    await site.call(`${rule}.insert`, {
      ...{ path: 'sale', kind: 'resolve', enginedata: { target: '/Kai', status: 'Kai' } },
    });
    const { data } = await site.call(`${rule}.replace`, text);
    assert.match(data.rows[0].problem, /enginedata wait in _unknowns_/);
  });

  test('needs a draft, and the scopes draft and read', async (t) => {
    const { site } = await start(t);
    const pages = await pagesOf(site);
    const live = await site.call(`${rule}.replace`, { ...text, pages });
    assert.deepEqual([live.error?.code, live.error?.field], ['invalid', 'draft']);
    for (const [scopes, code] of [
      [['draft', 'read'], undefined],
      [['draft'], 'forbidden'],
      [['read'], 'forbidden'],
    ] as const) {
      const { data } = await site.call('svc1.key.insert', { name: scopes.join(' '), scopes });
      const asked = { apikey: data.key as string, draft };
      const report = await site.call(`${rule}.replace`, text, asked);
      assert.equal(report.error?.code, code, scopes.join(' '));
      const written = await site.call(`${rule}.replace`, { ...text, pages }, asked);
      assert.equal(written.error?.code, code, scopes.join(' '));
    }
  });

  test('shows a bound key its part of the site, and changes nothing else', async (t) => {
    const { site, ids } = await start(t);
    const key = { name: 'bound', scopes: ['draft', 'read', 'design'], paths: ['/p/1'] };
    const { data } = await site.call('svc1.key.insert', key);
    const apikey = data.key as string;
    await site.call('svc1.draft.insert', { name: 'own' }, { apikey });
    const found = await pagesOf(site, {}, { apikey });
    assert.deepEqual(Object.keys(found), [ids[1]]);
    const all = { ...text, pages: await pagesOf(site) };
    const refused = await site.call(`${rule}.replace`, all, { apikey, draft: 'own' });
    assert.equal(refused.error?.code, 'precondition_failed');
    assert.doesNotMatch(refused.error.message, /\/p\/0/);
    const own = { ...text, pages: found };
    const done = await site.call(`${rule}.replace`, own, { apikey, draft: 'own' });
    assert.equal(done.data.pages, 1);
  });
});
