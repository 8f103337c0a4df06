import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { exportedHistory } from '../../../../src/modules/transfer/export.ts';
import { openStore } from '../../../../src/core/log/open.ts';
import { startFollower, stateOf, untilEqual } from '../../nodes/rig.ts';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';

const draft = 'spring';

async function siteWithDraft(
  t: Parameters<typeof startSite>[0],
  options: Parameters<typeof startSite>[1] = {},
): Promise<TestSite> {
  const site = await startSite(t, options);
  await site.call('svc1.draft.insert', { name: draft });
  return site;
}

async function publish(site: TestSite, more: object = {}): Promise<Answer> {
  const report = await site.call('svc1.draft.publish', { draft, ...more });
  const confirm = report.data?.digest;
  return site.call('svc1.draft.publish', { draft, ...more, confirm });
}

test('a hook of a draft gets events once it is published, with the secret of its insert', async (t) => {
  const site = await siteWithDraft(t);
  const hook = { event: ['sale.completed'], url: 'https://hooks.example/', method: 'POST' };
  const { data: live } = await site.call('svc1.webhook.insert', { ...hook, name: 'live' });
  const { data } = await site.call('svc1.webhook.insert', { ...hook, name: 'new' }, { draft });
  await site.call('svc1.webhook.edit', { id: live.id, active: false }, { draft });
  const sale = { type: 'sale.completed', data: { id: 'S-1' } };
  assert.equal((await site.call('svc1.event.insert', sale)).data.hooks, 1);
  const listed = await site.call('svc1.webhook.list', {}, { draft });
  assert.deepEqual(
    listed.data.rows.map((row: { name: string; active: boolean }) => [row.name, row.active]),
    [
      ['live', false],
      ['new', true],
    ],
  );
  const published = await publish(site);
  assert.deepEqual(published.data.families, ['webhook']);
  assert.equal((await site.call('svc1.event.insert', sale, { vk: 'after' })).data.hooks, 2);
  const rotated = await site.call('svc1.webhook.rotate', { id: data.id });
  assert.equal(rotated.error, undefined);
  assert.equal(typeof data.secret, 'string');
  await stateOf(site, 1);
});

const lamps = {
  name: 'lamps',
  key: 'sku',
  index: ['price'],
  search: ['title'],
  schema: {
    properties: { sku: { type: 'string' }, price: { type: 'number' }, title: { type: 'string' } },
  },
};

test('a draft has tables and rows of its own, which are published together', async (t) => {
  const site = await siteWithDraft(t);
  const made = await site.call('svc1.table.insert', lamps, { draft });
  assert.equal(made.error, undefined);
  const row = { table: 'lamps', sku: 'L-1', price: 5, title: 'oak' };
  await site.call('svc1.record.insert', row, { draft });
  const second = await site.call('svc1.record.insert', { ...row, sku: 'L-2', price: 9 }, { draft });
  const twice = await site.call('svc1.record.insert', { ...row, title: 'x' }, { draft });
  assert.equal(twice.error?.code, 'conflict');
  const cheap = { table: 'lamps', where: { price: { '<': 6 } } };
  assert.equal((await site.call('svc1.record.list', cheap, { draft })).data.rows.length, 1);
  assert.equal((await site.call('svc1.record.list', cheap)).error?.code, 'not_found');
  const counts = await site.call('svc1.table.counts', {}, { draft });
  assert.match(JSON.stringify(counts.data), /"rows":2/);
  const { id } = second.data;
  await site.call('svc1.record.edit', { table: 'lamps', id, price: 4 }, { draft });
  assert.equal((await site.call('svc1.record.list', cheap, { draft })).data.rows.length, 2);
  const published = await publish(site);
  assert.deepEqual(published.data.families, ['table', 'record']);
  assert.equal((await site.call('svc1.record.list', cheap)).data.rows.length, 2);
  await stateOf(site, 1);
});

test('a row of a draft whose key was taken live is refused by name', async (t) => {
  const site = await siteWithDraft(t);
  await site.call('svc1.table.insert', lamps);
  const row = { table: 'lamps', sku: 'L-1', price: 5 };
  await site.call('svc1.record.insert', row, { draft });
  await site.call('svc1.record.insert', { ...row, price: 7 });
  const refused = await publish(site);
  assert.equal(refused.error?.code, 'conflict');
  assert.match(refused.error.message, /has a row with sku = "L-1" already/);
  assert.equal((await site.call('svc1.draft.read', { draft })).data.state, 'open');
});

test('publishing needs the scopes of all families of the draft', async (t) => {
  const site = await siteWithDraft(t);
  await site.call('svc1.table.insert', lamps, { draft });
  const { data } = await site.call('svc1.key.insert', { name: 'd', scopes: ['design', 'read'] });
  const refused = await site.call('svc1.draft.publish', { draft }, { apikey: data.key });
  assert.equal(refused.error?.code, 'forbidden');
  const changes = await site.call('svc1.draft.changes', { draft }, { apikey: data.key });
  assert.deepEqual(changes.data.rows, []);
});

/** The history of a site as an export has it. */
async function linesOf(site: TestSite): Promise<string> {
  const folder = join(site.folder, 'data');
  const store = await openStore({ families, folder, now: Date.now, newId: uuidv7, readOnly: true });
  try {
    return [...exportedHistory(store)].join('\n');
  } finally {
    await store.close();
  }
}

test('a replica has the drafts of its centre, without secrets, and passes their changes on', async (t) => {
  const centre = await siteWithDraft(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const more = { apikey: centre.adminKey, draft };
  const place = { origin: 'http://x.example', path: '/a' };
  const page = { path: '/a', content: 'drafted' };
  const written = await replica.call('svc1.userinterface.insert', page, more);
  assert.equal(written.error, undefined);
  const hook = { event: ['a.b'], url: 'https://hooks.example/', method: 'POST' };
  const headers = { 'X-Key': 'hidden' };
  const { data } = await centre.call('svc1.webhook.insert', { ...hook, headers }, { draft });
  const seq = await untilEqual(centre, replica);
  const copied = await linesOf(replica);
  assert.ok(!copied.includes('hidden') && !copied.includes(data.secret));
  const exported = await linesOf(centre);
  assert.match(exported, /hidden/);
  assert.ok(!exported.includes(data.secret));
  const read = await replica.call('svc1.userinterface.get', place, more);
  assert.equal(read.data.content, 'drafted');
  const missing = await replica.call('svc1.userinterface.get', place, { apikey: centre.adminKey });
  assert.equal(missing.error?.code, 'not_found');
  assert.equal(await stateOf(replica, seq), await stateOf(centre, seq));
  await publish(centre);
  const end = await untilEqual(centre, replica);
  assert.equal(await (await fetch(`${replica.url}/a`)).text(), 'drafted');
  assert.equal(await stateOf(replica, end), await stateOf(centre, end));
});
