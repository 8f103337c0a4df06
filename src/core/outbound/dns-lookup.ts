import type { RecordWithTtl } from 'node:dns';
import dns from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createLruCache } from '../values/lru-cache.ts';
import { nameTriesMax, nameTryMs, namesRememberedMax } from './limits.ts';

/** How long the addresses of one family wait for those of the other (RFC 8305 §3). */
const otherFamilyMs = 50;
const nameTrustMsMin = 1_000;
const nameTrustMsMax = 60_000;

/** How long the hosts file is cached before it is read again. */
const hostsTrustMs = 2_000;

/** Names that the system resolves at the same time: each occupies one of libuv's four threads. */
const systemLookupsMax = 2;

/** An address of a name. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves a name to its addresses. */
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** The sources of a lookup; the defaults are those of the system. */
export interface NameSources {
  /** The path of a hosts file, hosts(5). */
  readonly hostsFile?: string;
  /** Name servers, `address:port`. */
  readonly servers?: readonly string[];
  /** The lookup of the system, getaddrinfo. */
  readonly systemLookup?: Lookup;
  readonly monotonicMs?: () => number;
}

/**
 * Makes a lookup in which a slow name does not delay others. getaddrinfo, the lookup of the system,
 * occupies one of libuv's four threads, which file reads need too, until the name server responds:
 * a few names whose server is silent would delay all others. So this lookup reads the hosts file
 * and sends DNS queries without a thread, and leaves only names that both do not know to the
 * system, a few at a time. It caches addresses for their TTL, at most `nameTrustMsMax`. Rejects
 * with the error of the last source.
 */
export function createLookup({
  hostsFile = '/etc/hosts',
  servers,
  systemLookup = (hostname) => dns.lookup(hostname, { all: true }),
  monotonicMs = () => performance.now(),
}: NameSources = {}): Lookup {
  const known = createLruCache<Known>(namesRememberedMax);
  const pending = new Map<string, Promise<readonly ResolvedAddress[]>>();
  const hosts = new HostsFile(hostsFile, monotonicMs);
  const viaSystem = limited(systemLookup, systemLookupsMax);

  async function find(hostname: string): Promise<readonly ResolvedAddress[]> {
    const listed = await hosts.find(hostname);
    if (listed.length > 0) return listed;
    const answer = await queryServers(hostname, servers);
    if (answer === 'silent') throw noServerError(hostname);
    if (answer === 'unknown') return viaSystem(hostname);
    known.set(hostname, { found: answer.found, untilMs: monotonicMs() + answer.trustMs });
    return answer.found;
  }

  return (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, '');
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

interface Known {
  readonly found: readonly ResolvedAddress[];
  readonly untilMs: number;
}

/**
 * Queries name servers: resolves to addresses, to `unknown` for a name without any, or to `silent`
 * if no server responded in time.
 */
async function queryServers(
  hostname: string,
  servers: readonly string[] | undefined,
): Promise<
  { readonly found: readonly ResolvedAddress[]; readonly trustMs: number } | 'unknown' | 'silent'
> {
  // A new resolver uses the current name servers of the system.
  const resolver = new dns.Resolver({ timeout: nameTryMs, tries: nameTriesMax });
  if (servers !== undefined) resolver.setServers(servers);
  const records: RecordWithTtl[] = [];
  const errors: unknown[] = [];
  const query = async (type: 'resolve4' | 'resolve6'): Promise<void> => {
    try {
      records.push(...(await resolver[type](hostname, { ttl: true })));
    } catch (error) {
      errors.push(error);
      throw error;
    }
  };
  const both = [query('resolve4'), query('resolve6')] as const;
  // When the addresses of one family are known, those of the other get little time (RFC 8305 §3).
  await Promise.any(both).then(
    () => Promise.race([Promise.allSettled(both), delay(otherFamilyMs)]),
    () => undefined,
  );
  if (records.length === 0) return errors.some(isTimeout) ? 'silent' : 'unknown';
  const ttlMs = Math.min(...records.map(({ ttl }) => ttl)) * 1000;
  return {
    found: records.map(({ address }) => ({ address, family: isIP(address) })),
    trustMs: Math.max(nameTrustMsMin, Math.min(ttlMs, nameTrustMsMax)),
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ETIMEOUT';
}

function noServerError(hostname: string): Error {
  return Object.assign(new Error(`no name server answers for ${hostname}`), { code: 'EAI_AGAIN' });
}

/** The names of a hosts file, hosts(5), which is read again after `hostsTrustMs`. */
class HostsFile {
  readonly #file: string;
  readonly #monotonicMs: () => number;
  #read: Promise<ReadonlyMap<string, readonly ResolvedAddress[]>> | undefined;
  #readMs = -Infinity;

  constructor(file: string, monotonicMs: () => number) {
    this.#file = file;
    this.#monotonicMs = monotonicMs;
  }

  async find(hostname: string): Promise<readonly ResolvedAddress[]> {
    const nowMs = this.#monotonicMs();
    if (this.#read === undefined || nowMs - this.#readMs > hostsTrustMs) {
      this.#readMs = nowMs;
      this.#read = readFile(this.#file, 'utf8').then(parseHosts, () => new Map());
    }
    return (await this.#read).get(hostname) ?? [];
  }
}

function parseHosts(text: string): ReadonlyMap<string, readonly ResolvedAddress[]> {
  const byName = new Map<string, ResolvedAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((one) => one.toLowerCase())) {
      byName.set(name, [...(byName.get(name) ?? []), { address, family }]);
    }
  }
  return byName;
}

/** Limits the concurrent calls of a lookup. Further calls wait in a queue. */
function limited(lookup: Lookup, concurrentMax: number): Lookup {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (hostname) => {
    if (running >= concurrentMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await lookup(hostname);
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
