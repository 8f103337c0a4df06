import assert from 'node:assert/strict';
import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import {
  fileFields,
  loadFile,
  representFile,
  type FileForm,
} from '../../src/static/file-content.ts';
import { temporaryFolder, writeFiles } from '../folder.ts';
import { mountOf } from './disk-rig.ts';

const said = ['Cache-Control', 'no-cache'];
const facts = { fields: fileFields(said), now: Date.now };

/** A file that stands alone. */
function alone(below: string) {
  return { below, name: below, form: 'alone' } as const;
}

suite('a small file', () => {
  test('is loaded with what is said of it', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { 'a/page.html': '<p>ä' });
    const modified = new Date('2025-01-02T03:04:05Z');
    await utimes(join(root, 'a/page.html'), modified, modified);
    const loaded = await loadFile(mountOf(root), alone('a/page.html'), facts);
    assert.equal(loaded?.bytes.toString(), '<p>ä');
    const { etag, ...representation } = loaded.representation;
    assert.match(etag ?? '', /^"[\w-]{22}"$/);
    assert.deepEqual(representation, {
      status: 200,
      contentType: 'text/html; charset=utf-8',
      lastModifiedMs: modified.getTime(),
      sharesDate: false,
      fields: said,
      bytesLength: 5,
    });
  });

  test('has another entity tag after every change, however quick', async (t) => {
    const root = await temporaryFolder(t);
    const tags = new Set<string | undefined>();
    for (let turn = 0; turn < 100; turn += 1) {
      // Within a tick of the file system's clock, and with the same size and date.
      await writeFile(join(root, 'a'), String(1_000 + turn));
      await utimes(join(root, 'a'), 1, 1);
      tags.add((await loadFile(mountOf(root), alone('a'), facts))?.representation.etag);
    }
    assert.equal(tags.size, 100);
    assert.ok(!tags.has(undefined));
  });

  test('has another entity tag with other bytes, whatever its file system says of them', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const stats = await stat(join(root, 'a'), { bigint: true });
    const tagOf = (bytes: string) =>
      representFile(alone('a'), { stats, bytes: Buffer.from(bytes), ...facts }).etag;
    assert.equal(tagOf('x'), tagOf('x'));
    assert.notEqual(tagOf('x'), tagOf('y'));
  });

  test('has another entity tag in every coding, and the fields that say so', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const stats = await stat(join(root, 'a'), { bigint: true });
    const inForm = (form: FileForm) =>
      representFile({ name: 'page.css', form }, { stats, ...facts });
    const tags = new Set(
      (['beside', 'zstd', 'br', 'gzip'] as const).map((form) => inForm(form).etag),
    );
    assert.equal(tags.size, 4);
    assert.equal(inForm('alone').etag, inForm('beside').etag);
    assert.deepEqual(inForm('beside').fields, [...said, 'Vary', 'Accept-Encoding']);
    const { fields, contentType, sharesDate } = inForm('br');
    assert.deepEqual(fields, ['Content-Encoding', 'br', ...said, 'Vary', 'Accept-Encoding']);
    assert.equal(contentType, 'text/css; charset=utf-8');
    assert.equal(sharesDate, true);
  });

  test('is known by its identity only when a later change would show in it', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const { ctimeMs } = await stat(join(root, 'a'));
    const loadAt = (nowMs: number) =>
      loadFile(mountOf(root), alone('a'), { ...facts, now: () => nowMs });
    assert.equal((await loadAt(ctimeMs + 1_000))?.identity, undefined);
    assert.notEqual((await loadAt(ctimeMs + 3_000))?.identity, undefined);
  });

  test('is not loaded when it is none, or not small', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, {
      'folder/a': '',
      large: Buffer.alloc(256 * 1024 + 1),
      edge: Buffer.alloc(256 * 1024),
      empty: '',
    });
    for (const below of ['folder', 'none', 'large', 'folder/a/b']) {
      assert.equal(await loadFile(mountOf(root), alone(below), facts), undefined, below);
    }
    assert.equal((await loadFile(mountOf(root), alone('edge'), facts))?.bytes.length, 256 * 1024);
    assert.equal((await loadFile(mountOf(root), alone('empty'), facts))?.bytes.length, 0);
  });

  test('was never modified later than now', async (t) => {
    const root = await temporaryFolder(t);
    await writeFiles(root, { a: 'x' });
    const stats = await stat(join(root, 'a'), { bigint: true });
    const { lastModifiedMs } = representFile(alone('a'), { stats, ...facts, now: () => 1_000 });
    assert.equal(lastModifiedMs, 1_000);
  });
});
