import { getCACertificates } from 'node:tls';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { Authorization } from 'acme-client';
import type { ListenAddress } from '../../core/config/addresses.ts';
import { createDialler } from '../../core/outbound/dialler.ts';
import { defaultPorts } from '../../core/values/network/authority.ts';
import { parseCidr } from '../../core/values/network/cidr.ts';
import { acmeTransport } from './acme-transport.ts';
import type { DnsRecord } from './dns/update-message.ts';
import { acmeConnectMs, acmeOrderMs, acmeRequestMs } from './limits.ts';

/** The first and the longest interval at which the state of an order is polled. */
const acmePollMs = 1_000;
const acmePollMsMax = 15_000;

/** An order of a certificate from an ACME server (RFC 8555). */
export interface AcmeOrder {
  readonly directory: string;
  readonly email: string | undefined;
  /** External account binding (RFC 8555 §7.3.4); the key is in base64url. */
  readonly binding: { readonly kid: string; readonly key: string } | undefined;
  /** PEM of further certification authorities that the client trusts; undefined for none. */
  readonly ca: string | undefined;
  /** Private networks to which the client may connect, as in the ini file. */
  readonly allowPrivate: readonly string[];
  /** The private key of the account, as PEM. */
  readonly accountKey: string;
  readonly host: string;
  /** The certificate that this one replaces (RFC 9773 §5): see certificateId. */
  readonly replaces?: string | undefined;
  /** The profile of the certificate (draft-ietf-acme-profiles); undefined for the server's. */
  readonly profile?: string | undefined;
  /** In order of preference. */
  readonly challenges: readonly AcmeChallenge[];
}

/** The supported challenges (RFC 8555 §8.3, §8.4, RFC 8737): each proves control of a host. */
export type AcmeChallenge = 'http-01' | 'tls-alpn-01' | 'dns-01';

/**
 * The challenges that the listeners can answer, in order of preference: an ACME server connects to
 * port 80 for http-01 and to port 443 for tls-alpn-01.
 */
export function challengesFor(listens: readonly ListenAddress[]): readonly AcmeChallenge[] {
  const ports = (scheme: string) =>
    listens.flatMap((one) => (one.kind === 'tcp' && one.scheme === scheme ? [one.port] : []));
  const isKnownPort = ports('http').includes(Number(defaultPorts.http));
  const isTlsFirst = !isKnownPort && ports('https').includes(Number(defaultPorts.https));
  const challenges: readonly AcmeChallenge[] =
    ports('http').length === 0 ? ['tls-alpn-01'] : ['http-01', 'tls-alpn-01'];
  return isTlsFirst ? challenges.toReversed() : challenges;
}

/** The response to a challenge, which listeners or name servers serve until the order ends. */
export type ChallengeResponse =
  | ({ readonly type: 'dns-01' } & DnsRecord)
  | { readonly type: 'http-01'; readonly token: string; readonly keyAuthorization: string }
  | { readonly type: 'tls-alpn-01'; readonly cert: string; readonly key: string };

/** A certificate with its chain, and its private key, both as PEM. */
export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A failed order. The message is for the operator. */
export class OrderError extends Error {
  /** The Retry-After field of the latest 429 or 503; undefined for none. */
  readonly retryAfter: string | undefined;

  constructor(message: string, retryAfter?: string) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

/** A message from the thread. */
type ThreadMessage =
  | { readonly kind: 'challenge'; readonly response: ChallengeResponse }
  | { readonly kind: 'issued'; readonly issued: IssuedCertificate }
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly retryAfter: string | undefined;
    };

/**
 * Orders a certificate, in a thread: acme-client and its memory are needed for a few seconds every
 * few months, and a thread can be ended at any time. `saveChallenge` resolves once the response to
 * the challenge is there. Rejects with an OrderError, with the error of `saveChallenge`, or with
 * the reason of the signal.
 */
export async function orderCertificate(
  order: AcmeOrder,
  {
    saveChallenge,
    signal,
  }: {
    readonly saveChallenge: (response: ChallengeResponse) => Promise<void>;
    readonly signal: AbortSignal;
  },
): Promise<IssuedCertificate> {
  signal.throwIfAborted();
  const worker = new Worker(new URL(import.meta.url), { workerData: { acmeOrder: order } });
  const end = () => void worker.terminate();
  const timer = setTimeout(end, acmeOrderMs);
  signal.addEventListener('abort', end);
  try {
    return await new Promise<IssuedCertificate>((resolve, reject) => {
      worker.on('message', (message: ThreadMessage) => {
        if (message.kind === 'issued') resolve(message.issued);
        else if (message.kind === 'failed') {
          reject(new OrderError(message.message, message.retryAfter));
        } else {
          saveChallenge(message.response).then(() => {
            worker.postMessage('saved');
          }, reject);
        }
      });
      worker.once('error', reject);
      worker.once('exit', () => {
        const timedOut = new OrderError(`The order took longer than ${acmeOrderMs / 60_000} min.`);
        reject(signal.aborted ? (signal.reason as Error) : timedOut);
      });
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    await worker.terminate();
  }
}

/** Runs an order in the thread. `retryLater` is that of acmeTransport. */
async function run(
  order: AcmeOrder,
  retryLater: (retryAfter: string) => void,
): Promise<IssuedCertificate> {
  const acme = await import('acme-client');
  const dialler = createDialler({
    allowPrivate: order.allowPrivate.flatMap((text) => parseCidr(text) ?? []),
    connectTimeoutMs: acmeConnectMs,
    timeoutMs: acmeRequestMs,
    ca: [...getCACertificates('default'), ...(order.ca === undefined ? [] : [order.ca])],
  });
  const transport = acmeTransport(dialler, retryLater);
  let status = 0;
  Object.assign(acme.axios.defaults, {
    async adapter(request: Parameters<typeof transport>[0]) {
      const answer = await transport(request);
      status = answer.status;
      return answer;
    },
    // Renewals retries failed orders.
    acmeSettings: { retryMaxAttempts: 0 },
  });
  const client = new acme.Client({
    directoryUrl: order.directory,
    accountKey: order.accountKey,
    ...(order.binding !== undefined && {
      externalAccountBinding: { kid: order.binding.kid, hmacKey: order.binding.key },
    }),
    backoffMin: acmePollMs,
    backoffMax: acmePollMsMax,
  });
  const update = client.updateAccount.bind(client);
  // acme-client would send fields that an update must not have (RFC 8555 §7.3.2).
  client.updateAccount = (account) => update(account?.contact && { contact: account.contact });
  const createOrder = client.createOrder.bind(client);
  const { profile, replaces } = order;
  client.createOrder = async (asked) => {
    const whole = { ...asked, ...(profile !== undefined && { profile }) };
    if (replaces === undefined) return createOrder(whole);
    try {
      return await createOrder({ ...whole, replaces } as typeof asked);
    } catch (error) {
      // Another order has replaced it, or the server no longer knows it: a certificate is needed.
      if (!refusesReplacement.includes(status)) throw error;
      return createOrder(whole);
    }
  };
  const key = await acme.crypto.createPrivateEcdsaKey();
  const [, csr] = await acme.crypto.createCsr({ altNames: [order.host] }, key);
  const cert = await client.auto({
    csr,
    ...(order.email !== undefined && { email: order.email }),
    termsOfServiceAgreed: true,
    // Whether this server can reach itself says nothing about the ACME server.
    skipChallengeVerification: true,
    challengePriority: [...order.challenges],
    challengeCreateFn: (authorization, challenge, keyAuthorization) =>
      prove(order, authorization, { ...challenge, keyAuthorization }),
    challengeRemoveFn: () => Promise.resolve(),
  });
  return { cert, key: key.toString() };
}

/** Has the main thread save the response to one of the challenges that the order can answer. */
async function prove(
  { challenges }: AcmeOrder,
  authorization: Authorization,
  {
    type: offered,
    token,
    keyAuthorization,
  }: { readonly type: string; readonly token: string; readonly keyAuthorization: string },
): Promise<void> {
  const type = challenges.find((one) => one === offered);
  if (type === undefined) {
    throw new Error(`The ACME server does not offer ${challenges.join(' or ')}.`);
  }
  if (type === 'http-01') return sendChallenge({ type, token, keyAuthorization });
  if (type === 'dns-01') {
    const name = `_acme-challenge.${authorization.identifier.value}`;
    return sendChallenge({ type, name, value: keyAuthorization });
  }
  const acme = await import('acme-client');
  const pair = await acme.crypto.createAlpnCertificate(authorization, keyAuthorization);
  return sendChallenge({ type, key: pair[0].toString(), cert: pair[1].toString() });
}

/** The statuses of an ACME server that does not let an order replace a certificate. */
const refusesReplacement: readonly number[] = [400, 403, 404, 409];

/** Sends the response to a challenge to the main thread, and waits until it is saved. */
function sendChallenge(response: ChallengeResponse): Promise<void> {
  return new Promise((resolve) => {
    parentPort?.once('message', () => {
      resolve();
    });
    send({ kind: 'challenge', response });
  });
}

function send(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

const job = workerData as { readonly acmeOrder?: AcmeOrder } | null;
if (!isMainThread && job?.acmeOrder !== undefined) {
  let retryAfter: string | undefined;
  await run(job.acmeOrder, (value) => (retryAfter = value)).then(
    (issued) => {
      send({ kind: 'issued', issued });
    },
    (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      send({ kind: 'failed', message, retryAfter });
    },
  );
}
