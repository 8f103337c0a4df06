import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import type { ListenAddress } from '../../config/addresses.ts';

/** Ports that are tried, to name a free one. */
const portsTriedMax = 20;
/** The ports right after a taken one are often others of the same ini file. */
const portStep = 10;

/**
 * What to do about a TCP address that is in use: names the process that listens there, if the
 * system tells (proc_pid_net(5): Linux does), and a free port nearby.
 */
export async function takenPortAdvice({
  host,
  port,
}: ListenAddress & { readonly kind: 'tcp' }): Promise<string> {
  const owner = ownerOf(port);
  const free = await freePortAfter(port, host);
  const stop = owner === undefined ? 'stop what listens there' : 'stop it';
  const other = free === undefined ? '' : `, for example to ${host}:${free}, which is free`;
  const by = owner === undefined ? '' : ` by process ${owner}`;
  return `it is in use${by}; ${stop}, or change \`listen\` in [server]${other}`;
}

/** The process that listens on a port: its id, and its words in brackets. */
function ownerOf(port: number): string | undefined {
  const sockets = listeningSockets(port);
  if (sockets.size === 0) return undefined;
  for (const pid of namesIn('/proc').filter((name) => /^\d+$/.test(name))) {
    const folder = `/proc/${pid}/fd`;
    const isOwner = namesIn(folder).some((name) => sockets.has(linkOf(`${folder}/${name}`)));
    if (isOwner) return `${pid} (${textOf(`/proc/${pid}/cmdline`).split('\0').join(' ').trim()})`;
  }
  return undefined;
}

const listenState = '0A';

/** The names of the sockets that listen on a port, as /proc/<pid>/fd has them. */
function listeningSockets(port: number): ReadonlySet<string> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const lines = ['tcp', 'tcp6'].flatMap((name) => textOf(`/proc/net/${name}`).split('\n'));
  const sockets = lines.flatMap((line) => {
    // "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 …"
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    return local?.endsWith(`:${hex}`) === true && state === listenState
      ? [`socket:[${inode}]`]
      : [];
  });
  return new Set(sockets);
}

async function freePortAfter(port: number, host: string): Promise<number | undefined> {
  const last = Math.min(port + portsTriedMax * portStep, 65_535);
  for (let next = port + portStep; next <= last; next += portStep) {
    const server = createServer();
    server.listen(next, host);
    try {
      await once(server, 'listening');
      server.close();
      return next;
    } catch {
      // Taken as well.
    }
  }
  return undefined;
}

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder)) ?? [];
}

function linkOf(path: string): string {
  return attempt(() => readlinkSync(path)) ?? '';
}

function textOf(path: string): string {
  return attempt(() => readFileSync(path, 'utf8')) ?? '';
}

/** The result of a call; undefined if the file has gone, or belongs to another user. */
function attempt<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}
