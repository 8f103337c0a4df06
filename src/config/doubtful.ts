import type { X509Certificate } from 'node:crypto';
import { certificateWarnMs } from './limits.ts';
import type { Certificate, Config } from './config.ts';
import { readKeyPair } from './key-pair.ts';
import { tlsSection } from './section.ts';

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
