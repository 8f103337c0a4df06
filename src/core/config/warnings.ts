import type { X509Certificate } from 'node:crypto';
import type { Certificate, Config } from './config.ts';
import { tlsSection } from './core-sections.ts';
import { readKeyPair } from './key-pair.ts';

/** How long before the end of a certificate the server begins to log a warning. */
const certificateWarnMs = 14 * 86_400_000;

/** Warnings about valid settings that have no effect, or less than it seems; a sentence each. */
export function ineffectiveSettings(config: Config): readonly string[] {
  return config.sections.flatMap((section) => section.warnings?.(config) ?? []);
}

/** Warnings about fields that only a proxy may set, by their keys, while no proxy is trusted. */
export function untrustedFields(
  { server }: Config,
  fields: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  // The server also trusts a proxy that connects by a unix socket.
  const trustsProxy =
    server.trustProxy.length > 0 || server.listen.some(({ kind }) => kind === 'unix');
  return Object.entries(fields).flatMap(([name, field]) => {
    const why = 'only a proxy may set it, and [server] trust_proxy names none';
    return trustsProxy || field === undefined ? [] : [`${name} has no effect: ${why}.`];
  });
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
