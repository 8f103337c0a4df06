import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { suite, test } from 'node:test';

const folder = fileURLToPath(new URL('..', import.meta.url));

/** As `npm run lint`. */
const checks = [
  ['the types of the operations', 'docs/reference/operation-types.ts', []],
  ['types and lint', 'node_modules/oxlint/bin/oxlint', ['--type-check']],
  ['format', 'node_modules/oxfmt/bin/oxfmt', ['--check']],
  ['words and sentences', 'docs/prose/lint.ts', []],
] as const;

suite('the sources', { concurrency: 1 }, () => {
  for (const [what, program, words] of checks) {
    // They read every file while the other tests run.
    test(what, { timeout: 360_000 }, async () => {
      const path = fileURLToPath(new URL(`../${program}`, import.meta.url));
      const child = spawn(process.execPath, [path, ...words], { cwd: folder });
      const said = Promise.all([text(child.stdout), text(child.stderr)]);
      const [code] = await new Promise<[number | null]>((resolve) => {
        child.once('close', (status) => {
          resolve([status]);
        });
      });
      assert.equal(code, 0, (await said).join(''));
    });
  }
});
