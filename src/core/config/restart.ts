import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';
import { configFieldName } from './ini-key.ts';
import { moduleRestarts, modulesAfterReload } from './module-sections.ts';
import { sections } from './schema.ts';
import { tlsSection } from './section.ts';

/**
 * The settings that differ between two configurations but need a restart
 * (docs/design/configuration.md#reloading), as `[section] key`: listen, data, import, workers,
 * the names of TLS files, the cluster, and the node if it follows a centre.
 */
export function restartNeeded(before: Config, after: Config): string[] {
  const changed: string[] = [];
  for (const key of ['listen', 'data', 'import', 'workers'] as const) {
    if (!isDeepStrictEqual(before.server[key], after.server[key])) changed.push(`[server] ${key}`);
  }
  for (const [key, iniKey] of Object.entries(sections.node)) {
    // Without a centre, role and name are only read when a hook is delivered.
    if (before.node.central === undefined && after.node.central === undefined) break;
    const field = configFieldName(key, iniKey) as keyof Config['node'];
    if (field === 'place' || before.node[field] === after.node[field]) continue;
    changed.push(`[node] ${key}`);
  }
  for (const [key, iniKey] of Object.entries(sections.cluster)) {
    const field = configFieldName(key, iniKey) as keyof Config['cluster'];
    if (isDeepStrictEqual(before.cluster[field], after.cluster[field])) continue;
    changed.push(`[cluster] ${key}`);
  }
  const [old, recent] = [certificates(before), certificates(after)];
  for (const host of new Set([...old.keys(), ...recent.keys()])) {
    const section = tlsSection(host);
    const [one, other] = [old.get(host), recent.get(host)];
    if (one?.certFile !== other?.certFile) changed.push(`${section} cert`);
    if (one?.keyFile !== other?.keyFile) changed.push(`${section} key`);
  }
  return [...changed, ...moduleRestarts(before.modules, after.modules)];
}

/**
 * The configuration in use after a reload: settings that need a restart keep their old values, with
 * which the next reload is compared.
 */
export function configAfterReload(before: Config, after: Config): Config {
  const { listen, data, workers, import: imported } = before.server;
  return {
    ...after,
    server: { ...after.server, listen, data, workers, import: imported },
    tls: tlsAfterReload(before.tls, after.tls),
    node: nodeAfterReload(before.node, after.node),
    cluster: before.cluster,
    modules: modulesAfterReload(before.modules, after.modules),
  };
}

/** Only the place of a node that follows a centre can change while it runs. */
function nodeAfterReload(before: Config['node'], after: Config['node']): Config['node'] {
  const follows = before.central !== undefined || after.central !== undefined;
  return follows ? { ...before, place: after.place } : after;
}

/**
 * The part of [tls] in use after a reload: the old certificate files, and the new values of all
 * other keys. A host with a certificate from an ACME server keeps it until the restart that uses
 * its new files.
 */
export function tlsAfterReload(before: Config['tls'], after: Config['tls']): Config['tls'] {
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
