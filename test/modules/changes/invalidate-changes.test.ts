import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../harness.ts';
import { transports } from '../status/transports.ts';

const undo = 'svc1.change.invalidate';
const batch = 'svc1.batch';
const insertRule = 'svc1.userinterface.insert';
const editRule = 'svc1.userinterface.edit';
const schema = {
  type: 'object',
  properties: { sku: { type: 'string' }, left: { type: 'number' } },
};

/** Operations of every family that a batch can have; the last one is an event. */
function ofEveryFamily(pageId: string) {
  return [
    { a: insertRule, v: { path: '/new', content: 'new' } },
    { a: insertRule, v: { path: '/was', kind: 'resolve', enginedata: { target: '/new' } } },
    { a: editRule, v: { id: pageId, content: 'after' } },
    { a: 'svc1.table.insert', v: { name: 'products', key: 'sku', schema } },
    { a: 'svc1.record.insert', v: { table: 'products', sku: 'a', left: 3 } },
    { a: 'svc1.record.edit', v: { table: 'products', sku: 'a', left: 2 } },
    { a: 'svc1.webhook.insert', v: { event: ['sale.completed'], url: 'https://a.example/' } },
    { a: 'svc1.event.insert', v: { type: 'sale.completed', data: { total: 5 } } },
  ];
}

async function addPage(site: TestSite, path: string, content = 'before'): Promise<string> {
  return (await site.call(insertRule, { path, content })).data.id as string;
}

async function addKey(site: TestSite, v: object): Promise<string> {
  return (await site.call('svc1.key.insert', { name: 'k', ...v })).data.key as string;
}

async function contentOf(site: TestSite, path: string): Promise<string | number> {
  const reply = await fetch(`${site.url}${path}`, { redirect: 'manual' });
  const text = await reply.text();
  return reply.status === 200 ? text : reply.status;
}

/** What there is of what `ofEveryFamily` has written. */
async function stateOf(site: TestSite, pageId: string): Promise<readonly unknown[]> {
  const page = await site.call('svc1.userinterface.read', { id: pageId });
  const row = await site.call('svc1.record.read', { table: 'products', sku: 'a' });
  const hooks = await site.call('svc1.webhook.list', {});
  const pages = [await contentOf(site, '/new'), await contentOf(site, '/was')];
  return [...pages, page.data.content, row.error?.code ?? row.data.left, hooks.data.rows.length];
}

const made = ['new', 302, 'after', 2, 1];
const unmade = [404, 404, 'before', 'not_found', 0];

const codeOf = ({ error }: Answer) => error?.code;

for (const [transport, open] of Object.entries(transports)) {
  suite(`change.invalidate, over ${transport}`, () => {
    test('takes back all of a transaction, over all families, and itself', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const id = await addPage(site, '/old');
      const { data: done } = await call(batch, { operations: ofEveryFamily(id) });
      assert.deepEqual(await stateOf(site, id), made);

      const { data: plan } = await call(undo, { txn: done.txn });
      assert.deepEqual(
        [plan.done, plan.records, plan.rows, plan.gone, plan.changed, plan.conflicting],
        [false, 6, 7, 5, 1, 0],
      );
      assert.deepEqual(
        plan.changes.map(({ family }: { family: string }) => family),
        ['userinterface', 'userinterface', 'userinterface', 'table', 'record', 'webhook'],
      );
      // An event has happened: its messages may have left.
      assert.deepEqual(plan.others, [{ family: 'event', rows: 1 }]);
      assert.deepEqual(await stateOf(site, id), made);

      const confirmed = { txn: done.txn, confirm: plan.digest };
      const undone = await call(undo, confirmed, { vk: 'undo-1' });
      assert.deepEqual([undone.data.done, undone.data.records, undone.data.rows], [true, 6, 7]);
      assert.equal(undone.data.seq, (await call('svc1.server.status', {})).data.seq);
      assert.deepEqual(await stateOf(site, id), unmade);
      const again = await call(undo, confirmed, { vk: 'undo-1' });
      assert.deepEqual([again.replayed, again.data], [true, undone.data]);
      const { data: nothing } = await call(undo, { txn: done.txn });
      assert.deepEqual([nothing.records, nothing.rows], [0, 0]);

      const redo = await call(undo, { txn: undone.data.txn });
      assert.deepEqual([redo.data.restored, redo.data.changed, redo.data.others], [5, 1, []]);
      await call(undo, { txn: undone.data.txn, confirm: redo.data.digest });
      assert.deepEqual(await stateOf(site, id), made);
    });

    test('is refused after a change since the dry run, leaves later edits, and what it is told to leave', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const id = await addPage(site, '/old');
      const { data: done } = await call(batch, { operations: ofEveryFamily(id) });
      const { txn } = done;
      const { data: early } = await call(undo, { txn });
      await call(editRule, { id, contenttype: 'text/plain' });
      assert.equal(codeOf(await call(undo, { txn, confirm: early.digest })), 'precondition_failed');
      assert.deepEqual(await stateOf(site, id), made);

      const { data: plan } = await call(undo, { txn });
      assert.deepEqual(
        plan.conflicts.map((one: { id: string; later: { fields: string[] }[] }) => [
          one.id,
          one.later[0]?.fields,
        ]),
        [[id, ['contenttype']]],
      );
      const hook = done.results[6].id as string;
      const { data: less } = await call(undo, { txn, except: [hook] });
      assert.equal(less.records, plan.records - 1);
      await call(undo, { txn, except: [hook], confirm: less.digest });
      assert.deepEqual(await stateOf(site, id), [...unmade.slice(0, 4), 1]);
      const { data: read } = await call('svc1.userinterface.read', { id });
      assert.deepEqual([read.content, read.contenttype], ['before', 'text/plain']);
    });

    test('names the other families in the answer of one of them', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const id = await addPage(site, '/old');
      const { data: done } = await call(batch, { operations: ofEveryFamily(id) });
      const { txn } = done;
      const others = [
        { family: 'table', rows: 1 },
        { family: 'record', rows: 2 },
        { family: 'webhook', rows: 1 },
        { family: 'event', rows: 1 },
      ];
      const { data: plan } = await call('svc1.userinterface.invalidate', { txn });
      assert.deepEqual(plan.others, others);
      const confirmed = { txn, confirm: plan.digest };
      const { data: undone } = await call('svc1.userinterface.invalidate', confirmed);
      assert.deepEqual(undone.others, others);
      // What is undone already is no longer named.
      const { data: rest } = await call('svc1.record.invalidate', { table: 'products', txn });
      assert.deepEqual(
        rest.others.map(({ family }: { family: string }) => family),
        ['table', 'webhook', 'event'],
      );
      const { data: byId } = await call('svc1.userinterface.invalidate', { id });
      assert.deepEqual(byId.others, []);
    });
  });
}

suite('change.invalidate', () => {
  test('undoes a transaction of more rows than a request examines at once', async (t) => {
    const site = await startSite(t);
    const operations = [
      ...Array.from({ length: 1_050 }, (_, at) => ({
        a: insertRule,
        v: { path: `/p/${at}`, content: 'x' },
      })),
      { a: 'svc1.webhook.insert', v: { event: ['sale.completed'], url: 'https://a.example/' } },
    ];
    const { data: done } = await site.call(batch, { operations });
    const { data: plan } = await site.call(undo, { txn: done.txn });
    assert.deepEqual([plan.records, plan.gone, plan.unlisted], [1_051, 1_051, 51]);
    const { data: undone } = await site.call(undo, { txn: done.txn, confirm: plan.digest });
    assert.equal(undone.records, 1_051);
    assert.equal(await contentOf(site, '/p/1049'), 404);
    const hooks = await site.call('svc1.webhook.list', {});
    assert.deepEqual(hooks.data.rows, []);
  });

  test('needs the scopes for all that it changes, and writes nothing without them', async (t) => {
    const site = await startSite(t);
    const id = await addPage(site, '/old');
    const { data: done } = await site.call(batch, { operations: ofEveryFamily(id) });
    const { txn } = done;
    const { data: plan } = await site.call(undo, { txn });
    for (const [scopes, missing] of [
      [['design', 'read'], /the scope admin/],
      [['design', 'webhook', 'record.write'], /the scope admin/],
      [['read', 'record.read'], /may change nothing/],
    ] as const) {
      const apikey = await addKey(site, { scopes });
      for (const v of [{ txn }, { txn, confirm: plan.digest }]) {
        const refused = await site.call(undo, v, { apikey });
        assert.deepEqual([refused.error?.code, refused.error?.field], ['forbidden', 'txn']);
        assert.match(refused.error?.message ?? '', missing);
      }
    }
    const nobody = await site.call(undo, { txn }, { apikey: '' });
    assert.equal(codeOf(nobody), 'unauthenticated');
    const unknown = await site.call(undo, { txn: 'none' });
    assert.deepEqual([unknown.error?.code, unknown.error?.field], ['not_found', 'txn']);
    assert.deepEqual(await stateOf(site, id), made);

    const design = await addKey(site, { scopes: ['design', 'read'] });
    const pages = await site.call('svc1.userinterface.invalidate', { txn }, { apikey: design });
    // It may read none of the others.
    assert.deepEqual(pages.data.others, []);
  });

  test('needs the rights that the table of a row asks for', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.table.insert', { name: 'open', key: 'sku', schema });
    await site.call('svc1.table.insert', { name: 'shut', key: 'sku', schema, edit: ['admin'] });
    const rows = { sku: 'a', left: 1 };
    const txnOf = async (...tables: readonly string[]) => {
      const operations = tables.map((table) => ({
        a: 'svc1.record.insert',
        v: { table, ...rows },
      }));
      return (await site.call(batch, { operations })).data.txn as string;
    };
    const apikey = await addKey(site, { scopes: ['record.write'] });
    const refused = await site.call(undo, { txn: await txnOf('open', 'shut') }, { apikey });
    assert.equal(codeOf(refused), 'forbidden');
    const own = await addKey(site, { scopes: ['record.write:open'] });
    const operations = [{ a: 'svc1.record.insert', v: { table: 'open', sku: 'b' } }];
    const { data: done } = await site.call(batch, { operations }, { apikey: own });
    const { data: plan } = await site.call(undo, { txn: done.txn }, { apikey: own });
    assert.equal(plan.gone, 1);
    const confirmed = { txn: done.txn, confirm: plan.digest };
    assert.equal((await site.call(undo, confirmed, { apikey: own })).data.records, 1);
  });

  test('keeps a bound key within its bounds', async (t) => {
    const site = await startSite(t);
    const apikey = await addKey(site, { scopes: ['design', 'read'], paths: ['/blog/'] });
    const txnOf = async (...operations: readonly object[]) =>
      (await site.call(batch, { operations })).data.txn as string;
    const page = (path: string) => ({ a: insertRule, v: { path, content: path } });
    const hook = {
      a: 'svc1.webhook.insert',
      v: { event: ['sale.completed'], url: 'https://a.example/' },
    };
    const inside = await txnOf(page('/blog/a'), page('/blog/b'));
    const { data: plan } = await site.call(undo, { txn: inside }, { apikey });
    assert.deepEqual([plan.gone, plan.others], [2, []]);
    for (const [txn, code] of [
      [await txnOf(page('/blog/c'), page('/shop/c')), 'forbidden'],
      [await txnOf(page('/blog/d'), hook), 'forbidden'],
      [await txnOf(page('/shop/e')), 'not_found'],
      [await txnOf({ ...hook, vk: 'another' }), 'not_found'],
    ] as const) {
      for (const v of [{ txn }, { txn, confirm: plan.digest }]) {
        assert.equal(codeOf(await site.call(undo, v, { apikey })), code, txn);
      }
    }
    await site.call(undo, { txn: inside, confirm: plan.digest }, { apikey });
    assert.equal(await contentOf(site, '/blog/a'), 404);
    assert.equal(await contentOf(site, '/blog/d'), '/blog/d');
  });

  test('takes back in a draft what was written there, also by a key that only writes drafts', async (t) => {
    const site = await startSite(t);
    const apikey = await addKey(site, { scopes: ['draft', 'read'] });
    const id = await addPage(site, '/old');
    await site.call('svc1.draft.insert', { name: 'spring' }, { apikey });
    const operations = [
      { a: insertRule, v: { path: '/new', content: 'new' } },
      { a: editRule, v: { id, content: 'after' } },
    ];
    const inDraft = { apikey, draft: 'spring' };
    const { data: done } = await site.call(batch, { operations }, inDraft);
    const { txn } = done;
    // Live, it has changed nothing.
    const { data: live } = await site.call(undo, { txn });
    assert.deepEqual([live.records, live.others], [0, [{ family: 'draftchange', rows: 2 }]]);
    const { data: plan } = await site.call(undo, { txn }, inDraft);
    assert.deepEqual([plan.records, plan.gone, plan.changed], [2, 1, 1]);
    await site.call(undo, { txn, confirm: plan.digest }, inDraft);
    const changes = await site.call('svc1.draft.changes', { draft: 'spring' });
    const { data: drafted } = await site.call(
      'svc1.userinterface.read',
      { id },
      { draft: 'spring' },
    );
    assert.equal(drafted.content, 'before', JSON.stringify(changes.data));

    const published = await site.call(batch, { operations });
    const refused = await site.call(undo, { txn: published.data.txn }, { apikey });
    assert.equal(codeOf(refused), 'forbidden');
  });

  test('revokes a key that the transaction has made, which is for good', async (t) => {
    const site = await startSite(t);
    const apikey = await addKey(site, { name: 'temporary', scopes: ['read'] });
    const rows = await site.call('svc1.change.list', { family: 'key', action: 'insert' });
    const { txn } = rows.data.rows[0];
    const { data: plan } = await site.call(undo, { txn });
    assert.deepEqual([plan.records, plan.gone, plan.changes[0].family], [1, 1, 'key']);
    assert.equal(JSON.stringify(plan).includes('hash'), false);
    const { data: done } = await site.call(undo, { txn, confirm: plan.digest });
    assert.equal(codeOf(await site.call('svc1.change.list', {}, { apikey })), 'unauthenticated');
    const { data: keys } = await site.call('svc1.key.list', {});
    assert.equal(JSON.stringify(keys).includes('temporary'), false);
    const { data: nothing } = await site.call(undo, { txn: done.txn });
    assert.deepEqual([nothing.records, nothing.others], [0, [{ family: 'key', rows: 1 }]]);
  });
});
