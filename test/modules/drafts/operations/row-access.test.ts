import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';

const draft = 'spring';
const text = { type: 'string' } as const;

/** A site with rows that only `admin` reads, rows with a secret, and a draft that changes both. */
async function siteWithRows(t: TestContext) {
  const site = await startSite(t);
  const tables = [
    { name: 'pay', read: ['admin'], edit: ['admin'], insert: ['admin'] },
    { name: 'users', key: 'name' },
  ];
  const ids: string[] = [];
  for (const table of tables) {
    const secret = { ...text, writeOnly: true };
    const schema = { properties: { name: text, sum: text, secret } };
    const made = await site.call('svc1.table.insert', { ...table, schema });
    assert.equal(made.error, undefined);
    const row = { table: table.name, name: `${table.name}-row`, sum: '1000', secret: 'pass-one' };
    const inserted = await site.call('svc1.record.insert', row);
    assert.equal(inserted.error, undefined);
    ids.push(inserted.data.id);
  }
  await site.call('svc1.draft.insert', { name: draft });
  for (const [at, { name: table }] of tables.entries()) {
    const edit = { table, id: ids[at], sum: '2000', secret: 'pass-two' };
    assert.equal((await site.call('svc1.record.edit', edit, { draft })).error, undefined);
  }
  return { site, ids };
}

async function keyWith(site: TestSite, ...scopes: string[]): Promise<{ readonly apikey: string }> {
  const { data } = await site.call('svc1.key.insert', { name: scopes.join(' '), scopes });
  return { apikey: data.key };
}

const sums = { live: '1000', draft: '2000' };

suite('rows in the reports of a draft', () => {
  test('have no write-only field, for nobody', async (t) => {
    const { site } = await siteWithRows(t);
    for (const operation of ['changes', 'publish']) {
      const answer = await site.call(`svc1.draft.${operation}`, { draft });
      const { rows = answer.data.changes } = answer.data;
      const shown = rows.map((one: { fields: object }) => one.fields);
      assert.deepEqual(shown, [{ sum: sums }, { sum: sums }], operation);
    }
    const { data } = await site.call('svc1.draft.publish', { draft });
    await site.call('svc1.draft.publish', { draft, confirm: data.digest });
    const undo = await site.call('svc1.draft.undo', { draft });
    const shown = undo.data.changes.map((one: { fields: object }) => one.fields);
    const back = { live: '2000', undone: '1000' };
    assert.deepEqual(shown, [{ sum: back }, { sum: back }]);
  });

  test('are shown to those who may read the rows of the table', async (t) => {
    const { site, ids } = await siteWithRows(t);
    const reader = await keyWith(site, 'read', 'record.read');
    const { data } = await site.call('svc1.draft.changes', { draft }, reader);
    const shown = data.rows.map((one: { id: string; fields: object }) => [one.id, one.fields]);
    assert.deepEqual(shown, [[ids[1], { sum: sums }]]);
    const ofUsers = await keyWith(site, 'read', 'record.read:users');
    const own = await site.call('svc1.draft.changes', { draft }, ofUsers);
    assert.equal(own.data.rows.length, 1);
  });

  test('are published and taken back by those who may write them', async (t) => {
    const { site, ids } = await siteWithRows(t);
    const writer = await keyWith(site, 'read', 'publish', 'record.write');
    const refused = await site.call('svc1.draft.publish', { draft }, writer);
    assert.match(refused.error?.message ?? '', /publishing needs the scope admin/);
    const { data } = await site.call('svc1.draft.publish', { draft });
    await site.call('svc1.draft.publish', { draft, confirm: data.digest });
    const undo = await site.call('svc1.draft.undo', { draft }, writer);
    assert.match(undo.error?.message ?? '', /an undo needs the scope admin/);
    // Rows that this key writes, but does not read.
    await site.call('svc1.draft.insert', { name: 'own' });
    const edit = { table: 'users', id: ids[1], sum: '3000' };
    await site.call('svc1.record.edit', edit, { draft: 'own' });
    const report = await site.call('svc1.draft.publish', { draft: 'own' }, writer);
    assert.deepEqual(report.data.changes, [
      { family: 'record', id: ids[1], becomes: 'changed', fields: {} },
    ]);
    const confirmed = { draft: 'own', confirm: report.data.digest };
    assert.equal((await site.call('svc1.draft.publish', confirmed, writer)).data.records, 1);
    const back = await site.call('svc1.draft.undo', { draft: 'own' }, writer);
    assert.deepEqual(back.data.changes[0], {
      ...{ family: 'record', id: ids[1], becomes: 'changed', fields: {} },
    });
  });

  test('of pictures are published and taken back with the scope publish, as page rules are', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.draft.insert', { name: draft });
    const put = await fetch(`${site.url}/svc1/asset/a.txt?draft=${draft}`, {
      ...{ method: 'PUT', body: 'a', headers: { apikey: site.adminKey } },
    });
    assert.equal(put.status, 200, await put.text());
    const publisher = await keyWith(site, 'read', 'publish');
    for (const operation of ['publish', 'undo']) {
      const { data } = await site.call(`svc1.draft.${operation}`, { draft }, publisher);
      assert.equal(data.changes[0].label, 'a.txt');
      const confirmed = { draft, confirm: data.digest };
      const done = await site.call(`svc1.draft.${operation}`, confirmed, publisher);
      assert.equal(done.data.records, 1);
    }
  });
});
