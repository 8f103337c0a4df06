import assert from 'node:assert/strict';
import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import {
  fieldsByVariant,
  readFileContent,
  representationOf,
  type FileVariant,
} from '../../../src/modules/files/file-content.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { mountOf } from './disk-rig.ts';

const mountFields = ['Cache-Control', 'no-cache'];
const facts = { fields: fieldsByVariant(mountFields), types: [], now: Date.now };

/** A file without precompressed files. */
function onlyFile(relativePath: string) {
  return { relativePath, name: relativePath, variant: 'only' } as const;
}

suite('a small file', () => {
  test('is read together with its representation', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { 'a/page.html': '<p>ä' });
    const modified = new Date('2025-01-02T03:04:05Z');
    await utimes(join(root, 'a/page.html'), modified, modified);
    const loaded = await readFileContent(mountOf(root), onlyFile('a/page.html'), facts);
    assert.equal(loaded?.bytes.toString(), '<p>ä');
    const { etag, ...representation } = loaded.representation;
    assert.match(etag ?? '', /^"[\w-]{22}"$/);
    assert.deepEqual(representation, {
      status: 200,
      contentType: 'text/html; charset=utf-8',
      lastModifiedMs: modified.getTime(),
      sharesDate: false,
      fields: mountFields,
      bytesLength: 5,
    });
  });

  test('gets another entity tag after every change, even within one clock tick', async (t) => {
    const root = await temporaryFolder(t);
    const tags = new Set<string | undefined>();
    for (let turn = 0; turn < 100; turn += 1) {
      // Within a tick of the file system's clock, and with the same size and date.
      await writeFile(join(root, 'a'), String(1_000 + turn));
      await utimes(join(root, 'a'), 1, 1);
      tags.add((await readFileContent(mountOf(root), onlyFile('a'), facts))?.representation.etag);
    }
    assert.equal(tags.size, 100);
    assert.ok(!tags.has(undefined));
  });

  test('gets another entity tag for other bytes with the same times', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const stats = await stat(join(root, 'a'), { bigint: true });
    const tagOf = (bytes: string) =>
      representationOf(onlyFile('a'), { stats, bytes: Buffer.from(bytes), ...facts }).etag;
    assert.equal(tagOf('x'), tagOf('x'));
    assert.notEqual(tagOf('x'), tagOf('y'));
  });

  test('has its own entity tag and fields in each coding', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const stats = await stat(join(root, 'a'), { bigint: true });
    const inVariant = (form: FileVariant) =>
      representationOf({ name: 'page.css', variant: form }, { stats, ...facts });
    const tags = new Set(
      (['identity', 'zstd', 'br', 'gzip'] as const).map((variant) => inVariant(variant).etag),
    );
    assert.equal(tags.size, 4);
    assert.equal(inVariant('only').etag, inVariant('identity').etag);
    assert.deepEqual(inVariant('identity').fields, [...mountFields, 'Vary', 'Accept-Encoding']);
    const { fields, contentType, sharesDate } = inVariant('br');
    assert.deepEqual(fields, ['Content-Encoding', 'br', ...mountFields, 'Vary', 'Accept-Encoding']);
    assert.equal(contentType, 'text/css; charset=utf-8');
    assert.equal(sharesDate, true);
  });

  test('has a version only if a later change would alter it', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const { ctimeMs } = await stat(join(root, 'a'));
    const loadAt = (nowMs: number) =>
      readFileContent(mountOf(root), onlyFile('a'), { ...facts, now: () => nowMs });
    assert.equal((await loadAt(ctimeMs + 1_000))?.version, undefined);
    assert.notEqual((await loadAt(ctimeMs + 3_000))?.version, undefined);
  });

  test('is not read if it is a folder, missing or large', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, {
      'folder/a': '',
      large: Buffer.alloc(256 * 1024 + 1),
      edge: Buffer.alloc(256 * 1024),
      empty: '',
    });
    for (const below of ['folder', 'none', 'large', 'folder/a/b']) {
      assert.equal(await readFileContent(mountOf(root), onlyFile(below), facts), undefined, below);
    }
    assert.equal(
      (await readFileContent(mountOf(root), onlyFile('edge'), facts))?.bytes.length,
      256 * 1024,
    );
    assert.equal((await readFileContent(mountOf(root), onlyFile('empty'), facts))?.bytes.length, 0);
  });

  test('never has a Last-Modified in the future', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const stats = await stat(join(root, 'a'), { bigint: true });
    const { lastModifiedMs } = representationOf(onlyFile('a'), {
      stats,
      ...facts,
      now: () => 1_000,
    });
    assert.equal(lastModifiedMs, 1_000);
  });
});
