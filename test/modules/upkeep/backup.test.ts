import assert from 'node:assert/strict';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { dumpChecked } from '../../core/log/dump.ts';
import { commit, inserted, scratchStore, startWriter } from '../../core/log/scratch.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

suite('a backup', () => {
  test('is complete although other processes write meanwhile', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    const { lines, child } = startWriter(t, [folder, '1000000']);
    const backups: string[] = [];
    let written = 0;
    for await (const line of lines) {
      if (line === 'ready') continue;
      written += 1;
      if (written % 200 !== 0) continue;
      const acknowledged = Number(line.split(' ')[1]);
      const target = join(folder, 'copies', `after ${written}`);
      const { seq, bytes } = await store.part(upkeep).backUp(target);
      assert.ok(seq >= acknowledged, 'what was acknowledged before is in it');
      const { size } = await stat(join(target, 'data.mdb'));
      assert.equal(bytes, size);
      assert.equal((await dumpChecked(target)).length, seq);
      backups.push(target);
      if (backups.length === 4) break;
    }
    child.kill('SIGKILL');
    assert.equal(backups.length, 4);
    const copy = await scratchStore(t, { folder: backups[0] ?? '' });
    const before = copy.seq();
    await commit(copy, inserted('afterwards', { path: '/' }));
    assert.equal(copy.seq(), before + 1);
    assert.equal(store.of(storedRules).rule('afterwards'), undefined);
  });

  test('is readable by its owner only, and contains only the data file', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }));
    const folder = await temporaryFolder(t);
    const [made, empty] = [join(folder, 'new/below'), join(folder, 'empty')];
    await mkdir(empty);
    for (const target of [made, empty]) {
      assert.equal((await store.part(upkeep).backUp(target)).seq, 1);
      assert.deepEqual(await readdir(target), ['data.mdb']);
      const { mode } = await stat(join(target, 'data.mdb'));
      if (process.platform !== 'win32') assert.equal(mode & 0o777, 0o600);
      assert.deepEqual(await readdir(dirname(made)), ['below']);
    }
  });

  test('needs an empty folder, and leaves no files if it fails', async (t) => {
    const store = await scratchStore(t);
    await commit(store, inserted('a', { path: '/a' }));
    const folder = await temporaryFolder(t);
    await mkdir(join(folder, 'full'));
    await mkdir(join(folder, 'empty'));
    await writeFile(join(folder, 'full/notes'), 'mine');
    await writeFile(join(folder, 'file'), 'mine');
    const stopped = AbortSignal.abort(new Error('stopped'));
    for (const { name, signal, says } of [
      { name: 'full', says: /full is not empty/ },
      { name: 'file', says: /file cannot be read \(ENOTDIR\)/ },
      { name: 'file/below', says: /cannot be/ },
      { name: 'new', signal: stopped, says: /stopped/ },
      { name: 'empty', signal: stopped, says: /stopped/ },
    ]) {
      await assert.rejects(
        store.part(upkeep).backUp(join(folder, name), signal),
        { message: says },
        name,
      );
    }
    assert.deepEqual(await readdir(folder), ['empty', 'file', 'full']);
    assert.deepEqual(await readdir(join(folder, 'full')), ['notes']);
    assert.deepEqual(await readdir(join(folder, 'empty')), []);
  });
});
