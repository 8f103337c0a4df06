// The time from a downloaded program to the first page of one's own folder; see bench/README.md.
// `--program FILE` is the executable of `npm run package`.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { createAuthority } from '../test/certificates.ts';
import { spreadOf } from './figures.ts';
import { cpuMicroseconds } from './proc.ts';
import { findProgram, freePorts, killAll, startProcess } from './processes.ts';
import { spreadText } from './report.ts';

const { values: options } = parseArgs({
  options: { program: { type: 'string' }, rounds: { type: 'string', default: '7' } },
});

/** A way to serve a folder. */
interface Contestant {
  readonly name: string;
  readonly program: string;
  /** Writes what it needs to a new folder; resolves to its arguments. */
  readonly prepare: (folder: string, port: number) => Promise<readonly string[]>;
  /** Where the program is already unpacked; without it, each start unpacks. */
  readonly cache?: string;
  readonly scheme: 'http' | 'https';
}

interface Measured {
  readonly milliseconds: number;
  readonly cpuMilliseconds: number;
}

const root = await mkdtemp(join(tmpdir(), 'first-page-'));
const authority = await createAuthority();
const page = '<!doctype html><title>Mine</title><h1>My own page</h1>\n';
const site = join(root, 'my-folder');
const pair = await authority.issue(['localhost']);
const agent = new Agent({ connect: { ca: authority.cert }, pipelining: 0 });

try {
  await mkdir(site);
  await writeFile(join(site, 'index.html'), page);
  await writeFile(join(root, 'cert.pem'), pair.cert);
  await writeFile(join(root, 'key.pem'), pair.key);
  await run();
} finally {
  killAll();
  await agent.close();
  await rm(root, { recursive: true, force: true });
}

async function run(): Promise<void> {
  const all = contestants();
  const rounds = new Map<Contestant, Measured[]>(all.map((one) => [one, []]));
  for (const one of all) if (one.cache !== undefined) await firstPage(one, 'unpacks');
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const one of all) rounds.get(one)?.push(await firstPage(one, `${round}`));
  }
  for (const [{ name }, measured] of rounds) {
    const time = spreadText(spreadOf(measured.map(({ milliseconds }) => milliseconds)), 0);
    const cpu = spreadText(spreadOf(measured.map((one) => one.cpuMilliseconds)), 0);
    console.log(`${name}: ${time} ms, CPU ${cpu} ms`);
  }
}

function contestants(): readonly Contestant[] {
  const caddy = findProgram('caddy');
  if (options.program === undefined) throw new Error('Name the executable by --program.');
  const program = resolve(options.program);
  const tls = { program, prepare: iniFile, scheme: 'https' } as const;
  const waymarks: readonly Contestant[] = [
    { name: 'serve ./my-folder, first start', program, prepare: folderOnly, scheme: 'http' },
    { ...tls, name: 'Waymark over TLS, first start' },
    { ...tls, name: 'Waymark over TLS, later starts', cache: join(root, 'cache') },
  ];
  if (caddy !== undefined) {
    return [...waymarks, { ...tls, name: 'Caddy over TLS', program: caddy, prepare: caddyfile }];
  }
  console.error('caddy is not installed.');
  return waymarks;
}

function folderOnly(_folder: string, port: number): Promise<readonly string[]> {
  return Promise.resolve(['serve', site, '--listen', `127.0.0.1:${port}`]);
}

async function iniFile(folder: string, port: number): Promise<readonly string[]> {
  const file = join(folder, 'server.ini');
  const pems = `cert = ${root}/cert.pem\nkey = ${root}/key.pem`;
  const server = `[server]\nlisten = https://127.0.0.1:${port}`;
  await writeFile(file, `${server}\n[tls]\n${pems}\n[disk.site]\nroot = ${site}\n`);
  return ['serve', '--config', file];
}

async function caddyfile(folder: string, port: number): Promise<readonly string[]> {
  const file = join(folder, 'Caddyfile');
  const block = `tls ${root}/cert.pem ${root}/key.pem\nroot * ${site}\nfile_server`;
  const global = '{\nadmin off\nauto_https disable_redirects\n}';
  await writeFile(file, `${global}\nhttps://localhost:${port} {\nbind 127.0.0.1\n${block}\n}\n`);
  return ['run', '--config', file, '--adapter', 'caddyfile'];
}

/** Starts a program in a folder of its own until it answers with the page, and stops it. */
async function firstPage(
  { name, program, prepare, cache, scheme }: Contestant,
  round: string,
): Promise<Measured> {
  const folder = join(root, `${name.replaceAll(/\W+/g, '-')}-${round}`);
  await mkdir(folder);
  const [port = 0] = await freePorts(1);
  const args = await prepare(folder, port);
  const log = join(folder, 'program.log');
  const homes = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const env = { ...process.env, ...homes, XDG_CACHE_HOME: cache ?? join(folder, 'cache') };
  const started = performance.now();
  const child = startProcess(program, args, { core: undefined, stdout: log, stderr: log, env });
  const ended = child.ended.then((how) => Promise.reject(new Error(how)));
  ended.catch(() => undefined);
  await Promise.race([untilShown(`${scheme}://localhost:${port}/`), ended]);
  const milliseconds = performance.now() - started;
  const cpuMilliseconds = (await cpuMicroseconds([child.pid])) / 1000;
  await child.stop();
  return { milliseconds, cpuMilliseconds };
}

async function untilShown(url: string): Promise<void> {
  for (;;) {
    const answer = await request(url, { dispatcher: agent }).catch(() => undefined);
    if (answer !== undefined && (await answer.body.text()) === page) return;
    await pause(5);
  }
}
