import type { JWTPayload } from 'jose';
import type { LoginConfig } from '../../core/config/config.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import { reasonOf } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { isJsonObject } from '../../core/values/json/json.ts';
import { loadJose } from '../../core/values/lazy-packages.ts';
import { createRemoteKeySet, fetchJwks } from '../visitors/jwks.ts';
import { signatureAlgorithms } from '../visitors/tokens.ts';
import { providerClockToleranceSeconds, providerTimeoutMs } from './limits.ts';
import type { Provider } from './provider.ts';

/** The age of a logout token. */
const logoutTokenSeconds = 300;

/** Whose sessions the provider ends: those of a subject, or of one session there. */
interface LoggedOut {
  readonly subject: string | undefined;
  readonly providerSession: string | undefined;
}

/** Verifies a logout token; rejects with `invalid`. */
export type VerifyLogoutToken = (token: string) => Promise<LoggedOut>;

const event = 'http://schemas.openid.net/event/backchannel-logout';

/**
 * Creates the check of the tokens with which the provider ends sessions (OpenID Connect
 * Back-Channel Logout 1.0 §2.6). A token that is used again ends nothing that is still open then.
 */
export function createLogoutTokens(
  { issuer, clientId }: LoginConfig,
  {
    provider,
    dialler,
    now,
  }: {
    readonly provider: Provider;
    readonly dialler: () => Dialler;
    readonly now: () => number;
  },
): VerifyLogoutToken {
  const { keyOf } = createRemoteKeySet({
    fetchKeys: async () =>
      fetchJwks(dialler(), new URL(await provider.jwksUri()), { timeoutMs: providerTimeoutMs }),
    now,
    failed: (error) => {
      provider.warn({ reason: reasonOf(error) }, 'Cannot fetch the keys of the issuer.');
    },
  });
  return async (token) => {
    try {
      const { payload, protectedHeader } = await loadJose().jwtVerify(token, keyOf, {
        algorithms: signatureAlgorithms,
        issuer: [issuer, issuer.replace(/\/$/, ''), `${issuer}/`],
        audience: clientId,
        clockTolerance: providerClockToleranceSeconds,
        currentDate: new Date(now()),
        maxTokenAge: logoutTokenSeconds,
        requiredClaims: ['iat', 'exp', 'jti'],
      });
      // An ID token of the same provider must not end sessions.
      const { typ } = protectedHeader;
      if (typ !== undefined && !/^(?:application\/)?(?:logout\+)?jwt$/i.test(typ)) throw notOne();
      return loggedOut(payload);
    } catch (cause) {
      if (cause instanceof Failure) throw cause;
      throw new Failure('invalid', 'The logout token is not valid.', { cause });
    }
  };
}

function loggedOut({ events, nonce, sub, sid }: JWTPayload): LoggedOut {
  const isEvent = isJsonObject(events) && isJsonObject(events[event]);
  const providerSession = typeof sid === 'string' ? sid : undefined;
  const subject = typeof sub === 'string' ? sub : undefined;
  if (!isEvent || nonce !== undefined || (subject ?? providerSession) === undefined) throw notOne();
  return { subject, providerSession };
}

function notOne(): Failure {
  return new Failure('invalid', 'This token is no logout token.');
}
