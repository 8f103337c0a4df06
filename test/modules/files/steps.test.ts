import assert from 'node:assert/strict';
import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { createCompressors } from '../../../src/modules/compression/compressors.ts';
import { createDisk } from '../../../src/modules/files/disk.ts';
import { notFoundCacheCharactersMax } from '../../../src/modules/files/file-cache.ts';
import { fileCacheValidMs } from '../../../src/core/http/limits.ts';
import {
  createSiteParts,
  explain,
  mountsOf,
  reasons,
  serve,
} from '../../core/pipeline/explain-rig.ts';
import { visit } from '../proxy/fetch-rig.ts';
import { mountOf } from './disk-rig.ts';

/** Root may read everything. */
const isRoot = process.getuid?.() === 0;

suite('explain says why a mount does not answer', () => {
  const cases: readonly (readonly [path: string, reasons: readonly string[]])[] = [
    ['/a', ['shop docs other_path', 'docs other_path', 'site', 'all docs earlier_mount']],
    [
      '/docs/a',
      ['shop docs', 'docs earlier_mount', 'site earlier_mount', 'all docs earlier_mount'],
    ],
    ['/docs/b/', ['shop docs no_index', 'docs', 'site earlier_mount', 'all docs earlier_mount']],
    [
      '/.hidden',
      ['shop docs other_path', 'docs other_path', 'site hidden_name', 'all docs hidden_name'],
    ],
    [
      '/a/',
      ['shop docs other_path', 'docs other_path', 'site not_a_folder', 'all docs not_a_folder'],
    ],
    ['/out', ['shop docs other_path', 'docs other_path', 'site no_file', 'all docs no_file']],
    ['/empty', ['shop docs other_path', 'docs other_path', 'site no_index', 'all docs no_file']],
  ];
  for (const [path, wanted] of cases) {
    test(path, async (t) => {
      const ground = await createSiteParts(t);
      const mounts = mountsOf(ground.folder).filter(({ name }) => name !== 'plain');
      const { tried } = explain(ground.siteOf([], mounts), { path });
      assert.deepEqual(
        reasons(tried.slice(0, 1)),
        wanted.map((reason) => `disk: ${reason}`),
      );
    });
  }

  test('another origin; a missing fallback file; a fallback file and a POST', async (t) => {
    const ground = await createSiteParts(t);
    const site = ground.siteOf([], mountsOf(ground.folder));
    const elsewhere = explain(site, { path: '/docs/a', origin: 'http://other.example' });
    assert.equal(reasons(elsewhere.tried)[0], 'disk: shop docs other_origin');
    const read = explain(site, { path: '/none' });
    assert.deepEqual(read.winner, { source: 'fallback', mount: 'site', status: 200 });
    const written = explain(site, { path: '/none', method: 'PUT' });
    assert.deepEqual([written.winner, written.status], [null, 404]);
    const fallbacks = ({ tried }: typeof read) => reasons(tried.slice(3));
    assert.deepEqual(fallbacks(read), ['fallback: site', 'fallback: all docs earlier_mount']);
    assert.deepEqual(fallbacks(written), ['fallback: site method', 'fallback: all docs method']);
    const gone = ground.siteOf([], mountsOf(ground.folder).slice(4));
    assert.deepEqual(fallbacks(explain(gone, { path: '/x' })), ['fallback: all docs no_file']);
  });
});

test('explain uses the cached file for as long as replies use it', async (t) => {
  const { folder } = await createSiteParts(t);
  let nowMs = Date.now();
  const disk = createDisk({
    mounts: [mountOf(join(folder, 'site'))],
    now: () => nowMs,
    compressors: createCompressors(),
  });
  t.after(() => disk.close());
  const look = () => disk.mounts[0]?.explain(visit({ path: '/a' }));
  assert.equal((await disk.respond(visit({ path: '/a' })))?.status, 200);
  await rm(join(folder, 'site/a'));
  assert.deepEqual(look(), { status: 200 });
  assert.equal((await disk.respond(visit({ path: '/a' })))?.status, 200);
  nowMs += fileCacheValidMs;
  assert.deepEqual(look(), { loss: 'no_file' });
  assert.equal(await disk.respond(visit({ path: '/a' })), undefined);
  await writeFile(join(folder, 'site/a'), 'again');
  assert.deepEqual(look(), { loss: 'no_file' });
  assert.equal(await disk.respond(visit({ path: '/a' })), undefined);
  nowMs += fileCacheValidMs;
  assert.deepEqual(look(), { status: 200 });
  assert.equal((await disk.respond(visit({ path: '/a' })))?.status, 200);
});

test('the cache of missing files is bounded', async (t) => {
  const { folder } = await createSiteParts(t);
  const disk = createDisk({
    mounts: [mountOf(join(folder, 'site'))],
    now: () => 0,
    compressors: createCompressors(),
  });
  t.after(() => disk.close());
  const ask = (path: string) => disk.respond(visit({ path }));
  assert.equal(await ask('/late'), undefined);
  await writeFile(join(folder, 'site/late'), 'here');
  const long = 'x'.repeat(200);
  for (let at = 0; at * long.length < notFoundCacheCharactersMax / 2; at += 1) {
    await ask(`/${long}${at}`);
  }
  assert.equal(await ask('/late'), undefined);
  for (let at = 0; at * long.length < notFoundCacheCharactersMax / 2; at += 1) {
    await ask(`/${at}${long}`);
  }
  assert.equal((await ask('/late'))?.status, 200);
});

test(
  'explain gives 403 for a file or folder that the server is not allowed to read',
  { skip: isRoot && 'root may read everything' },
  async (t) => {
    const ground = await createSiteParts(t);
    for (const [path, below] of [
      ['/a', 'site/a'],
      ['/empty/', 'site/empty'],
    ] as const) {
      await chmod(join(ground.folder, below), 0);
      const mounts = [mountOf(join(ground.folder, 'site'), { listing: true })];
      const site = ground.siteOf([{ path: '/*' }], mounts);
      const explained = explain(site, { path });
      assert.deepEqual(explained.winner, { source: 'disk', mount: 'site', status: 403 });
      assert.deepEqual(await serve(site, { path }), { status: 403, source: 'none' });
      await chmod(join(ground.folder, below), 0o700);
    }
  },
);
