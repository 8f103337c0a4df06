import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'node:test';
import { temporaryFolder } from '../folder.ts';
import { startSite } from '../harness.ts';
import { project } from '../tidy/sources.ts';

const records = await readFile(join(project, 'docs/how-to/records.md'), 'utf8');
const [, block = ''] = /\n```sh\n([^]*?)```/.exec(records) ?? [];

const hasBash = spawnSync('bash', ['--version']).status === 0;

test(
  'the records of the documentation are written and read as they are pasted',
  { skip: !hasBash && 'needs bash' },
  async (t) => {
    const site = await startSite(t);
    const run = promisify(execFile);
    const env = { ...process.env, KEY: site.adminKey, SITE: site.url };
    const { stdout } = await run(
      'bash',
      ['-ec', `${block.replaceAll('curl ', 'curl -s ')}\necho`],
      { env },
    );
    const answers = stdout.replaceAll('}{"r"', '}\n{"r"').trim().split('\n');
    const data = answers.map(
      (text) => (JSON.parse(text) as { data: Record<string, unknown> }).data,
    );
    const [table, inserted, edited, listed, one, found] = data;
    assert.equal(table?.name, 'products');
    assert.ok(inserted !== undefined && !('cost' in inserted));
    assert.deepEqual([edited?.price, edited?._unknowns_], [30, { price: 'free' }]);
    assert.equal(listed?.count, 1);
    assert.equal(one?.name, 'Tern lamp');
    assert.ok(Array.isArray(found?.rows) && found.rows.length === 1);
  },
);

test('`npx waymark` in a clone prints no text of npm', async (t) => {
  const run = promisify(execFile);
  // npx fails without a folder for its cache: the home of a user may be read-only.
  const env = { ...process.env, npm_config_cache: await temporaryFolder(t) };
  const { stdout, stderr } = await run('npx', ['--offline', 'waymark', '--version'], {
    cwd: project,
    env,
    shell: process.platform === 'win32',
  });
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  assert.equal(stderr, '');
});

test('npm prints no warnings about engines on an older Node', async () => {
  assert.match(await readFile(join(project, '.npmrc'), 'utf8'), /^loglevel=error$/m);
});
