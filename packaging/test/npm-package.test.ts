import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { project } from '../sources.ts';

const run = promisify(execFile);

interface PackedFile {
  readonly path: string;
}

test('the package for npm has the server and its documentation, and no other package', async () => {
  const words = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await run('npm', words, { cwd: project, maxBuffer: 16 << 20 });
  const packed = Object.values(JSON.parse(stdout) as object)[0] as { files: PackedFile[] };
  const paths = packed.files.map(({ path }) => path);
  const types = ['client', 'operations'].map((name) => `dist/cli/client/${name}.d.ts`);
  for (const path of ['bin/waymark.js', 'dist/main.js', ...types, 'public/docs/index.html']) {
    assert.ok(paths.includes(path), path);
  }
  assert.deepEqual(
    paths.filter((path) => path.startsWith('dist/packages/')),
    [],
  );
});
