import { constants } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { Certificate } from '../../config/config.ts';
import {
  parseKeyPair,
  readKeyPair,
  type KeyPair,
  type RefusedPair,
} from '../../config/key-pair.ts';
import { tlsSection } from '../../config/section.ts';
import { Failure } from '../../model/failure.ts';

/** A certificate of the ini file, or one that is got by ACME. */
export interface Held {
  readonly files: Certificate;
  readonly section: string;
  /** Whether it is got by ACME. */
  readonly isManaged: boolean;
  /** What is in use; undefined where nothing has been got so far. */
  current: InUse | undefined;
  problem: string | null;
}

/** A pair, and what handshakes are made with. */
interface InUse {
  readonly pair: KeyPair;
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
}

/**
 * TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only, as Mozilla's
 * intermediate list has them (and RFC 9113 §9.2.2 asks for); the client's preference counts, for it
 * knows whether it has AES in hardware.
 */
export const protocol: SecureContextOptions = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
  honorCipherOrder: false,
  // RFC 9113 §9.2.1; what it was for, TLS 1.3 has taken out.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
};

/**
 * Reads a certificate for the first time. Rejects with `invalid` where one of the ini file cannot
 * be used and nothing is in use of it; what ACME has not got yet is not there.
 */
export async function hold(files: Certificate, isManaged: boolean): Promise<Held> {
  const section = tlsSection(files.host);
  const now = await read(files);
  if (!('refused' in now)) return { files, section, isManaged, current: now, problem: null };
  if (isManaged) return { files, section, isManaged, current: undefined, problem: null };
  const { refused } = now;
  const before = files.inUse && using(parseKeyPair(files.inUse.cert, files.inUse.key));
  if (before !== undefined && !('refused' in before)) {
    return { files, section, isManaged, current: before, problem: `\`${now.key}\` ${refused}` };
  }
  throw new Failure('invalid', `The certificate of ${section}: ${fileOf(files, now)} ${refused}.`);
}

/** Reads a certificate and its key; refuses what no handshake could be made with. */
export async function read(files: Certificate): Promise<InUse | RefusedPair> {
  return using(await readKeyPair(files));
}

function using(pair: KeyPair | RefusedPair): InUse | RefusedPair {
  if ('refused' in pair) return pair;
  const options = { ...protocol, cert: pair.cert, key: pair.key };
  try {
    return { pair, options, context: createSecureContext(options) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'for no known reason';
    return { key: 'cert', refused: `is not taken by OpenSSL: ${reason}` };
  }
}

/** The file that is to blame. */
export function fileOf({ certFile, keyFile }: Certificate, { key }: RefusedPair): string {
  return key === 'cert' ? certFile : keyFile;
}

/** The names and addresses of a certificate (RFC 9525 §6.3), in its order. */
export function namesOf(current: InUse | undefined): readonly string[] {
  const listed = current?.pair.certificate.subjectAltName ?? '';
  return [...listed.matchAll(/(?:^|, )(DNS|IP Address):([^,"\s]+)/g)].map(
    ([, kind = '', name = '']) => (kind !== 'DNS' && name.includes(':') ? `[${name}]` : name),
  );
}
