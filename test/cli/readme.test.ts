import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'node:test';
import { freePort } from '../free-port.ts';
import { readTestConfig, startSite } from '../harness.ts';
import { project } from '../tidy/sources.ts';

const readme = await readFile(join(project, 'README.md'), 'utf8');

/** The first block of shell commands below a heading. */
function shellBelow(heading: string): string {
  const [, below = ''] = readme.split(`\n${heading}\n`);
  return /\n```sh\n([^]*?)```/.exec(below)?.[1] ?? '';
}

const hasBash = spawnSync('bash', ['--version']).status === 0;

test(
  'the webhook of README is delivered as it is pasted',
  { skip: !hasBash && 'needs bash' },
  async (t) => {
    const site = await startSite(t, { ini: '[webhook]\nallow_private = 127.0.0.0/8\n' });
    const demo = await readTestConfig(join(project, 'conf/server.ini'));
    assert.ok(demo.webhook.allowPrivate.length > 0, 'the demo allows it as well');
    const block = shellBelow('## Webhooks').replaceAll('9099', String(await freePort()));
    assert.match(block, /webhook\/insert/);
    const child = spawn('bash', ['-c', `${block}\nwait`], {
      env: { ...process.env, KEY: site.adminKey, SITE: site.url },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    t.after(() => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    });
    let text = '';
    for await (const chunk of child.stdout) {
      text += String(chunk);
      if (/^\{"id":.*"type":"sale\.completed".*"data":\{"id":"S-1042"\}\}$/m.test(text)) return;
    }
    assert.fail(text);
  },
);

test(
  'the records of README are written and read as they are pasted',
  { skip: !hasBash && 'needs bash' },
  async (t) => {
    const site = await startSite(t);
    const block = shellBelow('## Records');
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

test('`npx waymark` in a clone prints no text of npm', async () => {
  const run = promisify(execFile);
  const { stdout, stderr } = await run('npx', ['--offline', 'waymark', '--version'], {
    cwd: project,
    shell: process.platform === 'win32',
  });
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  assert.equal(stderr, '');
});

test('npm prints no warnings about engines on an older Node', async () => {
  assert.match(await readFile(join(project, '.npmrc'), 'utf8'), /^loglevel=error$/m);
});
