import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A certificate and its key, both PEM. */
export interface IssuedPair {
  readonly cert: string;
  readonly key: string;
}

/** Somebody who issues certificates for a test, and whom its clients trust. */
export interface Authority {
  /** PEM, for the `ca` of a client. */
  readonly cert: string;
  /**
   * A certificate for names and addresses, valid from yesterday for a number of days; the first one
   * is its common name as well.
   */
  issue(names: readonly string[], more?: { days?: number; rsaBits?: number }): Promise<IssuedPair>;
}

const dayMs = 86_400_000;
const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Makes an authority of its own. */
export async function createAuthority(): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(p256, true, ['sign', 'verify']);
  const name = 'CN=Authority of a test';
  const root = await X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: p256,
    ...lifetime(30),
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
    ],
  });
  return {
    cert: root.toString('pem'),
    async issue(names, { days = 30, rsaBits } = {}) {
      const algorithm = rsaBits === undefined ? p256 : rsa(rsaBits);
      const pair = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
      const cert = await X509CertificateGenerator.create({
        subject: `CN=${names[0] ?? ''}`,
        issuer: name,
        publicKey: pair.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: p256,
        ...lifetime(days),
        extensions: [
          new SubjectAlternativeNameExtension(
            names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
          ),
        ],
      });
      const key = await webcrypto.subtle.exportKey('pkcs8', pair.privateKey);
      return { cert: cert.toString('pem'), key: PemConverter.encode(key, 'PRIVATE KEY') };
    },
  };
}

function rsa(modulusLength: number) {
  const publicExponent = Uint8Array.of(1, 0, 1);
  return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength, publicExponent } as const;
}

function lifetime(days: number): { readonly notBefore: Date; readonly notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - dayMs), notAfter: new Date(now + days * dayMs) };
}
