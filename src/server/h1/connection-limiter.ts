import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { isTrustedPeer } from '../../http/forwarded.ts';
import { addressNetwork } from '../../model/cidr.ts';
import { connectionsMax } from '../../config/limits.ts';
import { connectionDescriptors, reservedDescriptors } from '../limits.ts';

/** How much there may be of something that clients have, and how much of it an address may. */
export interface ConnectionLimits {
  readonly max: number;
  readonly perAddress: (address: string) => number;
}

/**
 * Those of connections by the ini file in force: a trusted proxy speaks for many clients, and
 * no more connections are taken than there are file descriptors for.
 */
export function crowdLimits(server: () => Config['server']): ConnectionLimits {
  const openFiles = openFilesMax();
  const fitting = Math.floor((openFiles - reservedDescriptors) / connectionDescriptors);
  return {
    max: Math.min(connectionsMax, Math.max(1, fitting)),
    perAddress: (address) => {
      const { trustProxy, connectionsPerAddress } = server();
      return isTrustedPeer(address, trustProxy) ? Infinity : connectionsPerAddress;
    },
  };
}

/**
 * How many files this process may have open at a time, connections included; Infinity where the
 * system does not tell.
 */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/** Counts what all clients have open, and each of them. */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  readonly #counts = new Map<string, number>();
  #size = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /**
   * Takes one in, unless there are as many as there may be, or its address has as many as it may
   * have: returns the limit that keeps it out. A unix socket has no address: ''.
   */
  enter(address: string): keyof ConnectionLimits | undefined {
    const { max, perAddress } = this.#limits;
    if (this.#size >= max) return 'max';
    const client = addressNetwork(address);
    const count = this.#counts.get(client) ?? 0;
    if (address !== '' && count >= perAddress(address)) return 'perAddress';
    this.#counts.set(client, count + 1);
    this.#size += 1;
    return undefined;
  }

  /** Lets one go that was taken in. */
  leave(address: string): void {
    this.#size -= 1;
    const client = addressNetwork(address);
    const count = this.#counts.get(client) ?? 0;
    if (count > 1) this.#counts.set(client, count - 1);
    else this.#counts.delete(client);
  }
}
