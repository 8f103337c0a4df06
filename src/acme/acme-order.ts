import { getCACertificates } from 'node:tls';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { ListenAddress } from '../config/addresses.ts';
import { defaultPorts } from '../model/authority.ts';
import { parseCidr } from '../model/cidr.ts';
import { acmeConnectMs, acmeOrderMs, acmePollMs, acmePollMsMax, acmeRequestMs } from './limits.ts';
import { acmeTransport } from './acme-transport.ts';
import { createDialler } from '../outbound/dialler.ts';

/** A certificate to be had from an ACME server (RFC 8555). */
export interface AcmeOrder {
  readonly directory: string;
  readonly email: string | undefined;
  /** What the account is bound by to another one (RFC 8555 §7.3.4); the key in base64url. */
  readonly binding: { readonly kid: string; readonly key: string } | undefined;
  /** PEM of those who vouch for the server besides the well-known; undefined for none. */
  readonly ca: string | undefined;
  /** Private networks that may be reached, as the ini file writes them. */
  readonly allowPrivate: readonly string[];
  /** PEM. */
  readonly accountKey: string;
  readonly host: string;
  /** In the order in which they are tried, as far as the server offers them. */
  readonly challenges: readonly AcmeChallenge[];
}

/** The ways in which a host is shown to be ours (RFC 8555 §8.3, RFC 8737). */
export type AcmeChallenge = 'http-01' | 'tls-alpn-01';

/**
 * The ways to show a host to be ours that the listeners allow, the most promising first: an ACME
 * server looks at ports 80 and 443.
 */
export function challengesFor(listens: readonly ListenAddress[]): readonly AcmeChallenge[] {
  const ports = (scheme: string) =>
    listens.flatMap((one) => (one.kind === 'tcp' && one.scheme === scheme ? [one.port] : []));
  const isKnownPort = ports('http').includes(Number(defaultPorts.http));
  const isTlsFirst = !isKnownPort && ports('https').includes(Number(defaultPorts.https));
  const ways: readonly AcmeChallenge[] =
    ports('http').length === 0 ? ['tls-alpn-01'] : ['http-01', 'tls-alpn-01'];
  return isTlsFirst ? ways.toReversed() : ways;
}

/** What has to be answered where the ACME server looks. */
export type Presented =
  | { readonly type: 'http-01'; readonly token: string; readonly keyAuthorization: string }
  | { readonly type: 'tls-alpn-01'; readonly cert: string; readonly key: string };

/** What was issued, both PEM: the certificate with its chain, and its key. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** Why there is no certificate: the message is for an operator. */
export class OrderError extends Error {
  /** The field of the latest answer that told us to come later; undefined where none did. */
  readonly retryAfter: string | undefined;

  constructor(message: string, retryAfter?: string) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

/** What the thread says. */
type Told =
  | { readonly kind: 'present'; readonly presented: Presented }
  | { readonly kind: 'issued'; readonly issued: Issued }
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly retryAfter: string | undefined;
    };

/**
 * Orders a certificate, in a thread of its own: what it needs is needed for seconds in months, and
 * can be ended at any time. `present` resolves when a challenge is answered. Rejects with an
 * OrderError, with what `present` rejects with, or with the reason of the signal.
 */
export async function orderCertificate(
  order: AcmeOrder,
  {
    present,
    signal,
  }: { readonly present: (presented: Presented) => Promise<void>; readonly signal: AbortSignal },
): Promise<Issued> {
  signal.throwIfAborted();
  const worker = new Worker(new URL(import.meta.url), { workerData: { acmeOrder: order } });
  const end = () => void worker.terminate();
  const patience = setTimeout(end, acmeOrderMs);
  signal.addEventListener('abort', end);
  try {
    return await new Promise<Issued>((resolve, reject) => {
      worker.on('message', (told: Told) => {
        if (told.kind === 'issued') resolve(told.issued);
        else if (told.kind === 'failed') reject(new OrderError(told.message, told.retryAfter));
        else {
          present(told.presented).then(() => {
            worker.postMessage('presented');
          }, reject);
        }
      });
      worker.once('error', reject);
      worker.once('exit', () => {
        reject(signal.aborted ? (signal.reason as Error) : new OrderError('It took too long.'));
      });
    });
  } finally {
    clearTimeout(patience);
    signal.removeEventListener('abort', end);
    await worker.terminate();
  }
}

/** Runs an order in the thread; `refused` as acmeTransport has it. */
async function run(order: AcmeOrder, refused: (retryAfter: string) => void): Promise<Issued> {
  const acme = await import('acme-client');
  const dialler = createDialler({
    allowPrivate: order.allowPrivate.flatMap((text) => parseCidr(text) ?? []),
    connectTimeoutMs: acmeConnectMs,
    timeoutMs: acmeRequestMs,
    ca: [...getCACertificates('default'), ...(order.ca === undefined ? [] : [order.ca])],
  });
  Object.assign(acme.axios.defaults, {
    adapter: acmeTransport(dialler, refused),
    // Whoever orders tries again, and knows when.
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
  // An account that is there is told its contact alone (RFC 8555 §7.3.2), or asked for as it is.
  client.updateAccount = (account) => update(account?.contact && { contact: account.contact });
  const key = await acme.crypto.createPrivateEcdsaKey();
  const [, csr] = await acme.crypto.createCsr({ altNames: [order.host] }, key);
  const cert = await client.auto({
    csr,
    ...(order.email !== undefined && { email: order.email }),
    termsOfServiceAgreed: true,
    // The ACME server looks from outside; whether we see ourselves says nothing.
    skipChallengeVerification: true,
    challengePriority: [...order.challenges],
    async challengeCreateFn(authorization, { type: offered, token }, keyAuthorization) {
      const type = order.challenges.find((one) => one === (offered as string));
      if (type === 'http-01') return present({ type, token, keyAuthorization });
      if (type === undefined) {
        throw new Error(`The ACME server offers none of ${order.challenges.join(' and ')}.`);
      }
      const pair = await acme.crypto.createAlpnCertificate(authorization, keyAuthorization);
      return present({ type, key: pair[0].toString(), cert: pair[1].toString() });
    },
    challengeRemoveFn: () => Promise.resolve(),
  });
  return { cert, key: key.toString() };
}

/** Asks the process to answer a challenge, and waits until it does. */
function present(presented: Presented): Promise<void> {
  return new Promise((resolve) => {
    parentPort?.once('message', () => {
      resolve();
    });
    tell({ kind: 'present', presented });
  });
}

function tell(told: Told): void {
  parentPort?.postMessage(told);
}

const job = workerData as { readonly acmeOrder?: AcmeOrder } | null;
if (!isMainThread && job?.acmeOrder !== undefined) {
  let retryAfter: string | undefined;
  await run(job.acmeOrder, (asked) => (retryAfter = asked)).then(
    (issued) => {
      tell({ kind: 'issued', issued });
    },
    (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      tell({ kind: 'failed', message, retryAfter });
    },
  );
}
