import { isDeepStrictEqual } from 'node:util';
import { flattenedVerify, type FlattenedJWS, type JWK } from 'jose';

/** The key of an external account (RFC 8555 §7.3.4), in base64url. */
export interface Binding {
  readonly kid: string;
  readonly key: string;
}

/** Throws if a new account lacks the external account binding (RFC 8555 §7.3.4). */
export async function requireBinding(
  given: unknown,
  { binding, jwk, base }: { readonly binding: Binding; readonly jwk: JWK; readonly base: string },
): Promise<void> {
  const key = Buffer.from(binding.key, 'base64url');
  const bound = await flattenedVerify(given as FlattenedJWS, key, { algorithms: ['HS256'] });
  const { kid, url } = bound.protectedHeader as { readonly kid?: string; readonly url?: string };
  const isOurs = kid === binding.kid && url === `${base}/account`;
  if (!isOurs || !isDeepStrictEqual(JSON.parse(Buffer.from(bound.payload).toString()), jwk)) {
    throw new Error('the account is not bound');
  }
}
