import { type KeyObject, X509Certificate, createPrivateKey } from 'node:crypto';
import { readText } from './files.ts';
import { certificateBytesMax } from './limits.ts';
import type { Refused } from './values.ts';

const rsaBitsMin = 2_048;

/** A certificate with its chain and its private key, for TLS. */
export interface KeyPair {
  /** PEM: the certificate, then its issuers. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  readonly certificate: X509Certificate;
}

/** Why two files are not a pair, as the end of a sentence, and which file is wrong. */
export interface RefusedPair extends Refused {
  readonly key: 'cert' | 'key';
}

const pemBegin = '-----BEGIN CERTIFICATE-----';
const pemEnd = '-----END CERTIFICATE-----';

/**
 * Reads a certificate and its private key from two PEM files (RFC 7468), which may be the same
 * file. Refuses a pair with which no TLS handshake could succeed.
 */
export async function readKeyPair(files: {
  readonly certFile: string;
  readonly keyFile: string;
}): Promise<KeyPair | RefusedPair> {
  const limit = { bytesMax: certificateBytesMax };
  const cert = await readText(files.certFile, limit);
  if ('refused' in cert) return { ...cert, key: 'cert' };
  const key = await readText(files.keyFile, limit);
  if ('refused' in key) return { ...key, key: 'key' };
  return parseKeyPair(cert.text, key.text);
}

/** Reads the certificates of a PEM file, which must contain at least one. */
export async function readCaCertificates(
  file: string,
): Promise<{ readonly pem: string } | Refused> {
  const read = await readText(file, { bytesMax: certificateBytesMax });
  if ('refused' in read) return { refused: read.refused };
  const first = parseChain(read.text);
  return 'refused' in first ? first : { pem: read.text };
}

/** Reads a certificate and its private key from two PEM texts; refuses as readKeyPair does. */
export function parseKeyPair(cert: string, key: string): KeyPair | RefusedPair {
  const certificate = parseChain(cert);
  if ('refused' in certificate) return { key: 'cert', refused: certificate.refused };
  const privateKey = parseKey(key);
  if ('refused' in privateKey) return { key: 'key', refused: privateKey.refused };
  if (!certificate.checkPrivateKey(privateKey)) {
    return { key: 'key', refused: 'is not the key of the first certificate in `cert`' };
  }
  return { cert, key, certificate };
}

/** The first certificate of a PEM text; all certificates in it must be valid. */
function parseChain(text: string): X509Certificate | Refused {
  const blocks = text
    .split(pemBegin)
    .slice(1)
    .filter((block) => block.includes(pemEnd))
    .map((block) => pemBegin + block.slice(0, block.indexOf(pemEnd)) + pemEnd);
  try {
    const [first] = blocks.map((block) => new X509Certificate(block));
    return first ?? { refused: 'does not contain a PEM certificate' };
  } catch {
    return { refused: 'contains a malformed certificate' };
  }
}

function parseKey(text: string): KeyObject | Refused {
  if (!text.includes('PRIVATE KEY-----')) return { refused: 'does not contain a PEM private key' };
  // The mode of the file protects the key. A passphrase is not supported, because no operator could
  // type it at a restart.
  if (text.includes('ENCRYPTED')) return { refused: 'is encrypted: save it without a passphrase' };
  try {
    const key = createPrivateKey(text);
    const { modulusLength = rsaBitsMin } = key.asymmetricKeyDetails ?? {};
    if (modulusLength >= rsaBitsMin) return key;
    return {
      refused: `has ${modulusLength} bits, fewer than the ${rsaBitsMin} that clients require`,
    };
  } catch {
    return { refused: 'contains a malformed private key' };
  }
}
