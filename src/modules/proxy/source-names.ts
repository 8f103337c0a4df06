import dns from 'node:dns/promises';
import type { Lookup } from '../../core/outbound/dns-lookup.ts';
import { nameTriesMax, nameTryMs, namesRememberedMax } from '../../core/outbound/limits.ts';
import { Failure } from '../../core/values/failure.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { parseAddress } from '../../core/values/network/cidr.ts';
import { unixScheme } from '../../core/values/network/unix-socket.ts';
import { type FetchPlan, type PlannedSource, markOf } from './fetch-plan.ts';

/** How long the servers of a service are remembered, and how many of them. */
const serviceTrustMs = 10_000;
const serviceServersMax = 64;

/** Servers of one name, each with an address of its own. */
const serversOfNameMax = 64;

/** The servers of a source, and the addresses from which they were made. */
interface KnownServers {
  readonly addresses: string;
  readonly servers: readonly PlannedSource[];
}

/** An address of a source, with the name and port that it stands for. */
interface FoundServer {
  readonly address: string;
  /** `host:port`, for Host and TLS. */
  readonly authority: string;
  readonly weight: number;
}

/**
 * The servers behind the names of sources: with `resolve`, each address of a name is a server of
 * its own, which can be chosen, checked and set aside; a service (`srv+http:`) has those of its SRV
 * records. Each request uses the addresses that DNS gives at that time, as long as their TTL lasts.
 * While DNS does not answer, the last known ones stay.
 */
export class SourceNames {
  readonly #lookup: Lookup;
  readonly #lookUpService: ServiceLookup;
  readonly #known = new WeakMap<PlannedSource, KnownServers>();

  constructor({
    lookup,
    lookUpService,
  }: {
    readonly lookup: Lookup;
    readonly lookUpService: ServiceLookup;
  }) {
    this.#lookup = lookup;
    this.#lookUpService = lookUpService;
  }

  /** The servers of a plan now. Rejects with `bad_gateway` if no name of it can be resolved. */
  async serversOf(plan: FetchPlan): Promise<readonly PlannedSource[]> {
    if (!plan.isResolved) return plan.sources;
    const all = await Promise.all(plan.sources.map((source) => this.#serversOf(plan, source)));
    const servers = all.flat();
    if (servers.length > 0) return servers;
    throw new Failure('bad_gateway', 'The name of the source could not be resolved.');
  }

  /** The servers of a plan as far as they are known, without a lookup. */
  knownServersOf(plan: FetchPlan): readonly PlannedSource[] {
    if (!plan.isResolved) return plan.sources;
    return plan.sources.flatMap((source) => this.#known.get(source)?.servers ?? [source]);
  }

  async #serversOf(plan: FetchPlan, source: PlannedSource): Promise<readonly PlannedSource[]> {
    const { hostname, port, protocol } = new URL(source.origin);
    // A unix socket has no name to look up.
    const isPlace = source.server.startsWith(unixScheme) || isAddress(hostname);
    if (!source.isService && isPlace) return [source];
    const known = this.#known.get(source);
    let found: readonly FoundServer[];
    try {
      found = source.isService
        ? await this.#ofService(hostname, source.weight)
        : await this.#ofName(hostname, port, source.weight);
    } catch {
      return known?.servers ?? [];
    }
    const addresses = found.map(({ address, weight }) => `${address} ${weight}`).join();
    if (known?.addresses === addresses) return known.servers;
    const servers = found.map(({ address, authority, weight }) => ({
      ...source,
      origin: `${protocol}//${authority}`,
      server: `${protocol}//${address}`,
      mark: markOf(plan.id, `${address} ${source.path}`),
      weight,
    }));
    this.#known.set(source, { addresses, servers });
    return servers;
  }

  async #ofName(name: string, port: string, weight: number): Promise<readonly FoundServer[]> {
    const end = port === '' ? '' : `:${port}`;
    const found = await this.#lookup(name);
    return found
      .map(({ address }) => ({
        address: (address.includes(':') ? `[${address}]` : address) + end,
        authority: name + end,
        weight,
      }))
      .toSorted((one, other) => one.address.localeCompare(other.address))
      .slice(0, serversOfNameMax);
  }

  /** Servers of a later priority are spares (RFC 2782): they have the weight 0. */
  async #ofService(service: string, weight: number): Promise<readonly FoundServer[]> {
    const records = await this.#lookUpService(service);
    const first = Math.min(...records.map(({ priority }) => priority));
    const shareOf = (one: ServiceServer): number =>
      one.priority === first && weight > 0 ? Math.max(one.weight, 1) : 0;
    const found = await Promise.allSettled(
      records.map((one) => this.#ofName(one.name, String(one.port), shareOf(one))),
    );
    const servers = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    if (servers.length === 0) throw new Error(`${service} has no servers with an address`);
    return servers.slice(0, serversOfNameMax);
  }
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || parseAddress(hostname) !== undefined;
}

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
type ServiceLookup = (name: string) => Promise<readonly ServiceServer[]>;

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
