import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder, writeFiles } from '../../test/folder.ts';
import { project } from '../sources.ts';
import { version } from './built.ts';

const run = promisify(execFile);

/** A command that takes the arguments of docker, such as `podman`. */
const command = process.env.CONTAINER;
const needsCommand = { skip: command === undefined && 'needs CONTAINER=podman or docker' };

const dockerfile = join(project, 'packaging/container/Dockerfile');
const compose = await readFile(join(project, 'packaging/container/compose.yaml'), 'utf8');
const name = `waymark-test-${process.pid}`;

async function container(...words: readonly string[]): Promise<string> {
  const { stdout } = await run(command ?? '', words, { maxBuffer: 16 << 20 });
  return stdout.trim();
}

/** Starts a container as the compose file does; resolves to its URL once it serves. */
async function start(site: string): Promise<string> {
  await container(
    ...['run', '--detach', '--name', name, '--read-only', '--user', 'waymark'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ...['--tmpfs', '/tmp:mode=1777,size=16m', '--publish', '127.0.0.1::8080'],
    ...[
      '--volume',
      `${name}-data:/var/lib/waymark`,
      '--volume',
      `${name}-cache:/var/cache/waymark`,
    ],
    ...['--volume', `${site}:/srv/www:ro`, name],
  );
  const url = `http://${await container('port', name, '8080')}`;
  while (!(await fetch(`${url}/svc1/health`).catch(() => undefined))?.ok) await delay(100);
  return url;
}

suite('the container', () => {
  test('is of the version of the packages', () => {
    assert.match(compose, new RegExp(`VERSION: ${version}\n`));
  });

  test('serves without privileges, is healthy, and keeps its data', needsCommand, async (t) => {
    t.after(async () => {
      await container('rm', '--force', name);
      await container('volume', 'rm', '--force', `${name}-data`, `${name}-cache`);
      await container('rmi', '--force', name);
    });
    await container(
      ...['build', '--file', dockerfile, '--tag', name],
      ...['--build-arg', 'TARGETARCH=amd64', '--build-arg', `VERSION=${version}`, project],
    );
    const site = await temporaryFolder(t);
    await writeFiles(site, { 'index.html': 'here' });
    await chmod(site, 0o755);
    const url = await start(site);
    const body = async (path: string): Promise<string> => (await fetch(url + path)).text();
    assert.equal(await body('/'), 'here');

    const shell = (script: string) => container('exec', name, 'bash', '-c', script);
    assert.equal(await shell('id --user --name'), 'waymark');
    assert.match(await shell('cat /proc/1/status'), /CapBnd:\t0+\n[^]*NoNewPrivs:\t1\n/);
    assert.equal(await shell('touch /x /srv/www/x 2>/dev/null || echo refused'), 'refused');
    const check = /HEALTHCHECK[^[]+(\[[^\]]+\])/.exec(await readFile(dockerfile, 'utf8'))?.[1];
    const [, , health = ''] = JSON.parse((check ?? '').replaceAll('\\\n', '')) as string[];
    await shell(health);
    await assert.rejects(shell(health.replaceAll('8080', '8081')));

    const rule = { path: '/p', kind: 'content', content: 'stored' };
    await shell(
      `WAYMARK_URL=http://localhost:8080 WAYMARK_APIKEY=$(cat /var/lib/waymark/admin-key) ` +
        `waymark rule insert '${JSON.stringify(rule)}'`,
    );
    assert.equal(await body('/p'), 'stored');
    await container('stop', name);
    assert.equal(await container('inspect', '--format', '{{.State.ExitCode}}', name), '0');
    await container('rm', name);
    const again = await start(site);
    assert.equal(await (await fetch(`${again}/p`)).text(), 'stored');
  });
});
