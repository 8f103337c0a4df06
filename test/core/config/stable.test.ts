import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { requireConfig } from '../../../src/cli/options.ts';
import { readWhenStable } from '../../../src/core/config/watch.ts';
import { makeFolder, readIni } from './folder.ts';

const half = '[server]\nlisten = 127.0.0.1:0\n';
const whole = `${half}[auth]\nanonymous =\n`;

test('a file that changes while it is read is read again', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': half });
  const file = join(folder, 'server.ini');
  let reads = 0;
  const readConfig = async () => {
    const result = await readIni(file);
    reads += 1;
    if (reads < 3) await writeFile(file, whole);
    return result;
  };
  const surroundings = { out: process.stdout, err: process.stderr, env: {} };
  const input = () => assert.fail('it reads its input');
  const config = await requireConfig(file, { ...surroundings, input, readConfig });
  assert.deepEqual(config.auth.anonymous, []);
  assert.equal(reads, 3);
});

test('a file that keeps changing is reported', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': half });
  const file = join(folder, 'server.ini');
  const read = async () => {
    await writeFile(file, '');
    return readIni(file);
  };
  // A clock far in the future makes every file old.
  const now = () => Number.MAX_SAFE_INTEGER;
  const result = await readWhenStable({ files: [file], read, now });
  assert.ok(!result.ok);
  const [problem] = result.problems;
  assert.match(problem?.message ?? '', /^the ini file.* keeps changing/);
});
