import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { chmod, cp, open, readdir, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { openCheckPagesMax } from '../../../../src/core/log/folder/data-folder.ts';
import { checkPages } from '../../../../src/core/log/folder/page-check.ts';
import { runHere } from '../../../cli/here.ts';
import { temporaryFolder } from '../../../folder.ts';
import { postOperation } from '../../../harness.ts';
import { runWaymark, serverFolder, startServed } from '../../../process.ts';
import { commit, edited, inserted, openIn, scratchStore, startWriter } from '../scratch.ts';
import { deliveriesPart } from '../../../../src/modules/webhooks/log/delivery-log.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';

const pageBytes = 4096;

/** A folder with all kinds of pages: branches, long values, many values of a key. */
async function filledFolder(t: TestContext, rules: number): Promise<string> {
  const folder = join(await temporaryFolder(t), 'data');
  const store = await openIn(folder);
  const drafts = Array.from({ length: rules }, (_, at) => {
    const path = at % 3 === 0 ? `/${at}` : `/same/${Math.floor(at / 500)}`;
    return inserted(`rule ${at}`, { path, content: 'x'.repeat(at % 50 === 0 ? 9_000 : 600) });
  });
  await commit(store, ...drafts);
  await commit(store, edited('rule 0', { content: 'an edit leaves free pages' }));
  await store.close();
  return folder;
}

/** Replaces a page of a file. */
async function overwritePage(file: string, page: number, bytes: Buffer): Promise<void> {
  const handle = await open(file, 'r+');
  await handle.write(bytes, 0, pageBytes, page * pageBytes);
  await handle.close();
}

function damageOf(file: string, pagesMax?: number): string | undefined {
  const fd = openSync(file, 'r');
  try {
    return checkPages(fd, pagesMax === undefined ? {} : { pagesMax }).damage;
  } finally {
    closeSync(fd);
  }
}

suite('a damaged data file', () => {
  test('that is truncated is refused before LMDB opens it', async (t) => {
    const folder = await filledFolder(t, 300);
    const file = join(folder, 'data.mdb');
    await truncate(file, (await stat(file)).size - 6 * pageBytes);
    await assert.rejects(openIn(folder), {
      code: 'unavailable',
      message: /holds a data\.mdb that is damaged \(.*cut off\); put a backup in its place/,
    });
  });

  test('is refused if any used page is inverted or zeroed', async (t) => {
    const folder = await filledFolder(t, 60);
    const file = join(folder, 'data.mdb');
    const sound = readFileSync(file);
    let refused = 0;
    for (let page = 0; page < sound.length / pageBytes; page += 1) {
      const original = sound.subarray(page * pageBytes, (page + 1) * pageBytes);
      await overwritePage(file, page, Buffer.from(original.map((byte) => byte ^ 0xff)));
      if (damageOf(file) !== undefined) refused += 1;
      await overwritePage(file, page, original);
      assert.equal(damageOf(file), undefined, `page ${page} is itself again`);
    }
    // The other pages are free, or continue the value of an overflow page.
    assert.ok(refused > 40, `${refused} pages of ${sound.length / pageBytes}`);
    await (await scratchStore(t, { folder })).checkPages();
  });

  test('refuses changes once a check finds damage far from its beginning', async (t) => {
    const folder = await filledFolder(t, 6_000);
    const file = join(folder, 'data.mdb');
    const sound = readFileSync(file);
    let isFar = false;
    for (let page = Math.floor(sound.length / pageBytes / 2); !isFar; page += 1) {
      await overwritePage(file, page, Buffer.alloc(pageBytes));
      isFar = damageOf(file) !== undefined && damageOf(file, openCheckPagesMax) === undefined;
      if (!isFar) await overwritePage(file, page, sound.subarray(page * pageBytes));
    }
    const store = await scratchStore(t, { folder });
    await commit(store, edited('rule 1', { content: 'nobody knows yet' }));
    const damaged = { code: 'unavailable', message: /damaged \(page \d+ of .*\)/ };
    await assert.rejects(store.checkPages(), damaged);
    const refused = {
      code: 'unavailable',
      message: /^The stored data is damaged, so changes are refused\. The server log names/,
    };
    await assert.rejects(commit(store, edited('rule 1', { content: 'x' })), refused);
    await assert.rejects(store.part(deliveriesPart).begin(), refused);
    await assert.rejects(async () => {
      for await (const { differences } of store.part(upkeep).verify())
        assert.deepEqual(differences, []);
    }, damaged);
    const target = join(folder, '..', 'copy');
    await assert.rejects(store.part(upkeep).backUp(target), {
      code: 'unavailable',
      message: /cannot be backed up: page/,
    });
    assert.deepEqual(await readdir(join(folder, '..')), ['data']);
  });

  test('is refused if it lists a used page as free, which LMDB would overwrite', async (t) => {
    const folder = await filledFolder(t, 60);
    const file = join(folder, 'data.mdb');
    const bytes = readFileSync(file);
    // LMDB uses the newer of two meta pages: struct MDB_meta of liblmdb's mdb.c.
    const txn = (at: number): bigint => bytes.readBigUInt64LE(at * pageBytes + 152);
    const meta = txn(1) > txn(0) ? pageBytes : 0;
    const [freeRoot, mainRoot] = [88, 136].map((at) => Number(bytes.readBigUInt64LE(meta + at)));
    const page = bytes.subarray((freeRoot ?? 0) * pageBytes).subarray(0, pageBytes);
    const node = 24 + page.readUInt16LE(24);
    const value = node + 8 + page.readUInt16LE(node + 6);
    assert.ok(page.readBigInt64LE(value) > 0n, 'it has free pages');
    page.writeBigInt64LE(BigInt(mainRoot ?? 0), value + 8);
    await writeFile(file, bytes);
    await assert.rejects(openIn(folder), /the list of free pages is used twice/);
  });

  test('that is empty is refused, not initialised', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFile(join(folder, 'data.mdb'), '');
    await assert.rejects(openIn(folder), {
      code: 'unavailable',
      message: /holds an empty data\.mdb; put a backup in its place, or move it away/,
    });
    assert.deepEqual(await readdir(folder), ['data.mdb']);
  });

  test('that is a dangling symlink is refused, not initialised', async (t) => {
    const folder = await temporaryFolder(t);
    await symlink(join(folder, 'volume'), join(folder, 'data.mdb'));
    await assert.rejects(openIn(folder), /cannot be written \(EEXIST\)/);
    assert.deepEqual(await readdir(folder), ['data.mdb']);
  });

  test('makes every command fail with a message of one line', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    const data = join(folder, 'data');
    await cp(await filledFolder(t, 300), data, { recursive: true });
    const file = join(data, 'data.mdb');
    await truncate(file, (await stat(file)).size - 6 * pageBytes);
    const commands = [['check', '--data'], ['export'], ['backup', join(folder, 'copy')], ['serve']];
    await Promise.all(
      [...commands, ['key', 'list']].map(async (words) => {
        const { code, signal, out, err } = await runWaymark([...words, '--config', iniFile]);
        assert.deepEqual([code, signal, out], [1, null, ''], words.join(' '));
        assert.match(err, /^waymark: the data folder [^\n]*damaged[^\n]*\n$/);
      }),
    );
    assert.deepEqual((await readdir(folder)).toSorted(), ['data', 'server.ini']);
    const json = await runHere(['check', '--data', '--json', '--config', iniFile]);
    const { ok, problem } = JSON.parse(json.out) as { ok: boolean; problem: string };
    assert.deepEqual([json.code, json.err, ok], [1, '', false]);
    assert.match(problem, /damaged/);
  });
});

test('an export omits damaged records, names them, and exits with 1', async (t) => {
  const { folder, iniFile } = await serverFolder(t, '');
  const data = join(folder, 'data');
  await cp(await filledFolder(t, 30), data, { recursive: true });
  const file = join(data, 'data.mdb');
  const bytes = readFileSync(file);
  // Damages a value of the log, which no check of pages finds: there the id follows the family.
  const place = bytes.indexOf('"family":"userinterface","id":"rule 7"');
  assert.ok(place > 0);
  bytes.write('\x01', place);
  await writeFile(file, bytes);
  const waymark = (...words: string[]) => runHere([...words, '--config', iniFile]);
  for (const [words, left] of [
    [['export'], 29],
    [['export', '--history'], 30],
  ] as const) {
    const { code, out, err } = await waymark(...words);
    assert.equal(code, 1);
    assert.equal(out.trim().split('\n').length, left);
    assert.match(err, /^change 8 is damaged and was skipped.*\n.*\nSkipped 1 damaged changes\.\n$/);
  }
  assert.match((await waymark('check', '--data')).err, /^log: change 8 cannot be read/m);
});

suite('a sound data file', () => {
  test('passes the check while another process writes', async (t) => {
    const folder = await temporaryFolder(t);
    const { lines, child } = startWriter(t, [folder, '1000000']);
    let written = 0;
    for await (const line of lines) {
      if (line === 'ready') continue;
      written += 1;
      if (written % 40 === 0) await (await scratchStore(t, { folder })).checkPages();
      if (written === 1_000) break;
    }
    child.kill('SIGKILL');
  });

  test('is created by one of several processes that open a new folder at once', async (t) => {
    const folder = join(await temporaryFolder(t), 'data');
    const stores = await Promise.all(Array.from({ length: 4 }, () => openIn(folder)));
    t.after(() => Promise.all(stores.map((store) => store.close())));
    await Promise.all(stores.map((store, at) => commit(store, inserted(`${at}`, { path: '/' }))));
    assert.deepEqual(
      stores.map((store) => store.seq()),
      [4, 4, 4, 4],
    );
    assert.deepEqual((await readdir(folder)).toSorted(), [
      'data.mdb',
      'lock.mdb',
      'opening-wait.lock',
      'opening.lock',
    ]);
  });
});

suite('a data folder that cannot be written', () => {
  /** Runs a command as a user that may read a folder but not write it. */
  async function asReader<T>(folder: string, act: () => Promise<T>): Promise<T> {
    const data = join(folder, 'data');
    await chmod(folder, 0o755);
    await chmod(join(data, 'data.mdb'), 0o444);
    await chmod(data, 0o555);
    // Root may write everywhere, so another user runs it.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      return await act();
    } finally {
      if (isRoot) process.seteuid?.(0);
      await chmod(data, 0o755);
    }
  }

  test('works for export, backup, check and key list, and for no command that writes', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    const data = join(folder, 'data');
    await cp(await filledFolder(t, 30), data, { recursive: true });
    await rm(join(data, 'lock.mdb'));
    const copies = await temporaryFolder(t);
    await chmod(copies, 0o777);
    const waymark = (...words: string[]) => runHere([...words, '--config', iniFile]);
    await asReader(folder, async () => {
      assert.match((await waymark('export')).err, /^Exported 30 records\.\n$/);
      assert.match(
        (await waymark('check', '--data')).err,
        /^The data is correct: \d+ page rules from a log of 31 /m,
      );
      assert.match((await waymark('backup', join(copies, 'one'))).err, /up to change 31 to/);
      assert.equal((await waymark('key', 'list')).code, 0);
      const added = await waymark('key', 'add', '--name', 'x', '--scope', 'read');
      assert.match(added.err, /^waymark: the data folder \S+ cannot be written \(.*EACCES\)\n$/);
    });
    assert.deepEqual((await readdir(data)).toSorted(), [
      'data.mdb',
      'opening-wait.lock',
      'opening.lock',
    ]);
  });

  test('is refused while a server uses it, which could not see the reader', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    const { pid } = await startServed(t, iniFile);
    const data = join(folder, 'data');
    await chmod(join(data, 'serve.pid'), 0o644);
    const { err } = await asReader(folder, () => runHere(['export', '--config', iniFile]));
    assert.match(err, new RegExp(`in use by waymark \\(pid ${pid}\\) and cannot be written: run`));
  });
});

suite('the lock file of a data folder', () => {
  test('keeps other processes out if it was removed while a server runs', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    const { pid, url, adminKey } = await startServed(t, iniFile);
    await rm(join(folder, 'data', 'lock.mdb'));
    for (const words of [['key', 'list'], ['export'], ['check', '--data']]) {
      const { code, err } = await runWaymark([...words, '--config', iniFile]);
      assert.equal(code, 1, words.join(' '));
      const says = `has no lock\\.mdb any more, but waymark \\(pid ${pid}\\) uses it: restart that`;
      assert.match(err, new RegExp(`^waymark: the data folder [^\n]* ${says}[^\n]*\n$`));
    }
    const v = { path: '/a', kind: 'content', content: 'x' };
    const { status } = await postOperation(url, 'svc1.userinterface.insert', v, {
      apikey: adminKey,
    });
    assert.equal(status, 200);
  });
});

test('`key add` creates a data folder only with --new-data', async (t) => {
  const { folder, iniFile } = await serverFolder(t, '');
  const add = ['key', 'add', '--name', 'x', '--scope', 'read', '--config', iniFile];
  const { code, err } = await runHere(add);
  assert.equal(code, 1);
  assert.match(err, /^waymark: there is no data in \S+ yet; --new-data creates it\n$/);
  assert.deepEqual(await readdir(folder), ['server.ini']);
  assert.match((await runHere([...add, '--new-data'])).out, /^wmk_/);
});
