import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

/** An issuer of tokens. */
export interface Issuer {
  /** The public key, as a member of a JWK Set. */
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  /** A token that is valid for an hour from `nowMs`, unless its claims differ. */
  readonly sign: (claims?: Claims) => Promise<string>;
}

/** Further claims, and members of the header. */
export interface Claims {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly nowMs?: number;
  readonly header?: Readonly<Record<string, unknown>>;
}

/** Creates an issuer with a key; `kid` undefined for a key without an id. */
export async function newIssuer(kid: string | undefined, alg = 'ES256'): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(publicKey);
  return {
    jwk: { ...jwk, alg, use: 'sig', ...(kid !== undefined && { kid }) },
    privateKey,
    sign: ({ claims = {}, nowMs = Date.now(), header = {} } = {}) =>
      new SignJWT({ sub: 'ann', exp: Math.floor(nowMs / 1_000) + 3_600, ...claims })
        .setProtectedHeader({ alg, ...(kid !== undefined && { kid }), ...header })
        .sign(privateKey),
  };
}

/** A token with any header and claims, and without a valid signature. */
export function unsigned(header: object, claims: object, signature = ''): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(claims)}.${signature}`;
}
