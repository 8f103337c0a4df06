import assert from 'node:assert/strict';
import { rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { ConfigResult } from '../../../src/core/config/config.ts';
import { watchConfig } from '../../../src/core/config/watch.ts';
import { makeFolder, readIni } from './folder.ts';

/** A result as text: the log level that the ini file sets, or the first problem. */
function told(result: ConfigResult): string {
  return result.ok ? result.config.log.level : `line ${result.problems[0]?.line ?? -1}`;
}

const ini = (level: string) => `[server]\n[log]\nlevel = ${level}\n`;

/** Watches an ini file until the test ends; `until` pulls results until one is as expected. */
async function follow(context: TestContext, file: string) {
  const over = new AbortController();
  const current = await readIni(file);
  let reading = 0;
  const read = async () => {
    reading += 1;
    assert.equal(reading, 1, 'two reads at the same time');
    const result = await readIni(file, {}, { isReload: true });
    reading -= 1;
    return result;
  };
  const results = watchConfig({ file, current, read, now: Date.now, signal: over.signal });
  context.after(() => {
    over.abort();
  });
  const until = async (expected: string) => {
    for await (const result of { [Symbol.asyncIterator]: () => ({ next: () => results.next() }) }) {
      if (told(result) === expected) return;
    }
    assert.fail(`the results ended before ${expected}`);
  };
  return { until, results, end: over };
}

test('an ini file is read when it breaks and when it is repaired', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const { until } = await follow(context, file);
  // Written before the watch waits: a change since the first reading is not lost.
  await writeFile(file, ini('warn'));
  await until('warn');
  await writeFile(file, ini('nonsense'));
  await until('line 3');
  await writeFile(file, ini('error'));
  await until('error');
});

test('an editor may replace the file, or delete and create it again', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const { until } = await follow(context, file);
  for (const level of ['warn', 'error', 'debug', 'trace']) {
    await writeFile(`${file}.new`, ini(level));
    await rename(`${file}.new`, file);
    await until(level);
  }
  for (const level of ['warn', 'error']) {
    await rename(file, `${file}~`);
    await writeFile(file, ini(level));
    await rm(`${file}~`);
    await until(level);
  }
  await unlink(file);
  await until('line 0');
  await writeFile(file, ini('debug'));
  await until('debug');
});

test('a file that becomes empty or loses [server] is refused', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const { results } = await follow(context, file);
  for (const [text, message] of [
    ['', 'the ini file is empty: it may be half written. Add [server], even without keys'],
    [' \n', 'the ini file is empty: it may be half written. Add [server], even without keys'],
    [
      '[log]\nlevel = warn\n',
      'the ini file has no [server] section: it may be half written. Add [server], even without keys',
    ],
  ] as const) {
    await writeFile(file, text);
    const { value } = await results.next();
    assert.deepEqual(value, { ok: false, problems: [{ file, line: 0, message }] });
  }
});

test('a symbolic link to the file may get another target', async (context) => {
  const folder = await makeFolder(context, {
    'one/server.ini': ini('info'),
    'two/server.ini': ini('warn'),
    'three/server.ini': ini('error'),
    'four/server.ini': ini('debug'),
  });
  await symlink('one', join(folder, 'current'));
  await symlink('current/server.ini', join(folder, 'server.ini'));
  const { until } = await follow(context, join(folder, 'server.ini'));
  for (const [target, level] of [
    ['two', 'warn'],
    ['three', 'error'],
    ['four', 'debug'],
  ] as const) {
    await symlink(target, join(folder, 'next'));
    await rename(join(folder, 'next'), join(folder, 'current'));
    await until(level);
  }
});

test('the schema of a table is watched once the ini file names it', async (context) => {
  const folder = await makeFolder(context, {
    'server.ini': ini('info'),
    'first.json': '{"type":"object"}',
    'second.json': '{"type":"object"}',
  });
  const file = join(folder, 'server.ini');
  const { until } = await follow(context, file);
  await writeFile(file, `${ini('warn')}[table.a]\nschema = first.json`);
  await until('warn');
  await writeFile(join(folder, 'first.json'), 'broken');
  await until('line 5');
  await writeFile(join(folder, 'first.json'), '{}');
  await until('warn');
  await writeFile(file, `${ini('error')}[table.a]\nschema = second.json`);
  await until('error');
  await writeFile(join(folder, 'second.json'), 'broken');
  await until('line 5');
});

test('included files are watched: a new one, a changed one, a broken one, a removed one', async (context) => {
  const site = (level: string) => `[headers.${level}]\nX-Level = ${level}\n`;
  const folder = await makeFolder(context, {
    'server.ini': '[server]\ninclude = sites/*.ini\n',
    'sites/a.ini': site('first'),
  });
  const file = join(folder, 'server.ini');
  const { results } = await follow(context, file);
  const rules = async (): Promise<readonly string[]> => {
    const { value } = await results.next();
    assert.ok(value);
    return value.ok
      ? value.config.headers.map(({ name }) => name)
      : value.problems.map(({ file: name, line }) => `${relative(folder, name)}:${line}`);
  };
  await writeFile(join(folder, 'sites/b.ini'), site('second'));
  assert.deepEqual(await rules(), ['first', 'second']);
  // A file that the pattern does not name is no change.
  await writeFile(join(folder, 'sites/b.ini~'), 'nonsense');
  await writeFile(join(folder, 'sites/b.ini'), `${site('second')}nonsense`);
  assert.deepEqual(await rules(), ['sites/b.ini:3']);
  await writeFile(join(folder, 'sites/b.ini'), '');
  assert.deepEqual(await rules(), ['sites/b.ini:0']);
  await writeFile(join(folder, 'sites/b.ini'), site('third'));
  assert.deepEqual(await rules(), ['first', 'third']);
  await unlink(join(folder, 'sites/a.ini'));
  assert.deepEqual(await rules(), ['third']);
});

test('a schema that is broken when the ini file first names it is read when it is repaired', async (context) => {
  const folder = await makeFolder(context, {
    'server.ini': ini('info'),
    'first.json': '{"type":"strin"}',
  });
  const file = join(folder, 'server.ini');
  const { until } = await follow(context, file);
  await writeFile(file, `${ini('warn')}[table.a]\nschema = first.json`);
  await until('line 5');
  await writeFile(join(folder, 'first.json'), '{"type":"object"}');
  await until('warn');
});

test('after a burst of writes, the last content is read, and no two reads overlap', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const { until } = await follow(context, file);
  await writeFile(file, ini('warn'));
  await until('warn');
  for (let write = 0; write < 50; write += 1) {
    await writeFile(file, write % 5 === 0 ? ini('nonsense') : ini('debug'));
  }
  await writeFile(file, ini('trace'));
  await until('trace');
});

test('there is no result without a change, and none after the end', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const { results, end } = await follow(context, file);
  const next = results.next();
  end.abort();
  assert.deepEqual(await next, { done: true, value: undefined });
  assert.deepEqual(await results.next(), { done: true, value: undefined });

  const aborted = watchConfig({
    file,
    current: await readIni(file),
    read: () => readIni(file),
    now: Date.now,
    signal: AbortSignal.abort(),
  });
  assert.deepEqual(await aborted.next(), { done: true, value: undefined });
});

test('leaving the loop ends the watch', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': ini('info') });
  const file = join(folder, 'server.ini');
  const signal = new AbortController().signal;
  const read = () => readIni(file);
  const current = await read();
  await writeFile(file, ini('warn'));
  for await (const result of watchConfig({ file, current, read, now: Date.now, signal })) {
    assert.equal(told(result), 'warn');
    break;
  }
});

test('redirects and header fields beside files are read again, also when they are new', async (t) => {
  const mount = '[disk.a]\nroot = site\nredirects = _redirects\nheaders_file = _headers\n';
  const moved = '[redirect.moved]\nfile = moved.txt\n';
  const folder = await makeFolder(t, {
    'server.ini': ini('info') + mount + moved,
    'site/index.html': '',
    'moved.txt': '/a /b\n',
  });
  const { results } = await follow(t, join(folder, 'server.ini'));
  const next = async () => {
    const { value } = await results.next();
    return value;
  };
  const first = next();
  await writeFile(join(folder, 'site/_redirects'), '/x /y\n');
  const seen = await first;
  assert.equal(seen?.ok === true && seen.config.disk[0]?.redirectsText, '/x /y\n');
  await writeFile(join(folder, 'site/_headers'), '/x\n  X-A: b\n');
  const named = await next();
  assert.deepEqual(named?.ok === true && named.config.disk[0]?.headerBlocks[0]?.fields, [
    'X-A',
    'b',
  ]);
  await writeFile(join(folder, 'moved.txt'), '/a /b\n/b /a\n');
  const broken = await next();
  assert.match(JSON.stringify(broken), /line 1 leads to itself, through line 2/);
  await writeFile(join(folder, 'moved.txt'), '/a /c\n');
  assert.equal((await next())?.ok, true);
});
