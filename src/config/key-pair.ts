import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { certificateBytesMax, rsaBitsMin } from './limits.ts';
import { readText } from './files.ts';
import type { Refused } from './values.ts';

/** A certificate with its chain and the private key to it, as TLS wants them. */
export interface KeyPair {
  /** PEM: the certificate itself, then those that it was issued by. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  readonly certificate: X509Certificate;
}

/** Why two files are no pair, as the end of a sentence, and which of them is to blame. */
export interface RefusedPair extends Refused {
  readonly key: 'cert' | 'key';
}

const pemBegin = '-----BEGIN CERTIFICATE-----';
const pemEnd = '-----END CERTIFICATE-----';

/**
 * Reads a certificate and its private key from two PEM files (RFC 7468), which may be the same one;
 * refuses what no handshake could be made with.
 */
export async function readKeyPair(files: {
  readonly certFile: string;
  readonly keyFile: string;
}): Promise<KeyPair | RefusedPair> {
  const limit = { bytesMax: certificateBytesMax };
  const cert = await readText(files.certFile, limit);
  if ('refused' in cert) return { key: 'cert', refused: cert.refused };
  const key = await readText(files.keyFile, limit);
  if ('refused' in key) return { key: 'key', refused: key.refused };
  return parseKeyPair(cert.text, key.text);
}

/** Reads the certificates of a PEM file, of which there has to be one. */
export async function readAuthorities(file: string): Promise<{ readonly pem: string } | Refused> {
  const read = await readText(file, { bytesMax: certificateBytesMax });
  if ('refused' in read) return { refused: read.refused };
  const first = parseChain(read.text);
  return 'refused' in first ? first : { pem: read.text };
}

/** Reads a file with a key that an authority has given out, as it was: base64url, or base64. */
export async function readBindingKey(file: string): Promise<{ readonly key: string } | Refused> {
  const read = await readText(file, { bytesMax: certificateBytesMax });
  if ('refused' in read) return { refused: read.refused };
  const key = read.text.trim();
  return /^[\w+/-]{16,}={0,2}$/.test(key) ? { key } : { refused: 'holds no key in base64url' };
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

/** The first certificate of a PEM text, all of which have to be readable. */
function parseChain(text: string): X509Certificate | Refused {
  const blocks = text
    .split(pemBegin)
    .slice(1)
    .filter((block) => block.includes(pemEnd))
    .map((block) => pemBegin + block.slice(0, block.indexOf(pemEnd)) + pemEnd);
  try {
    const [first] = blocks.map((block) => new X509Certificate(block));
    return first ?? { refused: 'holds no certificate in PEM' };
  } catch {
    return { refused: 'holds a certificate that cannot be read' };
  }
}

function parseKey(text: string): KeyObject | Refused {
  if (!text.includes('PRIVATE KEY-----')) return { refused: 'holds no private key in PEM' };
  // What protects a file here is its mode: nobody is there to type a passphrase at a restart.
  if (text.includes('ENCRYPTED')) return { refused: 'is encrypted: write it without a passphrase' };
  try {
    const key = createPrivateKey(text);
    const { modulusLength = rsaBitsMin } = key.asymmetricKeyDetails ?? {};
    if (modulusLength >= rsaBitsMin) return key;
    return { refused: `has ${modulusLength} bits, fewer than the ${rsaBitsMin} that clients ask` };
  } catch {
    return { refused: 'holds a private key that cannot be read' };
  }
}
