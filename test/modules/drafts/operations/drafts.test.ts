import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { stateOf } from '../../nodes/rig.ts';
import { startSite, type Answer, type CallOptions, type TestSite } from '../../../harness.ts';
import { transports } from '../../status/transports.ts';

const rule = 'svc1.userinterface';
const draft = 'spring';

/** Calls an operation in the draft. */
function inDraft(site: TestSite, name: string, v: object, more: CallOptions = {}): Promise<Answer> {
  return site.call(name, v, { draft, ...more });
}

async function page(site: TestSite, path: string): Promise<string> {
  return (await fetch(site.url + path)).text();
}

async function draftedPage(site: TestSite, path: string): Promise<string> {
  const v = `_v.origin=${encodeURIComponent(site.url)}&_v.path=${path}`;
  const response = await fetch(`${site.url}/svc1/userinterface/get_content?${v}&_draft=${draft}`, {
    headers: { apikey: site.adminKey },
  });
  assert.equal(response.headers.get('cache-control'), 'no-store');
  return response.text();
}

const start = { path: '/', kind: 'content', content: 'live' };

async function siteWithDraft(
  t: Parameters<typeof startSite>[0],
  rules: readonly object[] = [start],
): Promise<TestSite> {
  const site = await startSite(t, { rules });
  const made = await site.call('svc1.draft.insert', { name: draft });
  assert.equal(made.data.state, 'open');
  return site;
}

async function idAt(site: TestSite, path: string): Promise<string> {
  const { data } = await site.call(`${rule}.list`, { path });
  return data.rows.find((row: { path: string }) => row.path === path).id;
}

test('a draft is read as if it were live, and visitors do not see it', async (t) => {
  const site = await siteWithDraft(t);
  const id = await idAt(site, '/');
  const edited = await inDraft(site, `${rule}.edit`, { id, content: 'drafted', colour: 'red' });
  assert.deepEqual(edited.data.unknowns, ['colour']);
  assert.equal(edited.data.problems[0].reason, 'unknown_field');
  const added = await inDraft(site, `${rule}.insert`, { path: '/new', content: 'new' });
  assert.equal(await page(site, '/'), 'live');
  assert.equal((await fetch(`${site.url}/new`)).status, 404);
  assert.equal(await draftedPage(site, '/'), 'drafted');
  assert.equal(await draftedPage(site, '/new'), 'new');
  assert.equal((await site.call(`${rule}.read`, { id: added.data.id })).error?.code, 'not_found');
  const read = await inDraft(site, `${rule}.read`, { id: added.data.id });
  assert.equal(read.data.content, 'new');
  const listed = await inDraft(site, `${rule}.list`, { sort: 'path' });
  assert.deepEqual(
    listed.data.rows.map((row: { path: string }) => row.path),
    ['/', '/new'],
  );
  const explained = await inDraft(site, `${rule}.explain`, { url: `${site.url}/new` });
  assert.equal(explained.data.winner.id, added.data.id);
  const history = await inDraft(site, `${rule}.read`, { id }, { qk: 'history' });
  assert.deepEqual(
    history.data.rows.map(({ action }: { action: string }) => action),
    ['edit', 'insert'],
  );
});

test('live edits show through, and a stale if_seq is refused', async (t) => {
  const site = await siteWithDraft(t);
  const id = await idAt(site, '/');
  const edited = await inDraft(site, `${rule}.edit`, { id, lang: 'de' });
  await site.call(`${rule}.edit`, { id, content: 'newer' });
  const read = await inDraft(site, `${rule}.read`, { id });
  assert.deepEqual([read.data.content, read.data.lang], ['newer', 'de']);
  const stale = { id, if_seq: edited.data.seq, rve: 1 };
  assert.equal((await inDraft(site, `${rule}.edit`, stale)).error?.code, 'precondition_failed');
  const fresh = { id, if_seq: read.data.seq, rve: 1 };
  assert.equal((await inDraft(site, `${rule}.edit`, fresh)).data.rve, 1);
});

test('a vk counts within its draft, and live once that is published', async (t) => {
  const site = await siteWithDraft(t);
  const v = { path: '/once', content: 'once' };
  const first = await inDraft(site, `${rule}.insert`, v, { vk: 'one' });
  const again = await inDraft(site, `${rule}.insert`, v, { vk: 'one' });
  assert.deepEqual([again.replayed, again.data.id], [true, first.data.id]);
  const other = await inDraft(site, `${rule}.insert`, { path: '/2' }, { vk: 'one' });
  assert.equal(other.error?.code, 'conflict');
  await publish(site);
  const live = await site.call(`${rule}.insert`, v, { vk: 'one' });
  assert.deepEqual([live.replayed, live.data.id], [true, first.data.id]);
});

/** Publishes the draft; returns the answer to the confirmed call. */
async function publish(site: TestSite, more: object = {}): Promise<Answer> {
  const report = await site.call('svc1.draft.publish', { draft, ...more });
  assert.equal(report.data?.done, false, JSON.stringify(report));
  return site.call('svc1.draft.publish', { draft, ...more, confirm: report.data.digest });
}

test('publishing is one transaction, and an invalidate of it is the undo', async (t) => {
  const site = await siteWithDraft(t, [start, { path: '/gone', kind: 'content', content: 'old' }]);
  await inDraft(site, `${rule}.edit`, { id: await idAt(site, '/'), content: 'drafted' });
  await inDraft(site, `${rule}.insert`, { path: '/new', content: 'new' });
  const gone = { id: await idAt(site, '/gone') };
  const dry = await inDraft(site, `${rule}.invalidate`, gone);
  await inDraft(site, `${rule}.invalidate`, { ...gone, confirm: dry.data.digest });
  const changes = await site.call('svc1.draft.changes', { draft });
  assert.deepEqual(
    changes.data.rows.map((row: { becomes: string; label: string }) => [row.becomes, row.label]),
    [
      ['changed', '/'],
      ['removed', '/gone'],
      ['inserted', '/new'],
    ],
  );
  const published = await publish(site);
  assert.deepEqual(
    [published.data.done, published.data.records, published.data.families],
    [true, 3, ['userinterface']],
  );
  assert.deepEqual([await page(site, '/'), await page(site, '/new')], ['drafted', 'new']);
  assert.equal((await fetch(`${site.url}/gone`)).status, 404);
  const ended = await inDraft(site, `${rule}.read`, gone);
  assert.equal(ended.error?.code, 'conflict');
  assert.equal((await site.call('svc1.draft.read', { draft })).data.state, 'published');
  const listed = await site.call('svc1.draft.list', { state: 'published' });
  assert.equal(listed.data.rows[0].txn, published.data.txn);
  const undo = { txn: published.data.txn };
  const { data } = await site.call(`${rule}.invalidate`, undo);
  assert.deepEqual([data.gone, data.restored, data.changed], [1, 1, 1]);
  await site.call(`${rule}.invalidate`, { ...undo, confirm: data.digest });
  assert.deepEqual([await page(site, '/'), await page(site, '/gone')], ['live', 'old']);
  // It fails for any difference between the log and what was derived from it.
  await stateOf(site, 1);
});

test('what has changed live meanwhile is named in three versions, and resolved', async (t) => {
  const site = await siteWithDraft(t, [start, { path: '/gone', kind: 'content', content: 'old' }]);
  const [id, gone] = [await idAt(site, '/'), await idAt(site, '/gone')];
  await inDraft(site, `${rule}.edit`, { id, content: 'drafted' });
  await inDraft(site, `${rule}.edit`, { id: gone, content: 'kept' });
  await site.call(`${rule}.edit`, { id, content: 'newer', lang: 'en' });
  const dry = await site.call(`${rule}.invalidate`, { id: gone });
  await site.call(`${rule}.invalidate`, { id: gone, confirm: dry.data.digest });
  const report = await site.call('svc1.draft.publish', { draft });
  assert.deepEqual([report.data.conflicting, report.data.unresolved], [2, 2]);
  const conflict = report.data.conflicts.find((one: { id: string }) => one.id === id);
  assert.deepEqual(conflict.fields.content, { base: 'live', live: 'newer', draft: 'drafted' });
  assert.deepEqual(conflict.fields.lang, { base: null, live: 'en', draft: 'en' });
  const { digest: confirm } = report.data;
  const refused = await site.call('svc1.draft.publish', { draft, confirm });
  assert.equal(refused.error?.code, 'conflict');
  assert.match(refused.error.message, /\/gone/);
  const resolve = { [id]: 'live', [gone]: 'draft' };
  const done = await site.call('svc1.draft.publish', { draft, confirm, resolve });
  assert.equal(done.data?.done, true, JSON.stringify(done));
  assert.deepEqual([await page(site, '/'), await page(site, '/gone')], ['newer', 'kept']);
});

test('a publication needs the report of the state that it changes', async (t) => {
  const site = await siteWithDraft(t);
  const id = await idAt(site, '/');
  await inDraft(site, `${rule}.edit`, { id, content: 'drafted' });
  const { data } = await site.call('svc1.draft.publish', { draft });
  await inDraft(site, `${rule}.edit`, { id, content: 'drafted again' });
  const late = await site.call('svc1.draft.publish', { draft, confirm: data.digest });
  assert.equal(late.error?.code, 'precondition_failed');
  const { digest: confirm } = (await site.call('svc1.draft.publish', { draft })).data;
  const again = () => site.call('svc1.draft.publish', { draft, confirm });
  const both = await Promise.all([again(), again()]);
  assert.deepEqual(both.map(({ error }) => error?.code ?? 'done').toSorted(), ['conflict', 'done']);
  assert.equal(await page(site, '/'), 'drafted again');
});

test('of two publications at once, one wins, and the other says what to do', async (t) => {
  const site = await siteWithDraft(t);
  const id = await idAt(site, '/');
  await inDraft(site, `${rule}.edit`, { id, content: 'drafted' });
  await site.call('svc1.draft.insert', { name: 'summer' });
  await site.call(`${rule}.edit`, { id, content: 'summer' }, { draft: 'summer' });
  const reports = await Promise.all(
    [draft, draft, 'summer'].map(async (name) => {
      const { data } = await site.call('svc1.draft.publish', { draft: name });
      return { draft: name, confirm: data.digest as string };
    }),
  );
  const answers = await Promise.all(reports.map((v) => site.call('svc1.draft.publish', v)));
  const outcomes = answers.map(({ data, error }) => (data?.done === true ? 'done' : error?.code));
  assert.equal(outcomes.filter((one) => one === 'done').length, 1, outcomes.join());
  const others = outcomes.filter((one) => one !== 'done');
  assert.ok(others.every((one) => one === 'conflict' || one === 'precondition_failed'));
  await stateOf(site, 1);
});

test('compare names what differs, of pages and of breadcrumbs', async (t) => {
  const link = { kind: 'resolve', path: 'sale', enginedata: { target: '/a' } };
  const site = await siteWithDraft(t, [start, link, { path: '/same', content: 'same' }]);
  await inDraft(site, `${rule}.edit`, { id: await idAt(site, '/'), content: 'live\ndrafted' });
  await inDraft(site, `${rule}.edit`, {
    id: await idAt(site, 'sale'),
    enginedata: { target: '/b' },
  });
  await inDraft(site, `${rule}.insert`, { path: '/new', content: 'new', httpresponse: 201 });
  const compared = await site.call('svc1.draft.compare', { draft });
  assert.equal(compared.data.compared, 3);
  const rows = Object.fromEntries(
    compared.data.rows.map((row: { url?: string; key?: string }) => [row.url ?? row.key, row]),
  );
  assert.deepEqual(rows['/'].differs, ['content']);
  assert.deepEqual([rows['/'].live.line, rows['/'].draft.line], ['', 'drafted']);
  assert.deepEqual(rows.sale.differs, ['target', 'branches']);
  assert.match(rows.sale.draft.target, /\/b$/);
  assert.deepEqual([rows['/new'].live.status, rows['/new'].draft.status], [404, 201]);
  const given = await site.call('svc1.draft.compare', { draft, urls: '/same\n/\n' });
  assert.deepEqual([given.data.compared, given.data.differing], [2, 1]);
  const list = await site.call('svc1.draft.compare', { draft, urls: ['/same', ' /', ''] });
  assert.deepEqual(list.data, given.data);
  const none = await site.call('svc1.draft.compare', { draft, urls: [], keys: [] });
  assert.equal(none.data.compared, 0);
  const query = `draft=${draft}&_v.draft=${draft}&_v.urls=${encodeURIComponent('/same\n/')}`;
  const asked = await fetch(
    `${site.url}/svc1/draft/compare?${query.slice(query.indexOf('&') + 1)}`,
    {
      headers: { apikey: site.adminKey },
    },
  );
  assert.deepEqual(((await asked.json()) as { data: unknown }).data, given.data);
  for (const urls of [{ a: '/' }, [{}], Array(1_001).fill('/')]) {
    const { error } = await site.call('svc1.draft.compare', { draft, urls });
    assert.deepEqual([error?.code, error?.field?.split('.')[0]], ['invalid', 'urls']);
  }
});

test('only callers who may read the site see a draft', async (t) => {
  const site = await siteWithDraft(t);
  const place = { origin: site.url, path: '/' };
  const anonymous = await inDraft(site, `${rule}.get`, place, { apikey: undefined });
  assert.equal(anonymous.error?.code, 'unauthenticated');
  const { data } = await site.call('svc1.key.insert', {
    name: 'reader',
    scopes: ['read', 'render'],
  });
  const reader = { apikey: data.key };
  assert.equal((await inDraft(site, `${rule}.get`, place, reader)).data.path, '/');
  const write = await inDraft(site, `${rule}.insert`, { path: '/x' }, reader);
  assert.equal(write.error?.code, 'forbidden');
});

suite('a review', () => {
  const keyOf = async (site: TestSite, ...scopes: string[]) => {
    const { data } = await site.call('svc1.key.insert', { name: scopes.join(), scopes });
    return { apikey: data.key as string, id: data.id as string };
  };

  const approve = async (site: TestSite, apikey: string): Promise<Answer> => {
    const { data } = await site.call('svc1.draft.changes', { draft, limit: 1 });
    return site.call('svc1.draft.approve', { draft, confirm: data.digest }, { apikey });
  };

  test('is by a key that has not changed the draft, and covers what it has seen', async (t) => {
    const site = await startSite(t, { rules: [start], ini: '[review]\nrequired = yes\n' });
    const writer = await keyOf(site, 'draft', 'read');
    const reviewer = await keyOf(site, 'publish', 'read');
    await site.call('svc1.draft.insert', { name: draft }, { apikey: writer.apikey });
    const v = { id: await idAt(site, '/'), content: 'drafted' };
    const edit = () => inDraft(site, `${rule}.edit`, v, { apikey: writer.apikey });
    assert.equal((await edit()).error, undefined);
    const submitted = await site.call('svc1.draft.submit', { draft }, { apikey: writer.apikey });
    assert.equal(submitted.data.submitted.by, writer.id);
    const own = await approve(site, writer.apikey);
    assert.equal(own.error?.code, 'forbidden');
    assert.match((await publish(site)).error?.message ?? '', /needs an approval/);
    const note = { draft, text: 'Nice.' };
    await site.call('svc1.draft.comment', note, { apikey: writer.apikey });
    await approve(site, reviewer.apikey);
    v.content = 'changed after it';
    await edit();
    assert.match((await publish(site)).error?.message ?? '', /needs an approval/);
    const read = await approve(site, reviewer.apikey);
    assert.deepEqual([read.data.approvals.length, read.data.comments[0].text], [1, 'Nice.']);
    const report = await site.call('svc1.draft.publish', { draft });
    assert.deepEqual(report.data.approved_by, [reviewer.id]);
    const confirm = report.data.digest;
    const by = { apikey: reviewer.apikey };
    assert.equal((await site.call('svc1.draft.publish', { draft, confirm }, by)).data.done, true);
    assert.equal(await page(site, '/'), 'changed after it');
    await stateOf(site, 1);
  });

  test('and publishing need a key that may read what they show', async (t) => {
    const site = await siteWithDraft(t);
    await inDraft(site, `${rule}.insert`, { path: '/seen', content: 'seen' });
    const { apikey } = await keyOf(site, 'publish');
    for (const name of ['approve', 'publish']) {
      const v = { draft, confirm: 'x' };
      const { data, error } = await site.call(`svc1.draft.${name}`, v, { apikey });
      assert.deepEqual([data, error?.code], [undefined, 'forbidden'], name);
    }
  });

  test('approves the state that was seen, and nothing added since', async (t) => {
    const site = await siteWithDraft(t);
    await inDraft(site, `${rule}.insert`, { path: '/seen', content: 'seen' });
    const { apikey } = await keyOf(site, 'publish', 'read');
    const shown = async (name: string): Promise<string> => {
      const { data } = await site.call(`svc1.draft.${name}`, { draft }, { apikey });
      return data.digest as string;
    };
    const approved = (confirm?: string) =>
      site.call('svc1.draft.approve', { draft, ...(confirm && { confirm }) }, { apikey });
    assert.equal((await approved()).error?.code, 'invalid');
    for (const name of ['publish', 'changes', 'compare']) {
      const seen = await shown(name);
      const change = { path: `/unseen/${name}`, content: 'unseen' };
      // The change and the approval come at the same moment.
      const [late] = await Promise.all([
        inDraft(site, `${rule}.insert`, change).then(() => approved(seen)),
        approved(seen),
      ]);
      assert.deepEqual([late.status, late.error?.code], [409, 'conflict'], name);
      const { data } = await site.call('svc1.draft.publish', { draft });
      assert.deepEqual(data.approved_by, [], name);
    }
    const fresh = await approved(await shown('compare'));
    assert.equal(fresh.data.approvals.length, 1);
    await inDraft(site, `${rule}.edit`, { id: await idAt(site, '/'), content: 'drafted' });
    const seen = await shown('changes');
    await site.call(`${rule}.edit`, { id: await idAt(site, '/'), content: 'live, too' });
    assert.equal((await approved(seen)).error?.code, 'conflict');
  });

  test('shows those who work on drafts the names of others', async (t) => {
    const site = await startSite(t);
    const writer = await keyOf(site, 'draft', 'read');
    await site.call('svc1.draft.insert', { name: 'own' }, { apikey: writer.apikey });
    for (const [scopes, expected] of [
      [['publish', 'read'], 'draft,read'],
      [['draft', 'read'], 'draft,read'],
      [['read'], undefined],
    ] as const) {
      const { apikey } = await keyOf(site, ...scopes);
      const { data } = await site.call('svc1.draft.read', { draft: 'own' }, { apikey });
      assert.equal(data.by_name, expected, scopes.join(' '));
    }
  });

  test('may be made by keys that can change nothing live', async (t) => {
    const site = await siteWithDraft(t);
    const { apikey } = await keyOf(site, 'draft', 'read');
    const live = await site.call(`${rule}.insert`, { path: '/x' }, { apikey });
    assert.equal(live.error?.code, 'forbidden');
    const drafted = await inDraft(site, `${rule}.insert`, { path: '/x', content: 'x' }, { apikey });
    assert.equal(drafted.error, undefined);
    const hook = { event: ['a.b'], url: 'https://hooks.example/', method: 'POST' };
    const refused = await inDraft(site, 'svc1.webhook.insert', hook, { apikey });
    assert.equal(refused.error?.code, 'forbidden');
    const published = await site.call('svc1.draft.publish', { draft }, { apikey });
    assert.equal(published.error?.code, 'forbidden');
  });
});

suite('a draft refuses', () => {
  const cases: Readonly<Record<string, readonly [string, object, string]>> = {
    'a moment of the past': [`${rule}.list`, { as_of: '1' }, 'invalid'],
    'an event': ['svc1.event.insert', { type: 'a.b', data: {} }, 'invalid'],
    'a draft of a draft': ['svc1.draft.insert', { name: 'inner' }, 'invalid'],
    'a key': ['svc1.key.insert', { name: 'k', scopes: ['read'] }, 'invalid'],
  };
  for (const [name, [operation, v, code]] of Object.entries(cases)) {
    test(name, async (t) => {
      const site = await siteWithDraft(t);
      assert.equal((await inDraft(site, operation, v)).error?.code, code);
    });
  }

  test('a name that is taken, and an unknown draft', async (t) => {
    const site = await siteWithDraft(t);
    const again = await site.call('svc1.draft.insert', { name: draft });
    assert.equal(again.error?.code, 'conflict');
    const unknown = await site.call('svc1.draft.publish', { draft: 'autumn' });
    assert.equal(unknown.error?.code, 'not_found');
    await site.call('svc1.draft.invalidate', { draft });
    const ended = await inDraft(site, `${rule}.insert`, { path: '/x' });
    assert.equal(ended.error?.code, 'conflict');
    assert.equal((await site.call('svc1.draft.insert', { name: draft })).data.state, 'open');
  });
});

for (const [transport, open] of Object.entries(transports)) {
  test(`the envelope names a draft over ${transport}`, async (t) => {
    const site = await siteWithDraft(t);
    const call = await open(site);
    const more = { draft };
    const { data } = await call(`${rule}.insert`, { path: '/x', content: 'x' }, more);
    const read = await call(`${rule}.read`, { id: data.id }, more);
    assert.equal(read.data.content, 'x');
    assert.equal((await call(`${rule}.read`, { id: data.id })).error?.code, 'not_found');
  });
}

test('the tree of a draft has each of its pages once', async (t) => {
  const site = await startSite(t, { rules: [{ path: '/a', content: 'a' }] });
  await site.call('svc1.draft.insert', { name: 'spring' });
  for (const path of ['/b', '/b/c', '/d']) {
    await site.call('svc1.userinterface.insert', { path, content: path }, { draft: 'spring' });
  }
  const below = { origin: '*', path: '/' };
  const page = await site.call('svc1.userinterface.tree', below, { draft: 'spring' });
  const found = (page.data.rows as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(found, ['a', 'b', 'b/', 'd']);
});
