import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import type { Converted } from '../../../src/modules/convert/conversion.ts';
import { makeFolder } from '../../core/config/folder.ts';
import { runHere } from '../../cli/here.ts';

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
  const next = `waymark check --config ${join(out, 'server.ini')}`;
  const written = `Written to ${out}: server.ini, rules.ndjson. Next: ${next}`;
  assert.deepEqual([code, err], [0, `All lines are converted.\n${written}\n`]);
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
  assert.deepEqual(Object.keys(JSON.parse(json.out) as object), [
    ...['ini', 'rules', 'files', 'left', 'notes'],
  ]);
});

test('page rules are printed as comments below the ini file', async (t) => {
  const folder = await makeFolder(t, { Caddyfile: ':8080 {\n\trespond /up "ok"\n}\n' });
  const { code, out } = await runHere(['convert', 'caddy', join(folder, 'Caddyfile')]);
  assert.equal(code, 0);
  assert.match(out, /\n; rules\.ndjson:\n; \{"path":"\/up","kind":"content","content":"ok"/);
});

test('included files are converted, too, and left lines name their file', async (t) => {
  const folder = await makeFolder(t, {
    'nginx/nginx.conf':
      'events {}\nhttp {\n include conf.d/*.conf;\n include mime.types;\n include none/*.conf;\n include conf.d/*.none;\n}\n',
    'nginx/conf.d/a.conf': 'server {\n server_name a.example;\n include part;\n banana;\n}\n',
    'nginx/conf.d/b.conf': 'server {\n server_name b.example;\n root /b;\n}\n',
    'nginx/part': 'root /a;\n',
    'caddy/Caddyfile': 'import snippets\nimport sites/*\n:81 {\n\timport none\n}\n',
    'caddy/snippets': '(common) {\n\theader X-A b\n}\n',
    'caddy/sites/one': ':80 {\n\timport common\n\timport ../part\n}\n',
    'caddy/part': 'root * /srv\nfile_server\nbanana\n',
    'apache/site.conf': 'DocumentRoot /srv\nIncludeOptional more/*.conf\nInclude none\n',
    'apache/more/a.conf': 'Header set X-A b\nBanana\n',
  });
  const converted = async (format: string, file: string) => {
    const { out } = await runHere(['convert', format, join(folder, file), '--json']);
    return JSON.parse(out) as Converted;
  };
  const places = ({ left }: Converted) =>
    left.map(({ file = '', line }) => `${file && relative(folder, file)}:${line}`);
  const nginx = await converted('nginx', 'nginx/nginx.conf');
  assert.match(nginx.ini, /^origin = http:\/\/a\.example\nroot = \/a$/m);
  assert.match(nginx.ini, /^origin = http:\/\/b\.example\nroot = \/b$/m);
  assert.deepEqual(places(nginx), [':5', 'nginx/conf.d/a.conf:4']);
  const caddy = await converted('caddy', 'caddy/Caddyfile');
  assert.match(caddy.ini, /^root = \/srv$/m);
  assert.match(caddy.ini, /^X-A = b$/m);
  assert.deepEqual(places(caddy), [':4', 'caddy/part:3']);
  const apache = await converted('apache', 'apache/site.conf');
  assert.match(apache.ini, /^X-A = b$/m);
  assert.deepEqual(places(apache), [':3', 'apache/more/a.conf:2']);
});

test('files that include each other end', async (t) => {
  const folder = await makeFolder(t, {
    a: 'include b;\n',
    b: 'include c;\n',
    c: 'include b;\ninclude b;\n',
    Caddyfile: ':80 {\n\timport one\n}\n',
    one: 'import two\n',
    two: 'import one\n',
    broken: 'server {\n',
    main: 'include broken;\n',
  });
  const nginx = await runHere(['convert', 'nginx', join(folder, 'a')]);
  assert.match(nginx.err, /not converted: include/);
  const caddy = await runHere(['convert', 'caddy', join(folder, 'Caddyfile')]);
  assert.equal(caddy.code, 1);
  const { err } = await runHere(['convert', 'nginx', join(folder, 'main')]);
  const [main, broken] = [join(folder, 'main'), join(folder, 'broken')];
  assert.equal(err, `waymark: ${main}: ${broken}: line 1: this block has no \`}\`\n`);
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

test('names the folder of a site from where the ini file goes, and warns of one in it', async (t) => {
  const folder = await makeFolder(t, { 'site/_redirects': '/a /b 301\n', 'conf/': '' });
  const file = join(folder, 'site/_redirects');
  const rootOf = async (
    out: string,
  ): Promise<readonly [root: string | undefined, isTold: boolean]> => {
    const { err } = await runHere(['convert', 'netlify', file, '--out', join(folder, out)]);
    const ini = await readFile(join(folder, out, 'server.ini'), 'utf8');
    return [/^root = (.*)$/m.exec(ini)?.[1], err.includes('must not lie in the folder')];
  };
  assert.deepEqual(await rootOf('conf'), ['../site', false]);
  assert.deepEqual(await rootOf('.'), ['site', false]);
  assert.deepEqual(await rootOf('site'), ['.', true]);
  assert.deepEqual(await rootOf('site/conf'), ['..', true]);
});
