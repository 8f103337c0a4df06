import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  Pkcs10CertificateRequest,
  type PublicKeyType,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A certificate and its key, both PEM. */
export interface IssuedPair {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority for a test, which its clients trust. */
export interface Authority {
  /** PEM, for the `ca` of a client. */
  readonly cert: string;
  /**
   * A certificate for names and addresses, valid from yesterday for a number of days; the first one
   * is its common name as well. `keyId` names the key of the issuer, in hexadecimal.
   */
  issue(
    names: readonly string[],
    more?: { days?: number; rsaBits?: number; keyId?: string; serial?: string },
  ): Promise<IssuedPair>;
  /** The same for the names and the key of a request (PKCS #10, DER); PEM. */
  sign(request: Uint8Array, more?: { days?: number }): Promise<string>;
}

const dayMs = 86_400_000;
const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Creates a certificate authority. */
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
  const certify = async (
    publicKey: PublicKeyType,
    names: readonly string[],
    { days, keyId, serial }: { days: number; keyId?: string; serial?: string },
  ) => {
    const cert = await X509CertificateGenerator.create({
      subject: `CN=${names[0] ?? ''}`,
      issuer: name,
      ...(serial !== undefined && { serialNumber: serial }),
      publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: p256,
      ...lifetime(days),
      extensions: [
        ...(keyId === undefined ? [] : [new AuthorityKeyIdentifierExtension(keyId)]),
        new SubjectAlternativeNameExtension(
          names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
        ),
      ],
    });
    return cert.toString('pem');
  };
  return {
    cert: root.toString('pem'),
    async sign(bytes, { days = 30 } = {}) {
      const request = new Pkcs10CertificateRequest(bytes);
      if (!(await request.verify())) throw new Error('the request is not signed by its key');
      const named = request.extensions.flatMap((one) =>
        one instanceof SubjectAlternativeNameExtension ? one.names.toJSON() : [],
      );
      return certify(
        request.publicKey,
        named.map(({ value }) => value),
        { days, keyId: 'a1b2c3d4' },
      );
    },
    async issue(names, { days = 30, rsaBits, ...more } = {}) {
      const algorithm = rsaBits === undefined ? p256 : rsa(rsaBits);
      const pair = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
      const cert = await certify(pair.publicKey, names, { days, ...more });
      const key = await webcrypto.subtle.exportKey('pkcs8', pair.privateKey);
      return { cert, key: PemConverter.encode(key, 'PRIVATE KEY') };
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
