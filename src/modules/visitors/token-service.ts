import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { isUrl } from '../../core/config/addresses.ts';
import type { Config } from '../../core/config/config.ts';
import { jwksBytesMax } from '../../core/config/limits.ts';
import { LoadedFile } from '../../core/config/loaded-file.ts';
import { createDialler } from '../../core/outbound/dialler.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { loadJose } from '../../core/values/lazy-packages.ts';
import { type KeySet, createRemoteKeySet, fetchJwks, keysUnknown } from './jwks.ts';
import { type TokenVerifier, createTokenVerifier } from './tokens.ts';

/** How long fetching a key set (RFC 7517 §5) may take. */
const jwksTimeoutMs = 5_000;

/** The token verifier of a configuration, with its connections and keys. */
interface TokenService extends TokenVerifier {
  close(): Promise<void>;
}

/** The clock and the log. */
interface ServiceOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/** Creates the verifier that `[auth] jwt_…` configures; undefined without `jwt_jwks`. */
export function createTokenService(
  auth: Config['auth'],
  { now, log }: ServiceOptions,
): TokenService | undefined {
  const { jwtJwks, jwtIssuer, jwtAudience, jwtUser, jwtRoles } = auth;
  if (jwtJwks === undefined) return undefined;
  const { keys, close } = isUrl(jwtJwks)
    ? remoteKeys(new URL(jwtJwks), auth, { now, log })
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
  { now, log }: ServiceOptions,
): ClosableKeys {
  const dialler = createDialler({
    allowPrivate,
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
