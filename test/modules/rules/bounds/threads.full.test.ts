import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publishInlineRecordsMax } from '../../../../src/modules/drafts/operations/limits.ts';
import { invalidateInlineRowsMax } from '../../../../src/core/operations/records/limits.ts';
import { inside, secret, startWorld } from './world.ts';

const { origin } = inside;
const rule = 'svc1.userinterface';

function lines(count: number, path: string): string {
  const all = Array.from({ length: count }, (_, at) => ({ origin, path: `${path}${at}` }));
  return all.map((one) => JSON.stringify({ ...one, content: 'x'.repeat(40) })).join('\n');
}

test('what is large enough for a thread of its own is bound as well', async (t) => {
  const world = await startWorld(t);
  const apikey = await world.key(['read', 'design']);
  const call: typeof world.site.call = (name, v, more) =>
    world.site.call(name, v, { apikey, ...more });
  const count = invalidateInlineRowsMax + 100;

  const refused = await call(`${rule}.import`, { ndjson: lines(count, `/${secret}/`) });
  assert.match(refused.error?.message ?? '', /line 1: this key is bound to/);
  const imported = await call(`${rule}.import`, { ndjson: lines(count, '/blog/n') });
  assert.equal(imported.data.imported, count);

  const mixed = `${lines(count, '/blog/m')}\n${lines(1, `/${secret}/m`)}`;
  const { data: theirs } = await world.site.call(`${rule}.import`, { ndjson: mixed });
  const both = await call(`${rule}.invalidate`, { txn: theirs.txn });
  assert.equal(both.error?.code, 'forbidden');
  const outer = await world.site.call(`${rule}.import`, { ndjson: lines(count, `/${secret}/o`) });
  const none = await call(`${rule}.invalidate`, { txn: outer.data.txn });
  assert.equal(none.error?.code, 'not_found');

  const { data: all } = await call(`${rule}.invalidate`, { from: '1', except: [world.ours.came] });
  const own = Object.keys(world.ours).length - 1;
  assert.equal(all.records, own + 2 * count);
  const { data: undo } = await call(`${rule}.invalidate`, { txn: imported.data.txn });
  const done = await call(`${rule}.invalidate`, { txn: imported.data.txn, confirm: undo.digest });
  assert.equal(done.data.records, count);

  const drafted = publishInlineRecordsMax + 10;
  for (const [name, path, more] of [
    ['ours', '/blog/d', drafted],
    ['theirs', `/${secret}/d`, 1],
  ] as const) {
    await call('svc1.draft.insert', { name });
    await call(`${rule}.import`, { ndjson: lines(drafted, '/blog/e') }, { draft: name });
    await world.site.call(`${rule}.import`, { ndjson: lines(more, path) }, { draft: name });
  }
  const hidden = await call('svc1.draft.publish', { draft: 'theirs' });
  assert.equal(hidden.error?.code, 'not_found');
  const { data: report } = await call('svc1.draft.publish', { draft: 'ours' });
  assert.equal(report.records, 2 * drafted);
  const published = await call('svc1.draft.publish', { draft: 'ours', confirm: report.digest });
  assert.equal(published.data.records, 2 * drafted);
});
