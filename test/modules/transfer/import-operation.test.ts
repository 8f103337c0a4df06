import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import type { LineProblems } from '../../../src/modules/transfer/import-line.ts';
import { importInlineBytesMax } from '../../../src/modules/transfer/import-operation.ts';
import { importRowsMax } from '../../../src/modules/transfer/limits.ts';
import { runHere, startClient } from '../../cli/here.ts';
import { type Answer, type TestSite, startSite } from '../../harness.ts';
import { transports } from '../status/transports.ts';

const operation = 'svc1.userinterface.import';
const hook = {
  a: 'svc1.webhook.insert',
  v: { event: ['sale.completed'], url: 'https://a.example/' },
  vk: 'hook',
};

function ndjson(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

/** More pages than the server imports in its own thread. */
function manyPages(): readonly object[] {
  const count = Math.ceil(importInlineBytesMax / 100);
  return Array.from({ length: count }, (_, at) => ({ path: `/p/${at}`, content: 'x'.repeat(100) }));
}

async function statusOf({ url }: TestSite, path: string): Promise<number> {
  const reply = await fetch(`${url}${path}`);
  await reply.arrayBuffer();
  return reply.status;
}

/** POSTs lines as the body. */
async function post(site: TestSite, body: string, query = '') {
  const reply = await fetch(`${site.url}/svc1/userinterface/import${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson; charset=utf-8', apikey: site.adminKey },
    body,
  });
  return { status: reply.status, answer: (await reply.json()) as Answer };
}

for (const [transport, open] of Object.entries(transports)) {
  suite(`userinterface.import, over ${transport}`, () => {
    test('adds all lines in one transaction, which can be reverted', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const rows = [
        { path: '/a', content: 'a', vk: 'a' },
        { path: '/b', content: 'b', colour: 'red' },
        hook,
      ];
      const dry = await call(operation, { ndjson: ndjson(rows), dry_run: true });
      const counts = { imported: 3, unchanged: 0, refused: 0, refusals: [], kept: 1 };
      const message = 'colour is not a known field; it is kept in _unknowns_.';
      const problem = { field: 'colour', reason: 'unknown_field', message };
      const unknowns = [{ line: 2, names: ['colour'], problems: [problem] }];
      assert.deepEqual(dry.data, { done: false, ...counts, unknowns, txn: null });
      assert.equal(await statusOf(site, '/a'), 404);

      const { data } = await call(operation, { ndjson: ndjson(rows) });
      assert.deepEqual(data, { done: true, ...counts, unknowns, txn: data.txn });
      assert.deepEqual([await statusOf(site, '/a'), await statusOf(site, '/b')], [200, 200]);
      assert.equal((await site.call('svc1.webhook.list', {})).data.rows.length, 1);

      const again = await call(operation, { ndjson: ndjson(rows) });
      assert.deepEqual([again.data.imported, again.data.unchanged, again.data.txn], [0, 3, null]);

      const undo = { txn: data.txn };
      const { data: plan } = await site.call('svc1.userinterface.invalidate', undo);
      assert.equal(plan.gone, 2);
      const confirmed = { ...undo, confirm: plan.digest };
      await site.call('svc1.userinterface.invalidate', confirmed);
      assert.equal(await statusOf(site, '/a'), 404);
    });

    test('refuses lines with a mistake in strict mode', async (t) => {
      const site = await startSite(t);
      const lines = ndjson([
        { path: '/a', content: 'a' },
        { path: '/b', content: 'b', colour: 1 },
      ]);
      const headers = { prefer: 'handling=strict' };
      const { error } = await site.call(operation, { ndjson: lines }, { headers });
      assert.match(
        error?.message ?? '',
        /^Nothing was imported\.\nline 2: colour is not a known field/,
      );
      assert.equal(await statusOf(site, '/a'), 404);
    });

    test('adds nothing if a line is refused, and names the line', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const text = `${ndjson([{ path: '/a', content: 'a' }])}nonsense\n{"path":"b","content":"x"}\n`;
      const { error } = await call(operation, { ndjson: text });
      assert.equal(error?.code, 'invalid');
      assert.match(error.message, /^Nothing was imported\.\nline 2: not JSON\.\nline 3: path /);
      assert.equal(await statusOf(site, '/a'), 404);
      const { data } = await call(operation, { ndjson: text, dry_run: true });
      assert.deepEqual([data.imported, data.refused, data.refusals[0].line], [1, 2, 2]);
    });

    test('adds many lines in a thread of its own', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const rows = manyPages();
      const { data } = await call(operation, { ndjson: ndjson(rows) });
      assert.deepEqual([data.done, data.imported], [true, rows.length]);
      assert.equal(await statusOf(site, `/p/${rows.length - 1}`), 200);
      const refused = await call(operation, { ndjson: `${ndjson(manyPages())}nonsense` });
      assert.match(refused.error?.message ?? '', new RegExp(`line ${rows.length + 1}: not JSON`));
    });
  });
}

suite('userinterface.import', () => {
  for (const [size, more] of [
    ['small', []],
    ['large', manyPages()],
  ] as const) {
    test(`of ${size} size names the lines that a file or another rule hides`, async (t) => {
      const ini = '[disk.site]\nroot = site\n';
      const site = await startSite(t, { ini, files: { 'site/a.html': 'a file' } });
      const lines = [
        { path: '/b', content: 'first' },
        { path: '/a.html', content: 'a', colour: 'red' },
        { path: '/b', content: 'second' },
        { path: '/c', content: 'c' },
        ...more,
      ];
      const dry = await site.call(operation, { ndjson: ndjson(lines), dry_run: true });
      assert.deepEqual([dry.data.imported, dry.data.kept], [lines.length, 1]);
      const { data } = await site.call(operation, { ndjson: ndjson(lines) });
      const found = (data.unknowns as readonly LineProblems[]).map(({ line, problems }) => [
        line,
        ...problems.map(({ message }) => message.replaceAll(/[0-9a-f-]{36}/g, 'ID').slice(0, 40)),
      ]);
      assert.equal(data.kept, 3);
      assert.deepEqual(found, [
        [1, 'The page rule ID at the same path hides '],
        [2, 'colour is not a known field; it is kept ', 'A file of [disk.site] has this path and '],
        [3, 'It hides the page rule ID, which has the'],
      ]);
      const again = await site.call(operation, { ndjson: ndjson(lines) });
      assert.deepEqual([again.data.imported, again.data.kept], [0, 0]);
    });
  }

  test('accepts the lines as the body, and other fields in the query', async (t) => {
    const site = await startSite(t);
    const body = ndjson([{ path: '/a', content: 'a' }]);
    const dry = await post(site, body, '?_v.dry_run=true');
    assert.deepEqual([dry.status, dry.answer.data.done], [200, false]);
    const { status, answer } = await post(site, body);
    assert.deepEqual([status, answer.data.imported], [200, 1]);
    assert.equal((await post(site, 'nonsense')).status, 400);
    const { data } = await site.call('svc1.userinterface.list', {});
    const history = await site.call(
      'svc1.userinterface.read',
      { id: data.rows[0].id },
      { qk: 'history' },
    );
    assert.notEqual(history.data.rows[0].by, 'import', 'it is by the key that was used');
  });

  test('refuses too many lines before it reads any', async (t) => {
    const site = await startSite(t);
    const { status, answer } = await post(site, 'x\n'.repeat(importRowsMax + 1));
    assert.deepEqual([status, answer.error?.code], [413, 'too_large']);
  });

  test('is documented with NDJSON as its body', async (t) => {
    const site = await startSite(t);
    const reply = await fetch(`${site.url}/svc1/openapi.json`);
    // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any member
    const document = (await reply.json()) as any;
    const { requestBody, parameters } = document.paths['/svc1/userinterface/import'].post;
    assert.ok('application/x-ndjson' in requestBody.content);
    assert.deepEqual(
      parameters.map(({ name, in: where }: Record<string, string>) => `${where} ${name}`),
      ['query _v.dry_run', 'query _draft'],
    );
  });

  test('needs the scope design, and for hooks the scope webhook', async (t) => {
    const site = await startSite(t);
    const keyWith = async (...scopes: string[]) =>
      (await site.call('svc1.key.insert', { name: 'k', scopes })).data.key as string;
    const v = { ndjson: ndjson([{ path: '/a', content: 'a' }, hook]) };
    const reading = await site.call(operation, v, { apikey: await keyWith('read') });
    assert.equal(reading.status, 403);
    const design = await keyWith('design');
    const designing = await site.call(operation, v, { apikey: design });
    assert.match(designing.error?.message ?? '', /\nline 2: a hook needs the scope webhook\.$/);
    assert.equal(await statusOf(site, '/a'), 404);
    const both = await site.call(operation, v, { apikey: await keyWith('design', 'webhook') });
    assert.equal(both.data.imported, 2);
  });
});

test('waymark import --url sends a file to a server', async (t) => {
  const { site, env } = await startClient(t);
  const file = join(site.folder, 'rules.ndjson');
  await writeFile(file, ndjson([{ path: '/a', content: 'a', colour: 'red' }]));
  const waymark = (...words: string[]) => runHere(['import', file, ...words], { env });
  const dry = await waymark('--url', site.url, '--dry-run');
  assert.deepEqual([dry.code, dry.out], [0, 'dry run: would import 1, unchanged 0, refused 0\n']);
  assert.equal(await statusOf(site, '/a'), 404);
  const done = await waymark('--url', site.url);
  assert.equal(done.code, 0, done.err);
  assert.match(
    done.err,
    /^line 1: warning: colour is not a known field; .*\nTo undo this: waymark change invalidate \S+\n$/,
  );
  assert.equal(await statusOf(site, '/a'), 200);
  await writeFile(file, 'nonsense');
  const refused = await waymark('--url', site.url);
  assert.deepEqual([refused.code, refused.out], [1, '']);
  assert.match(refused.err, /^waymark: Nothing was imported\.\nline 1: not JSON\.\nSee \S+\n$/);
  const config = ['--config', site.iniFile];
  assert.equal((await waymark('--dry-run', ...config)).code, 2);
  assert.equal((await waymark('--url', site.url, ...config)).code, 2);
});

test('waymark import names the command that undoes it, whatever it has written', async (t) => {
  const { site, env } = await startClient(t);
  const run = (...words: string[]) => runHere(words, { env });
  const file = join(site.folder, 'all.ndjson');
  const table = { name: 'crew', key: 'nick', schema: { properties: { nick: { type: 'string' } } } };
  const row = (nick: string) => ({ a: 'svc1.record.insert', vk: nick, v: { table: 'crew', nick } });
  await run('table', 'insert', JSON.stringify(table));
  await writeFile(file, ndjson([{ path: '/a', content: 'a' }, row('Ada'), row('Bo'), hook]));
  const done = await run('import', file, '--url', site.url);
  const [, command = ''] = /^To undo this: waymark (.*)$/m.exec(done.err) ?? [];
  const dry = await run(...command.split(' '));
  assert.match(dry.out, /This would revert 4 changes of 4 records\.\n/);
  const [, digest = ''] = /--confirm (\S+)/.exec(dry.out) ?? [];
  const undone = await run(...command.split(' '), '--confirm', digest);
  assert.match(undone.out, /^Reverted 4 changes of 4 records\.\nTo undo this: waymark change /);
  assert.equal(await statusOf(site, '/a'), 404);
  const changes = await run('change', 'list');
  assert.match(changes.out, /^SEQ .*\n.* invalidate +webhook /);
});
