import { closeSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { join } from 'node:path';
import type { ListenAddress } from '../../core/config/addresses.ts';

/** A listening socket of this process, with the address that it is bound to. */
export type ListeningSocket =
  | { readonly fd: number; readonly host: string; readonly port: number }
  | { readonly fd: number; readonly path: string };

/**
 * The temporary name of a unix socket before it gets its path. The path of a socket that another
 * process still uses stays in place, and Node.js removes only the temporary name at the end.
 */
export function bindPath(path: string): string {
  return `${path}~`;
}

/**
 * The listening sockets of this process, from its descriptors and the tables of /proc/self/net
 * (proc(5)); empty where the system has no /proc. `fds` are the descriptors to look at; by default
 * all of this process.
 */
export function listeningSockets(fds: readonly number[] = openDescriptors()): ListeningSocket[] {
  const inodes = fds.flatMap((fd) => {
    const inode = inodeOf(fd);
    return inode === undefined ? [] : [{ fd, inode }];
  });
  // An ordinary start has none: the tables have a row for each connection of the machine.
  const bound = inodes.length === 0 ? new Map<string, BoundAddress>() : boundAddresses();
  return inodes.flatMap(({ fd, inode }) => {
    const address = bound.get(inode);
    return address === undefined ? [] : [{ fd, ...address }];
  });
}

/**
 * Finds for each address the inherited socket that is bound to it; undefined for an address that
 * the server has to open itself. Port 0 takes any port of its host, in order.
 */
export async function matchSockets(
  listens: readonly ListenAddress[],
  inherited: readonly ListeningSocket[],
): Promise<readonly (ListeningSocket | undefined)[]> {
  const unused = new Set(inherited);
  const found: (ListeningSocket | undefined)[] = [];
  for (const where of listens) {
    const hosts = where.kind === 'tcp' ? await hostsOf(where.host) : [];
    const socket = [...unused].find((one) => isBoundTo(one, where, hosts));
    if (socket !== undefined) unused.delete(socket);
    found.push(socket);
  }
  return found;
}

/** Closes inherited sockets that no address of the configuration names. */
export function closeSockets(sockets: readonly ListeningSocket[]): void {
  for (const { fd } of sockets) closeSync(fd);
}

/**
 * The path of a unix socket that Waymark has created, and removes at its end; undefined for another
 * address, and for a socket of systemd.
 */
export function ownPath(
  where: ListenAddress,
  inherited: ListeningSocket | undefined,
): string | undefined {
  if (where.kind !== 'unix') return undefined;
  const isForeign = inherited !== undefined && 'path' in inherited && inherited.path === where.path;
  return isForeign ? undefined : where.path;
}

/** The address of a socket as text. */
export function socketText(socket: ListeningSocket): string {
  if ('path' in socket) return `unix:${socket.path.replace(/~$/, '')}`;
  return `${socket.host.includes(':') ? `[${socket.host}]` : socket.host}:${socket.port}`;
}

function isBoundTo(
  socket: ListeningSocket,
  where: ListenAddress,
  hosts: readonly string[],
): boolean {
  if (where.kind === 'unix' || 'path' in socket) {
    return (
      where.kind === 'unix' &&
      'path' in socket &&
      (socket.path === where.path || socket.path === bindPath(where.path))
    );
  }
  const isPort = where.port === 0 || where.port === socket.port;
  return isPort && hosts.includes(socket.host);
}

const anyAddress = ['::', '0.0.0.0'];

/** The addresses that a host of `listen` may be bound to. */
async function hostsOf(host: string): Promise<readonly string[]> {
  if (host === '') return anyAddress;
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => canonicalAddress(address));
}

/** IPv6 addresses have several spellings; that of the URL standard is one. */
function canonicalAddress(address: string): string {
  return address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

function openDescriptors(): readonly number[] {
  try {
    return readdirSync('/proc/self/fd')
      .map(Number)
      .sort((one, other) => one - other);
  } catch {
    return [];
  }
}

/** The inode of the socket behind a descriptor; undefined for anything else. */
function inodeOf(fd: number): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  } catch {
    return undefined;
  }
}

type BoundAddress = { readonly host: string; readonly port: number } | { readonly path: string };

/** The state TCP_LISTEN, and the flag __SO_ACCEPTCON of a unix socket, as the tables write them. */
const tcpListen = '0A';
const unixListen = '00010000';

/** All listening sockets of this network namespace by their inode. */
function boundAddresses(): ReadonlyMap<string, BoundAddress> {
  const bound = new Map<string, BoundAddress>();
  for (const table of ['tcp', 'tcp6']) {
    for (const [, local = '', , state, , , , , , inode = ''] of rowsOf(table, tcpListen)) {
      if (state !== tcpListen) continue;
      const [host = '', port = ''] = local.split(':');
      bound.set(inode, { host: hostOfHex(host), port: Number.parseInt(port, 16) });
    }
  }
  for (const [, , , flags, , , inode = '', ...path] of rowsOf('unix', unixListen)) {
    if (flags === unixListen && path.length > 0) bound.set(inode, { path: path.join(' ') });
  }
  return bound;
}

/** The rows of a table that contain a word, in words. */
function rowsOf(table: string, word: string): readonly (readonly string[])[] {
  try {
    const text = readFileSync(join('/proc/self/net', table), 'utf8');
    const lines = text.split('\n').filter((line) => line.includes(` ${word} `));
    return lines.map((line) => line.trim().split(/\s+/));
  } catch {
    return [];
  }
}

/** An address as the kernel writes it: hexadecimal words in the byte order of the machine. */
function hostOfHex(hex: string): string {
  // Waymark runs on little-endian machines: x64 and arm64.
  const bytes = Buffer.from(hex, 'hex').swap32();
  if (bytes.length === 4) return [...bytes].join('.');
  const words = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16));
  return canonicalAddress(words.join(':'));
}
