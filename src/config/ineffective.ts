import { servicePath } from '../model/path.ts';
import type { Config } from './config.ts';

/** Says, a sentence each, which settings of a configuration are valid and can have no effect. */
export function findIneffective({ server, disk, auth, geo, log, tls }: Config): readonly string[] {
  const found: string[] = [];
  // Whoever comes through a unix socket is believed as well.
  const isNobodyBelieved =
    server.trustProxy.length === 0 && server.listen.every(({ kind }) => kind !== 'unix');
  if (isNobodyBelieved) {
    const told = {
      '[auth] user_header': auth.userHeader,
      '[auth] roles_header': auth.rolesHeader,
      '[geo] country_header': geo.countryHeader,
      '[geo] region_header': geo.regionHeader,
      '[geo] city_header': geo.cityHeader,
    };
    for (const [name, field] of Object.entries(told)) {
      if (field === undefined) continue;
      found.push(
        `${name} has no effect: it is believed of proxies that [server] trust_proxy names.`,
      );
    }
  }
  if (tls.hsts !== undefined && !server.listen.some(isTls)) {
    found.push('[tls] hsts has no effect: it is sent over TLS, for which there is no `listen`.');
  }
  if (log.file !== undefined && !log.access) {
    found.push('[log] file has no effect: it is for the access log, and `access` is no.');
  }
  for (const { name, path } of disk) {
    if (servicePath(path, server.base) === undefined) continue;
    found.push(`[disk.${name}] has no effect: ${server.base}/svc1 is Waymark's own.`);
  }
  return found;
}

function isTls(listen: Config['server']['listen'][number]): boolean {
  return listen.kind === 'tcp' && listen.scheme === 'https';
}
