import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

/** A registry of npm that keeps packages in memory, by their name in the path as it is sent. */
function answerer() {
  const packages = new Map<string, object>();
  const asked: string[] = [];
  const answer = async ({
    method,
    url,
    body,
  }: {
    method: string;
    url: string;
    body: Promise<unknown>;
  }): Promise<readonly [status: number, content: object]> => {
    asked.push(`${method} ${url}`);
    const [path = ''] = url.split('?');
    if (method === 'PUT') {
      packages.set(path, (await body) as object);
      return [201, { ok: true }];
    }
    const found = packages.get(path);
    return found === undefined ? [404, { error: 'not found' }] : [200, found];
  };
  return { answer, asked };
}

test('npm publishes a scoped package behind a proxy, and views it', async (t) => {
  const { answer, asked } = answerer();
  const { origin } = await httpSource(t, (request, response) => {
    const { method = '', url = '' } = request;
    const isPut = method === 'PUT';
    answer({ method, url, body: isPut ? json(request) : Promise.resolve() }).then(
      ([status, content]) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(content));
      },
      () => response.destroy(),
    );
  });
  const site = await startSite(t, { ini: `[proxy.npm]\npath = /npm/\nsource = ${origin}\n` });
  const folder = await temporaryFolder(t);
  const registry = `${site.url}/npm/`;
  await writeFiles(folder, {
    '.npmrc': `registry=${registry}\n//${new URL(registry).host}/npm/:_authToken=token\n`,
    'package.json': JSON.stringify({ name: '@scope/package', version: '1.2.3', description: 'A' }),
    'index.js': '',
  });
  const npm = npmIn(folder);
  await npm('publish', '--access', 'public');
  assert.equal(await npm('view', '@scope/package', 'version'), '1.2.3\n');
  assert.equal(await npm('view', '@scope/package@1', 'description'), 'A\n');
  assert.ok(asked.includes('PUT /npm/@scope%2fpackage'), asked.join('\n'));
  assert.ok(asked.includes('GET /npm/@scope%2fpackage'), asked.join('\n'));
  await assert.rejects(npm('view', '@scope/other', 'version'), /E404/);
});

/** Runs npm in a folder with nothing of the settings of this machine; resolves to its output. */
function npmIn(folder: string): (...words: readonly string[]) => Promise<string> {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_|proxy$/i.test(name));
  const env = {
    ...Object.fromEntries(own),
    HOME: folder,
    npm_config_cache: join(folder, 'cache'),
    npm_config_userconfig: join(folder, '.npmrc'),
    npm_config_globalconfig: join(folder, 'none'),
    npm_config_update_notifier: 'false',
  };
  return async (...words) => {
    const { stdout } = await promisify(execFile)('npm', words, { cwd: folder, env });
    return stdout;
  };
}
