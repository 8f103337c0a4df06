import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { stateOf } from '../../nodes/rig.ts';

const rule = 'svc1.userinterface';
const draft = 'spring';
const lamps = { name: 'lamps', key: 'sku', schema: { properties: { sku: { type: 'string' } } } };
const hook = { event: ['a.b'], url: 'https://hooks.example/', method: 'POST' };

async function publish(site: TestSite): Promise<Answer> {
  const report = await site.call('svc1.draft.publish', { draft });
  return site.call('svc1.draft.publish', { draft, confirm: report.data.digest });
}

function undo(site: TestSite, more: object = {}): Promise<Answer> {
  return site.call('svc1.draft.undo', { draft, ...more });
}

async function text(site: TestSite, path: string): Promise<string> {
  return (await fetch(site.url + path)).text();
}

/** A site with one page, and a published draft that changes it and adds another one. */
async function publishedSite(
  t: Parameters<typeof startSite>[0],
  more: (site: TestSite) => Promise<unknown> = () => Promise.resolve(),
): Promise<{ readonly site: TestSite; readonly id: string; readonly txn: string }> {
  const site = await startSite(t, { rules: [{ path: '/', kind: 'content', content: 'live' }] });
  await site.call('svc1.draft.insert', { name: draft });
  const { data } = await site.call(`${rule}.list`, {});
  const { id } = data.rows[0];
  await site.call(`${rule}.edit`, { id, content: 'drafted', lang: 'de' }, { draft });
  await site.call(`${rule}.insert`, { path: '/new', content: 'new' }, { draft });
  await more(site);
  const published = await publish(site);
  assert.equal(published.data?.done, true, JSON.stringify(published));
  return { site, id, txn: published.data.txn };
}

suite('the undo of a publication', () => {
  test('is one transaction of all families, and repeated with its vk, one undo', async (t) => {
    const { site } = await publishedSite(t, async (one) => {
      await one.call('svc1.table.insert', lamps, { draft });
      await one.call('svc1.record.insert', { table: 'lamps', sku: 'L-1' }, { draft });
      await one.call('svc1.webhook.insert', { ...hook, name: 'new' }, { draft });
    });
    const report = await undo(site);
    const { records, gone, changed, conflicting, digest } = report.data;
    assert.deepEqual([records, gone, changed, conflicting], [5, 4, 1, 0]);
    const call = () => site.call('svc1.draft.undo', { draft, confirm: digest }, { vk: 'undo' });
    const done = await call();
    assert.deepEqual(
      [done.data.records, done.data.families.toSorted()],
      [5, ['record', 'table', 'userinterface', 'webhook']],
    );
    assert.equal(await text(site, '/'), 'live');
    assert.equal((await fetch(`${site.url}/new`)).status, 404);
    assert.deepEqual((await site.call('svc1.table.list', {})).data.rows, []);
    assert.deepEqual((await site.call('svc1.webhook.list', {})).data.rows, []);
    const again = await call();
    assert.deepEqual([again.replayed, again.data.txn], [true, done.data.txn]);
    const empty = await undo(site);
    assert.equal(empty.data.records, 0);
    const nothing = await undo(site, { confirm: empty.data.digest });
    assert.equal(nothing.error?.code, 'conflict');
    await stateOf(site, 1);
  });

  test('takes back the removal of a table with its rows', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.table.insert', lamps);
    await site.call('svc1.record.insert', { table: 'lamps', sku: 'L-1' });
    await site.call('svc1.draft.insert', { name: draft });
    const { data: tables } = await site.call('svc1.table.list', {});
    const { data: rows } = await site.call('svc1.record.list', { table: 'lamps' });
    for (const [name, v] of [
      ['svc1.record.invalidate', { table: 'lamps', id: rows.rows[0].id }],
      ['svc1.table.invalidate', { id: tables.rows[0].id }],
    ] as const) {
      const { data } = await site.call(name, v, { draft });
      await site.call(name, { ...v, confirm: data.digest }, { draft });
    }
    await publish(site);
    assert.deepEqual((await site.call('svc1.table.list', {})).data.rows, []);
    const { data } = await undo(site);
    assert.deepEqual([data.records, data.restored], [2, 2]);
    await undo(site, { confirm: data.digest });
    const back = await site.call('svc1.record.list', { table: 'lamps' });
    assert.equal(back.data.rows[0].sku, 'L-1');
    await stateOf(site, 1);
  });

  test('names what was changed since in three versions, and leaves what is resolved so', async (t) => {
    const { site, id } = await publishedSite(t);
    await site.call(`${rule}.edit`, { id, content: 'later' });
    const { data } = await undo(site);
    assert.deepEqual([data.conflicting, data.unresolved], [1, 1]);
    assert.deepEqual(data.conflicts[0].fields, {
      content: { published: 'drafted', live: 'later', undone: 'later' },
      lang: { published: 'de', live: 'de', undone: null },
    });
    const refused = await undo(site, { confirm: data.digest });
    assert.deepEqual([refused.error?.code, refused.error?.field], ['conflict', 'resolve']);
    assert.match(refused.error?.message ?? '', /^Nothing is undone: \/ \(/);
    const kept = { confirm: data.digest, resolve: { [id]: 'live' } };
    assert.equal((await undo(site, kept)).data.records, 1);
    const { data: read } = await site.call(`${rule}.read`, { id });
    assert.deepEqual([read.content, read.lang], ['later', 'de']);
    assert.equal((await fetch(`${site.url}/new`)).status, 404);
    const rest = await undo(site, { others: 'undo' });
    assert.deepEqual([rest.data.records, rest.data.unresolved], [1, 0]);
    await undo(site, { others: 'undo', confirm: rest.data.digest });
    assert.equal((await site.call(`${rule}.read`, { id })).data.lang, undefined);
    await stateOf(site, 1);
  });

  test('needs a published draft, its report, and the scopes of its families', async (t) => {
    const { site, id } = await publishedSite(t, (one) =>
      one.call('svc1.webhook.insert', { ...hook, name: 'new' }, { draft }),
    );
    const { data: report } = await undo(site);
    await site.call(`${rule}.edit`, { id, lang: 'en' });
    const late = await undo(site, { confirm: report.digest, others: 'undo' });
    assert.equal(late.error?.code, 'precondition_failed');
    const { data: key } = await site.call('svc1.key.insert', {
      ...{ name: 'k', scopes: ['publish', 'read'] },
    });
    const lacking = await site.call('svc1.draft.undo', { draft }, { apikey: key.key });
    assert.match(lacking.error?.message ?? '', /an undo needs the scope webhook/);
    await site.call('svc1.draft.insert', { name: 'open' });
    assert.equal((await undo(site, { draft: 'open' })).error?.code, 'conflict');
    assert.equal((await undo(site, { draft: 'none' })).error?.code, 'not_found');
  });

  test('of a large publication runs in another thread', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/', kind: 'content', content: 'live' }] });
    await site.call('svc1.draft.insert', { name: draft });
    const lines = Array.from({ length: 1_200 }, (_, at) => {
      return JSON.stringify({ path: `/p${at}`, kind: 'content', content: 'x' });
    });
    const imported = await fetch(`${site.url}/svc1/userinterface/import?_draft=${draft}`, {
      method: 'POST',
      headers: { apikey: site.adminKey, 'content-type': 'application/x-ndjson' },
      body: lines.join('\n'),
    });
    assert.equal(imported.status, 200);
    await publish(site);
    assert.equal(await text(site, '/p7'), 'x');
    const { data } = await undo(site);
    assert.deepEqual([data.records, data.gone, data.unlisted], [1_200, 1_200, 1_100]);
    assert.equal((await undo(site, { confirm: data.digest })).data.records, 1_200);
    assert.equal((await fetch(`${site.url}/p7`)).status, 404);
  });
});
