import type { JWTPayload, JWTVerifyOptions } from 'jose';
import { JWKSMultipleMatchingKeys, JWSSignatureVerificationFailed } from 'jose/errors';
import { jwtVerify } from 'jose/jwt/verify';
import { isJsonObject } from '../model/json.ts';
import { jwtCharactersMax, jwtClockToleranceSeconds, jwtKeysTriedMax, jwtRememberedMax, jwtTrustMs, userNameCharactersMax, userRolesMax } from './limits.ts';
import { remembered } from '../model/remembered.ts';
import type { User } from '../model/visitor.ts';
import type { KeySet } from './jwks.ts';

/** Tells users by their tokens (JWT, RFC 7519). */
export interface Tokens {
  /**
   * The user of a token; undefined for one that is not valid. Never rejects, and needs no waiting
   * for a token that was seen a moment ago.
   */
  userOf(token: string): User | undefined | Promise<User | undefined>;
}

/** What a token is held against. */
export interface TokenRules {
  readonly issuer: string | undefined;
  readonly audience: string | undefined;
  /** Names on the way to the claim that holds the user's name. */
  readonly userClaim: readonly string[];
  readonly rolesClaim: readonly string[];
}

/**
 * Signatures by a private key only: who can verify a token must not be able to make one (RFC 8725
 * §3.1). `none` and every HS are out of the question.
 */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/**
 * Makes the verification of tokens: signature, expiry, and issuer and audience where the rules name
 * them. `refused` is told why a token is not valid.
 */
export function createTokens({
  keys,
  rules,
  now,
  refused,
}: {
  readonly keys: KeySet;
  readonly rules: TokenRules;
  readonly now: () => number;
  readonly refused: (error: unknown) => void;
}): Tokens {
  const known = remembered<Known>(jwtRememberedMax);

  async function verify(token: string): Promise<User | undefined> {
    try {
      const payload = await verified(token, keys, optionsFor(rules, now()));
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

interface Known {
  readonly user: User;
  readonly untilMs: number;
}

function optionsFor({ issuer, audience }: TokenRules, nowMs: number): JWTVerifyOptions {
  return {
    algorithms,
    clockTolerance: jwtClockToleranceSeconds,
    currentDate: new Date(nowMs),
    // What never expires could never be taken back.
    requiredClaims: ['exp'],
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  };
}

async function verified(
  token: string,
  { keyOf }: KeySet,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keyOf, options)).payload;
  } catch (error) {
    if (!(error instanceof JWKSMultipleMatchingKeys)) throw error;
    return firstVerified(token, error, options);
  }
}

/** A token that names no key is held against each that may be its own. */
async function firstVerified(
  token: string,
  several: JWKSMultipleMatchingKeys,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
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

function userIn(payload: JWTPayload, { userClaim, rolesClaim }: TokenRules): User | undefined {
  const name = claimAt(payload, userClaim);
  if (typeof name !== 'string' || name === '' || name.length > userNameCharactersMax) {
    return undefined;
  }
  return { name, roles: rolesFrom(claimAt(payload, rolesClaim)) };
}

function claimAt(payload: JWTPayload, path: readonly string[]): unknown {
  let at: unknown = payload;
  for (const name of path) {
    if (!isJsonObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

/** A list of texts, or one text with spaces between them, as `scope` has it (RFC 8693 §4.2). */
function rolesFrom(claim: unknown): readonly string[] {
  const roles = typeof claim === 'string' ? claim.split(' ') : claim;
  if (!Array.isArray(roles)) return [];
  return roles
    .filter((role): role is string => typeof role === 'string' && role !== '')
    .slice(0, userRolesMax);
}
