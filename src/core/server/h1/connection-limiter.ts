import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { connectionsMax } from '../../config/limits.ts';
import { isTrustedPeer } from '../../http/reading/forwarded.ts';
import { addressNetwork } from '../../values/network/cidr.ts';
import type { Peer } from '../../values/network/peer.ts';

/**
 * File descriptors that a process keeps for itself, and those that a connection needs: its own, and
 * that of a file or of a connection to a source.
 */
export const reservedDescriptors = 64;
const connectionDescriptors = 2;

/** The largest number of connections, of all clients and of an address. */
export interface ConnectionLimits {
  readonly max: number;
  readonly perAddress: (peer: Peer) => number;
}

/**
 * Returns the limits of connections in the current ini file. A trusted proxy has many clients, so
 * its address has no limit; all connections together need file descriptors.
 */
export function connectionLimits(
  server: () => Pick<Config['server'], 'trustProxy' | 'connectionsPerAddress'>,
): ConnectionLimits {
  const openFiles = openFilesMax();
  const fitting = Math.floor((openFiles - reservedDescriptors) / connectionDescriptors);
  return {
    max: Math.min(connectionsMax, Math.max(1, fitting)),
    perAddress: (peer) => {
      const { trustProxy, connectionsPerAddress } = server();
      return isTrustedPeer(peer, trustProxy) ? Infinity : connectionsPerAddress;
    },
  };
}

/**
 * Returns how many files this process may have open, connections included; Infinity if the system
 * does not say.
 */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/** Counts the open connections, of all clients and of each address. */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  readonly #counts = new Map<string, number>();
  #size = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Counts a new connection; returns the limit that it would exceed instead, if there is one. */
  add(peer: Peer): keyof ConnectionLimits | undefined {
    const { max, perAddress } = this.#limits;
    if (this.#size >= max) return 'max';
    const client = addressNetwork(peer.address);
    const count = this.#counts.get(client) ?? 0;
    if (count >= perAddress(peer)) return 'perAddress';
    this.#counts.set(client, count + 1);
    this.#size += 1;
    return undefined;
  }

  /** Stops counting a connection that has closed. */
  remove({ address }: Peer): void {
    this.#size -= 1;
    const client = addressNetwork(address);
    const count = this.#counts.get(client) ?? 0;
    if (count > 1) this.#counts.set(client, count - 1);
    else this.#counts.delete(client);
  }
}
