import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

test('only the stack trace of a full disk is suppressed, other errors are printed', async () => {
  const module = pathToFileURL(
    join(import.meta.dirname, '../../../../src/core/log/folder/full-disk.ts'),
  ).href;
  const script = `
    const { silenceDiskFullErrors } = await import(${JSON.stringify(module)});
    silenceDiskFullErrors();
    silenceDiskFullErrors();
    const failed = (message, code, at) => Object.assign(new Error(message), { code, stack: message + at });
    const lmdb = ' at /node_modules/lmdb/write.js:516:7';
    console.error(failed('full', 28, lmdb));
    console.error(failed('damaged', -30796, lmdb));
    console.error(failed('not of lmdb', 28, ' at /app.js'));
    console.error('said with more', failed('full', 28, lmdb));
    console.error('a word');`;
  const { stderr } = await promisify(execFile)(process.execPath, [
    ...['--input-type=module', '--eval', script],
  ]);
  const told = ['damaged', 'not of lmdb', 'said with more', 'a word'];
  const places = told.map((text) => stderr.indexOf(text));
  assert.ok(
    places.every((place, at) => place > (places[at - 1] ?? -1)),
    stderr,
  );
  assert.doesNotMatch(stderr, /^full/m);
});
