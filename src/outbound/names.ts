import dns from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import type { RecordWithTtl } from 'node:dns';
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  hostsTrustMs,
  nameTriesMax,
  nameTrustMsMax,
  nameTrustMsMin,
  nameTryMs,
  namesRememberedMax,
  otherFamilyMs,
  systemLookupsMax,
} from './limits.ts';
import { createLruCache } from '../model/lru-cache.ts';

/** An address that a name leads to. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Where a name leads. */
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** What looking names up stands on; what is left out is the system's. */
export interface NameSources {
  /** The file of names that are known without asking. */
  readonly hostsFile?: string;
  /** Name servers, `address:port`. */
  readonly servers?: readonly string[];
  /** The system's own way, with all that it is configured to do. */
  readonly systemLookup?: Lookup;
  readonly monotonicMs?: () => number;
}

/**
 * Makes a lookup that lets no name wait for another. The system's own (getaddrinfo) holds a thread
 * of the process for each name until its name server answers, and there are four, which files are
 * read with as well: a few names whose server keeps silent would hold up all others. So the hosts
 * file is read and name servers are asked without a thread, and only what they do not know goes to
 * the system, a few names at a time. Answers are remembered as long as their servers say, a minute
 * at most. Rejects with the error of the last way that was tried.
 */
export function createLookup({
  hostsFile = '/etc/hosts',
  servers,
  systemLookup = (hostname) => dns.lookup(hostname, { all: true }),
  monotonicMs = () => performance.now(),
}: NameSources = {}): Lookup {
  const known = createLruCache<Known>(namesRememberedMax);
  const asked = new Map<string, Promise<readonly ResolvedAddress[]>>();
  const hosts = new HostsFile(hostsFile, monotonicMs);
  const viaSystem = limited(systemLookup, systemLookupsMax);

  async function find(hostname: string): Promise<readonly ResolvedAddress[]> {
    const listed = await hosts.find(hostname);
    if (listed.length > 0) return listed;
    const answer = await askServers(hostname, servers);
    if (answer === 'silent') throw silence(hostname);
    if (answer === 'unknown') return viaSystem(hostname);
    known.set(hostname, { found: answer.found, untilMs: monotonicMs() + answer.trustMs });
    return answer.found;
  }

  return (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, '');
    const remembered = known.get(name);
    if (remembered !== undefined && monotonicMs() < remembered.untilMs) {
      return Promise.resolve(remembered.found);
    }
    let answer = asked.get(name);
    if (answer === undefined) {
      answer = find(name).finally(() => asked.delete(name));
      asked.set(name, answer);
    }
    return answer;
  };
}

interface Known {
  readonly found: readonly ResolvedAddress[];
  readonly untilMs: number;
}

/** What name servers say: addresses, that there are none, or nothing in time. */
async function askServers(
  hostname: string,
  servers: readonly string[] | undefined,
): Promise<
  { readonly found: readonly ResolvedAddress[]; readonly trustMs: number } | 'unknown' | 'silent'
> {
  // A new one each time knows the name servers of this moment.
  const resolver = new dns.Resolver({ timeout: nameTryMs, tries: nameTriesMax });
  if (servers !== undefined) resolver.setServers(servers);
  const records: RecordWithTtl[] = [];
  const errors: unknown[] = [];
  const ask = async (type: 'resolve4' | 'resolve6'): Promise<void> => {
    try {
      records.push(...(await resolver[type](hostname, { ttl: true })));
    } catch (error) {
      errors.push(error);
      throw error;
    }
  };
  const both = [ask('resolve4'), ask('resolve6')] as const;
  // Where one family is known, the other one gets no more than a moment (RFC 8305 §3).
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

function silence(hostname: string): Error {
  return Object.assign(new Error(`no name server answers for ${hostname}`), { code: 'EAI_AGAIN' });
}

/** The names of a hosts file (hosts(5)), which is read again when it may have changed. */
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

/** A lookup of which no more than so many are under way; the others wait for their turn. */
function limited(lookup: Lookup, atOnceMax: number): Lookup {
  let underWay = 0;
  const waiting: (() => void)[] = [];
  return async (hostname) => {
    if (underWay >= atOnceMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else underWay += 1;
    try {
      return await lookup(hostname);
    } finally {
      const next = waiting.shift();
      if (next === undefined) underWay -= 1;
      else next();
    }
  };
}
