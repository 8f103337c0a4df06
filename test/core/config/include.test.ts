import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { describeConfig } from '../../../src/core/config/describe.ts';
import {
  includedFilesMax,
  isIncluded,
  lineNumber,
  placeOf,
} from '../../../src/core/config/include.ts';
import { effectiveConfig } from '../../../src/modules/status/effective-configuration.ts';
import { makeFolder, readIni, requireIni } from './folder.ts';

const server = '[server]\ninclude = sites/*.ini\n';

/** The problems of `server.ini` with other files, as `file:line: message`. */
async function problemsOf(
  context: TestContext,
  files: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const folder = await makeFolder(context, { 'server.ini': server, 'www/': '', ...files });
  const result = await readIni(join(folder, 'server.ini'));
  if (result.ok) return [];
  return result.problems.map(
    ({ file, line, message }) => `${relative(folder, file)}:${line}: ${message}`,
  );
}

test('each included file has sections of its own, with paths relative to it', async (context) => {
  const folder = await makeFolder(context, {
    'server.ini': `${server}[variables]\nCACHE = no-store\n`,
    'sites/b.ini': '[disk.b]\npath = /b/\nroot = ../b\n[disk.b.headers]\nX-Site = b\n',
    'sites/a.ini': '[disk.a]\nroot = a\n[headers.a]\nCache-Control = ${CACHE}\n',
    'sites/a/index.html': '',
    'sites/.hidden.ini': 'nonsense',
    'sites/a.ini.bak': 'nonsense',
    'b/index.html': '',
  });
  const file = join(folder, 'server.ini');
  const config = await requireIni(file);
  assert.deepEqual(
    config.disk.map(({ name, root, headers }) => [name, root, headers]),
    [
      ['b', join(folder, 'b'), ['X-Site', 'b']],
      ['a', join(folder, 'sites/a'), []],
    ],
  );
  assert.deepEqual(config.headers[0]?.fields, ['Cache-Control', 'no-store']);
  assert.deepEqual(
    config.includedFiles,
    ['a', 'b'].map((name) => join(folder, `sites/${name}.ini`)),
  );
  // The printed configuration has the sections themselves.
  const described = await makeFolder(context, { 'server.ini': describeConfig(config) });
  const again = await requireIni(join(described, 'server.ini'));
  assert.deepEqual(again.disk, config.disk);
  const sections = await effectiveConfig(config);
  const found = sections.find(({ section }) => section === 'disk.b');
  assert.deepEqual([found?.file, found?.line], [join(folder, 'sites/b.ini'), 1]);
  const keys = sections.find(({ section }) => section === 'server')?.keys;
  assert.deepEqual(
    keys?.find(({ key }) => key === 'include'),
    { key: 'include', values: ['sites/*.ini'], line: 2 },
  );
});

test('a mistake names its file and line', async (context) => {
  assert.deepEqual(
    await problemsOf(context, {
      'sites/a.ini': '[disk.a]\nroot = ../www\nrooot = .\n',
      'sites/b.ini': '\n[proxy.b]\nsource = http://127.0.0.1:1\ntimeout = 1s\ntimeout = 2s\n',
      'sites/c.ini': 'nonsense\n[server]\ndata = x\n[tls]\n[variables]\nA = 1\n',
    }),
    [
      'sites/a.ini:3: unknown key `rooot` in [disk.a]; did you mean `root`?',
      'sites/b.ini:5: line 4 already sets `timeout`',
      'sites/c.ini:1: `nonsense` is not of the form `key = value`',
      'sites/c.ini:2: `[server]` belongs to the ini file itself, not to an included one',
      'sites/c.ini:4: `[tls]` belongs to the ini file itself, not to an included one',
      'sites/c.ini:5: `[variables]` belongs to the ini file itself, not to an included one',
    ],
  );
});

test('two files cannot have the same section, path or proxy', async (context) => {
  const problems = await problemsOf(context, {
    'sites/a.ini':
      '[proxy.a]\nsource = http://127.0.0.1:1\n[disk.x]\nroot = ../www\n[disk.one]\npath = /one/\nroot = ../www\n',
    'sites/b.ini':
      '[proxy.b]\nsource = http://127.0.0.1:2\n[disk.x]\nroot = ../www\n[disk.two]\npath = /one/\nroot = ../www\n',
  });
  assert.equal(problems.length, 3);
  const [proxy, section, mount] = problems;
  assert.match(
    proxy ?? '',
    /^sites\/b\.ini:1: \[proxy\.b\] has the same .*, in line 1 of `.*sites\/a\.ini`: give one/,
  );
  assert.match(
    section ?? '',
    /^sites\/b\.ini:3: line 3 of `.*sites\/a\.ini` already begins `\[disk\.x\]`: give one of them/,
  );
  assert.match(
    mount ?? '',
    /^sites\/b\.ini:6: \[disk\.two\] has the same .*, in line 5 of `.*a\.ini`/,
  );
});

test('files that cannot be read are problems of their own', async (context) => {
  const folder = await makeFolder(context, {
    'server.ini': '[server]\ninclude = missing.ini, none/*.ini, sites/*\n',
    'sites/folder.ini/': '',
  });
  await symlink('nowhere', join(folder, 'sites/link.ini'));
  const result = await readIni(join(folder, 'server.ini'));
  assert.ok(!result.ok);
  assert.deepEqual(
    result.problems.map(({ file, line, message }) => [relative(folder, file), line, message]),
    [
      ['missing.ini', 0, 'the included file does not exist'],
      ['sites/folder.ini', 0, 'the included file is not a file'],
      ['sites/link.ini', 0, 'the included file does not exist'],
    ],
  );
});

test('a file that is empty may be half written: only a reload refuses it', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': server, 'sites/a.ini': '\n' });
  const file = join(folder, 'server.ini');
  await requireIni(file);
  const result = await readIni(file, {}, { isReload: true });
  assert.ok(!result.ok);
  assert.match(result.problems[0]?.message ?? '', /^the included file is empty: it may be half/);
});

suite('limits', () => {
  test('a folder with too many files is refused', async (context) => {
    const names = Array.from({ length: includedFilesMax + 1 }, (_, at) => `sites/${at}.ini`);
    const problems = await problemsOf(context, Object.fromEntries(names.map((name) => [name, ''])));
    assert.deepEqual(problems, ['server.ini:2: `include` names 1001 files: at most 1000 may be']);
  });

  test('the included files share 16 MiB', async (context) => {
    const text = `;${'x'.repeat(1024 * 1024 - 1)}`;
    const names = Array.from({ length: 17 }, (_, at) => `sites/${at + 10}.ini`);
    const files = Object.fromEntries(names.map((name) => [name, text]));
    assert.deepEqual(await problemsOf(context, files), [
      'sites/26.ini:0: the included file is larger than 0 bytes',
    ]);
  });
});

test('the ini file does not include itself', async (context) => {
  const files = { 'server.ini': '[server]\ninclude = *.ini\n', 'a.ini': '[tls]\n' };
  assert.deepEqual(await problemsOf(context, files), [
    'a.ini:1: `[tls]` belongs to the ini file itself, not to an included one',
  ]);
});

test('a pattern names files of one folder', async (context) => {
  for (const pattern of ['*/a.ini', 'sites/', '.', '..']) {
    const text = `[server]\ninclude = ${pattern}\n`;
    const problems = await problemsOf(context, { 'server.ini': text });
    assert.match(problems[0] ?? '', /: write a file, or files of one folder/, pattern);
  }
});

test('a * stands for any text, but not for the dot of a hidden file', () => {
  const table: readonly (readonly [pattern: string, name: string, isNamed: boolean])[] = [
    ['*.ini', 'a.ini', true],
    ['*.ini', '.a.ini', false],
    ['.*.ini', '.a.ini', true],
    ['*', 'a', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'ab', false],
    ['ab*ba', 'aba', false],
    ['a.ini', 'a.ini', true],
    ['a.ini', 'b.ini', false],
  ];
  for (const [pattern, name, isNamed] of table) {
    assert.equal(isIncluded(pattern, name), isNamed, `${pattern} ${name}`);
  }
});

test('a number of a line has its file', () => {
  for (const place of [
    { file: 0, line: 0 },
    { file: 0, line: 1024 * 1024 },
    { file: 1_000, line: 7 },
  ]) {
    assert.deepEqual(placeOf(lineNumber(place)), place);
  }
});
