import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runHere } from '../../cli/here.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { transports } from '../status/transports.ts';

const batch = 'svc1.batch';
const insertRule = 'svc1.userinterface.insert';
const editRule = 'svc1.userinterface.edit';

async function statusOf({ url }: TestSite, path: string): Promise<number> {
  const reply = await fetch(`${url}${path}`);
  await reply.arrayBuffer();
  return reply.status;
}

/** Adds a page, and returns its id and version. */
async function addPage(site: TestSite, path: string): Promise<{ id: string; seq: number }> {
  const { data } = await site.call(insertRule, { path, content: 'before' });
  return { id: data.id as string, seq: data.seq as number };
}

async function addKey(site: TestSite, v: object): Promise<string> {
  const key = { name: 'k', scopes: ['design', 'read'], ...v };
  return (await site.call('svc1.key.insert', key)).data.key as string;
}

const schema = {
  type: 'object',
  properties: { sku: { type: 'string' }, left: { type: 'number' } },
};

for (const [transport, open] of Object.entries(transports)) {
  suite(`batch, over ${transport}`, () => {
    test('runs operations of every family in one transaction, each after those before it', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const page = await addPage(site, '/old');
      const operations = [
        { a: insertRule, v: { path: '/new', content: 'new' } },
        { a: editRule, v: { id: page.id, content: 'after', if_seq: page.seq } },
        { a: 'svc1.table.insert', v: { name: 'products', key: 'sku', schema } },
        { a: 'svc1.record.insert', v: { table: 'products', sku: 'a', left: 3 } },
        { a: 'svc1.record.edit', v: { table: 'products', sku: 'a', left: 2 } },
        { a: 'svc1.webhook.insert', v: { event: ['sale.completed'], url: 'https://a.example/' } },
        { a: 'svc1.event.insert', v: { type: 'sale.completed', data: { total: 5 } } },
      ];
      const dry = await call(batch, { operations, dry: true });
      assert.deepEqual([dry.data.done, dry.data.txn, dry.data.failed], [false, null, 0]);
      assert.equal(await statusOf(site, '/new'), 404);

      const { data } = await call(batch, { operations });
      assert.deepEqual([data.inserted, data.edited, data.unchanged, data.failed], [5, 2, 0, 0]);
      assert.equal(await statusOf(site, '/new'), 200);
      const row = await site.call('svc1.record.read', { table: 'products', sku: 'a' });
      assert.equal(row.data.left, 2);
      const results = data.results as readonly Record<string, unknown>[];
      assert.deepEqual(results[1]?.changed, ['content']);
      assert.match(String(results[5]?.secret), /^whsec_/);
      // The hook of the batch gets the event that follows it.
      assert.equal(results[6]?.hooks, 1);

      const history = await site.call(
        'svc1.userinterface.read',
        { id: page.id },
        { qk: 'history' },
      );
      assert.equal(history.data.rows[0].txn, data.txn);
      for (const [family, table] of [
        ['record', { table: 'products' }],
        ['userinterface', {}],
      ] as const) {
        const undo = { ...table, txn: data.txn };
        const name = `svc1.${family}.invalidate`;
        const { data: plan } = await site.call(name, undo);
        await site.call(name, { ...undo, confirm: plan.digest });
      }
      assert.equal(await statusOf(site, '/new'), 404);
      const { data: restored } = await site.call('svc1.userinterface.read', { id: page.id });
      assert.equal(restored.content, 'before');
    });

    test('writes nothing if an operation fails, and names its place and its field', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const page = await addPage(site, '/old');
      const operations = [
        { a: insertRule, v: { path: '/new', content: 'new' } },
        { a: editRule, v: { id: page.id, content: 'after', if_seq: page.seq - 1 } },
        { a: insertRule, v: { content: 'no path' } },
      ];
      const { error } = await call(batch, { operations });
      assert.equal(error?.code, 'precondition_failed');
      assert.equal(error.field, 'operations.1.v.if_seq');
      assert.match(
        error.message,
        /^Operation 1 \(svc1\.userinterface\.edit\): The record has changed/,
      );
      assert.equal(await statusOf(site, '/new'), 404);
      const after = await addPage(site, '/later');
      assert.equal(after.seq, page.seq + 1);

      const dry = await call(batch, { operations, dry: true });
      const results = dry.data.results as readonly { error?: { field: string } }[];
      assert.deepEqual(
        results.map((one) => one.error?.field),
        [undefined, 'operations.1.v.if_seq', 'operations.2.v.path'],
      );
    });

    test('is done once for a vk, and refuses another batch with the same vk', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const operations = ['/a', '/b'].map((path) => ({ a: insertRule, v: { path, content: 'x' } }));
      const first = await call(batch, { operations }, { vk: 'order-7' });
      const again = await call(batch, { operations }, { vk: 'order-7' });
      assert.deepEqual([again.replayed, again.data.unchanged, again.data.txn], [true, 2, null]);
      assert.deepEqual(
        again.data.results.map(({ id }: { id: string }) => id),
        first.data.results.map(({ id }: { id: string }) => id),
      );
      const other = { a: insertRule, v: { path: '/c', content: 'x' } };
      for (const changed of [[...operations, other], operations.slice(0, 1), [other]]) {
        const { error } = await call(batch, { operations: changed }, { vk: 'order-7' });
        assert.equal(error?.code, 'conflict');
      }
      assert.equal(await statusOf(site, '/c'), 404);
    });

    test('changes a draft instead of the live site', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const page = await addPage(site, '/old');
      await site.call('svc1.draft.insert', { name: 'spring' });
      const operations = [
        { a: insertRule, v: { path: '/new', content: 'new' } },
        { a: editRule, v: { id: page.id, content: 'after' } },
      ];
      const { data } = await call(batch, { operations }, { draft: 'spring' });
      assert.deepEqual([data.inserted, data.edited], [1, 1]);
      assert.equal(await statusOf(site, '/new'), 404);
      const changes = await site.call('svc1.draft.changes', { draft: 'spring' });
      assert.equal(changes.data.rows.length, 2);
    });
  });
}

suite('batch', () => {
  test('asks the scopes and bounds of the key for each operation', async (t) => {
    const site = await startSite(t);
    const design = await addKey(site, {});
    const event = { a: 'svc1.event.insert', v: { type: 'sale.completed' } };
    const page = { a: insertRule, v: { path: '/blog/a', content: 'a' } };
    const refused = await site.call(batch, { operations: [page, event] }, { apikey: design });
    assert.deepEqual([refused.error?.code, refused.error?.field], ['forbidden', 'operations.1']);
    const bound = await addKey(site, { paths: ['/blog/'] });
    const outside = { a: insertRule, v: { path: '/shop/a', content: 'a' } };
    const wide = await site.call(batch, { operations: [page, outside] }, { apikey: bound });
    assert.equal(wide.error?.code, 'forbidden');
    assert.equal(await statusOf(site, '/blog/a'), 404);
    const inside = await site.call(batch, { operations: [page] }, { apikey: bound });
    assert.equal(inside.data.inserted, 1);
    const nobody = await site.call(batch, { operations: [page] }, { apikey: '' });
    assert.equal(nobody.error?.code, 'unauthenticated');
  });

  test('keeps numbers that JavaScript would round', async (t) => {
    const site = await startSite(t);
    const body = `{"v":{"operations":[{"a":"${insertRule}","v":{"path":"/n","content":"n","weight":9007199254740993}}]}}`;
    const reply = await fetch(`${site.url}/svc1/batch`, {
      method: 'POST',
      headers: { apikey: site.adminKey, 'content-type': 'application/json' },
      body,
    });
    const { data } = (await reply.json()) as { data: { results: { id: string }[] } };
    const read = await fetch(
      `${site.url}/svc1/userinterface/read?_v.id=${data.results[0]?.id ?? ''}`,
      {
        headers: { apikey: site.adminKey },
      },
    );
    assert.match(await read.text(), /"weight":9007199254740993/);
  });

  test('takes as many bytes as other writes', async (t) => {
    const site = await startSite(t);
    const content = 'x'.repeat(1_000);
    const operations = Array.from({ length: 600 }, (_, at) => ({
      a: insertRule,
      v: { path: `/p/${at}`, content },
    }));
    const { data } = await site.call(batch, { operations });
    assert.equal(data.inserted, operations.length);
  });

  test('names the page rules that a file hides', async (t) => {
    const ini = '[disk.site]\nroot = site\n';
    const site = await startSite(t, { ini, files: { 'site/a.html': 'a file' } });
    const { data } = await site.call(batch, {
      operations: [{ a: insertRule, v: { path: '/a.html', content: 'a' } }],
    });
    assert.equal(data.results[0].problems[0].reason, 'shadowed');
  });

  test('runs the lines of `import --batch`, at a server and in a data folder', async (t) => {
    const site = await startSite(t);
    const page = await addPage(site, '/old');
    const file = join(site.folder, 'batch.ndjson');
    const lines = [
      { path: '/new', content: 'new' },
      { a: editRule, v: { id: page.id, content: 'after', if_seq: page.seq } },
    ];
    await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const env = { WAYMARK_APIKEY: site.adminKey };
    const run = (...words: string[]) => runHere(['import', '--batch', file, ...words], { env });
    const dry = await run('--url', site.url, '--dry-run');
    assert.equal(dry.out, 'dry run: inserted 1, edited 1, unchanged 0, failed 0\n');
    const done = await run('--url', site.url);
    assert.equal(done.out, 'inserted 1, edited 1, unchanged 0\n');
    // The page has moved on, so the same lines fail as a whole.
    const again = await run('--config', site.iniFile);
    assert.equal(again.code, 1, again.err);
    assert.match(again.err, /Operation 1 .*The record has changed/);
  });
});
