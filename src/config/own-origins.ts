import type { Config } from './config.ts';

/**
 * Whether an ini file says that an origin leads to its server: `listen`, `public_url`, a
 * `[tls.<host>]` or the origin of a mount names it. `listen` on all addresses names none.
 */
export function namesOrigin(
  { server, tls, disk }: Pick<Config, 'server' | 'tls' | 'disk'>,
  origin: string,
): boolean {
  if (origin === server.publicUrl || disk.some((mount) => mount.origin === origin)) return true;
  const { protocol, hostname, port } = new URL(origin);
  const isOverTls = protocol === 'https:';
  const listening = server.listen.some(
    (where) =>
      where.kind === 'tcp' &&
      (where.scheme === 'https') === isOverTls &&
      (where.host === hostname || isLoopback(hostname)) &&
      String(where.port) === (port || (isOverTls ? '443' : '80')),
  );
  const hosts = [...tls.certificates.flatMap(({ host }) => host ?? []), ...tls.acme.hosts];
  return listening || hosts.some((host) => covers(host, hostname));
}

function isLoopback(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/** Whether a `[tls.<host>]` is for a name: `*.example.com` is for one label more. */
function covers(host: string, hostname: string): boolean {
  if (!host.startsWith('*.')) return host === hostname;
  const dot = hostname.indexOf('.');
  return dot > 0 && hostname.slice(dot) === host.slice(1);
}
