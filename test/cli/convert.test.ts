import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '../config/folder.ts';
import { runHere } from './here.ts';

const whole = 'server {\n  listen 8080;\n  root site;\n  location = /up { return 200 ok; }\n}\n';

test('a file that is converted whole is an ini file that check accepts', async (t) => {
  const folder = await makeFolder(t, { 'nginx.conf': whole, 'out/site/': '' });
  const out = join(folder, 'out');
  const { code, err } = await runHere([
    'convert',
    'nginx',
    join(folder, 'nginx.conf'),
    '--out',
    out,
  ]);
  assert.deepEqual([code, err], [0, 'All lines are converted.\n']);
  const rule = { path: '/up', kind: 'content', content: 'ok', contenttype: 'text/plain' };
  assert.equal(await readFile(join(out, 'rules.ndjson'), 'utf8'), `${JSON.stringify(rule)}\n`);
  const checked = await runHere(['check', '--config', join(out, 'server.ini')]);
  assert.equal(checked.code, 0, checked.err);
});

test('each line that is left is named with its number and what comes nearest', async (t) => {
  const text = 'server {\n  root site;\n  auth_basic "Staff";\n}\n';
  const folder = await makeFolder(t, { 'nginx.conf': text });
  const file = join(folder, 'nginx.conf');
  const { code, err, out } = await runHere(['convert', 'nginx', file]);
  assert.equal(code, 1);
  assert.equal(
    err,
    `${file}:3: not converted: auth_basic Staff; nearest: an \`[access.<name>]\` section with ` +
      '`password_file`; until then, everybody may see this\nOne line is not converted.\n',
  );
  assert.match(out, /^; Converted from nginx\.conf by `waymark convert`\.\n\n\[server\]\n/);
  assert.match(out, /\n; Not converted:\n; line 3: auth_basic Staff\n; {3}nearest: /);
  const json = await runHere(['convert', 'nginx', file, '--json']);
  assert.deepEqual(Object.keys(JSON.parse(json.out) as object), ['ini', 'rules', 'left', 'notes']);
});

test('page rules are printed as comments below the ini file', async (t) => {
  const folder = await makeFolder(t, { Caddyfile: ':8080 {\n\trespond /up "ok"\n}\n' });
  const { code, out } = await runHere(['convert', 'caddy', join(folder, 'Caddyfile')]);
  assert.equal(code, 0);
  assert.match(out, /\n; rules\.ndjson:\n; \{"path":"\/up","kind":"content","content":"ok"/);
});

test('a file that is missing or cannot be parsed is one clear line', async (t) => {
  const folder = await makeFolder(t, { broken: 'server {\n' });
  for (const [name, message] of [
    ['none', 'does not exist'],
    ['broken', ': line 1: this block has no `}`'],
  ] as const) {
    const file = join(folder, name);
    const { code, err } = await runHere(['convert', 'nginx', file]);
    assert.equal(code, 1);
    assert.equal(err, `waymark: ${file}${name === 'none' ? ' ' : ''}${message}\n`);
  }
  const { code } = await runHere(['convert', 'lighttpd', 'x']);
  assert.equal(code, 2);
});
