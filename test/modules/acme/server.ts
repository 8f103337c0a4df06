import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { json } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import {
  calculateJwkThumbprint,
  flattenedVerify,
  importJWK,
  type FlattenedJWS,
  type JWK,
} from 'jose';
import { createAuthority } from '../../certificates.ts';
import { requireBinding, type Binding } from './binding.ts';
import { askHttp, askTls } from './look.ts';

/** An error of the ACME server (RFC 8555 §6.7). */
export interface Refusal {
  readonly status: number;
  /** Below `urn:ietf:params:acme:error:`. */
  readonly type: string;
  readonly detail: string;
  readonly retryAfter?: string;
}

/** A small ACME server (RFC 8555), which expects every host on the loopback. */
export interface AcmeServer {
  readonly directory: string;
  /** PEM of the authority that has issued the certificate of the server. */
  readonly ca: string;
  /** Method and path of each request so far. */
  readonly requests: readonly string[];
  readonly orders: readonly {
    readonly host: string;
    readonly way: string | undefined;
    /** The certificate that it replaces, and its profile, if it names any. */
    readonly replaces: unknown;
    readonly profile: unknown;
  }[];
  /** The key authorizations of the challenges, which are secret. */
  readonly keyAuthorizations: readonly string[];
  readonly accounts: number;
}

/** Settings of an ACME server. It sends its challenges to the two ports. */
interface Given {
  readonly httpPort: number;
  readonly tlsPort: number;
  /** The challenges that it offers. */
  readonly offers?: readonly string[];
  /** The required external account binding; the key is in base64url. */
  readonly binding?: Binding;
  /** How long its certificates are valid. */
  readonly days?: number;
  /** The answer about the renewal of a certificate (RFC 9773); undefined for a server without. */
  readonly renewalInfo?: (certificateId: string) => object;
  /** The Retry-After of that answer. */
  readonly retryAfter?: string;
  /** The error for a request, by its path and count; undefined for an answer. */
  readonly refuse?: (
    path: string,
    count: number,
  ) => Refusal | 'silence' | undefined | Promise<undefined>;
}

interface Order {
  readonly host: string;
  readonly token: string;
  readonly replaces: unknown;
  readonly profile: unknown;
  status: 'pending' | 'ready' | 'valid' | 'invalid';
  way: string | undefined;
  error: object | undefined;
  pem: string;
}

interface Asked {
  readonly path: string;
  readonly jwk: JWK;
  readonly payload: Record<string, unknown>;
}

interface Reply {
  readonly status?: number;
  readonly body: object | string;
  readonly location?: string;
}

class RefusalError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}

/** Starts an ACME server for a test. */
export async function startAcmeServer(t: TestContext, given: Given): Promise<AcmeServer> {
  const authority = await createAuthority();
  const server = createServer(await authority.issue(['127.0.0.1']));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const acme = new Acme(`https://127.0.0.1:${port}`, authority, given);
  server.on('request', (message, response) => {
    void acme.answer(message, response);
  });
  return acme;
}

class Acme implements AcmeServer {
  readonly requests: string[] = [];
  readonly orders: Order[] = [];
  readonly keyAuthorizations: string[] = [];
  readonly #base: string;
  readonly #authority: Awaited<ReturnType<typeof createAuthority>>;
  readonly #given: Given;
  readonly #accounts = new Map<string, JWK>();
  readonly #nonces = new Set<string>();

  constructor(base: string, authority: Awaited<ReturnType<typeof createAuthority>>, given: Given) {
    this.#base = base;
    this.#authority = authority;
    this.#given = given;
  }

  get directory(): string {
    return `${this.#base}/dir`;
  }

  get ca(): string {
    return this.#authority.cert;
  }

  get accounts(): number {
    return this.#accounts.size;
  }

  async answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: path = '', method = '' } = message;
    this.requests.push(`${method} ${path}`);
    const nonce = randomUUID().replaceAll('-', '');
    this.#nonces.add(nonce);
    response.setHeader('Replay-Nonce', nonce);
    try {
      const count = this.requests.filter((one) => one.endsWith(` ${path}`)).length;
      const refusal = await this.#given.refuse?.(path, count);
      if (refusal === 'silence') return;
      if (refusal !== undefined) throw new RefusalError(refusal);
      const { status = 200, body, location } = await this.#reply(message, path);
      if (location !== undefined) response.setHeader('Location', this.#base + location);
      const { retryAfter } = this.#given;
      if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter);
      response.statusCode = status;
      const isText = typeof body === 'string';
      response.setHeader(
        'Content-Type',
        isText ? 'application/pem-certificate-chain' : 'application/json',
      );
      response.end(isText ? body : JSON.stringify(body));
    } catch (error) {
      const refusal: Refusal =
        error instanceof RefusalError
          ? error.refusal
          : { status: 500, type: 'serverInternal', detail: String(error) };
      const { status, type, detail, retryAfter } = refusal;
      response.statusCode = status;
      if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter);
      response.setHeader('Content-Type', 'application/problem+json');
      response.end(JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail, status }));
    }
  }

  async #reply(message: IncomingMessage, path: string): Promise<Reply> {
    if (path === '/dir') {
      const { renewalInfo } = this.#given;
      const named = {
        ...{ newNonce: '/nonce', newAccount: '/account', newOrder: '/order' },
        ...(renewalInfo && { renewalInfo: '/renewal-info' }),
      };
      return {
        body: Object.fromEntries(
          Object.entries(named).map(([name, below]) => [name, this.#base + below]),
        ),
      };
    }
    if (path === '/nonce') return { body: '' };
    const [, kind = '', id = ''] = path.split('/');
    if (kind === 'renewal-info') return { body: this.#given.renewalInfo?.(id) ?? {} };
    const asked = await this.#verify(message, path);
    if (kind === 'account') return this.#account(asked);
    if (path === '/order') return this.#newOrder(asked);
    const order = this.orders[Number(id)];
    if (order === undefined) {
      throw new RefusalError({ status: 404, type: 'malformed', detail: 'no such order' });
    }
    if (kind === 'challenge') await this.#challenge(asked, order);
    if (kind === 'finalize') await this.#finalize(asked, order);
    if (kind === 'certificate') return { body: order.pem };
    return {
      body: kind === 'order' || kind === 'finalize' ? this.#order(order) : this.#seen(asked, order),
    };
  }

  /** Reads a request that is signed by an account (RFC 8555 §6.2). */
  async #verify(message: IncomingMessage, path: string): Promise<Asked> {
    const jws = (await json(message)) as FlattenedJWS;
    let jwk: JWK | undefined;
    const { payload, protectedHeader } = await flattenedVerify(jws, async (header) => {
      const { kid, jwk: own } = header as { readonly kid?: string; readonly jwk?: JWK };
      jwk = own ?? this.#accounts.get(kid?.split('/').at(-1) ?? '');
      if (jwk === undefined) throw new Error('no such account');
      return importJWK(jwk, 'ES256');
    });
    const { nonce, url } = protectedHeader as { readonly nonce?: string; readonly url?: string };
    if (url !== this.#base + path) throw new Error(`signed for ${url ?? 'no URL'}`);
    if (!this.#nonces.delete(nonce ?? '')) {
      throw new RefusalError({
        status: 400,
        type: 'badNonce',
        detail: 'the nonce is not one of ours',
      });
    }
    const content = Buffer.from(payload).toString();
    return {
      path,
      jwk: jwk ?? {},
      payload: content === '' ? {} : (JSON.parse(content) as Record<string, unknown>),
    };
  }

  async #account({ path, jwk, payload }: Asked): Promise<Reply> {
    const names = Object.keys(payload);
    // As Pebble does. RFC 8555 §7.3.2 does not define an update without changes.
    if (path !== '/account' && names.length > 0 && !names.includes('contact')) {
      throw new RefusalError({ status: 400, type: 'malformed', detail: 'nothing to update' });
    }
    const { binding } = this.#given;
    if (binding !== undefined && this.#accounts.size === 0) {
      await requireBinding(payload.externalAccountBinding, { binding, jwk, base: this.#base });
    }
    const id = await calculateJwkThumbprint(jwk);
    const isKnown = this.#accounts.has(id);
    this.#accounts.set(id, jwk);
    return { status: isKnown ? 200 : 201, body: { status: 'valid' }, location: `/account/${id}` };
  }

  #newOrder({ payload }: Asked): Reply {
    const { replaces } = payload;
    if (replaces !== undefined && this.orders.some((one) => one.replaces === replaces)) {
      const detail = 'another order has replaced it';
      throw new RefusalError({ status: 409, type: 'alreadyReplaced', detail });
    }
    const [first] = payload.identifiers as readonly { readonly value: string }[];
    const order: Order = {
      host: first?.value ?? '',
      token: randomUUID(),
      replaces: payload.replaces,
      profile: payload.profile,
      status: 'pending',
      way: undefined,
      error: undefined,
      pem: '',
    };
    this.orders.push(order);
    return { status: 201, body: this.#order(order), location: `/order/${this.orders.length - 1}` };
  }

  #order(order: Order): object {
    const at = this.orders.indexOf(order);
    return {
      status: order.status,
      identifiers: [{ type: 'dns', value: order.host }],
      authorizations: [`${this.#base}/authorization/${at}`],
      finalize: `${this.#base}/finalize/${at}`,
      ...(order.status === 'valid' && { certificate: `${this.#base}/certificate/${at}` }),
    };
  }

  /** An authorization, or one of its challenges. */
  #seen({ path }: Asked, order: Order): object {
    const at = this.orders.indexOf(order);
    const status = order.status === 'ready' ? 'valid' : order.status;
    const challenges = (this.#given.offers ?? ['http-01', 'tls-alpn-01']).map((type) => ({
      type,
      url: `${this.#base}/challenge/${at}/${type}`,
      token: order.token,
      status: order.way === type ? status : 'pending',
      ...(order.way === type && order.error !== undefined && { error: order.error }),
    }));
    const challenge = challenges.find(({ type }) => path.endsWith(`/${type}`));
    return challenge ?? { status, identifier: { type: 'dns', value: order.host }, challenges };
  }

  async #challenge({ path, jwk }: Asked, order: Order): Promise<void> {
    if (order.status !== 'pending' || order.way !== undefined) return;
    order.way = path.split('/').at(-1) ?? '';
    const expected = `${order.token}.${await calculateJwkThumbprint(jwk)}`;
    this.keyAuthorizations.push(expected);
    const isHttp = order.way === 'http-01';
    const { httpPort, tlsPort } = this.#given;
    const look = isHttp ? askHttp(httpPort, order) : askTls(tlsPort, order);
    const found = await look.catch(String);
    const digest = createHash('sha256').update(expected).digest('hex');
    const isRight = found === (isHttp ? expected : digest);
    order.status = isRight ? 'ready' : 'invalid';
    if (isRight) return;
    order.error = { type: 'urn:ietf:params:acme:error:unauthorized', detail: `found ${found}` };
  }

  async #finalize({ payload }: Asked, order: Order): Promise<void> {
    if (order.status !== 'ready') {
      throw new RefusalError({ status: 403, type: 'orderNotReady', detail: order.status });
    }
    const csr = Buffer.from(String(payload.csr), 'base64url');
    order.pem = await this.#authority.sign(csr, { days: this.#given.days ?? 90 });
    order.status = 'valid';
  }
}
