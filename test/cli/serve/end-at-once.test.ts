import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { openStore } from '../../../src/core/log/open.ts';
import { temporaryFolder } from '../../folder.ts';

test('a process with a bug ends, also during a transaction, and leaves the data to others', async (t) => {
  const folder = join(await temporaryFolder(t), 'data');
  const writer = join(import.meta.dirname, 'failing-writer.ts');
  const child = spawn(process.execPath, [writer, folder], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const [[code, signal], err] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  assert.match(err, /Error: a bug\n {4}at /);
  const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
  t.after(() => store.close());
  const decide = () => ({ drafts: [], answer: () => 'decided' });
  assert.equal(await store.commit('test', decide), 'decided');
});
