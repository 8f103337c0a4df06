import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, open as openFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { open } from 'lmdb';
import { openDatabases, openEnvironment, schemaVersion } from '../../../src/core/log/databases.ts';
import { draftStore } from '../../../src/modules/drafts/log/draft-store.ts';
import { openStore } from '../../../src/core/log/open.ts';
import { temporaryFolder } from '../../folder.ts';
import { commit, edited, inserted, openIn, scratchStore } from './scratch.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';
import { storedDrafts } from '../../../src/modules/drafts/log/family.ts';
import { storedHooks } from '../../../src/modules/webhooks/log/family.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';
import { storedTables } from '../../../src/modules/tables/log/family.ts';

async function foreignDatabase(folder: string, fill: (path: string) => Promise<void>) {
  await mkdir(folder);
  await fill(folder);
}

interface Strange {
  readonly name: string;
  readonly message: RegExp;
  readonly make: (folder: string, t: TestContext) => Promise<void>;
}

const strange: readonly Strange[] = [
  { name: 'a file', message: /is a file, not a folder/, make: (path) => writeFile(path, 'text') },
  {
    name: 'the database of another application',
    message: /holds the database of another application/,
    make: (folder) =>
      foreignDatabase(folder, async (path) => {
        const other = open<string, string>({ path });
        await other.put('mine', 'other');
        await other.close();
      }),
  },
  {
    name: 'the database of another application with a database `meta`',
    message: /holds the database of another application/,
    make: (folder) =>
      foreignDatabase(folder, async (path) => {
        const other = open({ path });
        await other.openDB<string, string>({ name: 'meta', encoding: 'string' }).put('a', 'b');
        await other.close();
      }),
  },
  {
    name: 'a newer layout',
    message: /was written by another version of waymark \(schema 99,/,
    make: async (folder) => {
      await (await openIn(folder)).close();
      const changed = open({ path: folder, maxDbs: 16 });
      await changed
        .openDB<string, string>({ name: 'meta', encoding: 'string' })
        .put('schema', '99');
      await changed.close();
    },
  },
  {
    name: 'garbage',
    message: /holds a data\.mdb that is damaged or not an LMDB database/,
    make: (folder) =>
      foreignDatabase(folder, (path) =>
        writeFile(join(path, 'data.mdb'), 'garbage '.repeat(9_999)),
      ),
  },
  {
    name: 'a few bytes',
    message: /holds a data\.mdb that is damaged/,
    make: (folder) => foreignDatabase(folder, (path) => writeFile(join(path, 'data.mdb'), 'x')),
  },
  {
    name: 'a header alone',
    message: /holds a data\.mdb that is damaged/,
    make: async (folder) => {
      const store = await openIn(folder);
      await commit(store, inserted('a', { path: '/a' }));
      await store.close();
      await truncate(join(folder, 'data.mdb'), 8192);
    },
  },
  {
    name: 'a second header overwritten',
    message: /holds a data\.mdb that is damaged/,
    make: async (folder) => {
      await (await openIn(folder)).close();
      const file = await openFile(join(folder, 'data.mdb'), 'r+');
      await file.write(Buffer.alloc(4096, 0xff), 0, 4096, 4096);
      await file.close();
    },
  },
];

suite('a data folder that Waymark cannot use', () => {
  for (const { name, message, make } of strange) {
    test(`${name}: opening fails with a message of one line, and the process continues`, async (t) => {
      const folder = join(await temporaryFolder(t), 'data');
      await make(folder, t);
      await assert.rejects(openIn(folder), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'unavailable');
        assert.match(error.message, message);
        assert.ok(error.message.includes(folder) && !error.message.includes('\n'), error.message);
        return true;
      });
    });
  }

  test('a folder below a file, or without permission to write', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFile(join(folder, 'file'), '');
    await assert.rejects(openIn(join(folder, 'file', 'data')), /cannot be written \(ENOTDIR\)/);
    await symlink(join(folder, 'nothing'), join(folder, 'link'));
    for (const below of ['link', 'link/data', 'link/a/data']) {
      await assert.rejects(
        openIn(join(folder, below)),
        /the target of the link \S+\/link does not exist/,
      );
    }
    await mkdir(join(folder, 'closed'), { mode: 0o500 });
    // Root may write everywhere, so another user runs it.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      await assert.rejects(openIn(join(folder, 'closed')), /cannot be written \(EACCES\)/);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });
});

// An endless attempt would block a thread of Node forever, so it runs in its own process.
test('a folder below /proc fails at once instead of looping', async (t) => {
  const module = pathToFileURL(
    join(import.meta.dirname, '../../../src/core/log/folder/data-folder.ts'),
  ).href;
  const script = `
    const { makeFolder } = await import(${JSON.stringify(module)});
    for (const folder of ['/proc/none', '/proc/none/data', '/proc/self/fd/none/a/b']) {
      await makeFolder(folder).then(() => console.log('made'), ({ code }) => console.log(code));
    }`;
  if (process.platform !== 'linux') {
    t.skip('needs /proc');
    return;
  }
  const args = ['--input-type=module', '--eval', script];
  const limits = { timeout: 60_000, killSignal: 'SIGKILL' } as const;
  const { stdout } = await promisify(execFile)(process.execPath, args, limits);
  assert.equal(stdout, 'ENOENT\n'.repeat(3));
});

suite('a data folder of Waymark', () => {
  test('is readable by its owner only, and keeps its content', async (t) => {
    const folder = join(await temporaryFolder(t), 'new', 'data');
    const first = await openIn(folder);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    assert.equal((await stat(join(folder, 'data.mdb'))).mode & 0o077, 0);
    await commit(first, inserted('a', { path: '/a', content: 'one' }));
    await commit(first, edited('a', { content: 'two' }));
    await first.close();

    const second = await scratchStore(t, { folder });
    assert.deepEqual(second.of(storedRules).rule('a'), {
      rule: { id: 'a', origin: '*', kind: 'content', path: '/a', content: 'two' },
      seq: 2,
      insertedSeq: 1,
    });
    assert.equal(second.seq(), 2);
  });

  test('of an older layout without marks still has all rules of a place', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await openIn(folder);
    const places = ['/one', '/two', '/two', '/w*', '/v*', '/v*', '/v*'];
    const many = Array.from({ length: 1_100 }, (_, n) => `/many/${n >> 1}`);
    const drafts = [...places, ...many].map((path, n) => inserted(`r${n}`, { path }));
    await commit(first, ...drafts);
    await first.close();
    const former = openEnvironment(folder);
    former.transactionSync(() => {
      const { meta, exact, wildcard } = openDatabases(former);
      for (const path of ['/two', ...many]) exact.removeSync(Buffer.from(`*\0${path}`), '!');
      wildcard.removeSync(Buffer.from('*\0/v'), '~');
      meta.putSync('schema', '4');
    });
    await former.close();

    const changes: (readonly number[])[] = [];
    const layoutChanged = (...versions: readonly number[]): void => {
      changes.push(versions);
    };
    const parts = { folder, families, now: Date.now, newId: () => 'an id', layoutChanged };
    await (await openStore(parts)).close();
    await (await openStore(parts)).close();
    assert.deepEqual(changes, [[4, schemaVersion]]);

    const second = await scratchStore(t, { folder });
    const found = ['/one', '/two', '/many/0', '/many/549', '/well', '/very'].map(
      (path) =>
        [
          ...second.of(storedRules).exactRules('*', path),
          ...second.of(storedRules).wildcardRules('*', path),
        ].flat().length,
    );
    assert.deepEqual(found, [1, 2, 2, 2, 1, 3]);
    for await (const { differences } of second.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });

  test('of a layout without from and until answers as before until a rule is edited', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await openIn(folder);
    await commit(first, inserted('r', { path: '/r', _unknowns_: { from: 'Berlin' } }));
    await first.close();
    const former = openEnvironment(folder);
    former.transactionSync(() => {
      const { meta, exact } = openDatabases(former);
      const value = '["r",1,1,"content",null,null,null';
      exact.removeSync(Buffer.from('*\0/r'), `${value},"waits"]`);
      exact.putSync(Buffer.from('*\0/r'), `${value}]`);
      meta.putSync('schema', '7');
    });
    await former.close();

    const second = await scratchStore(t, { folder });
    for await (const { differences } of second.part(upkeep).verify())
      assert.deepEqual(differences, []);
    const validity = () =>
      second
        .of(storedRules)
        .exactRules('*', '/r')
        .map((one) => one.validity);
    assert.deepEqual(validity(), [undefined]);
    await commit(second, edited('r', { rve: 1 }));
    assert.deepEqual(validity(), ['waits']);
    await commit(second, edited('r', { _unknowns_: null, until: '2026-12-01T07:00:00.000Z' }));
    assert.deepEqual(validity(), [{ untilMs: Date.UTC(2026, 11, 1, 7) }]);
    for await (const { differences } of second.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });

  test('of a layout without the assets of page rules finds them, also in drafts', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await openIn(folder);
    await commit(first, inserted('kept', { path: '/kept', asset: 'a.png' }));
    await commit(first, inserted('moved', { path: '/moved', asset: 'a.png' }));
    const draft = { name: 'spring' };
    await commit(first, { family: 'draft', id: 'd', action: 'insert', data: draft });
    const spring = first.of(storedDrafts).draft('d');
    assert.ok(spring);
    const drafted = draftStore(first, spring);
    await commit(drafted, edited('moved', { asset: 'b.png' }));
    await commit(drafted, inserted('new', { path: '/new', asset: 'a.png' }));
    await first.close();
    const former = openEnvironment(folder);
    former.transactionSync(() => {
      const databases = openDatabases(former);
      databases.ruleasset.clearSync();
      for (const key of [...databases.draftentry.getKeys()]) {
        if (Buffer.from(key)[4] === 19) databases.draftentry.removeSync(key);
      }
      databases.meta.putSync('schema', '8');
    });
    await former.close();

    const second = await scratchStore(t, { folder });
    assert.deepEqual([...second.of(storedRules).rulesOfAsset('a.png', 9)], ['kept', 'moved']);
    const now = second.of(storedDrafts).draft('d');
    assert.ok(now);
    const seen = draftStore(second, now);
    assert.deepEqual([...seen.of(storedRules).rulesOfAsset('a.png', 9)], ['kept', 'new']);
    assert.deepEqual([...seen.of(storedRules).rulesOfAsset('b.png', 9)], ['moved']);
    for await (const { differences } of second.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });

  test('of an older layout gets the states of its drafts', async (t) => {
    const { folder, first } = await withDrafts(t);
    await first.close();
    const former = openEnvironment(folder);
    former.transactionSync(() => {
      const databases = openDatabases(former);
      databases.draftstate.clearSync();
      databases.meta.putSync('schema', '10');
    });
    await former.close();
    const second = await scratchStore(t, { folder });
    const ids = (state: 'open' | 'discarded', after?: string): readonly string[] =>
      Array.from(second.of(storedDrafts).draftsIn(state, after), ({ id }) => id);
    assert.deepEqual([ids('open'), ids('discarded')], [['d1', 'd3'], ['d2']]);
    assert.deepEqual(ids('open', 'd1'), ['d3']);
    for await (const { differences } of second.part(upkeep).verify())
      assert.deepEqual(differences, []);
    await second.close();
    const damaged = openEnvironment(folder);
    damaged.transactionSync(() => {
      openDatabases(damaged).draftstate.clearSync();
    });
    await damaged.close();
    const third = await scratchStore(t, { folder });
    let count = 0;
    for await (const { differences } of third.part(upkeep).verify()) count += differences.length;
    assert.equal(count, 3);
  });

  test('of an older layout is not changed while another version may use it', async (t) => {
    const folder = await temporaryFolder(t);
    await (await openIn(folder)).close();
    const former = open({ path: folder, maxDbs: 64 });
    const meta = former.openDB<string, string>({ name: 'meta', encoding: 'string' });
    await meta.put('schema', '5');
    await former.close();
    const parts = { folder, families, now: Date.now, newId: () => 'an id', isInUse: true };
    await assert.rejects(openStore(parts), {
      code: 'unavailable',
      message: /has the layout 5, and this version changes it .* stop the server, then start it/,
    });
  });

  test('of the layout before tables gets those', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await openIn(folder);
    await commit(first, inserted('a', { path: '/a' }));
    await first.close();
    const former = open({ path: folder, maxDbs: 64 });
    await former.openDB<string, string>({ name: 'meta', encoding: 'string' }).put('schema', '5');
    for (const name of ['table', 'tablename', 'row', 'tablerow', 'rowkey', 'rowindex', 'rowword']) {
      former.openDB({ name }).dropSync();
    }
    for (const name of ['tablecount', 'indexbuild', 'evertablerow']) {
      former.openDB({ name }).dropSync();
    }
    for (const name of ['evertablename', 'everrowkey']) {
      former.openDB({ name, dupSort: true }).dropSync();
    }
    await former.close();

    const second = await scratchStore(t, { folder });
    assert.equal(second.of(storedRules).rule('a')?.seq, 1);
    const table = { name: 'lamps', schema: {}, key: 'sku', index: ['price'], search: ['title'] };
    await commit(second, { family: 'table', id: 't', action: 'insert', data: table });
    const row = { table: 'lamps', sku: 'A', price: 5, title: 'Lamp' };
    await commit(second, { family: 'record', id: 'r', action: 'insert', data: row });
    assert.equal(second.of(storedTables).rowByKey('lamps', 'A')?.seq, 3);
    for await (const { differences } of second.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });

  test('of an older layout gets the databases that it lacks', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await openIn(folder);
    await commit(first, inserted('a', { path: '/a' }));
    await first.close();
    const former = open({ path: folder, maxDbs: 32 });
    const meta = () => former.openDB<string, string>({ name: 'meta', encoding: 'string' });
    await meta().put('schema', '3');
    for (const name of ['hook', 'hooktype', 'hooksecret']) {
      former.openDB({ name, dupSort: name === 'hooktype' }).dropSync();
    }
    await former.close();

    const second = await scratchStore(t, { folder });
    assert.equal(second.of(storedRules).rule('a')?.seq, 1);
    await commit(second, inserted('b', { path: '/b' }));
    const data = { event: ['a.b'], url: 'https://x.example/', method: 'POST' };
    await commit(second, { family: 'webhook', id: 'h', action: 'insert', data });
    assert.deepEqual(
      second
        .of(storedHooks)
        .hooksFor('a.b')
        .map(({ hook }) => hook.id),
      ['h'],
    );
  });

  test('counts its changes, rules, keys, hooks, tables and rows', async (t) => {
    const store = await scratchStore(t);
    assert.deepEqual(
      { ...store.counts(), bytes: 0 },
      { seq: 0, rules: 0, keys: 0, hooks: 0, tables: 0, rows: 0, bytes: 0 },
    );
    await commit(store, inserted('a', { path: '/a' }), inserted('b', { path: '/b' }));
    await commit(store, edited('a', { lang: 'en' }));
    const { bytes, ...counts } = store.counts();
    assert.deepEqual(counts, { seq: 3, rules: 2, keys: 0, hooks: 0, tables: 0, rows: 0 });
    assert.ok(bytes > 0);
  });

  test('returns every JSON value unchanged', async (t) => {
    const store = await scratchStore(t);
    const enginedata = JSON.parse(
      '{"__proto__":{"x":1},"constructor":[],"\\ud800":"\\udfff","":null,"n":1e-7,"big":1e300}',
    ) as Record<string, never>;
    await commit(store, inserted('a', { path: '/a', enginedata }));
    const { rule } = store.of(storedRules).rule('a') ?? {};
    assert.equal(JSON.stringify(rule?.enginedata), JSON.stringify(enginedata));
  });

  for (const [name, content] of [
    ['text', `é${'x'.repeat(2 ** 24 - 2)}`],
    ['bytes', { base64: Buffer.alloc(12 * 2 ** 20, 7).toString('base64') }],
  ] as const) {
    test(`keeps content of 16 MiB as ${name}`, async (t) => {
      const store = await scratchStore(t);
      await commit(store, inserted('a', { path: '/a', content }));
      assert.ok(
        JSON.stringify(store.of(storedRules).rule('a')?.rule.content) === JSON.stringify(content),
      );
    });
  }
});

/** A folder with two open drafts, and one that was discarded between them. */
async function withDrafts(t: TestContext) {
  const folder = await temporaryFolder(t);
  const first = await scratchStore(t, { folder });
  for (const id of ['d1', 'd2', 'd3']) {
    await commit(first, { family: 'draft', id, action: 'insert', data: { name: id } });
  }
  await commit(first, { family: 'draft', id: 'd2', action: 'invalidate', data: {} });
  return { folder, first };
}
