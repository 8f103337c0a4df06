import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../../folder.ts';

suite(
  'kept answers on a disk without room',
  { skip: process.platform === 'win32' && 'needs ulimit' },
  () => {
    test('are refused with storage_full and leave no file; stored responses stay readable', async (t) => {
      const folder = join(await temporaryFolder(t), 'cache');
      // 512-byte blocks: a file of that process ends at 2 MiB.
      const { stdout } = await promisify(execFile)('sh', [
        ...['-c', 'ulimit -f 4096; exec "$@"', 'sh'],
        ...[process.execPath, join(import.meta.dirname, 'writer.ts'), folder],
      ]);
      const said = /^short \d+ storage_full\nlong (\d+) storage_full\nread 10000\n$/.exec(stdout);
      assert.ok(said !== null, stdout);
      const entries = await readdir(join(folder, 'content'), {
        recursive: true,
        withFileTypes: true,
      });
      assert.equal(entries.filter((entry) => entry.isFile()).length, Number(said[1]));
    });
  },
);
