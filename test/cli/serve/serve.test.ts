import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { createAuthority } from '../../certificates.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { postOperation } from '../../harness.ts';
import { program, runWaymark, serverFolder, startServed } from '../../process.ts';
import { runHere } from '../here.ts';

const hasScript = spawnSync('script', ['--version']).status === 0;

/** The single line on standard error of a server that cannot start; the exit code is 1. */
async function refusal(iniFile: string, run = runWaymark): Promise<string> {
  const { code, err, out } = await run(['serve', '--config', iniFile]);
  assert.equal(code, 1, err);
  assert.equal(out, '');
  assert.equal(err.trim().split('\n').length, 1, err);
  assert.ok(!/\n\s+at /.test(err), err);
  return err;
}

async function takenPort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

suite('waymark serve refuses with one line', () => {
  test('a port in use', async (t) => {
    const port = await takenPort(t);
    const { folder, iniFile } = await serverFolder(t, '');
    await writeFile(iniFile, `[server]\nlisten = 127.0.0.1:${port}\ndata = data\n`);
    const line = await refusal(iniFile, runHere);
    assert.match(line, new RegExp(`127\\.0\\.0\\.1:${port}.* in use`));
    if (process.platform === 'linux')
      assert.match(line, new RegExp(`by process ${process.pid} \\(`));
    const [, free] = /to 127\.0\.0\.1:(\d+), which is free/.exec(line) ?? [];
    assert.ok(Number(free) > port);
    // The failed start has left no files: the next one works, and shows its key.
    await writeFile(join(folder, 'server.ini'), '[server]\nlisten = 127.0.0.1:0\ndata = data\n');
    const { adminKey } = await startServed(t, iniFile);
    assert.match(adminKey, /^wmk_/);
  });

  test('a root that cannot be read', async (t) => {
    const { iniFile } = await serverFolder(t, '[disk.site]\nroot = missing\n');
    assert.match(await refusal(iniFile, runHere), /server\.ini:5: .*missing/);
  });

  test('a data folder that another server uses', async (t) => {
    const { iniFile } = await serverFolder(t, '');
    const first = await startServed(t, iniFile);
    const line = await refusal(iniFile, runHere);
    assert.match(line, new RegExp(`in use by another waymark.*${first.pid}`));
    first.child.kill('SIGKILL');
    await first.closed;
    await startServed(t, iniFile, { first: false });
  });

  test('a data folder of another program', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    await mkdir(join(folder, 'data'));
    await writeFile(join(folder, 'data/data.mdb'), Buffer.alloc(16_384, 7));
    assert.match(await refusal(iniFile, runHere), /data/);
  });

  test('a data folder that is a file', async (t) => {
    const { iniFile } = await serverFolder(t, '', { data: 'not a folder' });
    assert.match(await refusal(iniFile), /data/);
  });

  test('a certificate file without a certificate', async (t) => {
    const ini = 'listen[] = https://127.0.0.1:0\n[tls]\ncert = c.pem\nkey = k.pem\n';
    const { iniFile } = await serverFolder(t, ini, { 'c.pem': '', 'k.pem': '' });
    assert.match(
      await refusal(iniFile, runHere),
      /server\.ini:\d+: `cert` = `c\.pem` does not contain a PEM certificate/,
    );
  });

  test('an ini file that does not exist', async (t) => {
    const { folder } = await serverFolder(t, '');
    const none = join(folder, 'none.ini');
    assert.match(
      await refusal(none, runHere),
      /none\.ini.*--config, or copy the sample .*conf\/server\.ini$/m,
    );
    assert.match(
      (await runHere(['check', '--config', none])).err,
      /; name another one by --config/,
    );
  });

  test('rules to import with mistakes, each with its line, and imports none', async (t) => {
    const { folder, iniFile } = await serverFolder(t, 'import = rules.ndjson\n', {
      'rules.ndjson': '{"path":"/a","content":"x"}\n{"path":"/b","kind":"blog"}\nnonsense\n',
    });
    const { code, err } = await runHere(['serve', '--config', iniFile]);
    assert.equal(code, 1);
    assert.match(err, /line 2: kind "blog" is not one of/);
    assert.match(err, /line 3: not JSON/);
    await writeFile(join(folder, 'rules.ndjson'), '{"path":"/a","content":"x"}\n');
    const served = await startServed(t, iniFile);
    assert.equal(await (await fetch(`${served.url}/a`)).text(), 'x');
  });
});

suite('waymark serve', () => {
  test('shows how to try the first key, over https if there is TLS', async (t) => {
    const { cert, key } = await (await createAuthority()).issue(['localhost']);
    const ini = 'listen[] = https://127.0.0.1:0\n[tls]\ncert = c.pem\nkey = k.pem\n';
    const { folder, iniFile } = await serverFolder(t, '', { 'c.pem': cert, 'k.pem': key });
    await writeFile(iniFile, `[server]\nlisten[] = http://127.0.0.1:0\ndata = data\n${ini}`);
    const served = await startServed(t, iniFile);
    assert.match(served.err(), /curl .* https:\/\/localhost:\d+\/svc1\/server\/status/, folder);
  });

  test('logs the origins of a site that does not answer at its address', async (t) => {
    const ini = '[disk.site]\norigin = http://shop.test\nroot = site\n';
    const { iniFile } = await serverFolder(t, ini, { 'site/index.html': 'home' });
    const served = await startServed(t, iniFile);
    const { stdout } = served.child;
    while (!served.out().includes('answer under their origins only: http://shop.test\n')) {
      if (stdout !== null) await once(stdout, 'data');
    }
  });

  test('creates an admin key only at the first start, and logs its addresses', async (t) => {
    const { iniFile } = await serverFolder(t, '[log]\nformat = json\n');
    const first = await startServed(t, iniFile);
    assert.match(first.out(), /serves http:\/\/localhost:\d+"/);
    const status = await fetch(`${first.url}/svc1/server/status`, {
      headers: { apikey: first.adminKey },
    });
    assert.equal(status.status, 200);
    first.child.kill('SIGTERM');
    assert.deepEqual(await first.closed, { code: 0, signal: null });
    const second = await startServed(t, iniFile, { first: false });
    assert.equal(second.err(), '');
    for (const line of second.out().trim().split('\n')) assert.ok(JSON.parse(line));
  });

  test('ends running requests on SIGTERM, and logs that all of them ended', async (t) => {
    const { iniFile } = await serverFolder(t, '[disk.site]\nroot = site\n', {
      'site/big.bin': Buffer.alloc(64 << 20, 'x'),
    });
    const served = await startServed(t, iniFile);
    const reply = await fetch(`${served.url}/big.bin`);
    served.child.kill('SIGTERM');
    while (!served.out().includes('Stopping'))
      await once(served.child.stdout ?? served.child, 'data');
    await assert.rejects(fetch(`${served.url}/big.bin`), 'no new connection is taken');
    assert.equal((await reply.bytes()).length, 64 << 20);
    assert.equal((await served.closed).code, 0);
    assert.match(served.out(), /Stopped; all requests ended/);
  });
});

test('the rules to import may contain the variables of the ini file', async (t) => {
  const rule = { path: '/a', content: '${WORD} and ${OTHER}', contenttype: 'text/plain' };
  const { iniFile, ini } = await serverFolder(t, '', { 'rules.ndjson': JSON.stringify(rule) });
  await writeFile(iniFile, `[variables]\nWORD = "\\"é\\""\n${ini}import = rules.ndjson\n`);
  const served = await startServed(t, iniFile);
  assert.equal(await (await fetch(`${served.url}/a`)).text(), '"é" and ${OTHER}');
});

suite('waymark serve --proxy', () => {
  test('puts the server in front of an application, and behind the files of a folder', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFiles(join(folder, 'site'), { 'a.html': '<h1>A</h1>' });
    const { origin } = await httpSource(t, ({ method, url }, response) => {
      response.end(`app ${method} ${url}`);
    });
    const env = { XDG_DATA_HOME: join(folder, 'share') };
    const words = ['--proxy', origin.replace('http://', ''), '--listen', '127.0.0.1:0'];
    const alone = await startServed(t, '', { words, env });
    const get = async (url: string, method = 'GET') => (await fetch(url, { method })).text();
    assert.equal(await get(`${alone.url}/a%2Fb`, 'DELETE'), 'app DELETE /a%2Fb');
    assert.match(alone.out(), new RegExp(`Serving ${origin}\\.`));
    const call = { apikey: alone.adminKey };
    const v = { path: '/page', content: 'x', kind: 'content' };
    const made = await postOperation(alone.url, 'svc1.userinterface.insert', v, call);
    assert.equal(made.status, 200);
    assert.equal(await get(`${alone.url}/page`), 'x');
    const both = await startServed(t, '', { words: [join(folder, 'site'), ...words], env });
    assert.equal(await get(`${both.url}/a.html`), '<h1>A</h1>');
    assert.equal(await get(`${both.url}/b`), 'app GET /b');
    const wrong = await runHere(['serve', '--proxy', 'localhost/app'], { env });
    assert.deepEqual([wrong.code, wrong.out], [2, '']);
    assert.match(wrong.err, /is not a URL: write one such as --proxy http:\/\/127\.0\.0\.1:3000/);
  });
});

suite('waymark serve DIR', () => {
  test('serves a folder without an ini file, and stores its data elsewhere', async (t) => {
    const folder = await temporaryFolder(t);
    const site = join(folder, 'my $site; "#1"');
    await writeFiles(site, { 'a.html': '<h1>A</h1>', 'sub/b.txt': 'b', '.env': 'secret' });
    const env = { XDG_DATA_HOME: join(folder, 'share') };
    const served = await startServed(t, '', { words: [site, '--listen', '127.0.0.1:0'], env });
    const get = async (path: string) => (await fetch(`${served.url}${path}`)).text();
    assert.equal(await get('/a.html'), '<h1>A</h1>');
    assert.match(await get('/'), /a\.html/, 'a folder without index.html is listed');
    assert.equal((await fetch(`${served.url}/.env`)).status, 404);
    assert.deepEqual((await readdir(site)).toSorted(), ['.env', 'a.html', 'sub']);

    const call = { url: served.url, apikey: served.adminKey };
    const v = { path: '/page', content: 'x', kind: 'content' };
    const { url, ...options } = call;
    assert.equal((await postOperation(url, 'svc1.userinterface.insert', v, options)).status, 200);
    assert.equal(await get('/page'), 'x');

    // Commands find the data by the folder of the site.
    const listed = await runWaymark(['key', 'list', '--config', site], { env });
    assert.match(listed.out, /^ID .*\n\S+ .* admin +- +- +- +admin\n$/, listed.err);
    served.child.kill('SIGTERM');
    await served.closed;
    const again = await startServed(t, '', {
      words: ['.', '--listen', '127.0.0.1:0'],
      first: false,
      cwd: site,
      env,
    });
    assert.equal(await (await fetch(`${again.url}/page`)).text(), 'x', 'the same folder');
  });

  test('brings its redirects and header fields, also when they change', async (t) => {
    const folder = await temporaryFolder(t);
    const site = join(folder, 'site');
    const files = {
      _redirects: '/old /new\n/bad\n',
      _headers: '/a.txt\n  X-A: b\n',
      'a.txt': 'a',
      '404.html': 'none',
    };
    await writeFiles(site, files);
    const env = { XDG_DATA_HOME: join(folder, 'share') };
    const served = await startServed(t, '', { words: [site, '--listen', '127.0.0.1:0'], env });
    const location = async () => {
      const reply = await fetch(`${served.url}/old`, { redirect: 'manual' });
      return reply.headers.get('location');
    };
    assert.equal(await location(), '/new');
    assert.equal((await fetch(`${served.url}/a.txt`)).headers.get('x-a'), 'b');
    const missing = await fetch(`${served.url}/_redirects`, { headers: { accept: 'text/html' } });
    assert.deepEqual([missing.status, await missing.text()], [404, 'none']);
    assert.match(served.out(), /_redirects, line 2 has no target/);
    await writeFile(join(site, '_redirects'), '/old /newer\n');
    while (!served.out().includes('uses the changed')) {
      await once(served.child.stdout ?? served.child, 'data');
    }
    assert.equal(await location(), '/newer');
  });

  test('refuses a path that is not a folder, and conflicting options', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    for (const [words, code, message] of [
      [[join(folder, 'none')], 2, /there is no folder .*none\./],
      [[iniFile], 2, /is not a folder\. To use it as ini file: waymark serve --config /],
      [['--config', folder], 2, /is a folder\. To serve its files: waymark serve /],
      [[folder, '--config', iniFile], 2, /give a folder or --config, not both/],
      [['--config', iniFile, '--listen', ':1'], 2, /'--listen <address>'/],
      [[folder, '--listen', 'here:x'], 1, /: `listen` .*here:x/],
    ] as const) {
      const finished = await runHere(['serve', ...words], { env: { HOME: folder } });
      assert.deepEqual([finished.code, finished.out], [code, ''], words.join(' '));
      assert.match(finished.err, message);
      assert.equal(
        finished.err.split('\n').filter((line) => line.startsWith('waymark: ')).length,
        1,
      );
    }
    // Such a folder would publish its own data.
    const home = await runHere(['serve', folder], { env: { HOME: folder } });
    assert.match(home.err, /contains the data folder: serve a folder without it/);
    // And one beside an ini file, the data of that server, with its admin key.
    await mkdir(join(folder, 'other', 'data'), { recursive: true });
    await writeFile(join(folder, 'other', 'data', 'data.mdb'), '');
    const other = await runHere(['serve', join(folder, 'other')], { env: { HOME: folder } });
    assert.match(other.err, /contains the data folder of another server \(data\/data\.mdb\)/);
  });
});

suite('the admin key of a first start', () => {
  test('is in a file that only its owner can read if standard error is not a terminal', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '');
    const served = await startServed(t, iniFile);
    const file = join(folder, 'data', 'admin-key');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.equal(await readFile(file, 'utf8'), `${served.adminKey}\n`);
    assert.ok(!`${served.err()}${served.out()}`.includes('wmk_'));
    const [, curl = ''] = /^ {4}(curl .*)$/m.exec(served.err()) ?? [];
    const { stdout } = spawnSync('sh', ['-c', `${curl} -s`], { encoding: 'utf8' });
    assert.match(stdout, /^\{"r":"svc1\.server\.status","data":/, curl);
  });

  test(
    'is shown once on a terminal',
    { skip: !hasScript && 'needs the program script' },
    async (t) => {
      const { folder, iniFile } = await serverFolder(t, '');
      const command = `"${process.execPath}" "${program}" serve --config "${iniFile}"`;
      const child = spawn('script', ['-qec', command, '/dev/null'], {
        stdio: ['pipe', 'pipe', 'ignore'],
      });
      let text = '';
      for await (const chunk of child.stdout) {
        text += String(chunk);
        if (/wmk_[\w-]{43}[^]*server\/status/.test(text)) break;
      }
      assert.match(text, /here is your admin key\. It is shown only once\.\s+wmk_[\w-]{43}\s/);
      assert.ok(!existsSync(join(folder, 'data', 'admin-key')));
      child.kill();
    },
  );
});
