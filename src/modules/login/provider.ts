import type { ClientAuth, ClientMetadata, Configuration } from 'openid-client';
import type { LoginConfig } from '../../core/config/config.ts';
import { SharedLimit, type Shares } from '../../core/fair/shared-limit.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { loadOpenIdClient } from './lazy-packages.ts';
import { claimAt, userIn, verifiedClaim } from '../visitors/tokens.ts';
import { providerClockToleranceSeconds, providerTimeoutMs } from './limits.ts';
import { providerFetch } from './provider-fetch.ts';
import { ownLoginName } from './section.ts';
import type { SignedIn } from './sessions.ts';

/** When the addresses of the provider are read again, and how soon after a failure. */
const discoveryFreshMs = 3_600_000;
const discoveryRetryMs = 5_000;

/** Requests to the provider at the same time; as many further sign-ins wait. */
export const providerRequestsMax = 64;

/** The least time between two log lines about the same trouble. */
const troubleLoggedMs = 5_000;

/** The random texts that tie the answer of the provider to a request. */
interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  /** The verifier of PKCE (RFC 7636). */
  readonly verifier: string;
}

/** The request with which a browser comes back: its address, and whether it has gone. */
interface Visiting {
  readonly address: string;
  readonly signal?: AbortSignal;
}

/** An OpenID Connect provider (OpenID Connect Core 1.0). */
export interface Provider {
  /** Makes the secrets of a sign-in, and the URL to which it sends the browser. */
  authorize(
    redirectUri: string,
  ): Promise<{ readonly secrets: SignInSecrets; readonly location: string }>;
  /**
   * The person whom the provider names, for the URL with which the browser comes back. Rejects with
   * `forbidden` if it names nobody, `invalid` for a code that is used up, `bad_gateway` for an
   * answer that cannot be trusted, and `unavailable` for none.
   */
  person(returned: URL, secrets: SignInSecrets, from: Visiting): Promise<SignedIn>;
  /** The URL that ends the session at the provider; undefined if it has none. */
  endSession(about: {
    readonly idToken: string | undefined;
    readonly returnTo: string;
  }): Promise<string | undefined>;
  /** The URL of the keys with which it signs. */
  jwksUri(): Promise<string>;
  /** Logs a trouble with the provider: one line in a while, however many requests meet it. */
  warn(about: object, message: string): void;
}

/** Creates a provider; it reads its addresses when it first needs them. */
export function createProvider({
  login,
  dialler,
  now,
  log,
}: {
  readonly login: LoginConfig;
  readonly dialler: () => Dialler;
  readonly now: () => number;
  readonly log: Log;
}): Provider {
  const fetch = providerFetch(dialler);
  const warn = seldom(now, (about, message) => {
    log.warn(about, `${sectionOf(login)} ${message}`);
  });
  const configuration = discovered({
    ...{ now, warn },
    discover: () => discover(login, fetch),
  });
  const requests = new SharedLimit(signIns);
  return {
    warn,
    async authorize(redirectUri) {
      const client = await configuration();
      const oidc = loadOpenIdClient();
      const secrets = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      };
      const location = oidc.buildAuthorizationUrl(client, {
        redirect_uri: redirectUri,
        scope: [...new Set(['openid', ...login.scopes])].join(' '),
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: 'S256',
      });
      return { secrets, location: location.href };
    },
    async person(returned, secrets, { address, signal }) {
      try {
        const ask = async (): Promise<SignedIn> =>
          personOf(await configuration(), returned, secrets, login);
        return await requests.run({ keyId: undefined, address }, ask, signal);
      } catch (error) {
        throw reportedFailure(error, { login, warn, log });
      }
    },
    async endSession({ idToken, returnTo }) {
      const client = await configuration();
      if (client.serverMetadata().end_session_endpoint === undefined) return undefined;
      return loadOpenIdClient().buildEndSessionUrl(client, {
        post_logout_redirect_uri: returnTo,
        ...(idToken !== undefined && { id_token_hint: idToken }),
      }).href;
    },
    async jwksUri() {
      const { jwks_uri: uri } = (await configuration()).serverMetadata();
      if (uri === undefined) throw new Error('the provider names no `jwks_uri`');
      return uri;
    },
  };
}

/** The sign-ins that ask a provider at the same time: it decides how long they take. */
const signIns: Shares = {
  what: 'people who sign in',
  limit: 'sign_ins',
  held: 'long',
  max: providerRequestsMax,
  waiting: { max: providerRequestsMax, ms: providerTimeoutMs },
  retryAfterSeconds: 5,
};

/** The section of a provider, in log lines. */
function sectionOf({ name }: Pick<LoginConfig, 'name'>): string {
  return name === ownLoginName ? '[login]' : `[login.${name}]`;
}

/** Reads the addresses of the provider (OpenID Connect Discovery 1.0 §4). */
function discover(
  { issuer, clientId, clientSecret, clientAuth }: LoginConfig,
  fetch: ReturnType<typeof providerFetch>,
): Promise<Configuration> {
  const oidc = loadOpenIdClient();
  const isPlain = issuer.startsWith('http:');
  const auth = clientAuthentication(clientSecret, clientAuth);
  const client: Partial<ClientMetadata> = {
    [oidc.clockTolerance]: providerClockToleranceSeconds,
  };
  return oidc.discovery(new URL(issuer), clientId, client, auth, {
    [oidc.customFetch]: fetch,
    timeout: providerTimeoutMs / 1_000,
    // Without the checks, openid-client trusts TLS and does not verify the signature of ID tokens.
    // oxlint-disable-next-line typescript/no-deprecated -- only for a provider on this machine
    execute: [oidc.enableNonRepudiationChecks, ...(isPlain ? [oidc.allowInsecureRequests] : [])],
  });
}

function clientAuthentication(secret: string | undefined, how: 'basic' | 'post'): ClientAuth {
  const oidc = loadOpenIdClient();
  if (secret === undefined) return oidc.None();
  return how === 'basic' ? oidc.ClientSecretBasic(secret) : oidc.ClientSecretPost(secret);
}

/**
 * Keeps the addresses of the provider for an hour, and the previous ones while they cannot be read
 * again. After a failure it waits a while, and throws `unavailable` meanwhile.
 */
function discovered({
  now,
  warn,
  discover: read,
}: {
  readonly now: () => number;
  readonly warn: Provider['warn'];
  readonly discover: () => Promise<Configuration>;
}): () => Promise<Configuration> {
  let current: { readonly client: Configuration; readonly atMs: number } | undefined;
  let pending: Promise<void> | undefined;
  let failedMs = -Infinity;
  const refresh = async (): Promise<void> => {
    try {
      current = { client: await read(), atMs: now() };
      failedMs = -Infinity;
    } catch (error) {
      failedMs = now();
      warn({ reason: reasonOf(error) }, 'Cannot read the configuration of the issuer.');
    } finally {
      pending = undefined;
    }
  };
  return async () => {
    const isStale = current === undefined || Math.abs(now() - current.atMs) >= discoveryFreshMs;
    if (isStale && Math.abs(now() - failedMs) >= discoveryRetryMs) pending ??= refresh();
    if (current === undefined) await pending;
    if (current === undefined) throw unavailable('The server for signing in does not answer.');
    return current.client;
  };
}

/** Exchanges the code for tokens, verifies them, and reads the person's claims. */
async function personOf(
  client: Configuration,
  returned: URL,
  { state, nonce, verifier }: SignInSecrets,
  login: LoginConfig,
): Promise<SignedIn> {
  const oidc = loadOpenIdClient();
  const tokens = await oidc.authorizationCodeGrant(client, returned, {
    ...{ expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier },
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (claims === undefined || tokens.id_token === undefined)
    throw new Error('there is no ID token');
  const named: JsonObject = { ...(claims as JsonObject) };
  const verified = verifiedClaim(login.user);
  const needed = [login.user, login.roles, ...(verified.length > 0 ? [verified] : [])];
  const isMissing = needed.some((path) => claimAt(named, path) === undefined);
  const hasMore = isMissing && client.serverMetadata().userinfo_endpoint !== undefined;
  const info = hasMore
    ? ((await oidc.fetchUserInfo(client, tokens.access_token, claims.sub)) as JsonObject)
    : {};
  const all = { ...info, ...named };
  const hasUser = claimAt(all, login.user) !== undefined;
  if (hasUser && verified.length > 0 && claimAt(all, verified) !== true) {
    throw new Failure('forbidden', 'The address of your account is not verified.');
  }
  const user = userIn(all, { userClaim: login.user, rolesClaim: login.roles });
  if (user === undefined) {
    throw new Failure('forbidden', `Your account has no \`${login.user.join('.')}\`.`);
  }
  const { prefix } = login;
  return {
    ...{ user: prefix + user.name, roles: user.roles.map((role) => prefix + role) },
    ...{ subject: claims.sub, idToken: tokens.id_token },
    providerSession: typeof claims.sid === 'string' ? claims.sid : undefined,
  };
}

/** The failure for a person; logs its reason, as a warning if the operator can do something. */
function reportedFailure(
  error: unknown,
  {
    login,
    warn,
    log,
  }: { readonly login: LoginConfig; readonly warn: Provider['warn']; readonly log: Log },
): Failure {
  const { failure, isTrouble } = failureOf(error);
  const reason = reasonOf(error) + codeIn(error);
  if (isTrouble) warn({ reason }, 'A sign-in has failed.');
  else log.debug({ reason }, `${sectionOf(login)} A sign-in has ended without a user.`);
  return failure;
}

/** The failure for a person, and whether the operator should know its reason. */
function failureOf(error: unknown): { readonly failure: Failure; readonly isTrouble: boolean } {
  if (error instanceof Failure) {
    const isTrouble = error.code === 'forbidden';
    return { failure: isOfDialler(error) ? noAnswer(error) : error, isTrouble };
  }
  const { AuthorizationResponseError, ResponseBodyError } = loadOpenIdClient();
  if (error instanceof AuthorizationResponseError) {
    const message = `The server for signing in has not signed you in${codeIn(error)}.`;
    return { failure: new Failure('forbidden', message, { cause: error }), isTrouble: false };
  }
  if (error instanceof ResponseBodyError && error.error === 'invalid_grant') {
    return { failure: usedUp(error), isTrouble: false };
  }
  const cause = error instanceof Error ? error.cause : undefined;
  if (isTimeout(error) || (cause instanceof Failure && isOfDialler(cause))) {
    return { failure: noAnswer(error), isTrouble: true };
  }
  const message = 'The answer of the server for signing in is not valid.';
  return { failure: new Failure('bad_gateway', message, { cause: error }), isTrouble: true };
}

function isOfDialler({ code }: Failure): boolean {
  return code === 'bad_gateway' || code === 'gateway_timeout';
}

function isTimeout(error: unknown): boolean {
  const names = ['TimeoutError', 'AbortError'];
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  return code === 'OAUTH_TIMEOUT' || names.some((one) => one === name);
}

function noAnswer(cause: unknown): Failure {
  return unavailable('The server for signing in does not answer.', cause);
}

function unavailable(message: string, cause?: unknown): Failure {
  return new Failure('unavailable', message, { cause, retryAfterSeconds: 5 });
}

/** The failure of a sign-in that cannot be completed any more. */
export function usedUp(cause?: unknown): Failure {
  const message = 'This sign-in has ended, or began in another browser. Open the page again.';
  return new Failure('invalid', message, { cause });
}

/** The code of an answer in the form of RFC 6749 §5.2, as the end of a sentence. */
function codeIn(error: unknown): string {
  const code = (error as { readonly error?: unknown }).error;
  return typeof code === 'string' && /^[\w.-]{1,64}$/.test(code) ? ` (${code})` : '';
}

/** Calls `write` at most once in a while for each message. */
function seldom(now: () => number, write: Provider['warn']): Provider['warn'] {
  const written = new Map<string, number>();
  return (about, message) => {
    if (Math.abs(now() - (written.get(message) ?? -Infinity)) < troubleLoggedMs) return;
    written.set(message, now());
    write(about, message);
  };
}
