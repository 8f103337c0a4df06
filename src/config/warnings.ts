import type { X509Certificate } from 'node:crypto';
import { servicePath } from '../model/path.ts';
import type { Certificate, Config } from './config.ts';
import { readKeyPair } from './key-pair.ts';
import { certificateWarnMs } from './limits.ts';
import { tlsSection } from './section.ts';

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

/** What is to be said of a certificate that can be used, as a sentence. */
interface Doubt {
  /** Whether every client refuses it by now. */
  readonly isOver: boolean;
  readonly said: string;
}

/**
 * What clients find wrong with a certificate, or soon will: that it has ended, ends within two
 * weeks, has not begun, or is not for the name that its section is for (RFC 9525).
 */
export function findDoubts(
  { host }: Pick<Certificate, 'host'>,
  certificate: X509Certificate,
  nowMs: number,
): readonly Doubt[] {
  const what = `The certificate of ${tlsSection(host)}`;
  const { validToDate, validFromDate } = certificate;
  const until = validToDate.toISOString();
  const leftMs = validToDate.getTime() - nowMs;
  const doubts: Doubt[] = [];
  if (leftMs <= 0) doubts.push({ isOver: true, said: `${what} has ended: ${until}.` });
  else if (leftMs < certificateWarnMs)
    doubts.push({ isOver: false, said: `${what} ends ${until}.` });
  if (validFromDate.getTime() > nowMs) {
    doubts.push({ isOver: false, said: `${what} begins only ${validFromDate.toISOString()}.` });
  }
  const sample = host?.replace(/^\*/, 'www');
  if (sample !== undefined && certificate.checkHost(sample, { subject: 'never' }) === undefined) {
    doubts.push({ isOver: false, said: `${what} is not for ${host}: browsers will refuse it.` });
  }
  return doubts;
}

/** What clients find wrong with the certificates of a configuration, a sentence each. */
export async function findDoubtful({ tls }: Config, nowMs: number): Promise<readonly string[]> {
  const pairs = tls.certificates.map(async (files) => {
    const pair = await readKeyPair(files);
    return 'refused' in pair ? [] : findDoubts(files, pair.certificate, nowMs);
  });
  return (await Promise.all(pairs)).flat().map(({ said }) => said);
}
