import { spawn, spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Cleaning } from './folder.ts';

/** A server that Waymark is compared with, as Debian installs it. */
export type OtherServer = 'nginx' | 'caddy';

/** Where a server of a test keeps its own files, and where it listens. */
export interface OtherPlace {
  readonly folder: string;
  /** A port that answers once the server has started. */
  readonly port: number;
}

/** The version of a program, such as `1.22.1`; undefined if it is not on the PATH. */
export function versionOf(name: OtherServer): string | undefined {
  const { error, stdout, stderr } = spawnSync(name, [name === 'nginx' ? '-v' : 'version'], {
    encoding: 'utf8',
  });
  if (error !== undefined) return undefined;
  return /\d+(?:\.\d+)+/.exec(stdout + stderr)?.[0] ?? 'of an unknown version';
}

/** Starts nginx with what stands in `http { }`, until the test ends. */
export async function startNginx(t: Cleaning, text: string, place: OtherPlace): Promise<void> {
  const own = join(place.folder, 'nginx');
  await mkdir(own, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${own}/${name};`)
    .join('\n');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  await writeFile(
    join(own, 'nginx.conf'),
    `${user}\ndaemon off;\npid ${own}/pid;\nerror_log ${own}/error.log;\nevents {}\n` +
      `http {\ninclude /etc/nginx/mime.types;\n${temporary}\naccess_log off;\n${text}\n}\n`,
  );
  await startProgram(t, ['nginx', '-p', own, '-c', join(own, 'nginx.conf')], place.port);
}

/** Starts Caddy with a Caddyfile without global options, until the test ends. */
export async function startCaddy(t: Cleaning, text: string, place: OtherPlace): Promise<void> {
  const own = join(place.folder, 'caddy');
  await mkdir(own, { recursive: true });
  // A file with one site needs its address before the options.
  const [, comments = '', rest = ''] = /^((?:#.*\n)*)([^]*)$/.exec(text) ?? [];
  const isBare = /^\S+\n/.test(rest) && !rest.split('\n', 1)[0]?.includes('{');
  const [address = '', ...lines] = rest.split('\n');
  const sites = isBare ? `${address} {\n${lines.join('\n')}\n}` : rest;
  await writeFile(
    join(own, 'Caddyfile'),
    `${comments}{\n\tadmin off\n\tauto_https off\n}\n${sites}\n`,
  );
  const words = ['caddy', 'run', '--config', join(own, 'Caddyfile'), '--adapter', 'caddyfile'];
  await startProgram(t, words, place.port, { XDG_DATA_HOME: own, XDG_CONFIG_HOME: own });
}

/** Starts a program until the test ends; resolves once its port takes connections. */
async function startProgram(
  t: Cleaning,
  [file = '', ...words]: readonly string[],
  port: number,
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  const child = spawn(file, words, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));
  t.after(() => {
    child.kill('SIGTERM');
  });
  while (!(await takesConnections(port))) {
    if (child.exitCode !== null) throw new Error(`${file} ended: ${told}`);
    await wait(20);
  }
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}
