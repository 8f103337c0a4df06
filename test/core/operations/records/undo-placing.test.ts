import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';
import { transports, type Call } from '../../../modules/status/transports.ts';

const rule = 'svc1.userinterface';

/** Undoes one row of a record; resolves to the dry run. */
async function undo(
  call: Call,
  family: string,
  { seq, ...record }: Readonly<Record<string, unknown>>,
) {
  const v = { ...record, from: String(seq), until: String(seq) };
  const { data } = await call(`svc1.${family}.invalidate`, v);
  await call(`svc1.${family}.invalidate`, { ...v, confirm: data.digest });
  return data;
}

for (const [transport, open] of Object.entries(transports)) {
  suite(`the fields that an undo leaves, over ${transport}`, () => {
    test('have the last value in force, not one that waited before it', async (t) => {
      const call = await open(await startSite(t));
      const v = { path: '/a', kind: 'resolve', content: 'old', enginedata: { target: '/x' } };
      const { id } = (await call(`${rule}.insert`, v)).data;
      const { seq } = (await call(`${rule}.edit`, { id, kind: 'content' })).data;
      await call(`${rule}.edit`, { id, content: 'newer' });
      const dry = await undo(call, 'userinterface', { id, seq });
      assert.deepEqual(dry.changes[0].fields.kind, { now: 'content', then: 'resolve' });
      assert.deepEqual(dry.changes[0].fields._unknowns_?.then, { content: 'newer' });
      const { data: left } = await call(`${rule}.read`, { id });
      assert.deepEqual([left.content, left._unknowns_], [undefined, { content: 'newer' }]);
      assert.deepEqual(left.enginedata, { target: '/x' });
      const { data: again } = await call(`${rule}.edit`, { id, kind: 'content' });
      assert.equal(again.content, 'newer');
    });

    test('are placed at once, as the dry run says', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { id } = (await call(`${rule}.insert`, { path: '/b', content: 'v1' })).data;
      const other = { id, kind: 'resolve', enginedata: { target: '/z' } };
      const { seq } = (await call(`${rule}.edit`, other)).data;
      const { data: later } = await call(`${rule}.edit`, { id, content: 'v2' });
      const dry = await undo(call, 'userinterface', { id, seq });
      assert.deepEqual(dry.changes[0].fields.content, { now: null, then: 'v2' });
      assert.deepEqual(dry.conflicts[0].rows, [later.seq]);
      assert.equal(await (await fetch(`${site.url}/b`)).text(), 'v2');
      assert.equal((await call(`${rule}.read`, { id })).data._unknowns_, undefined);
      // The placement is no write of its own: without the later edit, the first content is back.
      const next = await undo(call, 'userinterface', { id, seq: later.seq });
      assert.equal(next.conflicts[0].rows.length, 1, 'only the undo itself has come since');
      assert.equal(await (await fetch(`${site.url}/b`)).text(), 'v1');
      // An undo of that undo brings the later content back.
      const { rows } = (await call(`${rule}.read`, { id }, { qk: 'history' })).data;
      const { txn } = rows[0];
      const { data: back } = await call(`${rule}.invalidate`, { txn });
      await call(`${rule}.invalidate`, { txn, confirm: back.digest });
      assert.equal(await (await fetch(`${site.url}/b`)).text(), 'v2');
    });

    test('stay removed where the last write in force has removed them', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call(`${rule}.insert`, { path: '/c', content: 'v1' })).data;
      const other = { id, kind: 'resolve', enginedata: { target: '/z' } };
      const { seq } = (await call(`${rule}.edit`, other)).data;
      await call(`${rule}.edit`, { id, content: 'v2' });
      await call(`${rule}.edit`, { id, content: null });
      await undo(call, 'userinterface', { id, seq });
      const { data } = await call(`${rule}.read`, { id });
      assert.deepEqual([data.content, data._unknowns_?.content], [undefined, undefined]);
    });

    test('do not pause a hook whose last frequency is valid', async (t) => {
      const call = await open(await startSite(t));
      const v = { url: 'https://far.example/', event: 'record.changed', frequency: 'bad' };
      const { id } = (await call('svc1.webhook.insert', v)).data;
      const each = { id, frequency: { mode: 'each' } };
      const { seq } = (await call('svc1.webhook.edit', each)).data;
      const frequency = { mode: 'batch', every: '1s' };
      await call('svc1.webhook.edit', { id, frequency });
      await undo(call, 'webhook', { id, seq });
      const { data } = await call('svc1.webhook.read', { id });
      assert.equal(data._unknowns_, undefined);
      assert.equal(data.active, true);
      assert.equal(data.frequency.mode, 'batch');
    });

    test('of rows and of single values follow the same rule', async (t) => {
      const call = await open(await startSite(t));
      const v = { path: '/d', content: 'x', httpresponse: 'bad' };
      const { id } = (await call(`${rule}.insert`, v)).data;
      const { seq } = (await call(`${rule}.edit`, { id, httpresponse: 201 })).data;
      await call(`${rule}.edit`, { id, httpresponse: 202 });
      await undo(call, 'userinterface', { id, seq });
      const { data } = await call(`${rule}.read`, { id });
      assert.deepEqual([data.httpresponse, data._unknowns_], [202, undefined]);
      const schema = { type: 'object', properties: { price: { type: 'number' } } };
      await call('svc1.table.insert', { name: 'lamps', schema });
      const row = { table: 'lamps', price: 'free' };
      const { id: rowId } = (await call('svc1.record.insert', row)).data;
      const named = { table: 'lamps', id: rowId };
      const edited = (await call('svc1.record.edit', { ...named, price: 1 })).data;
      await call('svc1.record.edit', { ...named, price: 2 });
      await undo(call, 'record', { ...named, seq: edited.seq });
      const { data: left } = await call('svc1.record.read', named);
      assert.deepEqual([left.price, left._unknowns_], [2, undefined]);
    });
  });
}
