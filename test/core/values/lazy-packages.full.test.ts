import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { buildInstalled } from '../../../packaging/dist.ts';

/** Imports all files of `waymark serve`, and prints the files of packages that this has loaded. */
const program = `
  import { createRequire } from 'node:module';
  await import(${JSON.stringify(import.meta.resolve('../../../src/cli/serve/serve.ts'))});
  console.log(Object.keys(createRequire(import.meta.url).cache).join('\\n'));
`;

test('the command serve loads no package that only some requests need', async () => {
  const words = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  const packageOf = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/[^\n]*$/gm;
  const loaded = new Set([...stdout.matchAll(packageOf)].map(([, name = '']) => name));
  assert.ok(loaded.has('lmdb'), [...loaded].join(', '));
  const rare = ['ajv', 'jose', 'ws', 'acme-client', 'liquidjs', 'jsdom'];
  assert.deepEqual(
    rare.filter((name) => loaded.has(name)),
    [],
  );
});

/** Prints the files that the command line of an argument loads, a line each. */
const listing = `
  import { registerHooks } from 'node:module';
  const load = (url, context, next) => {
    if (url.startsWith('file:')) console.error('loads ' + url);
    return next(url, context);
  };
  registerHooks({ load });
`;

/** The most files that a start loads from the npm package; it was 194 with shared chunks. */
const startFilesMax = 130;

test('a start from the npm package loads few files', async () => {
  const program = await buildInstalled(resolve('node_modules/.cache/waymark-installed'));
  const hook = `data:text/javascript,${encodeURIComponent(listing)}`;
  // With the flag, it does not execute Node again.
  const words = ['--expose-gc', '--import', hook, program, 'serve', '--help'];
  const { stderr } = await promisify(execFile)(process.execPath, words);
  const files = stderr.match(/^loads .*$/gm) ?? [];
  assert.ok(
    files.some((file) => file.includes('/node_modules/lmdb/')),
    stderr,
  );
  assert.ok(files.length <= startFilesMax, `${files.length} files:\n${files.join('\n')}`);
});
