import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

/** Imports all files of `waymark serve`, and prints the files of packages that this has loaded. */
const program = `
  import { createRequire } from 'node:module';
  await import(${JSON.stringify(import.meta.resolve('../../src/cli/serve/serve.ts'))});
  console.log(Object.keys(createRequire(import.meta.url).cache).join('\\n'));
`;

test('the command serve loads no package that only some requests need', async () => {
  const words = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  const packageOf = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/[^\n]*$/gm;
  const loaded = new Set([...stdout.matchAll(packageOf)].map(([, name = '']) => name));
  assert.ok(loaded.has('lmdb'), [...loaded].join(', '));
  const rare = ['ajv', 'jose', 'pino-pretty', 'undici', 'ws', 'acme-client', 'liquidjs', 'jsdom'];
  assert.deepEqual(
    rare.filter((name) => loaded.has(name)),
    [],
  );
});
