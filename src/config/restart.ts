import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';
import { tlsSection } from './section.ts';

/**
 * Names the settings that differ between two configurations and that a running process cannot
 * change (docs/design/configuration.md#the-ini-file): where it listens, data, import, workers, TLS
 * files; as `[section] key`.
 */
export function restartNeeded(before: Config, after: Config): string[] {
  const changed: string[] = [];
  for (const key of ['listen', 'data', 'import', 'workers'] as const) {
    if (!isDeepStrictEqual(before.server[key], after.server[key])) changed.push(`[server] ${key}`);
  }
  const [old, recent] = [certificates(before), certificates(after)];
  for (const host of new Set([...old.keys(), ...recent.keys()])) {
    const section = tlsSection(host);
    const [one, other] = [old.get(host), recent.get(host)];
    if (one?.certFile !== other?.certFile) changed.push(`${section} cert`);
    if (one?.keyFile !== other?.keyFile) changed.push(`${section} key`);
  }
  return changed;
}

/**
 * What is in force after a reload: what needs a restart stays as it is, so that each later reload
 * is held against that.
 */
export function configInForce(before: Config, after: Config): Config {
  const { listen, data, workers, import: imported } = before.server;
  return {
    ...after,
    server: { ...after.server, listen, data, workers, import: imported },
    tls: tlsInForce(before.tls, after.tls),
  };
}

/**
 * What is in force of [tls] after a reload: the files of before, and what is new of all else. A
 * host that had its certificate from an ACME server goes on so until its files are in force.
 */
export function tlsInForce(before: Config['tls'], after: Config['tls']): Config['tls'] {
  const waiting = before.acme.hosts.filter((host) =>
    after.certificates.some((certificate) => certificate.host === host),
  );
  return {
    ...after,
    certificates: before.certificates,
    acme: { ...after.acme, hosts: [...after.acme.hosts, ...waiting] },
  };
}

function certificates({ tls }: Config) {
  return new Map(tls.certificates.map((certificate) => [certificate.host, certificate]));
}
