import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { project } from '../tidy/sources.ts';
import { breaks } from './broken.ts';

test('the code that fault runs break on purpose is still there', async () => {
  for (const [name, { file, from }] of Object.entries(breaks)) {
    const source = await readFile(join(project, file), 'utf8');
    assert.equal(source.split(from).length, 2, `BROKEN=${name}: ${file} has changed`);
  }
});
