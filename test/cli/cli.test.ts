import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { createAuthority } from '../certificates.ts';
import { startSite } from '../harness.ts';
import { program, runWaymark, serverFolder, spawnWaymark } from '../process.ts';
import { project } from '../tidy/sources.ts';
import { runHere, startClient } from './here.ts';

const onPosix = { skip: process.platform === 'win32' && 'needs POSIX' };

suite('the command line', () => {
  test('a wrong command line gets the usage and exit code 2', async () => {
    for (const words of [
      ['fly'],
      ['check', '--colour'],
      ['key'],
      ['key', 'add'],
      ['rule'],
      ['serve', 'x'],
    ]) {
      const { code, err, out } = await runHere(words);
      assert.equal(code, 2, words.join(' '));
      assert.match(err, /^waymark: .+\n\n/, words.join(' '));
      assert.equal(out, '');
    }
  });

  test('a reader that closes the pipe early is not an error', async () => {
    const child = spawnWaymark(['--help']);
    let err = '';
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    child.stdout?.destroy();
    assert.deepEqual(await once(child, 'close'), [0, null]);
    assert.equal(err, '');
  });

  const skip = !existsSync('/dev/full') && 'needs /dev/full';
  test('a failure to write standard output is reported in one line', { skip }, async () => {
    const command = `"${process.execPath}" "${program}" --help > /dev/full`;
    const child = spawn('sh', ['-c', command]);
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    assert.deepEqual(await once(child, 'close'), [1, null]);
    assert.equal(err, 'waymark: cannot write to standard output (ENOSPC)\n');
  });

  test('SIGUSR1 opens no debugger, not even during the start', onPosix, async () => {
    const early = `
      import { registerHooks } from 'node:module';
      registerHooks({
        resolve(name, context, next) {
          if (name.endsWith('/cli.ts')) {
            process.kill(process.pid, 'SIGUSR1');
            for (const end = Date.now() + 100; Date.now() < end; );
          }
          return next(name, context);
        },
      });`;
    const words = ['--import', `data:text/javascript,${encodeURIComponent(early)}`];
    const file = join(project, 'bin/waymark.js');
    const child = spawn(process.execPath, [...words, file, '--version']);
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    assert.deepEqual(await once(child, 'close'), [0, null]);
    assert.equal(err, '');
  });

  test('an older Node.js prints which one is needed', async () => {
    // An old Node.js also lacks newer names of `node:module`.
    const older = `
      import { registerHooks } from 'node:module';
      Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } });
      const url = 'data:text/javascript,export default {}';
      registerHooks({
        resolve: (name, context, next) =>
          name === 'node:module' ? { url, shortCircuit: true } : next(name, context),
      });`;
    const words = ['--import', `data:text/javascript,${encodeURIComponent(older)}`];
    const child = spawn(process.execPath, [...words, join(project, 'bin/waymark.js'), 'serve']);
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    assert.deepEqual(await once(child, 'close'), [1, null]);
    assert.match(err, /^waymark needs Node \d+ or newer, and this is 20\.20\.2\.\n/);
  });

  test('the version is on standard output; a wrong command line ends with 2', async () => {
    assert.match((await runWaymark(['--version'])).out, /^\d+\.\d+\.\d+\n$/);
    assert.equal((await runWaymark(['fly'])).code, 2);
  });
});

suite('waymark check', () => {
  test('prints the configuration of a valid file', async (t) => {
    const { iniFile } = await serverFolder(t, '[log]\nlevel = warn\n');
    const { code, out } = await runHere(['check', '--config', iniFile]);
    assert.equal(code, 0);
    assert.match(out, /^level = warn$/m);
    const json = await runHere(['check', '--config', iniFile, '--json']);
    const answer = JSON.parse(json.out) as { ok: boolean; config: { log: { level: string } } };
    assert.equal(answer.config.log.level, 'warn');
  });

  test('warns of certificates that clients reject, or soon will', async (t) => {
    const authority = await createAuthority();
    const files: Record<string, string> = {};
    const sections: string[] = [];
    for (const [section, name, days] of [
      ['tls', 'any.example', -0.5],
      ['tls.a.example', 'a.example', 0.1],
      ['tls.*.b.example', 'b.example', 90],
      ['tls.www.c.example', '*.c.example', 90],
    ] as const) {
      const { cert, key } = await authority.issue([name], { days });
      files[`${name}.pem`] = `${key}\n${cert}`;
      sections.push(`[${section}]\ncert = ${name}.pem\nkey = ${name}.pem\n`);
    }
    const { iniFile, ini } = await serverFolder(t, sections.join(''), files);
    await writeFile(iniFile, ini.replace('listen = ', 'listen = https://'));
    const { code, err } = await runHere(['check', '--config', iniFile]);
    assert.equal(code, 0, err);
    const json = await runHere(['check', '--config', iniFile, '--json']);
    const { warnings } = JSON.parse(json.out) as { readonly warnings: readonly string[] };
    const expected = [
      /^The certificate of \[tls\] expired on 20/,
      /^The certificate of \[tls\.a\.example\] expires on 20/,
      /^The certificate of \[tls\.\*\.b\.example\] does not cover \*\.b\.example: browsers/,
    ];
    assert.equal(warnings.length, expected.length);
    for (const [at, warning] of warnings.entries()) {
      assert.match(warning, expected[at] ?? /$^/);
      assert.ok(err.includes(warning));
    }
  });

  test('prints every mistake with its line', async (t) => {
    const { iniFile, ini } = await serverFolder(t, '');
    await writeFile(iniFile, `${ini}wokers = 2\n[dsk.a]\nroot = .\n`);
    const { code, err, out } = await runHere(['check', '--config', iniFile]);
    assert.equal(code, 1);
    assert.equal(out, '');
    assert.match(err, /server\.ini:4: .*wokers.*did you mean.*workers/);
    assert.match(err, /server\.ini:5: .*dsk\.a/);
    const json = await runHere(['check', '--config', iniFile, '--json']);
    assert.equal(json.code, 1);
    assert.equal((JSON.parse(json.out) as { problems: unknown[] }).problems.length, 2);
  });
});

suite('waymark key', () => {
  test('works on the data folder of a running server', async (t) => {
    const { url, iniFile } = await startSite(t);
    const key = (...words: string[]) => runHere(['key', ...words, '--config', iniFile]);
    const add = ['key', 'add', '--name', 'ci', '--scope', 'read,design', '--rate', '50'];
    const added = await runWaymark([...add, '--config', iniFile]);
    assert.equal(added.code, 0);
    assert.match(added.out, /^wmk_[\w-]{43}\n$/);
    const headers = { apikey: added.out.trim() };
    const status = () => fetch(`${url}/svc1/server/status`, { headers }).then((r) => r.status);
    assert.equal(await status(), 200);
    const listed = await key('list', '--json');
    const { rows } = JSON.parse(listed.out) as {
      rows: { id: string; name: string; rate?: number }[];
    };
    const { id = '', rate } = rows.find(({ name }) => name === 'ci') ?? {};
    assert.equal(rate, 50);
    assert.match(
      (await key('list')).out,
      /^ID +CREATED +LAST USED +SCOPES +RATE +BOUNDS +UNTIL +NAME\n/,
    );
    assert.match((await key('list')).out, / read,design +50\/s +- +- +ci\n/);
    assert.ok(!listed.out.includes(headers.apikey));
    assert.equal((await runWaymark(['key', 'revoke', id, '--config', iniFile])).code, 0);
    assert.equal(await status(), 401);
    const ended = new RegExp(`\\n${id} +\\S+ +read,design +- +\\d{4}-\\S+Z +waymark key +ci\\n$`);
    assert.match((await key('list', '--revoked')).out, ended);
    const [gone] = JSON.parse((await key('list', '--revoked', '--json')).out).rows;
    assert.deepEqual([gone.id, gone.name, gone.revoked_by], [id, 'ci', 'waymark key']);
    assert.equal('hash' in gone || 'key' in gone, false);
    assert.equal((await key('revoke', id, '--revoked')).code, 2);
    const again = await key('revoke', id);
    assert.equal(again.code, 1);
    assert.match(again.err, /^waymark: There is no key/);
    assert.equal((await key('add', '--name', 'x', '--scope', 'root')).code, 2);
    assert.equal((await key('add', '--name', 'x', '--scope', 'read', '--rate', '0')).code, 2);
  });
});

test('waymark key ends a key, and moves its end', async (t) => {
  const site = await startSite(t);
  const { iniFile } = site;
  const key = (...words: string[]) => runHere(['key', ...words, '--config', iniFile]);
  const add = ['add', '--name', 'guest', '--scope', 'read'];
  const added = await key(...add, '--until', '2999-01-01T09:00[Europe/Berlin]', '--json');
  const { id, until, ...made } = JSON.parse(added.out);
  assert.equal(until, '2999-01-01T08:00:00.000Z');
  const apikey = made.key as string;
  assert.match((await key('list')).out, / read +- +- +2999-01-01T08:00:00\.000Z +guest\n/);
  assert.equal((await key('edit', id, '--until', '90d', '--name', 'Bea')).code, 0);
  const [row] = JSON.parse((await key('list', '--json')).out).rows.slice(-1);
  const days = Math.round((Date.parse(row.until) - Date.now()) / 86_400_000);
  assert.deepEqual([row.name, days, row.state], ['Bea', 90, 'valid']);
  assert.deepEqual(JSON.parse((await key('read', id)).out), row);
  assert.equal((await key('read', 'none')).code, 1);
  const forever = await key('edit', id, '--until', 'never');
  assert.match(forever.err, /\(Bea\) ends: never\.\n$/);
  assert.equal((await site.call('svc1.server.status', {}, { apikey })).error, undefined);
  for (const [end, code, message] of [
    ['2020-01-01T00:00Z', 1, /2020-01-01T00:00:00\.000Z has passed/],
    ['2999-01-01T00:00', 1, /Which time zone/],
    ['999999999999d', 1, /no date-time/],
  ] as const) {
    const refused = await key('edit', id, '--until', end);
    assert.equal(refused.code, code, end);
    assert.match(refused.err, message);
    assert.equal((await key(...add, '--until', end)).code, code, end);
  }
  assert.equal((await key('edit', id)).code, 2);
  assert.equal((await key('edit', '01a00000-0000-7000-8000-000000000000', '--name', 'x')).code, 1);
});

test('waymark key binds a key to origins and paths, and lists them', async (t) => {
  const { iniFile } = await startSite(t);
  const key = (...words: string[]) => runHere(['key', ...words, '--config', iniFile]);
  const bounds = ['--origin', 'https://One.example', '--path', '/blog/', '--path', '/news/'];
  const added = await key('add', '--name', 'Bea', '--scope', 'read,design', ...bounds);
  assert.equal(added.code, 0, added.err);
  assert.match(added.err, /design, bound to https:\/\/one\.example \/blog\/ \/news\/\)/);
  const { out } = await key('list');
  assert.match(out, /read,design +- +https:\/\/one\.example \/blog\/ \/news\/ +- +Bea\n/);
  const refused = await key('add', '--name', 'x', '--scope', 'admin', '--path', '/blog/');
  assert.equal(refused.code, 1);
  assert.match(refused.err, /A key with origins or paths can have the scopes render, read,/);
});

suite('waymark rule', () => {
  test('writes and reads through the API', async (t) => {
    const { site, waymark } = await startClient(t);
    const { url } = site;
    const rule = (...words: string[]) => waymark('rule', ...words);
    const inserted = await rule('insert', '{"path":"/a","content":"x","colour":"red"}');
    assert.equal(inserted.code, 0, inserted.err);
    assert.match(inserted.err, /^warning: colour is not a known field; it is kept in _unknowns_/);
    const { id } = JSON.parse(inserted.out) as { id: string };
    assert.equal((await rule('edit', id, '{"content":"y"}')).code, 0);
    assert.equal(await (await fetch(`${url}/a`)).text(), 'y');
    const history = await rule('history', id);
    assert.deepEqual(
      history.out
        .trim()
        .split('\n')
        .map((line) => line.split(/ {2,}/)[2]),
      ['ACTION', 'edit', 'insert'],
    );
    for (let rve = 1; rve <= 100; rve += 1) await site.call('svc1.userinterface.edit', { id, rve });
    assert.equal((await rule('history', id)).out.trim().split('\n').length, 103, 'to its end');
    const missing = await rule('read', 'none');
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^waymark: There is no page rule/);
    const refused = await runHere(['rule', 'read', id, '--url', url]);
    assert.match(refused.err, /needs an API key/);
    const nobody = await runWaymark(['rule', 'read', id, '--url', 'http://127.0.0.1:1']);
    assert.equal(nobody.code, 1);
    assert.match(nobody.err, /No server answers/);
  });

  test('says why a server cannot be called, and what to do', async (t) => {
    const { cert, key } = await (await createAuthority()).issue(['localhost', '127.0.0.1']);
    const site = await startSite(t, {
      files: { 'c.pem': cert, 'k.pem': key },
      server: 'listen[] = https://127.0.0.1:0\n',
      ini: '[tls]\ncert = c.pem\nkey = k.pem\n',
    });
    const overTls = site.waymark.addresses.find((address) => address.startsWith('https:')) ?? '';
    const { port } = new URL(overTls);
    const authority = site.url.replace('http://', '');
    for (const [words, why] of [
      [
        ['--url', authority],
        new RegExp(
          `^waymark: "${authority}" is not the URL of a server: .* http://${authority}\\.`,
        ),
      ],
      [['--url', site.url], new RegExp(`redirects to https://localhost:${port}\\. Use that URL`)],
      [
        ['--url', overTls],
        /^waymark: The certificate of https:.* is not trusted \(.*EXTRA_CA_CERTS/,
      ],
    ] as const) {
      assert.match((await runHere(['rule', 'list', ...words])).err, why);
    }
    const { url } = (await startClient(t)).site;
    const unknown = await runHere(['rule', 'list', '--url', url, '--apikey', 'wmk_x']);
    assert.match(
      unknown.err,
      /unknown or has been revoked\. .*--apikey or WAYMARK_APIKEY; .*key add/,
    );
  });

  test('lists, invalidates in two steps, and undoes that', async (t) => {
    const { site, waymark, out } = await startClient(t);
    const { url } = site;
    const rule = (...words: string[]) => out('rule', ...words);
    for (const path of ['/a', '/b']) await rule('insert', JSON.stringify({ path, content: 'x' }));
    const listed = (await rule('list', '--path', '/a')).trim().split('\n');
    const [heading, row = '', ...others] = listed.map((line) => line.split(/ +/).join(' '));
    assert.deepEqual([heading, others], ['ID KIND ORIGIN PATH', []]);
    const [id = '', ...rest] = row.split(' ');
    assert.deepEqual(rest, ['content', '*', '/a']);

    const dry = await rule('invalidate', id);
    assert.match(dry, /^Nothing has changed yet\. This would revert 1 change of 1 page rule\./);
    assert.equal((await fetch(`${url}/a`)).status, 200);
    const [, digest = ''] = /--confirm ([0-9a-f]{64})/.exec(dry) ?? [];
    const done = await rule('invalidate', id, '--confirm', digest);
    assert.equal((await fetch(`${url}/a`)).status, 404);
    assert.match(await rule('history', id), /invalidated 20/);
    assert.equal(JSON.parse(await rule('read', id, '--as-of', '2')).path, '/a');

    const [, txn = ''] = /invalidate --txn (\S+)/.exec(done) ?? [];
    const back = JSON.parse(await rule('invalidate', '--txn', txn, '--json'));
    await rule('invalidate', '--txn', txn, '--confirm', back.data.digest);
    assert.equal((await fetch(`${url}/a`)).status, 200);
    const stray = await waymark('rule', 'list', '--txn', 'x');
    assert.equal(stray.code, 2);
    assert.match(stray.err, /unknown option '--txn'/);
  });
});
