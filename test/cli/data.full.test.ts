import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import { openDatabases, openEnvironment } from '../../src/core/log/databases.ts';
import { rowKey } from '../../src/modules/tables/log/index-key.ts';
import { postOperation } from '../harness.ts';
import { runWaymark, serverFolder, spawnWaymark, startServed } from '../process.ts';
import { scratchStore } from '../core/log/scratch.ts';
import { runHere } from './here.ts';

/** A folder with an ini file, and a function that runs commands on it. */
async function site(t: TestContext) {
  const { folder, iniFile } = await serverFolder(t, '');
  const waymark = (words: readonly string[], input?: string) =>
    runHere([...words, '--config', iniFile], input === undefined ? {} : { input });
  return { folder, iniFile, data: join(folder, 'data'), waymark };
}

const pages = (...paths: readonly string[]) =>
  paths.map((path) => `${JSON.stringify({ path, content: path })}\n`).join('');

async function requireSound({ waymark }: Awaited<ReturnType<typeof site>>): Promise<void> {
  const { code, err } = await waymark(['check', '--data']);
  assert.equal(code, 0, err);
}

suite('waymark export and import', () => {
  test('move a site to another folder; repeating the import changes nothing', async (t) => {
    const [from, to] = [await site(t), await site(t)];
    const input = pages('/a%25b', '/käse', '/c/*');
    assert.deepEqual(await runWaymark(['import', '--config', from.iniFile], { input }), {
      code: 0,
      signal: null,
      out: 'imported 3, unchanged 0, refused 0\n',
      err: '',
    });
    const exported = await from.waymark(['export']);
    assert.deepEqual([exported.code, exported.err], [0, 'Exported 3 records.\n']);
    const file = join(to.folder, 'rules.ndjson');
    await writeFile(file, exported.out);
    assert.match((await to.waymark(['import', file])).out, /^imported 3, unchanged 0, refused 0$/m);
    assert.match((await to.waymark(['import', file])).out, /^imported 0, unchanged 3, refused 0$/m);
    assert.equal((await to.waymark(['export'])).out, exported.out);
    const history = await to.waymark(['export', '--history']);
    const rows = history.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { by: string });
    assert.deepEqual(
      rows.map(({ by }) => by),
      ['import', 'import', 'import'],
    );
    await requireSound(to);
  });

  test('work while a server runs, which serves imported rules at once', async (t) => {
    const { iniFile, waymark } = await site(t);
    const { url, adminKey: apikey } = await startServed(t, iniFile);
    assert.equal((await fetch(`${url}/new`)).status, 404);
    await waymark(['import'], pages('/new'));
    assert.equal(await (await fetch(`${url}/new`)).text(), '/new');
    const [rule] = (await waymark(['export'])).out.trim().split('\n');
    const { vk = '' } = JSON.parse(rule ?? '') as { vk?: string };
    const edit = { id: vk.replace('rule:', ''), content: 'edited' };
    await postOperation(url, 'svc1.userinterface.edit', edit, { apikey });
    assert.match((await waymark(['export'])).out, /"content":"edited"/);
  });

  test('report a refused line, and import the others', async (t) => {
    const { waymark } = await site(t);
    const text = `${pages('/a')}nonsense\n{"path":"/b","kind":"blog"}\n${pages('/c')}`;
    const first = await waymark(['import'], text);
    assert.deepEqual([first.code, first.out], [1, 'imported 2, unchanged 0, refused 2\n']);
    assert.match(first.err, /^line 2: not JSON\.\nline 3: kind "blog" is not one of.*\n$/);
    const { code, out } = await waymark(['import', '--json'], text);
    assert.equal(code, 1);
    const { refusals, ...counts } = JSON.parse(out) as { refusals: { line: number }[] };
    assert.deepEqual(counts, { imported: 0, unchanged: 2, refused: 2, kept: 0, unknowns: [] });
    assert.deepEqual(
      refusals.map(({ line }) => line),
      [2, 3],
    );
  });

  test('report invalid fields of an imported line once', async (t) => {
    const { waymark } = await site(t);
    const link = (path: string, fields: object) =>
      `${JSON.stringify({ path, kind: 'resolve', ...fields })}\n`;
    const text = [
      link('/a', { enginedata: { target: '/' } }),
      link('/b', { enginedata: { target: 'javascript:1' }, visits: 7 }),
      link('/c', { enginedata: { target: '/', when: [{ if: { lang: 3 }, target: '/' }] } }),
    ].join('');
    const first = await waymark(['import'], text);
    assert.deepEqual([first.code, first.out], [0, 'imported 3, unchanged 0, refused 0\n']);
    assert.deepEqual(first.err.split('\n'), [
      'line 2: warning: visits is not a known field; it is kept in _unknowns_.',
      'line 2: warning: enginedata.target has to be an absolute http or https URL, a path on this ' +
        'site, or key:<key>; it waits in _unknowns_.',
      'line 2: warning: This breadcrumb leads nowhere: enginedata has no target, html, status or ' +
        'when.',
      'line 3: warning: enginedata.when[0].if.lang is not valid: this branch is never taken.',
      '',
    ]);
    assert.equal((await waymark(['import'], text)).err, '');
    // The export contains the refused values in _unknowns_ already.
    const other = await site(t);
    assert.equal((await other.waymark(['import'], (await waymark(['export'])).out)).err, '');
  });

  test('continue an import that was killed, when the command is repeated', async (t) => {
    const { iniFile, data, waymark } = await site(t);
    // A transaction holds at most 64 MiB: this import needs two.
    const lines = Array.from(
      { length: 70 },
      (_, at) => `${JSON.stringify({ path: `/${at}`, content: 'x'.repeat(1 << 20) })}\n`,
    );
    const child = spawnWaymark(['import', '--config', iniFile]);
    const ended = once(child, 'close');
    child.stdin?.on('error', () => undefined);
    if (child.stdin !== null) Readable.from(lines).pipe(child.stdin);
    const store = await scratchStore(t, { folder: data });
    const { upTo } = await store.changesAfter([], 0, t.signal);
    child.kill('SIGKILL');
    await ended;
    assert.ok(upTo > 0);
    await store.close();
    const again = await waymark(['import', '--json'], lines.join(''));
    const { imported, unchanged, refused } = JSON.parse(again.out) as Record<string, number>;
    assert.deepEqual([(imported ?? 0) + (unchanged ?? 0), refused], [70, 0]);
    assert.ok((unchanged ?? 0) >= 64 - 1, 'whole transactions had come in');
    const exported = (await waymark(['export'])).out.trim().split('\n');
    const paths = exported.map((line) => (JSON.parse(line) as { path: string }).path);
    assert.deepEqual(
      paths,
      Array.from({ length: 70 }, (_, at) => `/${at}`),
    );
  });

  test('end quietly if the reader of an export closes the pipe', async (t) => {
    const { iniFile, waymark } = await site(t);
    const text = Array.from({ length: 200 }, (_, at) =>
      JSON.stringify({ path: `/${at}`, content: 'x'.repeat(10_000) }),
    ).join('\n');
    await waymark(['import'], text);
    const child = spawnWaymark(['export', '--config', iniFile]);
    let err = '';
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    child.stdout?.once('data', () => child.stdout?.destroy());
    assert.deepEqual(await once(child, 'close'), [0, null]);
    assert.equal(err, '');
  });

  test('report a file that cannot be read in one line', async (t) => {
    const { folder, waymark } = await site(t);
    const missing = await waymark(['import', join(folder, 'none.ndjson')]);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^waymark: cannot read [^\n]*none\.ndjson \(ENOENT\)\n$/);
  });
});

suite('waymark backup', () => {
  test('copies the data of a busy server, and another server can use the copy', async (t) => {
    const here = await site(t);
    const { url, adminKey: apikey, child, closed } = await startServed(t, here.iniFile);
    let isDone = false;
    let acknowledged = 0;
    const load = Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let at = 0; !isDone; at += 1) {
          const v = { path: `/${lane}/${at}`, content: 'x' };
          await postOperation(url, 'svc1.userinterface.insert', v, { apikey });
          acknowledged += 1;
        }
      }),
    );
    while (acknowledged < 50) await fetch(`${url}/0/0`);
    const before = acknowledged;
    const copy = await site(t);
    const { code, out, err } = await here.waymark(['backup', copy.data, '--json']);
    isDone = true;
    await load;
    assert.equal(code, 0, err);
    const { seq, folder } = JSON.parse(out) as { seq: number; folder: string };
    assert.equal(folder, copy.data);
    // The key of the first start is a change in the log, too.
    assert.ok(seq > before);
    assert.deepEqual(await readdir(copy.data), ['data.mdb']);
    await requireSound(copy);
    child.kill('SIGTERM');
    await closed;
    await requireSound(here);
    const other = await startServed(t, copy.iniFile, { first: false });
    assert.equal(await (await fetch(`${other.url}/0/0`)).text(), 'x');
    const v = { path: '/afterwards', content: 'x' };
    const { status } = await postOperation(other.url, 'svc1.userinterface.insert', v, { apikey });
    assert.equal(status, 200);
  });

  test('needs an empty or new folder', async (t) => {
    const { folder, data, waymark } = await site(t);
    await waymark(['import'], pages('/a'));
    const refused = await waymark(['backup', data]);
    assert.deepEqual([refused.code, refused.out], [1, '']);
    assert.match(
      refused.err,
      /^waymark: .*data is not empty: give the backup an empty or new folder\n$/,
    );
    assert.equal((await waymark(['backup'])).code, 2);
    const made = await waymark(['backup', join(folder, 'copy')]);
    assert.match(made.err, /^Copied everything up to change 1 to \S+copy: \d+ bytes\.\n$/);
  });
});

/** The line that names the room before the check begins. */
function folding(folder: string): string {
  return `Folding the log of 2 changes into a temporary copy, up to 1 MB in ${folder}.\n`;
}

suite('waymark check --data', () => {
  test('counts and checks the rows of tables', async (t) => {
    const here = await site(t);
    const table = {
      name: 'lamps',
      key: 'sku',
      schema: { properties: { sku: { type: 'string' } } },
    };
    const lines = [
      { a: 'svc1.table.insert', v: { ...table, schema: { type: 'object', ...table.schema } } },
      { a: 'svc1.record.insert', v: { table: 'lamps', sku: 'A' } },
    ];
    await here.waymark(['import'], lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const sound = await here.waymark(['check', '--data']);
    const says = `${folding(here.data)}The data is correct: 0 page rules and 1 row of tables from a log of 2 changes.\n`;
    assert.deepEqual([sound.code, sound.err.replace(/\d+ MB/, '1 MB')], [0, says]);
    const environment = openEnvironment(here.data);
    environment.transactionSync(() => {
      openDatabases(environment).rowkey.removeSync(rowKey('lamps', 'A', ''));
    });
    await environment.close();
    const damaged = await here.waymark(['check', '--data']);
    assert.equal(damaged.code, 1);
    assert.match(damaged.err, /^rowkey: lamps A is missing$/m);
    const json = await here.waymark(['check', '--data', '--json']);
    assert.equal((JSON.parse(json.out) as { rows: number }).rows, 1);
  });

  test('prints where the data differs from its log', async (t) => {
    const here = await site(t);
    await here.waymark(['import'], pages('/a', '/b'));
    const sound = await here.waymark(['check', '--data']);
    assert.deepEqual([sound.code, sound.out], [0, '']);
    assert.match(sound.err, /\nThe data is correct: 2 page rules from a log of 2 changes\.\n$/);
    const elsewhere = ['check', '--temporary-folder', here.folder];
    const named = await here.waymark([...elsewhere, '--data']);
    assert.equal(named.err.split('\n')[0], folding(here.folder).trimEnd());
    const unused = await here.waymark(elsewhere);
    assert.deepEqual([unused.code, unused.out], [2, '']);
    assert.match(unused.err, /--temporary-folder needs --data\./);
    const digest = await here.waymark(['check', '--data', '--seq', '1']);
    assert.match(digest.out, /^log [0-9a-f-]{36}, changes 1 to 1, sha256 [0-9a-f]{64}\n$/);
    const beyond = await here.waymark(['check', '--data', '--seq', '3']);
    assert.deepEqual([beyond.code, beyond.out], [1, '']);
    assert.match(beyond.err, /--seq 3: the log ends with change 2\./);
    const environment = openEnvironment(here.data);
    environment.transactionSync(() => {
      openDatabases(environment).exact.removeSync(Buffer.from('*\0/b'));
    });
    await environment.close();
    const damaged = await here.waymark(['check', '--data']);
    assert.equal(damaged.code, 1);
    assert.match(
      damaged.err,
      /\nexact: \* \/b: \["\S+ is missing\nThe data differs from its log of 2 changes in one place\. Restore/,
    );
    const json = await here.waymark(['check', '--data', '--json']);
    const answer = JSON.parse(json.out) as { ok: boolean; differences: { database: string }[] };
    assert.deepEqual([json.code, answer.ok, answer.differences.length], [1, false, 1]);
  });
});

test('commands that need data do not create a data folder', async (t) => {
  const { folder, waymark } = await site(t);
  const readOnly = [
    ['export'],
    ['backup', join(folder, 'copy')],
    ['check', '--data'],
    ['key', 'list'],
    ['key', 'revoke', 'one'],
  ];
  for (const words of readOnly) {
    const { code, err } = await waymark(words);
    assert.equal(code, 1, words.join(' '));
    assert.match(err, /^waymark: there is no data in .*data yet\n$/);
  }
  assert.deepEqual(await readdir(folder), ['server.ini']);
  assert.ok((await readFile(join(folder, 'server.ini'))).length > 0);
});
