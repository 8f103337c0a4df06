import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { program, runWaymark } from '../../process.ts';

test('waymark module new writes a module that passes its own test', async (t) => {
  const cwd = await temporaryFolder(t);
  const { code, out, err } = await runWaymark(['module', 'new', 'greeter'], { cwd });
  assert.deepEqual([code, out], [0, 'Wrote greeter/. Its test: node --test greeter\n'], err);
  const child = spawn(process.execPath, ['--test', '--test-reporter=spec', 'greeter/'], {
    cwd,
    env: {
      ...process.env,
      // This process is a test itself, and node would not run the other.
      NODE_TEST_CONTEXT: undefined,
      WAYMARK: `${process.execPath} ${program}`,
    },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  }
  assert.deepEqual(await once(child, 'close'), [0, null], text);
  assert.match(text, /pass 2/);
  const again = await runWaymark(['module', 'new', 'greeter'], { cwd });
  assert.deepEqual([again.code, again.err.includes('is there already')], [1, true]);
  assert.equal((await runWaymark(['module', 'new', 'No-good'], { cwd })).code, 2);
});
