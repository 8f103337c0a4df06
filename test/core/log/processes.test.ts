import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { checkPages } from '../../../src/core/log/folder/page-check.ts';
import { temporaryFolder } from '../../folder.ts';
import { dumpChecked } from './dump.ts';
import { commit, inserted, scratchStore, startWriter } from './scratch.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

suite('two processes on one data folder', () => {
  test('write one log without gaps, and see the changes of each other', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    const { lines, closed } = startWriter(t, [folder, '300']);
    let mine = 0;
    let seen = 0;
    let isOver = false;
    // Opens a read transaction first, as an earlier request does.
    const readOn = async (): Promise<void> => {
      while (!isOver) {
        store.seq();
        await setImmediate();
      }
    };
    const reading = readOn();
    for await (const line of lines) {
      const [first = '', second = '', id = ''] = line.split(' ');
      if (line.startsWith('read') || !/^\d/.test(line)) continue;
      assert.equal(Number(second), Number(first) + 1, 'one transaction');
      store.refresh();
      assert.equal(
        store.of(storedRules).rule(id)?.seq,
        Number(second),
        'acknowledged there, visible here',
      );
      seen += 1;
      if (seen % 10 === 0) {
        mine += 1;
        const [change] = await commit(store, inserted(`mine ${mine}`, { path: '/mine' }));
        assert.ok((change?.seq ?? 0) > Number(second));
      }
    }
    isOver = true;
    await reading;
    assert.equal(await closed, 0);
    assert.equal(seen, 300);
    assert.equal(store.seq(), 601 + mine);
    await store.close();
    assert.equal((await dumpChecked(folder)).length, 601 + mine);
  });

  test('lose nothing while others open it and close it', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await scratchStore(t, { folder });
    const { child: writer, lines, closed } = startWriter(t, [folder, '1000000']);
    const opener = join(import.meta.dirname, 'opener.ts');
    const stored: string[] = [];
    // Writers wait for an opening: on a busy machine, few changes come between 150 of them.
    const ends = [1, 2].map(async () => {
      do {
        const child = spawn(process.execPath, [opener, folder, '150'], { stdio: 'inherit' });
        t.after(() => child.kill('SIGKILL'));
        const [code] = (await once(child, 'close')) as [number | null];
        assert.equal(code, 0);
      } while (stored.length <= 100);
    });
    let isOver = false as boolean;
    const opened = Promise.all(ends).finally(() => {
      isOver = true;
      writer.kill('SIGTERM');
    });
    const writing = (async () => {
      while (!isOver) {
        const id = `mine ${stored.length}`;
        const [change] = await commit(store, inserted(id, { path: '/mine' }));
        stored.push(`${change?.seq} ${id}`);
      }
    })();
    for await (const line of lines) {
      const [, second = '', id = ''] = line.split(' ');
      if (/^\d/.test(line)) stored.push(`${second} ${id}`);
    }
    await Promise.all([opened, writing, closed]);
    await store.close();
    const file = openSync(join(folder, 'data.mdb'), 'r');
    assert.deepEqual(checkPages(file), { damage: undefined, isComplete: true });
    const log = new Set((await dumpChecked(folder)).map(({ seq, id }) => `${seq} ${id}`));
    assert.deepEqual(
      stored.filter((one) => !log.has(one)),
      [],
    );
  });
});

suite('a process that is killed while it writes', () => {
  test('loses no acknowledged change and leaves no incomplete transaction', async (t) => {
    const folder = await temporaryFolder(t);
    const acknowledged: string[] = [];
    for (const linesBefore of [1, 40, 150, 333, 900]) {
      const { child, lines, closed } = startWriter(t, [folder, '1000000']);
      let read = 0;
      for await (const line of lines) {
        if (line !== 'ready') acknowledged.push(line);
        read += 1;
        // Reads the rest of the pipe.
        if (read === linesBefore) child.kill('SIGKILL');
      }
      await closed;
      const log = await dumpChecked(folder);
      for (const line of acknowledged) {
        const [first = '', second = '', id] = line.split(' ');
        const rows = [log[Number(first) - 1], log[Number(second) - 1]];
        assert.deepEqual(
          rows.map((row) => [row?.id, row?.action]),
          [
            [id, 'insert'],
            [id, 'edit'],
          ],
        );
      }
      const lastOf = new Map(log.map((row) => [row.txn, row]));
      assert.ok(
        [...lastOf.values()].every(({ action }) => action === 'edit'),
        'whole transactions',
      );
    }
    assert.ok(acknowledged.length >= 1_400);
    const store = await scratchStore(t, { folder });
    const [change] = await commit(store, inserted('afterwards', { path: '/' }));
    assert.ok((change?.seq ?? 0) > acknowledged.length * 2);
  });
});

suite('a full disk', { skip: process.platform === 'win32' && 'needs ulimit' }, () => {
  test('refuses changes with storage_full, still reads, and stores changes that fit', async (t) => {
    const folder = await temporaryFolder(t);
    // In blocks of 512 bytes: limits the files of this process to 4 MiB.
    const { child, lines, err, closed } = startWriter(t, [folder, '1000', '20000'], {
      shell: 'ulimit -f 8192',
    });
    const said: string[] = [];
    for await (const line of lines) said.push(line);
    await closed;
    assert.equal(child.exitCode, 0);
    assert.equal(err(), '', 'who asks is told, and nobody else');
    assert.ok(
      said.some((line) => /^\d+ \d+ /.test(line)),
      'some were stored',
    );
    assert.ok(said.includes('storage_full'), said.join('\n'));
    assert.deepEqual(said.slice(-2), ['read en', 'stored']);
    const stored = said.filter((line) => /^\d+ \d+ /.test(line));
    assert.equal((await dumpChecked(folder)).length, stored.length * 2 + 1);
  });
});
