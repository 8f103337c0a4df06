import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import type { JWKSMultipleMatchingKeys } from 'jose/errors';
import { isUrl } from '../../core/config/addresses.ts';
import type { Config } from '../../core/config/config.ts';
import { jwksBytesMax } from '../../core/config/limits.ts';
import { LoadedFile } from '../../core/config/loaded-file.ts';
import type { User } from '../../core/http/visitor.ts';
import { createDialler } from '../../core/outbound/dialler.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { isJsonObject } from '../../core/values/json/json.ts';
import { loadJose } from '../../core/values/lazy-packages.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { KIB } from '../../core/values/units.ts';
import { type KeySet, createRemoteKeySet, fetchJwks, keysUnknown } from './jwks.ts';
import { userNameCharactersMax, userRolesMax } from './limits.ts';

/** How long fetching a key set (RFC 7517 §5) may take. */
const jwksTimeoutMs = 5_000;

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
  if (typeof name !== 'string' || !isUserName(name)) return undefined;
  const verified = claimAt(payload, verifiedClaim(userClaim));
  if (verified !== undefined && verified !== true) return undefined;
  return { name, roles: rolesFrom(claimAt(payload, rolesClaim)) };
}

/**
 * Whether a text can name a user everywhere: a control character, half of a surrogate pair, or a
 * blank at its ends gets lost in fields and texts, so that it would be the name of another user.
 */
function isUserName(name: string): boolean {
  const hasLength = name !== '' && name.length <= userNameCharactersMax;
  return hasLength && name.isWellFormed() && name.trim() === name && !/\p{Cc}/u.test(name);
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

/** The token verifier of a configuration, with its connections and keys. */
interface TokenService extends TokenVerifier {
  close(): Promise<void>;
}

/** The clock and the log. */
interface ServiceOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
  /** As for a dialler. */
  readonly via?: string | undefined;
}

/** Creates the verifier that `[auth] jwt_…` configures; undefined without `jwt_jwks`. */
export function createTokenService(
  auth: Config['auth'],
  { now, log, via }: ServiceOptions,
): TokenService | undefined {
  const { jwtJwks, jwtIssuer, jwtAudience, jwtUser, jwtRoles } = auth;
  if (jwtJwks === undefined) return undefined;
  const { keys, close } = isUrl(jwtJwks)
    ? remoteKeys(new URL(jwtJwks), auth, { now, log, via })
    : localKeys(jwtJwks, { now, log });
  const tokens = createTokenVerifier({
    keys,
    rules: {
      issuer: jwtIssuer,
      audience: jwtAudience,
      userClaim: jwtUser,
      rolesClaim: jwtRoles,
    },
    now,
    refused: (error) => {
      // Debug level, because any client can send an invalid token.
      log.debug({ err: error }, 'A token is not valid. Its visitor is anonymous.');
    },
  });
  return { userOf: (token) => tokens.userOf(token), close };
}

interface ClosableKeys {
  readonly keys: KeySet;
  readonly close: () => Promise<void>;
}

function remoteKeys(
  url: URL,
  { allowPrivate }: Config['auth'],
  { now, log, via }: ServiceOptions,
): ClosableKeys {
  const dialler = createDialler({
    ...{ allowPrivate, via },
    connectTimeoutMs: jwksTimeoutMs,
    timeoutMs: jwksTimeoutMs,
  });
  const keys = createRemoteKeySet({
    fetchKeys: () => fetchJwks(dialler, url, { timeoutMs: jwksTimeoutMs }),
    now,
    failed: (error) => {
      const reason = reasonOf(error);
      log.warn(
        { reason },
        'Cannot fetch the keys of [auth] jwt_jwks. The previous keys stay valid for a day.',
      );
    },
  });
  return { keys, close: () => dialler.close() };
}

function localKeys(file: string, { now, log }: ServiceOptions): ClosableKeys {
  const loaded = new LoadedFile<JWTVerifyGetKey>({
    file,
    bytesMax: jwksBytesMax,
    read: (bytes) => loadJose().createLocalJWKSet(JSON.parse(bytes.toString()) as JSONWebKeySet),
    now,
    failed: (error) => {
      log.warn(
        { err: error },
        'Cannot read the keys of [auth] jwt_jwks. The server keeps the previous keys.',
      );
    },
  });
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    await loaded.prepare();
    if (loaded.value === undefined) throw keysUnknown();
    return loaded.value(header, token);
  };
  return { keys: { keyOf }, close: () => Promise.resolve() };
}
