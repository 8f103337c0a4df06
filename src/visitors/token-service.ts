import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { JWKSNoMatchingKey } from 'jose/errors';
import { createLocalJWKSet } from 'jose/jwks/local';
import { isUrl } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import { jwksBytesMax } from '../model/limits.ts';
import { jwksTimeoutMs } from './limits.ts';
import { reasonOf, type Log } from '../observability/log.ts';
import { createDialler } from '../outbound/dialler.ts';
import { createKeySet, fetchJwks, type KeySet } from './jwks.ts';
import { LoadedFile } from './loaded-file.ts';
import { createTokens, type Tokens } from './tokens.ts';

/** The verification of tokens under a configuration, with what has to be closed afterwards. */
interface TokenService extends Tokens {
  close(): Promise<void>;
}

/** What the verification of tokens needs of its surroundings. */
interface Surroundings {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/** Makes what `[auth] jwt_…` asks for; undefined where there is no `jwt_jwks`. */
export function createTokenService(
  auth: Config['auth'],
  { now, log }: Surroundings,
): TokenService | undefined {
  const { jwtJwks, jwtIssuer, jwtAudience, jwtUser, jwtRoles } = auth;
  if (jwtJwks === undefined) return undefined;
  const { keys, close } = isUrl(jwtJwks)
    ? keysAt(new URL(jwtJwks), auth, { now, log })
    : keysIn(jwtJwks, { now, log });
  const tokens = createTokens({
    keys,
    rules: {
      issuer: jwtIssuer,
      audience: jwtAudience,
      userClaim: jwtUser,
      rolesClaim: jwtRoles,
    },
    now,
    refused: (error) => {
      // Anybody can send a token that is none: nothing that everybody has to read.
      log.debug({ err: error }, 'A token is not valid: whoever sent it is nobody in particular.');
    },
  });
  return { userOf: (token) => tokens.userOf(token), close };
}

interface OpenKeys {
  readonly keys: KeySet;
  readonly close: () => Promise<void>;
}

function keysAt(url: URL, { allowPrivate }: Config['auth'], { now, log }: Surroundings): OpenKeys {
  const dialler = createDialler({
    allowPrivate,
    connectTimeoutMs: jwksTimeoutMs,
    timeoutMs: jwksTimeoutMs,
  });
  const keys = createKeySet({
    fetchKeys: () => fetchJwks(dialler, url, { timeoutMs: jwksTimeoutMs }),
    now,
    failed: (error) => {
      const reason = reasonOf(error);
      log.warn({ reason }, 'The keys of [auth] jwt_jwks could not be fetched.');
    },
  });
  return { keys, close: () => dialler.close() };
}

function keysIn(file: string, { now, log }: Surroundings): OpenKeys {
  const loaded = new LoadedFile<JWTVerifyGetKey>({
    file,
    bytesMax: jwksBytesMax,
    read: (bytes) => createLocalJWKSet(JSON.parse(bytes.toString()) as JSONWebKeySet),
    now,
    failed: (error) => {
      log.warn(
        { err: error },
        'The keys in [auth] jwt_jwks cannot be used; former ones still hold.',
      );
    },
  });
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    await loaded.prepare();
    if (loaded.value === undefined) throw new JWKSNoMatchingKey('the keys are not known');
    return loaded.value(header, token);
  };
  return { keys: { keyOf }, close: () => Promise.resolve() };
}
