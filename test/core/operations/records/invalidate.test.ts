import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  historyCharactersMax,
  invalidateInlineRowsMax,
} from '../../../../src/core/operations/records/limits.ts';
import {
  invalidateOperation,
  runRevert,
} from '../../../../src/core/operations/records/invalidate.ts';
import {
  ruleFamily,
  type RuleParts,
} from '../../../../src/modules/rules/operations/rule-family.ts';
import type { Call as OperationCall } from '../../../../src/core/operations/operation.ts';
import type { RevertRequest } from '../../../../src/core/operations/records/revert.ts';
import { startSite } from '../../../harness.ts';
import { commit, edited, inserted, scratchStore } from '../../log/scratch.ts';
import { transports, type Call } from '../../../modules/status/transports.ts';

const rule = 'svc1.userinterface';
const page = { path: '/a', kind: 'content', content: 'one' };

/** Runs an invalidate and confirms it; resolves to both reports. */
async function invalidate(call: Call, v: object) {
  const dry = await call(`${rule}.invalidate`, v);
  const done = await call(`${rule}.invalidate`, { ...v, confirm: dry.data.digest });
  return { dry: dry.data, done: done.data };
}

/** Confirms the dry run of an undo. */
async function confirmed(call: Call, name: string, v: object) {
  const { data } = await call(name, v);
  return (await call(name, { ...v, confirm: data.digest })).data;
}

async function invalidateRow(call: Call, id: string) {
  return confirmed(call, 'svc1.record.invalidate', { table: 'lamps', id });
}

for (const [transport, open] of Object.entries(transports)) {
  suite(`an invalidate over ${transport}`, () => {
    test('deletes a record, keeps its history, and can be reverted', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { id, seq } = (await call(`${rule}.insert`, page)).data;
      const { data: edited } = await call(`${rule}.edit`, { id, content: 'two' });
      const { dry, done } = await invalidate(call, { id });
      assert.deepEqual(
        [dry.done, dry.records, dry.rows, dry.gone, dry.changes[0].becomes, dry.ids],
        [false, 1, 2, 1, 'gone', [id]],
      );
      assert.deepEqual([done.done, done.records, done.rows, done.ids], [true, 1, 2, [id]]);
      assert.equal((await call(`${rule}.read`, { id })).error?.code, 'not_found');
      assert.equal((await call(`${rule}.edit`, { id, lang: 'en' })).error?.code, 'not_found');
      assert.equal((await call(`${rule}.read`, { id, as_of: seq })).data.content, 'one');
      const { rows } = (await call(`${rule}.read`, { id }, { qk: 'history' })).data;
      assert.deepEqual(
        rows.map((row: { data?: object; data_invalidated?: object; invalidated?: string }) => [
          row.data ?? null,
          row.data_invalidated ?? null,
          row.invalidated === undefined,
        ]),
        [
          [{ id, rows: [seq, edited.seq] }, null, true],
          [null, { id, content: 'two' }, false],
          [null, { id, origin: '*', ...page }, false],
        ],
      );
      assert.equal((await invalidate(call, { id })).done.records, 0, 'it is gone already');
      const back = await invalidate(call, { txn: done.txn });
      assert.deepEqual([back.dry.restored, back.done.records], [1, 1]);
      assert.equal((await call(`${rule}.read`, { id })).data.content, 'two');
      await invalidate(call, { txn: back.done.txn });
      assert.equal((await call(`${rule}.read`, { id })).error?.code, 'not_found');
    });

    test('reverts the changes of one key in a period, and reports fields and conflicts', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { data: key } = await call('svc1.key.insert', { name: 'bulk', scopes: ['design'] });
      const asBulk = { apikey: key.key };
      const { id } = (await call(`${rule}.insert`, page)).data;
      const { data: other } = await call(`${rule}.insert`, { ...page, path: '/b' });
      const edit = (v: object) => site.call(`${rule}.edit`, v, asBulk);
      const before = (await call('svc1.server.status', {})).data.seq;
      await edit({ id, content: 'bad', lang: 'en' });
      await edit({ id: other.id, httpresponse: 500 });
      const { data: added } = await site.call(`${rule}.insert`, { ...page, path: '/c' }, asBulk);
      const { data: since } = await call(`${rule}.edit`, { id, rve: 2 });
      const v = { by: key.id, from: String(before) };
      const { dry, done } = await invalidate(call, v);
      assert.deepEqual([dry.records, dry.rows, dry.gone, dry.changed], [3, 3, 1, 2]);
      const [first] = dry.changes;
      assert.deepEqual(first.fields, {
        content: { now: 'bad', then: 'one' },
        lang: { now: 'en', then: null },
      });
      const [{ later, ...conflict }] = dry.conflicts;
      assert.deepEqual([dry.conflicting, conflict], [1, { id, rows: [since.seq] }]);
      const [{ at, by, ...newest }] = later;
      assert.ok(Date.parse(at) > 0 && by !== key.id, `${at} ${by}`);
      const expected = { seq: since.seq, by_name: 'admin', action: 'edit', fields: ['rve'] };
      assert.deepEqual(newest, expected);
      assert.equal(done.records, 3);
      const read = async (one: string) => (await call(`${rule}.read`, { id: one })).data;
      assert.deepEqual((await read(id)).content, 'one');
      assert.equal((await read(id)).rve, 2, 'what came since stays');
      assert.equal((await read(other.id)).httpresponse, undefined);
      assert.equal(await read(added.id), undefined);
      const [, , row] = (await call(`${rule}.read`, { id }, { qk: 'history' })).data.rows;
      const window = await call(`${rule}.invalidate`, {
        by: key.id,
        from: row.dtu_stored,
        until: '2000-01-01',
      });
      assert.equal(window.error?.field, 'until', 'a day alone is no moment');
    });

    test('refuses in the dry run what the store would refuse to write', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const schema = { type: 'object', properties: { sku: { type: 'string' } } };
      const definition = { name: 'lamps', schema };
      const { data: table } = await call('svc1.table.insert', definition);
      const { data: row } = await call('svc1.record.insert', { table: 'lamps', sku: 'T-1' });
      const full = await call('svc1.table.invalidate', { id: table.id });
      assert.equal(full.error?.code, 'conflict');
      assert.match(full.error.message, /has 1 row/);
      // An undo of both is possible: the row goes first.
      await invalidateRow(call, row.id as string);
      const gone = await confirmed(call, 'svc1.table.invalidate', { id: table.id });
      await call('svc1.table.insert', definition, { vk: 'again' });
      const taken = await call('svc1.table.invalidate', { txn: gone.txn });
      assert.equal(taken.error?.code, 'conflict');
      assert.match(taken.error.message, /exists already/);
    });

    test('refuses in the dry run to bring a row back whose table is gone, or another key', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const schema = { type: 'object', properties: { sku: { type: 'string' } } };
      const { data: table } = await call('svc1.table.insert', { name: 'lamps', schema });
      const { data: edited } = await call('svc1.table.edit', { id: table.id, key: 'sku' });
      const { data: row } = await call('svc1.record.insert', { table: 'lamps', sku: 'T-1' });
      const seq = String(edited.seq);
      const key = await call('svc1.table.invalidate', { id: table.id, from: seq, until: seq });
      assert.deepEqual([key.error?.code, key.error?.field], ['conflict', 'key']);
      const { txn } = await invalidateRow(call, row.id as string);
      await confirmed(call, 'svc1.table.invalidate', { id: table.id });
      const back = await call('svc1.change.invalidate', { txn });
      assert.equal(back.error?.code, 'conflict');
    });

    test('leaves the records as they are that it is told to, and confirms only that', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { data: key } = await call('svc1.key.insert', { name: 'x', scopes: ['design'] });
      const made = [];
      for (const path of ['/x/1', '/x/2', '/x/3']) {
        const v = { ...page, path };
        made.push((await site.call(`${rule}.insert`, v, { apikey: key.key })).data.id as string);
      }
      const [first, second, third] = made;
      const { data: all } = await call(`${rule}.invalidate`, { by: key.id });
      const v = { by: key.id, except: [second] };
      const other = await call(`${rule}.invalidate`, { ...v, confirm: all.digest });
      assert.equal(other.error?.code, 'precondition_failed');
      const { dry, done } = await invalidate(call, v);
      assert.deepEqual(
        [dry.ids, done.ids],
        [
          [first, third],
          [first, third],
        ],
      );
      const left = await call(`${rule}.list`, { path: '/x/' });
      assert.deepEqual(
        left.data.rows.map(({ id }: { id: string }) => id),
        [second],
      );
    });

    test('does not restore what the same author had reverted', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { data: key } = await call('svc1.key.insert', { name: 'x', scopes: ['design'] });
      const asKey: Call = (name, v) => site.call(name, v, { apikey: key.key });
      const { data: bad } = await asKey(`${rule}.insert`, page);
      const { data: good } = await call(`${rule}.insert`, { ...page, path: '/b' });
      const { data: edited } = await asKey(`${rule}.edit`, { id: good.id, content: 'bad' });
      const ended = await invalidate(asKey, { id: bad.id });
      const undone = await invalidate(asKey, { id: good.id, by: key.id });
      const { dry, done } = await invalidate(call, { by: key.id });
      assert.deepEqual(
        dry.changes.map(({ rows, becomes }: Record<string, unknown>) => [rows, becomes]),
        [
          [[bad.seq, ended.done.seq], 'same'],
          [[edited.seq, undone.done.seq], 'same'],
        ],
      );
      assert.equal(done.records, 2);
      assert.equal((await call(`${rule}.read`, { id: bad.id })).error?.code, 'not_found');
      assert.equal((await call(`${rule}.read`, { id: good.id })).data.content, 'one');
      assert.equal((await call(`${rule}.invalidate`, { by: key.id })).data.records, 0);
    });

    test('does not count another order of unknown fields as a change', async (t) => {
      const call = await open(await startSite(t));
      const { id } = (await call(`${rule}.insert`, page)).data;
      const { data: first } = await call(`${rule}.edit`, { id, a: 1 });
      await call(`${rule}.edit`, { id, b: 1 });
      await call(`${rule}.edit`, { id, a: 2 });
      const { rows } = (await call(`${rule}.read`, { id }, { qk: 'history' })).data;
      const txn = rows.find(({ seq }: { seq: number }) => seq === first.seq).txn;
      const { data } = await call(`${rule}.invalidate`, { txn });
      assert.deepEqual([data.changes[0].becomes, data.changed], ['same', 0]);
      assert.deepEqual(data.changes[0].fields, {});
    });

    test('is refused if the data has changed since the dry run', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { id } = (await call(`${rule}.insert`, page)).data;
      const { data: dry } = await call(`${rule}.invalidate`, { id });
      await call(`${rule}.edit`, { id, content: 'two' });
      const { error } = await call(`${rule}.invalidate`, { id, confirm: dry.digest });
      assert.deepEqual([error?.code, error?.field], ['precondition_failed', 'confirm']);
      assert.equal((await call(`${rule}.read`, { id })).data.content, 'two');
    });

    test('runs once under a vk, also if it is repeated', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const { id } = (await call(`${rule}.insert`, page)).data;
      const { data: dry } = await call(`${rule}.invalidate`, { id });
      const v = { id, confirm: dry.digest };
      const first = await call(`${rule}.invalidate`, v, { vk: 'undo-1' });
      const again = await call(`${rule}.invalidate`, v, { vk: 'undo-1' });
      assert.deepEqual([first.replayed, again.replayed], [undefined, true]);
      assert.deepEqual(again.data, first.data);
      const other = await call(`${rule}.invalidate`, { id }, { vk: 'undo-1' });
      assert.equal(other.data.done, false, 'a dry run claims nothing');
      const { error } = await call(
        `${rule}.invalidate`,
        { by: 'import', confirm: dry.digest },
        { vk: 'undo-1' },
      );
      assert.deepEqual([error?.code, error?.field], ['conflict', 'vk']);
    });

    test('is refused if the input does not say what to revert', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      for (const [v, code, field] of [
        [{}, 'invalid', 'id'],
        [{ id: 'x' }, 'not_found', 'id'],
        [{ txn: 'x' }, 'not_found', 'txn'],
        [{ by: 'import', from: 'then' }, 'invalid', 'from'],
        [{ by: 'import', until: '9999' }, 'invalid', 'until'],
        [{ by: 'x' }, 'invalid', 'by'],
        [{ by: '0198…' }, 'invalid', 'by'],
        [{ by: 'import', confirm: 'x' }, 'precondition_failed', 'confirm'],
      ] as const) {
        const { error } = await call(`${rule}.invalidate`, v);
        assert.deepEqual([error?.code, error?.field], [code, field], JSON.stringify(v));
      }
    });
  });
}

test('a large import is reverted in another thread, and restored', async (t) => {
  const rules = Array.from({ length: 1_100 }, (_, at) => ({ ...page, path: `/${at}` }));
  const site = await startSite(t, { rules });
  const call: Call = (name, v) => site.call(name, v);
  const status = async (path: string) => (await fetch(site.url + path)).status;
  const { data } = await call(`${rule}.list`, { limit: 1 });
  const [row] = (await site.call(`${rule}.read`, { id: data.rows[0].id }, { qk: 'history' })).data
    .rows;
  const { dry, done } = await invalidate(call, { txn: row.txn });
  assert.deepEqual(
    [dry.records, dry.gone, dry.changes.length, dry.unlisted],
    [1_100, 1_100, 1_000, 100],
  );
  assert.deepEqual([done.records, await status('/0'), await status('/1099')], [1_100, 404, 404]);
  const wrong = await call(`${rule}.invalidate`, { txn: done.txn, confirm: dry.digest });
  assert.equal(wrong.error?.code, 'precondition_failed');
  const back = await invalidate(call, { txn: done.txn });
  assert.deepEqual(
    [back.done.records, await status('/0'), await status('/1099')],
    [1_100, 200, 200],
  );
});

suite('a record with a long history', () => {
  const much = 'x'.repeat(historyCharactersMax / 2);
  for (const [title, contents, where] of [
    ['few rows', ['a', 'b'], 'here'],
    ['many rows', Array.from({ length: invalidateInlineRowsMax }, String), 'elsewhere'],
    ['few and large rows', [`${much}1`, `${much}2`], 'elsewhere'],
  ] as const) {
    test(`is reverted in another thread if the work is large: ${title}`, async (t) => {
      const store = await scratchStore(t);
      await commit(store, inserted('a', { path: '/a' }));
      await commit(store, ...contents.map((content) => edited('a', { content })));
      const asked: unknown[] = [];
      const run = invalidateOperation(ruleFamily).run({
        store,
        engines: new Set(),
        accessNames: new Set(),
        revertInThread(request: RevertRequest) {
          asked.push(request);
          return runRevert(store, [ruleFamily], request);
        },
      } as unknown as RuleParts);
      const call = { caller: { keyId: 'k', scopes: new Set() } } as unknown as OperationCall;
      for (const selection of [{ id: 'a' }, { from: '1' }]) {
        asked.length = 0;
        const answer = await run(selection, call);
        assert.equal(
          answer.kind === 'data' && (answer.data as { rows: number }).rows,
          contents.length + 1,
        );
        assert.equal(asked.length === 0 ? 'here' : 'elsewhere', where);
      }
    });
  }
});
