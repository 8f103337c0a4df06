import type { Config } from '../config/config.ts';
import { isTrustedPeer } from '../http/forwarded.ts';
import { parseAddress } from '../model/cidr.ts';

/** How many connections an address may have: a trusted proxy speaks for any number of clients. */
export function connectionsFor(
  address: string,
  { trustProxy, connectionsPerAddress }: Config['server'],
): number {
  return isTrustedPeer(address, trustProxy) ? Infinity : connectionsPerAddress;
}

/** Counts the open connections of each client. */
export class Crowd {
  readonly #counts = new Map<string, number>();

  /** Takes a connection from an address in, unless that has as many as it may have. */
  enter(address: string, max: number): boolean {
    const client = clientOf(address);
    const count = this.#counts.get(client) ?? 0;
    if (count >= max) return false;
    this.#counts.set(client, count + 1);
    return true;
  }

  /** Lets one go that was taken in. */
  leave(address: string): void {
    const client = clientOf(address);
    const count = this.#counts.get(client) ?? 0;
    if (count > 1) this.#counts.set(client, count - 1);
    else this.#counts.delete(client);
  }
}

/** Whoever has an IPv6 address has the 2^64 of its network as well (RFC 6177). */
function clientOf(address: string): string {
  if (!address.includes(':')) return address;
  const parsed = parseAddress(address);
  if (parsed === undefined || parsed.kind() === 'ipv4') return parsed?.toString() ?? address;
  return parsed.toByteArray().slice(0, 8).join(':');
}
