import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder, writeFiles } from '../../test/folder.ts';
import { built, version } from './built.ts';

const run = promisify(execFile);
const executable = built(`waymark-${version}-linux-x64`);

/** An environment without npm and Node.js. */
function bare(home: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { PATH: '/usr/bin:/bin', HOME: home, ...more };
}

/** Runs the executable to its end. */
async function waymark(words: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout, stderr } = await run(executable, words, { env });
  return stdout + stderr;
}

/** Starts a server with a site; resolves once it serves. */
async function serve(t: TestContext, more = '') {
  // The first that is done after the test: a server writes into its folder.
  t.after(async () => {
    process.kill(await pid(), 'SIGKILL');
  });
  const folder = await temporaryFolder(t);
  const ini = `[server]\nlisten = 127.0.0.1:0\ndata = data\n${more}\n[disk.site]\nroot = site\n`;
  await writeFiles(folder, { 'server.ini': ini, 'site/index.html': 'here' });
  const env = bare(folder);
  const iniFile = join(folder, 'server.ini');
  const child = spawn(executable, ['serve', '--config', iniFile], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const url = (): string | undefined => /serves (http:\/\/[^\s"]+)/.exec(out)?.[1];
  while (url() === undefined) await once(child.stdout, 'data');
  const pid = async () =>
    Number((await readFile(join(folder, 'data/serve.pid'), 'utf8')).split(' ')[0]);
  const apikey = (await readFile(join(folder, 'data/admin-key'), 'utf8')).trim();
  const post = async (operation: string, v: object): Promise<string> => {
    const reply = await fetch(`${url()}/svc1/${operation}`, {
      method: 'POST',
      headers: { apikey, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ v }),
    });
    return reply.text();
  };
  const page = async (path: string): Promise<string> => {
    const reply = await fetch(`${url()}${path}`, { headers: { connection: 'close' } });
    return reply.text();
  };
  return { folder, env, iniFile, url: url() ?? '', post, page, pid, out: () => out };
}

suite('the single executable', () => {
  test('names its version and commit, and starts without npm and Node.js', async (t) => {
    const env = bare(await temporaryFolder(t));
    assert.match(await waymark(['--version'], env), /^\d+\.\d+\.\d+ \(commit [0-9a-f]{12}/);
    assert.match(await waymark(['--help'], env), /restart/);
  });

  test('serves a folder, renders with the browser modules, and answers its own pages', async (t) => {
    const { post, page } = await serve(t);
    assert.equal(await page('/'), 'here');
    assert.match(await page('/svc1/engine.js'), /render/);
    assert.match(await page('/svc1/engines/liquid.js'), /Liquid/);
    assert.match(await page('/svc1/health'), /ok|status|true/i);
    const enginedata = {
      template: '<p>{{ data.a | plus: 1 }}</p>',
      data: { a: 1 },
      render: 'server',
    };
    await post('userinterface/insert', {
      path: '/rendered',
      kind: 'content',
      engine: 'template',
      enginedata,
    });
    assert.match(await page('/rendered'), /<p>2<\/p>/);
  });

  test('imports in a thread, checks its data, and makes a backup', async (t) => {
    const { folder, env, iniFile, post, page } = await serve(t);
    const lines = Array.from({ length: 2_000 }, (_, at) =>
      JSON.stringify({ path: `/${at}`, kind: 'content', content: `page ${at}` }),
    );
    const file = join(folder, 'rules.ndjson');
    await writeFile(file, lines.join('\n'));
    await waymark(['import', file, '--config', iniFile], env);
    assert.equal(await page('/1999'), 'page 1999');
    assert.match(await post('userinterface/list', { limit: 1 }), /"data"/);
    assert.match(
      await waymark(['check', '--data', '--config', iniFile], env),
      /2000|2,000|ok|whole/i,
    );
    await waymark(['backup', join(folder, 'copy'), '--config', iniFile], env);
    assert.ok(existsSync(join(folder, 'copy/data.mdb')));
  });

  test('serves with workers, and is replaced by a restart', async (t) => {
    const { env, iniFile, page, pid, out } = await serve(t, 'workers = 2');
    assert.match(out(), /with 2 workers/);
    const before = await pid();
    await waymark(['restart', '--config', iniFile], env);
    assert.notEqual(await pid(), before);
    assert.equal(await page('/'), 'here');
  });

  test('keeps its files where only its user can write, and repairs them', async (t) => {
    const home = await temporaryFolder(t);
    await waymark(['--version'], bare(home));
    const cache = join(home, '.cache/waymark');
    const [name = ''] = await readdir(cache);
    const file = join(cache, name, 'app/cli.js');
    assert.equal((await stat(join(cache, name))).mode & 0o777, 0o700);
    const before = await readFile(file, 'utf8');
    await writeFile(file, 'throw new Error("changed")');
    assert.match(await waymark(['--version'], bare(home)), /commit/);
    assert.equal(await readFile(file, 'utf8'), before);
    // A folder that others can write to is not used; the next place is.
    const open = join(home, 'open');
    await mkdir(join(open, 'waymark'), { recursive: true });
    await chmod(join(open, 'waymark'), 0o777);
    const env = bare(home, { XDG_CACHE_HOME: open, TMPDIR: join(home, 'tmp') });
    await mkdir(join(home, 'tmp'));
    await waymark(['--version'], env);
    assert.deepEqual(await readdir(join(open, 'waymark')), []);
    assert.equal((await readdir(join(home, 'tmp'))).length, 1);
  });
});

suite('the packages for both machines', () => {
  test('have the checksums of SHA256SUMS', async () => {
    const { stdout } = await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: built('') });
    assert.equal(stdout.split('\n').filter((line) => line.endsWith(': OK')).length, 5);
  });

  for (const [arch, machine] of [
    ['x64', 62],
    ['arm64', 183],
  ] as const) {
    test(`are ELF files for ${arch} with the addon of LMDB for it`, async () => {
      const path = built(`waymark-${version}-linux-${arch}`);
      const file = await open(path);
      const { buffer } = await file.read(Buffer.alloc(20), 0, 20, 0);
      await file.close();
      assert.equal(buffer.readUInt16LE(18), machine);
      const content = await readFile(path);
      const addon = `files/node_modules/@lmdb/lmdb-linux-${arch}/node.napi.glibc.node`;
      assert.ok(content.includes(addon));
      // The addon itself is an ELF file inside, for the same machine.
      const name = content.lastIndexOf(addon);
      const at = content.indexOf('\u007fELF', name, 'latin1');
      assert.equal(content.readUInt16LE(at + 18), machine);
    });
  }

  test('come with a bill of materials', async () => {
    const text = await readFile(built(`waymark-${version}.cdx.json`), 'utf8');
    const { bomFormat, components } = JSON.parse(text) as {
      bomFormat: string;
      components: readonly { name: string }[];
    };
    assert.equal(bomFormat, 'CycloneDX');
    assert.ok(components.some(({ name }) => name === 'lmdb'));
    assert.ok(!components.some(({ name }) => name === 'esbuild'));
  });
});

/** An emulator with its options, such as `qemu-aarch64-static -L ROOT` with the libraries of arm64. */
const emulator = process.env.QEMU_AARCH64?.split(' ') ?? [];

test(
  'the executable for arm64 serves and stores, emulated',
  { skip: emulator.length === 0 && 'needs QEMU_AARCH64, an emulator of arm64 with its options' },
  async (t) => {
    const folder = await temporaryFolder(t);
    await writeFiles(folder, { 'site/index.html': 'here' });
    const [program = '', ...options] = emulator;
    const words = [...options, built(`waymark-${version}-linux-arm64`)];
    const env = { ...bare(folder), XDG_DATA_HOME: join(folder, 'data') };
    const { stdout } = await run(program, [...words, '--version'], { env });
    assert.match(stdout, new RegExp(`^${version} \\(commit `));
    const serving = [...words, 'serve', join(folder, 'site'), '--listen', '127.0.0.1:0'];
    const child = spawn(program, serving, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
    }
    const found = (pattern: RegExp): string | undefined => pattern.exec(said)?.[1];
    const [address, keyFile] = [/(http:\/\/localhost:\d+)/, /^ +(\/\S+admin-key)$/m];
    while (found(address) === undefined || found(keyFile) === undefined) {
      await once(child.stderr, 'data');
    }
    const url = found(address) ?? '';
    assert.equal(await (await fetch(url)).text(), 'here');
    const apikey = (await readFile(found(keyFile) ?? '', 'utf8')).trim();
    const body = JSON.stringify({ v: { path: '/stored', kind: 'content', content: 'stored' } });
    await fetch(`${url}/svc1/userinterface/insert`, { method: 'POST', headers: { apikey }, body });
    assert.equal(await (await fetch(`${url}/stored`)).text(), 'stored');
  },
);
