import type { JWTPayload, JWTVerifyOptions } from 'jose';
import type { JWKSMultipleMatchingKeys } from 'jose/errors';
import type { User } from '../../core/http/visitor.ts';
import { isJsonObject } from '../../core/values/json/json.ts';
import { loadJose } from '../../core/values/lazy-packages.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { KIB } from '../../core/values/units.ts';
import type { KeySet } from './jwks.ts';
import { userNameCharactersMax, userRolesMax } from './limits.ts';

/** A user's token (RFC 7519), and verified tokens in memory. */
export const jwtCharactersMax = 8 * KIB;
const jwtRememberedMax = 4_096;

/** How long a verified token is valid without verification: its key may have been withdrawn. */
export const jwtTrustMs = 300_000;

/** How far the clock of a token's issuer may differ. */
const jwtClockToleranceSeconds = 30;

/** The most keys that the server tries for a token that does not name its key. */
const jwtKeysTriedMax = 8;

/** Verifies the tokens of users (JWT, RFC 7519). */
export interface TokenVerifier {
  /**
   * The user of a token; undefined for an invalid one. Never rejects. Returns no promise for a
   * token that was verified recently.
   */
  userOf(token: string): User | undefined | Promise<User | undefined>;
}

/** What a token must contain. */
export interface TokenRules {
  readonly issuer: string | undefined;
  readonly audience: string | undefined;
  /** The path of the claim with the user's name. */
  readonly userClaim: readonly string[];
  readonly rolesClaim: readonly string[];
}

/**
 * Asymmetric signatures only (RFC 8725 §3.1): with HS256, the key that verifies tokens
 * also signs them, and `none` has no signature.
 */
export const signatureAlgorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/**
 * Creates a verifier of the signature and expiry of tokens, and of issuer and audience if the rules
 * name them. It calls `refused` with the reason for each invalid token.
 */
export function createTokenVerifier({
  keys,
  rules,
  now,
  refused,
}: {
  readonly keys: KeySet;
  readonly rules: TokenRules;
  readonly now: () => number;
  readonly refused: (error: unknown) => void;
}): TokenVerifier {
  const known = createLruCache<VerifiedToken>(jwtRememberedMax);

  async function verify(token: string): Promise<User | undefined> {
    try {
      const payload = await verifyWithKeys(token, keys, optionsFor(rules, now()));
      const user = userIn(payload, rules);
      const untilMs = Math.min(now() + jwtTrustMs, Number(payload.exp) * 1_000);
      if (user !== undefined) known.set(token, { user, untilMs });
      return user;
    } catch (error) {
      refused(error);
      return undefined;
    }
  }

  return {
    userOf(token) {
      if (token.length > jwtCharactersMax) return undefined;
      const entry = known.get(token);
      if (entry !== undefined && now() < entry.untilMs) return entry.user;
      return verify(token);
    },
  };
}

interface VerifiedToken {
  readonly user: User;
  readonly untilMs: number;
}

function optionsFor({ issuer, audience }: TokenRules, nowMs: number): JWTVerifyOptions {
  return {
    algorithms: signatureAlgorithms,
    clockTolerance: jwtClockToleranceSeconds,
    currentDate: new Date(nowMs),
    // A token without expiry could never be revoked.
    requiredClaims: ['exp'],
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  };
}

async function verifyWithKeys(
  token: string,
  { keyOf }: KeySet,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  const { jwtVerify, JWKSMultipleMatchingKeys: Several } = loadJose();
  try {
    return (await jwtVerify(token, keyOf, options)).payload;
  } catch (error) {
    if (!(error instanceof Several)) throw error;
    return verifyWithEach(token, error, options);
  }
}

/** Tries each matching key for a token that names none. */
async function verifyWithEach(
  token: string,
  several: JWKSMultipleMatchingKeys,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  const { jwtVerify, JWSSignatureVerificationFailed } = loadJose();
  let tried = 0;
  for await (const key of several) {
    tried += 1;
    if (tried > jwtKeysTriedMax) break;
    try {
      return (await jwtVerify(token, key, options)).payload;
    } catch (error) {
      if (!(error instanceof JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new JWSSignatureVerificationFailed();
}

/**
 * The user that claims name, with its roles; undefined without a usable name, or if they say that
 * the address which names it is not verified.
 */
export function userIn(
  payload: JWTPayload,
  { userClaim, rolesClaim }: Pick<TokenRules, 'userClaim' | 'rolesClaim'>,
): User | undefined {
  const name = claimAt(payload, userClaim);
  if (typeof name !== 'string' || name === '' || name.length > userNameCharactersMax) {
    return undefined;
  }
  const verified = claimAt(payload, verifiedClaim(userClaim));
  if (verified !== undefined && verified !== true) return undefined;
  return { name, roles: rolesFrom(claimAt(payload, rolesClaim)) };
}

/**
 * The path of the claim that says whether the address at a path is verified (OpenID Connect Core
 * §5.1): beside it. Empty for a path to something else than an address.
 */
export function verifiedClaim(path: readonly string[]): readonly string[] {
  return path.at(-1) === 'email' ? path.with(-1, 'email_verified') : [];
}

/** The claim at the end of a path of names; undefined if there is none, or for an empty path. */
export function claimAt(payload: JWTPayload, path: readonly string[]): unknown {
  let at: unknown = path.length === 0 ? undefined : payload;
  for (const name of path) {
    if (!isJsonObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

/** A list of texts, or one text separated by spaces, like `scope` (RFC 8693 §4.2). */
function rolesFrom(claim: unknown): readonly string[] {
  const roles = typeof claim === 'string' ? claim.split(' ') : claim;
  if (!Array.isArray(roles)) return [];
  return roles
    .filter((role): role is string => typeof role === 'string' && role !== '')
    .slice(0, userRolesMax);
}
