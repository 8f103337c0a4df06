import dns from 'node:dns/promises';
import { nameTriesMax, nameTryMs, namesRememberedMax } from '../../core/outbound/limits.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';

/** How long the servers of a service are remembered, and how many of them. */
const serviceTrustMs = 10_000;
const serviceServersMax = 64;

/** A server of a service (RFC 2782). */
export interface ServiceServer {
  readonly name: string;
  readonly port: number;
  /** A client uses the lowest number that it can reach. */
  readonly priority: number;
  readonly weight: number;
}

/**
 * Resolves the name of a service, such as `_http._tcp.example.com`. Rejects if it has no servers.
 */
export type ServiceLookup = (name: string) => Promise<readonly ServiceServer[]>;

/**
 * Makes a lookup of SRV records. It remembers an answer for `serviceTrustMs`, because Node does not
 * tell the TTL of such records; the addresses of the servers have theirs.
 */
export function createServiceLookup({
  servers,
  monotonicMs = () => performance.now(),
}: {
  /** Name servers, `address:port`; by default those of the system. */
  readonly servers?: readonly string[];
  readonly monotonicMs?: () => number;
} = {}): ServiceLookup {
  const known = createLruCache<{
    readonly found: readonly ServiceServer[];
    readonly untilMs: number;
  }>(namesRememberedMax);
  const pending = new Map<string, Promise<readonly ServiceServer[]>>();

  async function find(name: string): Promise<readonly ServiceServer[]> {
    const resolver = new dns.Resolver({ timeout: nameTryMs, tries: nameTriesMax });
    if (servers !== undefined) resolver.setServers(servers);
    const records = await resolver.resolveSrv(name);
    // The name `.` means that there is no such service.
    const found = records.filter((one) => one.name !== '' && one.name !== '.' && one.port > 0);
    if (found.length === 0) throw new Error(`${name} has no servers`);
    const first = found.slice(0, serviceServersMax);
    known.set(name, { found: first, untilMs: monotonicMs() + serviceTrustMs });
    return first;
  }

  return (name) => {
    const cached = known.get(name);
    if (cached !== undefined && monotonicMs() < cached.untilMs) {
      return Promise.resolve(cached.found);
    }
    let result = pending.get(name);
    if (result === undefined) {
      result = find(name).finally(() => pending.delete(name));
      pending.set(name, result);
    }
    return result;
  };
}
