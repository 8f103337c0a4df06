import assert from 'node:assert/strict';
import { closeSync, readFileSync } from 'node:fs';
import { readdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { CachePurge } from '../../../../src/modules/cache/cache-admin.ts';
import {
  createContentFiles,
  settleCache,
} from '../../../../src/modules/cache/storage/environment.ts';
import { temporaryFolder } from '../../../folder.ts';
import { startCache } from './rig.ts';

const url = 'http://a.example/x';
const large = Buffer.alloc(100_000, 'large');

async function filesIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(join(folder, 'content'), {
    recursive: true,
    withFileTypes: true,
  }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

suite('the storage of responses', () => {
  test('returns stored content, large content by its file', async (t) => {
    const { cache, put, row, folder } = await startCache(t);
    assert.equal(cache.version(url), 0);
    await put(url, { content: Buffer.from('small') });
    const version = cache.version(url);
    assert.ok(version > 0);
    assert.equal(cache.content(row(url))?.toString(), 'small');
    assert.deepEqual(await filesIn(folder), []);
    await put(url, { content: large });
    assert.ok(cache.version(url) > version);
    const descriptor = cache.openFile(row(url).entry.id);
    assert.ok(descriptor !== undefined);
    t.after(() => {
      closeSync(descriptor);
    });
    assert.ok(readFileSync(descriptor).equals(large));
    assert.deepEqual(await filesIn(folder), ['id-2']);
    await put(url);
    assert.deepEqual(await filesIn(folder), []);
  });

  test('shows the same to every process that refreshes, also between reads', async (t) => {
    const { another, put, cache } = await startCache(t);
    const other = another();
    let isOver = false;
    const readOn = async (): Promise<void> => {
      while (!isOver) {
        cache.version(url);
        other.version(url);
        await turn();
      }
    };
    const reading = readOn();
    for (let at = 1; at <= 100; at += 1) {
      await put(url);
      other.refresh();
      assert.equal(other.read(url).rows[0]?.entry.id, `id-${at}`);
      await other.purge({ kind: 'url', url });
      cache.refresh();
      assert.equal(cache.version(url), 0);
    }
    isOver = true;
    await reading;
  });

  test('distinguishes long URLs with the same beginning', async (t) => {
    const { put, ids } = await startCache(t);
    const long = (end: string): string => `http://a.example/${'x'.repeat(7_000)}${end}`;
    await put(long('1'));
    await put(long('2'));
    assert.deepEqual([ids(long('1')), ids(long('2')), ids(long('3'))], [['id-1'], ['id-2'], []]);
  });

  const selections: readonly (readonly [CachePurge, readonly string[]])[] = [
    [{ kind: 'url', url: 'http://a.example/x' }, ['/x/1', '/y', '/z']],
    [{ kind: 'prefix', prefix: 'http://a.example/x' }, ['/y', '/z']],
    [{ kind: 'prefix', prefix: 'http://a.example/x/' }, ['/x', '/y', '/z']],
    [{ kind: 'prefix', prefix: 'http://b.example/' }, ['/x', '/x/1', '/y', '/z']],
    [{ kind: 'rule', rule: 'r2' }, ['/x', '/x/1', '/z']],
    [{ kind: 'rule', rule: 'r' }, ['/x', '/x/1', '/y', '/z']],
    [{ kind: 'all' }, []],
  ];
  for (const [purge, left] of selections) {
    test(`purges ${JSON.stringify(purge)}`, async (t) => {
      const { cache, put } = await startCache(t);
      for (const path of ['/x', '/x/1', '/y', '/z']) {
        await put(`http://a.example${path}`, { rule: path === '/y' ? 'r2' : 'r1' });
      }
      assert.equal(await cache.purge(purge), 4 - left.length);
      const kept = [...cache.list({ prefix: '', rule: undefined, after: undefined })].map(
        (one) => one.url,
      );
      assert.deepEqual(
        kept,
        left.map((path) => `http://a.example${path}`),
      );
      assert.equal(cache.counts().answers, left.length);
      if (left.length === 0) assert.equal(cache.counts().bytes, 0);
    });
  }

  test('does not store a response that was requested before a purge', async (t) => {
    const { cache, put, ids, folder } = await startCache(t);
    const since = cache.epoch();
    await cache.purge({ kind: 'prefix', prefix: 'http://a.example/' });
    assert.equal(await put(url, { since, content: large }), false);
    assert.deepEqual([ids(url), await filesIn(folder)], [[], []]);
    assert.equal(await put('http://b.example/', { since }), true);
    assert.equal(await put(url), true);
  });

  test('purges thousands of URLs at once', async (t) => {
    const { cache, put } = await startCache(t);
    const count = 1_200;
    await Promise.all(Array.from({ length: count }, (_, at) => put(`http://a.example/${at}`)));
    assert.equal(cache.counts().answers, count);
    assert.equal(
      await cache.purge({ kind: 'prefix', prefix: 'http://a.example/1' }),
      1 + 10 + 100 + 200,
    );
    assert.equal(await cache.purge({ kind: 'rule', rule: 'r1' }), count - 311);
    assert.deepEqual(cache.counts(), { answers: 0, urls: 0, bytes: 0, bytesMax: 1e9 });
  });

  test('lists responses after a URL', async (t) => {
    const { cache, put } = await startCache(t);
    for (const path of ['a', 'b', 'b/c', 'd']) await put(`http://a.example/${path}`);
    const list = (prefix: string, after?: string, rule?: string): readonly string[] =>
      [...cache.list({ prefix, rule, after })].map((one) =>
        one.url.slice('http://a.example/'.length),
      );
    assert.deepEqual(list('http://a.example/b'), ['b', 'b/c']);
    assert.deepEqual(list('', 'http://a.example/b'), ['b/c', 'd']);
    await put('http://a.example/c', { rule: 'r2' });
    assert.deepEqual(list('', undefined, 'r2'), ['c']);
    assert.deepEqual(list('http://a.example/b', 'http://a.example/b', 'r1'), ['b/c']);
  });
});

test('a file that cannot be written completely is removed', async (t) => {
  const folder = await temporaryFolder(t);
  const files = createContentFiles(folder);
  const broken = Readable.from(
    (function* () {
      yield large;
      throw new Error('disk full');
    })(),
  );
  await assert.rejects(files.write('id-1', broken as unknown as Buffer), /disk full/);
  assert.deepEqual(await files.list(), []);
});

suite('the capacity', () => {
  test('is kept by evicting the least recently used responses first', async (t) => {
    const { cache, put, ids, pass } = await startCache(t, { bytesMax: 350_000 });
    for (const name of ['a', 'b', 'c']) {
      await put(name, { id: name, content: large });
      pass(100);
    }
    const [used] = cache.read('a').rows;
    assert.ok(used !== undefined);
    cache.touch(used.entry);
    pass(100);
    await put('d', { content: large });
    await put('e', { content: large });
    assert.deepEqual([ids('a'), ids('b'), ids('c')], [['a'], [], []]);
    assert.ok(cache.counts().bytes <= 350_000);
    await cache.limit(150_000);
    assert.deepEqual([cache.counts().answers, ids('e').length], [1, 1]);
    await put('f', { content: large });
    assert.deepEqual([cache.counts().answers, ids('f').length], [1, 1]);
    await cache.limit(0);
    assert.deepEqual([cache.counts().answers, cache.counts().bytes], [0, 0]);
  });

  test('is kept by evicting thousands, the oldest first', async (t) => {
    const { cache, put, ids, pass } = await startCache(t);
    await put('http://a.example/0');
    pass(1);
    for (let at = 1; at < 1_199; at += 1) await put(`http://a.example/${at}`);
    pass(1);
    await put('http://a.example/1199');
    const { bytes } = cache.counts();
    await cache.limit(bytes / 2);
    assert.ok(cache.counts().bytes <= bytes / 2);
    assert.deepEqual(
      [ids('http://a.example/0').length, ids('http://a.example/1199').length],
      [0, 1],
    );
  });
});

suite('a restart', () => {
  test('finds all stored responses', async (t) => {
    const { cache, put, folder } = await startCache(t);
    await put(url, { content: Buffer.from('kept') });
    await put('http://a.example/large', { content: large });
    await cache.close();
    const again = await startCache(t, { folder });
    assert.equal(again.cache.content(again.row(url))?.toString(), 'kept');
    assert.equal(again.row('http://a.example/large').entry.bytesLength, large.length);
    assert.equal(again.cache.counts().answers, 2);
  });

  test('deletes files that no response refers to', async (t) => {
    const { cache, put, folder } = await startCache(t);
    await put(url, { content: large });
    const handle = await cache.createFile('left');
    await handle.close();
    await cache.close();
    await startCache(t, { folder });
    assert.deepEqual(await filesIn(folder), ['id-1']);
  });

  const damages: readonly (readonly [string, (folder: string) => Promise<void>])[] = [
    ['of a damaged database', (folder) => truncate(join(folder, 'data.mdb'), 5_000)],
    ['of another version', (folder) => writeFile(join(folder, 'run'), '0 x closed\n')],
    [
      'of a machine that stopped',
      (folder) => writeFile(join(folder, 'run'), '1 other-boot open\n'),
    ],
    ['without a record of its state', (folder) => writeFile(join(folder, 'run'), '')],
  ];
  for (const [what, damage] of damages) {
    test(`empties the folder ${what}`, async (t) => {
      const { cache, put, folder } = await startCache(t);
      await put(url, { content: large });
      await cache.close();
      await damage(folder);
      const again = await startCache(t, { folder });
      assert.deepEqual([again.cache.counts().answers, await filesIn(folder)], [0, []]);
      assert.equal(await again.put(url), true);
    });
  }

  test('of the machine after the cache was closed finds all stored responses', async (t) => {
    const { cache, put, folder } = await startCache(t);
    await put(url);
    await cache.close();
    await writeFile(join(folder, 'run'), '1 other-boot open\n');
    await settleCache(folder);
    const again = await startCache(t, { folder });
    assert.deepEqual(again.ids(url).length, 1);
  });
});

suite('corrupt content', () => {
  test('is not returned', async (t) => {
    const { cache, put, row } = await startCache(t);
    await put(url, { content: Buffer.from('kept') });
    const kept = row(url);
    assert.equal(cache.content({ ...kept, crc: kept.crc + 1 }), undefined);
    const longer = { ...kept, entry: { ...kept.entry, bytesLength: 5 } };
    assert.equal(cache.content(longer), undefined);
  });
});
