import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder, writeFiles } from './folder.ts';

const imports = "import { test } from 'node:test';\n";

/** Runs `npm test` in a folder with these files below `test/`; returns the exit code and output. */
async function runTests(t: TestContext, files: Record<string, string>, words: string[] = []) {
  const cwd = await temporaryFolder(t);
  await writeFiles(
    cwd,
    Object.fromEntries(
      Object.entries(files).map(([name, content]) => [`test/${name}`, imports + content]),
    ),
  );
  return runIn(cwd, words);
}

async function runIn(cwd: string, words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const run = fileURLToPath(import.meta.resolve('./run.ts'));
  const child = spawn(process.execPath, [run, ...words], {
    cwd,
    // Otherwise they report to the runner of this test.
    env: { ...process.env, ...env, NODE_TEST_CONTEXT: undefined },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code: code as number | null, out, lastLine: out.trimEnd().split('\n').at(-1) };
}

suite('npm test', () => {
  test('counts the tests of all folders in its last line', async (t) => {
    const { code, lastLine } = await runTests(t, {
      'a/one.test.ts': "test('one', () => {}); test('two', () => {});",
      'b/deep/two.test.ts': "test('three', () => {});",
    });
    assert.deepEqual([code, lastLine], [0, '3 passed, 0 failed']);
  });

  test('prints each failure again at the end, with its place and its cause', async (t) => {
    const { code, out, lastLine } = await runTests(t, {
      'a/one.test.ts':
        "test('one', () => { throw new Error('no', { cause: new Error('disk') }); });",
      'b/two.test.ts': "test('two', () => {});",
    });
    assert.deepEqual([code, lastLine], [1, '1 passed, 1 failed']);
    const [, end = ''] = out.split('\nFailed:\n');
    assert.match(
      end,
      /✖ test\/a > one .*\n {2}at .*one\.test\.ts:2:1\n {2}no\n {2}Caused by: disk\n/,
    );
  });

  test('counts tests with any characters in their titles', async (t) => {
    const title = '# \\\\ \\n \\r \\u2028 \\u2029 \\0 not ok 1 - x';
    const { code, lastLine } = await runTests(t, {
      'a/one.test.ts': `test('${title}', () => {}); test('two', () => {});`,
    });
    assert.deepEqual([code, lastLine], [0, '2 passed, 0 failed']);
  });

  test('names each skipped test with its reason', async (t) => {
    const { code, out, lastLine } = await runTests(t, {
      'a/one.test.ts': "test('one', () => {}); test('two', { skip: 'needs a disk' }, () => {});",
    });
    assert.deepEqual([code, lastLine], [0, '1 passed, 0 failed, 1 skipped']);
    assert.match(out, /\nSkipped:\n﹣ test\/a > two .*# needs a disk\n/);
  });

  test('counts a test that is skipped without a reason as a failure', async (t) => {
    const { code, out, lastLine } = await runTests(t, {
      'a/one.test.ts': "test('one', () => {}); test('two', { skip: true }, () => {});",
    });
    assert.deepEqual([code, lastLine], [1, '1 passed, 1 failed']);
    assert.match(out, /test\/a > two .*\n {2}Skipped without a reason\.\n/);
  });

  test('fails without any test', async (t) => {
    const { code, lastLine } = await runTests(t, {});
    assert.deepEqual([code, lastLine], [1, '0 passed, 0 failed']);
  });

  test('counts a process that ends before its tests as a failure', async (t) => {
    const { code, out, lastLine } = await runTests(t, {
      'a/one.test.ts': "test('one', () => { process.exit(3); });",
      'b/two.test.ts': "test('two', () => {});",
    });
    assert.deepEqual([code, lastLine], [1, '1 passed, 1 failed']);
    assert.match(out, /✖ test\/a ended with 3/);
  });

  test('ends a process that stays silent, and counts it as a failure', async (t) => {
    const { code, out, lastLine } = await runTests(
      t,
      {
        'a/one.test.ts': "test('one', async () => { for (;;) await new Promise(setImmediate); });",
      },
      ['--silence-ms=500'],
    );
    assert.deepEqual([code, lastLine], [1, '0 passed, 1 failed']);
    assert.match(out, /✖ test\/a[^]*printed nothing for 500 ms/);
  });

  test('leaves the rest to test:all', async (t) => {
    const files = {
      'a/one.test.ts': "test('one', () => {});",
      'a/two.full.test.ts': "test('two', () => {});",
      'a/three.full.test.ts': "test('three', () => {});",
    };
    for (const [words, count] of [
      [[], 1],
      [['--tier=rest'], 2],
      [['--tier=all'], 3],
    ] as const) {
      const { code, lastLine } = await runTests(t, files, [...words]);
      assert.deepEqual([code, lastLine], [0, `${count} passed, 0 failed`]);
    }
  });

  test('leaves out the tests in a browser where none starts, with one line', async (t) => {
    const cwd = await temporaryFolder(t);
    await writeFiles(cwd, {
      'test/browser/browser.ts': 'export const browser = 1;',
      'test/browser/rig.ts': "export { browser } from './browser.ts';",
      'test/browser/page.test.ts': `${imports}import './rig.ts'; test('page', () => {});`,
      'test/browser/plain.test.ts': `${imports}test('plain', () => {});`,
    });
    const { code, out, lastLine } = await runIn(cwd, [], { CHROMIUM: join(cwd, 'none') });
    assert.deepEqual([code, lastLine], [0, '1 passed, 0 failed, 1 skipped']);
    assert.match(out, /^﹣ 1 files of tests in a browser # none starts: spawn .*none ENOENT$/m);
  });

  test('runs with --changed the tests that a change may concern', async (t) => {
    const cwd = await temporaryFolder(t);
    await writeFiles(cwd, {
      'src/deep.ts': 'export const deep = 1;',
      'src/near.ts': "export { deep } from './deep.ts';",
      'src/other.ts': 'export const other = 1;',
      'test/a/near.test.ts': `${imports}import '../../src/near.ts'; test('near', () => {});`,
      'test/a/other.test.ts': `${imports}import '../../src/other.ts'; test('other', () => {});`,
    });
    const git = (...words: string[]) => {
      const named = ['-c', 'user.name=test', '-c', 'user.email=test@localhost'];
      assert.equal(spawnSync('git', [...named, ...words], { cwd }).status, 0, words.join(' '));
    };
    git('init', '-q');
    git('add', '.');
    git('commit', '-qm', 'first');
    assert.equal((await runIn(cwd, ['--changed'])).lastLine, '0 passed, 0 failed');
    await writeFiles(cwd, { 'src/deep.ts': 'export const deep = 2;' });
    const { code, out, lastLine } = await runIn(cwd, ['--changed']);
    assert.deepEqual([code, lastLine], [0, '1 passed, 0 failed']);
    assert.match(out, /✔ near/);
    assert.equal((await runIn(cwd, ['--changed=HEAD'])).lastLine, '1 passed, 0 failed');
  });

  test('runs folders with short tests in one process', async (t) => {
    const { out, lastLine } = await runTests(t, {
      'http/one.test.ts': "test('one', () => {});",
      'model/two.test.ts': "test('two', () => {});",
    });
    assert.equal(lastLine, '2 passed, 0 failed');
    assert.match(out, /^test\/\{\S*http\S*model\S*\}: 2 files, 2 passed, 0 failed$/m);
  });
});
