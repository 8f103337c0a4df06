import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runHere } from '../../cli/here.ts';
import { temporaryFolder } from '../../folder.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { transports } from './transports.ts';

async function put(site: TestSite, name: string, query = '', key = site.adminKey): Promise<number> {
  const reply = await fetch(`${site.url}/svc1/asset/${name}${query}`, {
    ...{ method: 'PUT', body: name.repeat(name.length), headers: { apikey: key } },
  });
  await reply.text();
  return reply.status;
}

interface Listed {
  readonly name: string;
  readonly used: number;
  readonly uses: readonly { readonly path: string }[];
}

const rows = [
  { path: '/pier', asset: 'photos/pier.jpg' },
  { path: '/harbour', asset: 'photos/pier.jpg' },
  { path: '/notes', asset: 'notes.txt' },
];

for (const [transport, open] of Object.entries(transports)) {
  suite(`assets over ${transport}`, () => {
    test('are listed by name, size, type and text, with the rules that show them', async (t) => {
      const site = await startSite(t, { rules: rows });
      const call = await open(site);
      const names = async (v: object) =>
        (await call('svc1.asset.list', v)).data.rows.map(({ name }: Listed) => name);
      assert.deepEqual(await names({}), []);
      for (const name of ['photos/pier.jpg', 'notes.txt', 'a.csv']) await put(site, name);
      assert.deepEqual(await names({}), ['a.csv', 'notes.txt', 'photos/pier.jpg']);
      assert.deepEqual(await names({ sort: '-bytes', limit: 1 }), ['photos/pier.jpg']);
      assert.deepEqual(await names({ type: 'text/' }), ['a.csv', 'notes.txt']);
      assert.deepEqual(await names({ text: 'pier' }), ['photos/pier.jpg']);
      assert.deepEqual(await names({ prefix: 'notes', type: 'text/' }), ['notes.txt']);
      assert.deepEqual(await names({ unused: true }), ['a.csv']);
      const first = await call('svc1.asset.list', { limit: 2 });
      assert.deepEqual(await names({ after: first.data.next }), ['photos/pier.jpg']);
      const { data } = await call('svc1.asset.read', { name: 'photos/pier.jpg' });
      assert.equal(data.used, 2);
      assert.deepEqual(data.uses.map(({ path }: { path: string }) => path).sort(), [
        '/harbour',
        '/pier',
      ]);
      assert.equal((await call('svc1.asset.read', { name: 'b.csv' })).error?.code, 'not_found');
    });

    test('are deleted after a dry run that names the pages, and an undo brings them back', async (t) => {
      const site = await startSite(t, { rules: rows });
      const call = await open(site);
      await put(site, 'notes.txt');
      const plan = await call('svc1.asset.invalidate', { name: 'notes.txt' });
      const { done, used, digest, uses } = plan.data;
      assert.deepEqual([done, used, uses[0].path], [false, 1, '/notes']);
      assert.equal((await fetch(`${site.url}/notes`)).status, 200);
      await put(site, 'notes.txt');
      const stale = await call('svc1.asset.invalidate', { name: 'notes.txt', confirm: 'x' });
      assert.equal(stale.error?.code, 'precondition_failed');
      const again = await call('svc1.asset.invalidate', { name: 'notes.txt' });
      assert.ok(digest !== '' && again.data.digest !== '');
      const confirm = again.data.digest;
      const gone = await call('svc1.asset.invalidate', { name: 'notes.txt', confirm });
      assert.equal(gone.data.done, true);
      assert.equal((await fetch(`${site.url}/notes`)).status, 404);
      const undo = { table: 'asset', txn: gone.data.txn };
      const undone = await call('svc1.record.invalidate', undo);
      await call('svc1.record.invalidate', { ...undo, confirm: undone.data.digest });
      assert.equal((await fetch(`${site.url}/notes`)).status, 200);
    });
  });
}

test('the rules of an asset follow edits, undo and drafts', async (t) => {
  const site = await startSite(t, { rules: rows });
  await put(site, 'notes.txt');
  const used = async (draft?: string) => {
    const more = draft === undefined ? {} : { draft };
    return (await site.call('svc1.asset.read', { name: 'notes.txt' }, more)).data.used;
  };
  const { data } = await site.call('svc1.userinterface.list', { path: '/notes' });
  const [{ id }] = data.rows;
  await site.call('svc1.draft.insert', { name: 'spring' });
  const inDraft = { draft: 'spring' };
  await site.call('svc1.userinterface.edit', { id, asset: 'other.txt' }, inDraft);
  assert.deepEqual([await used(), await used('spring')], [1, 0]);
  await site.call('svc1.userinterface.edit', { id, asset: null, content: 'text' });
  assert.equal(await used(), 0);
});

test('the scope draft uploads to a draft and deletes there, and nowhere else', async (t) => {
  const site = await startSite(t, { rules: rows });
  await put(site, 'notes.txt');
  await site.call('svc1.draft.insert', { name: 'spring' });
  const v = { name: 'editor', scopes: ['read', 'draft'] };
  const { key } = (await site.call('svc1.key.insert', v)).data;
  assert.equal(await put(site, 'a.txt', '', key), 403);
  assert.equal(await put(site, 'a.txt', '?draft=spring', key), 200);
  assert.equal(await put(site, 'a.txt', '?draft=none', key), 404);
  const call = (name: string, input: object, more: object) =>
    site.call(name, input, { apikey: key, ...more });
  const name = 'notes.txt';
  const refused = await call('svc1.asset.invalidate', { name }, {});
  assert.equal(refused.error?.code, 'forbidden');
  const plan = await call('svc1.asset.invalidate', { name }, { draft: 'spring' });
  const confirm = plan.data.digest;
  await call('svc1.asset.invalidate', { name, confirm }, { draft: 'spring' });
  assert.equal((await fetch(`${site.url}/notes`)).status, 200);
  const download = async (query: string) =>
    (await fetch(`${site.url}/svc1/asset/a.txt${query}`, { headers: { apikey: key } })).status;
  assert.deepEqual([await download('?draft=spring'), await download('')], [200, 404]);
  assert.equal(await download('?draft=none'), 404);
  const drafted = await call('svc1.asset.list', {}, { draft: 'spring' });
  assert.deepEqual(
    drafted.data.rows.map((one: Listed) => one.name),
    ['a.txt'],
  );
});

test('waymark asset uploads, lists, reads and deletes', async (t) => {
  const site = await startSite(t, { rules: rows });
  const env = { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
  const asset = (...words: readonly string[]) => runHere(['asset', ...words], { env });
  const file = join(await temporaryFolder(t), 'notes.txt');
  await writeFile(file, 'tide');
  assert.deepEqual((await asset('put', file)).out, 'notes.txt\n');
  assert.equal((await asset('put', file, 'a b/ü.txt')).out, 'a b/ü.txt\n');
  assert.equal((await asset('put', `${file}.none`)).code, 2);
  assert.match((await asset('list')).out, /^BYTES +TYPE +USED +NAME\n4 .* 0 +a b\/ü\.txt\n4 .* 1 /);
  assert.equal((await asset('list', '--unused')).out.trim().split('\n').length, 2);
  assert.match((await asset('read', 'notes.txt')).out, /"path": "\/notes"/);
  const { out, err } = await asset('invalidate', 'notes.txt');
  assert.match(err, /would have no file/);
  const [, confirm = ''] = out.trim().split('\n');
  const done = await asset('invalidate', 'notes.txt', '--confirm', confirm);
  assert.match(done.err, /To undo this: waymark record invalidate asset --txn/);
  assert.equal((await fetch(`${site.url}/notes`)).status, 404);
});
