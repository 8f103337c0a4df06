import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Failure } from '../../../src/core/values/failure.ts';
import { loadDocsFiles } from '../../../src/modules/docs/docs-files.ts';

test('the server reads a file of the documentation at the first request for it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-docs-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  await write('index.html', 'before the start');
  await write('gone.html', 'before the start');
  const docs = await loadDocsFiles(folder);
  await write('index.html', 'after the start');
  assert.equal(docs.get('')?.file.bytes.toString(), 'after the start');
  await write('index.html', 'after the first request');
  assert.equal(docs.get('index.html')?.file.bytes.toString(), 'after the start');
  await rm(join(folder, 'gone.html'));
  assert.throws(
    () => docs.get('gone.html')?.file,
    (error) => error instanceof Failure && error.code === 'not_found',
  );
});
