import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from 'jose';
import type { Cleaning } from '../../folder.ts';
import { httpSource } from '../../core/outbound/sources.ts';

/** An OpenID Connect provider whose person is always signed in, and which can go wrong. */
export interface TestProvider {
  readonly issuer: string;
  /** Claims of the person in the ID token. */
  claims: Record<string, unknown>;
  /** Claims that only the address of userinfo has. */
  info: Record<string, unknown>;
  /** Changes an answer of the provider before it is sent. */
  behave: Partial<Behaviour>;
  /** The paths that were requested. */
  readonly requests: string[];
  /** Signs any token as the provider does. */
  sign(claims: object, header?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Makes a new key, which replaces the one before. */
  rotate(): Promise<void>;
}

interface Behaviour {
  /** Seconds that its clock is ahead. */
  readonly clockSeconds: number;
  /** Whether it signs with a key that it does not publish. */
  readonly hasUnknownKey: boolean;
  /** The claims of the ID token, changed. */
  readonly idToken: (claims: JWTPayload) => JWTPayload;
  /** Whether it holds a path without an answer. */
  readonly holds: (path: string) => boolean;
  /** The answer to a path in place of its own: a status and a content. */
  readonly answers: (path: string) => readonly [number, string] | undefined;
  /** An error in place of a code. */
  readonly error: string;
}

interface Granted {
  readonly nonce: string | null;
  readonly challenge: string | null;
  readonly redirectUri: string;
}

const clientId = 'www';
const clientSecret = 'the secret / of the client';

/** The lines of `[login]` for a provider. */
export function loginIni({ issuer }: Pick<TestProvider, 'issuer'>, more = ''): string {
  return `
[login]
issuer = ${issuer}
client_id = ${clientId}
client_secret = "${clientSecret}"
user = preferred_username
${more}
`;
}

/** Starts a provider on the loopback. */
export async function startProvider(t: Cleaning): Promise<TestProvider> {
  const codes = new Map<string, Granted>();
  let keys = await newKeys('one');
  const unknown = await newKeys('one');
  const requests: string[] = [];
  const { origin } = await httpSource(t, (request, response) => {
    void answer(request, response);
  });
  const issuer = `${origin}/realm`;
  const provider: TestProvider = {
    issuer,
    claims: { sub: 'person-1', preferred_username: 'ann', roles: ['staff'], sid: 'session-1' },
    info: {},
    behave: {},
    requests,
    sign: (claims, header = {}) => signed(keys.privateKey, claims as JWTPayload, header),
    async rotate() {
      keys = await newKeys('two');
    },
  };

  async function signed(
    key: CryptoKey,
    claims: JWTPayload,
    header: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const { kid } = keys.jwk;
    return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid, ...header }).sign(key);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', origin);
    const path = url.pathname.replace('/realm', '');
    requests.push(path);
    if (provider.behave.holds?.(path) === true) return;
    const [status, content] = provider.behave.answers?.(path) ?? [200, undefined];
    if (content !== undefined) {
      response.writeHead(status, { 'content-type': 'application/json' }).end(content);
      return;
    }
    if (path === '/auth') {
      response.writeHead(302, { location: authorize(url.searchParams) }).end();
      return;
    }
    const result = path === '/token' ? await tokenOf(request) : documentOf(path);
    const failed = typeof result === 'string';
    response.writeHead(failed ? 400 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(failed ? { error: result } : result));
  }

  function documentOf(path: string): object | string {
    switch (path) {
      case '/.well-known/openid-configuration':
        return {
          issuer,
          authorization_endpoint: `${issuer}/auth`,
          token_endpoint: `${issuer}/token`,
          userinfo_endpoint: `${issuer}/userinfo`,
          jwks_uri: `${issuer}/jwks`,
          end_session_endpoint: `${issuer}/end`,
          id_token_signing_alg_values_supported: ['ES256'],
        };
      case '/jwks':
        return { keys: [keys.jwk] };
      case '/userinfo':
        return { sub: provider.claims.sub, ...provider.info };
      default:
        return 'not_found';
    }
  }

  function authorize(query: URLSearchParams): string {
    const redirectUri = query.get('redirect_uri') ?? '';
    const returned = new URL(redirectUri);
    returned.searchParams.set('state', query.get('state') ?? '');
    const { error } = provider.behave;
    if (error !== undefined) {
      returned.searchParams.set('error', error);
      return returned.href;
    }
    const code = randomUUID();
    const isRight = query.get('client_id') === clientId && query.get('response_type') === 'code';
    if (isRight && query.get('scope')?.split(' ').includes('openid') === true) {
      codes.set(code, {
        nonce: query.get('nonce'),
        challenge: query.get('code_challenge'),
        redirectUri,
      });
    }
    returned.searchParams.set('code', code);
    return returned.href;
  }

  async function tokenOf(request: IncomingMessage): Promise<object | string> {
    const form = new URLSearchParams(await text(request));
    if (!isClient(request.headers.authorization, form)) return 'invalid_client';
    const code = form.get('code') ?? '';
    const granted = codes.get(code);
    codes.delete(code);
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '');
    const isRight =
      granted?.challenge === verifier.digest('base64url') &&
      granted.redirectUri === form.get('redirect_uri');
    if (!isRight) return 'invalid_grant';
    const { clockSeconds = 0, hasUnknownKey = false, idToken = (one) => one } = provider.behave;
    const iat = Math.floor(Date.now() / 1_000) + clockSeconds;
    const { nonce } = granted;
    const claims = { iss: issuer, aud: clientId, iat, exp: iat + 60, nonce, ...provider.claims };
    const key = hasUnknownKey ? unknown.privateKey : keys.privateKey;
    return {
      access_token: randomUUID(),
      token_type: 'Bearer',
      id_token: await signed(key, idToken(claims)),
    };
  }

  return provider;
}

function isClient(authorization: string | undefined, form: URLSearchParams): boolean {
  if (form.get('client_secret') === clientSecret) return form.get('client_id') === clientId;
  const [, sent = ''] = /^Basic (.*)$/.exec(authorization ?? '') ?? [];
  const [id = '', secret = ''] = Buffer.from(sent, 'base64').toString().split(':');
  // RFC 6749 §2.3.1: both are encoded as in a form.
  const [decoded] = new URLSearchParams(`secret=${secret}`).values();
  return id === clientId && decoded === clientSecret;
}

async function newKeys(kid: string) {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'ES256' }, privateKey };
}
