import type { X509Certificate } from 'node:crypto';
import { narrowPathWarnings } from '../../modules/access/narrow-paths.ts';
import { servicePath } from '../values/path.ts';
import type { Certificate, Config } from './config.ts';
import { readKeyPair } from './key-pair.ts';
import { tlsSection } from './section.ts';

/** How long before the end of a certificate the server begins to log a warning. */
const certificateWarnMs = 14 * 86_400_000;

/** Warnings about valid settings that have no effect, or less than it seems; a sentence each. */
export function ineffectiveSettings(config: Config): readonly string[] {
  const { server, access, disk, auth, geo, log, login, logins, node, tls } = config;
  const found: string[] = [];
  // The server also trusts a proxy that connects by a unix socket.
  const trustsNoProxy =
    server.trustProxy.length === 0 && server.listen.every(({ kind }) => kind !== 'unix');
  if (trustsNoProxy) {
    const proxyFields = {
      '[auth] user_header': auth.userHeader,
      '[auth] roles_header': auth.rolesHeader,
      '[geo] country_header': geo.countryHeader,
      '[geo] region_header': geo.regionHeader,
      '[geo] city_header': geo.cityHeader,
    };
    for (const [name, field] of Object.entries(proxyFields)) {
      if (field === undefined) continue;
      found.push(
        `${name} has no effect: only a proxy may set it, and [server] trust_proxy names none.`,
      );
    }
  }
  if (tls.hsts !== undefined && !server.listen.some(isTls)) {
    found.push('[tls] hsts has no effect: it is sent over TLS only, and no `listen` uses TLS.');
  }
  if (!server.listen.some(isTls)) {
    for (const { name, clientCertificate } of access) {
      if (clientCertificate === undefined) continue;
      found.push(`[access.${name}] client_certificate lets nobody in: no \`listen\` uses TLS.`);
    }
  }
  if (log.file !== undefined && !log.access) {
    found.push('[log] file has no effect: it is the file of the access log, and `access` is no.');
  }
  for (const { name, issuer, consoleRoles } of [{ ...login, name: undefined }, ...logins]) {
    const isUsed = issuer !== undefined && node.central === undefined;
    if (consoleRoles.length === 0 || isUsed) continue;
    const why = issuer === undefined ? 'there is no issuer' : 'this node follows a centre';
    const section = name === undefined ? 'login' : `login.${name}`;
    found.push(`[${section}] console_roles has no effect: ${why}.`);
  }
  found.push(...narrowPathWarnings(config));
  found.push(...disk.flatMap(({ fileWarnings }) => fileWarnings));
  for (const { name, path } of disk) {
    if (servicePath(path, server.base) === undefined) continue;
    found.push(`[disk.${name}] has no effect: Waymark itself answers all of ${server.base}/svc1.`);
  }
  return found;
}

function isTls(listen: Config['server']['listen'][number]): boolean {
  return listen.kind === 'tcp' && listen.scheme === 'https';
}

/** A warning about a certificate that can be loaded. */
interface CertificateWarning {
  /** Whether it has expired, so that every client rejects it. */
  readonly isExpired: boolean;
  readonly message: string;
}

/**
 * Warnings about a certificate that clients reject, or soon will: it has expired, expires within
 * two weeks (within a sixth of its validity, if that is less), is not valid yet, or does not cover
 * the host of its section (RFC 9525).
 */
export function certificateWarnings(
  { host, section = tlsSection(host) }: Pick<Certificate, 'host'> & { readonly section?: string },
  certificate: X509Certificate,
  nowMs: number,
): readonly CertificateWarning[] {
  const what = `The certificate of ${section}`;
  const { validToDate, validFromDate } = certificate;
  const until = validToDate.toISOString();
  const leftMs = validToDate.getTime() - nowMs;
  const lifeMs = validToDate.getTime() - validFromDate.getTime();
  const warnings: CertificateWarning[] = [];
  if (leftMs <= 0) warnings.push({ isExpired: true, message: `${what} expired on ${until}.` });
  else if (leftMs < Math.min(certificateWarnMs, lifeMs / 6))
    warnings.push({ isExpired: false, message: `${what} expires on ${until}.` });
  if (validFromDate.getTime() > nowMs) {
    warnings.push({
      isExpired: false,
      message: `${what} is not valid before ${validFromDate.toISOString()}.`,
    });
  }
  const sample = host?.replace(/^\*/, 'www');
  if (sample !== undefined && certificate.checkHost(sample, { subject: 'never' }) === undefined) {
    warnings.push({
      isExpired: false,
      message: `${what} does not cover ${host}: browsers reject it.`,
    });
  }
  return warnings;
}

/** Warnings about all certificates of a configuration, a sentence each. */
export async function allCertificateWarnings(
  { tls }: Config,
  nowMs: number,
): Promise<readonly string[]> {
  const pairs = tls.certificates.map(async (files) => {
    const pair = await readKeyPair(files);
    return 'refused' in pair ? [] : certificateWarnings(files, pair.certificate, nowMs);
  });
  return (await Promise.all(pairs)).flat().map(({ message }) => message);
}
