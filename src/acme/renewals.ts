import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { AcmeConfig } from '../config/config.ts';
import { readEabKey, readKeyPair } from '../config/key-pair.ts';
import { readRetryAfter } from '../http/retry-after.ts';
import {
  acmeCheckMs,
  acmeErrorCharactersMax,
  acmeRestartMs,
  acmeRetryAfterMsMax,
} from './limits.ts';
import type { Log } from '../observability/log.ts';
import type { Metric } from '../observability/metrics.ts';
import {
  OrderError,
  type AcmeChallenge,
  type AcmeOrder,
  type IssuedCertificate,
  type ChallengeResponse,
} from './acme-order.ts';
import type { AcmeFolder, HostState } from './folder.ts';
import {
  renewalAfterIssueMs,
  renewalAfterStartMs,
  retryDelayMs,
  orderAfterStartMs,
  type Lifetime,
} from './schedule.ts';

/** The dependencies of Renewals. */
export interface RenewalParts {
  readonly acme: AcmeConfig;
  readonly folder: AcmeFolder;
  /** The challenges that the listeners can answer, in order of preference. */
  readonly challenges: readonly AcmeChallenge[];
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** 0..1. */
  readonly random: () => number;
  /** orderCertificate. */
  readonly order: (
    order: AcmeOrder,
    how: {
      readonly saveChallenge: (response: ChallengeResponse) => Promise<void>;
      readonly signal: AbortSignal;
    },
  ) => Promise<IssuedCertificate>;
  /** Resolves after a time; rejects when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The next order of the certificate of a host. */
interface Renewal {
  readonly host: string;
  failures: number;
  dueMs: number;
}

/**
 * Orders the certificates of the ini file from an ACME server, and renews them in time: one after
 * the other; a failed order is repeated at growing intervals. Only one process of a server may run
 * it.
 */
export class Renewals {
  readonly #parts: RenewalParts;
  readonly #stopped = new AbortController();
  readonly #orders = { issued: 0, failed: 0 };
  #renewals: readonly Renewal[] = [];
  #running: Promise<void> | undefined;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** Starts in the background. The caller has prepared the folder. */
  start(): void {
    this.#running = this.#run().catch((error: unknown) => {
      if (this.#stopped.signal.aborted) return;
      const message = 'Certificate renewal stopped after an internal error. Restart the server.';
      this.#parts.log.error({ err: error }, message);
    });
  }

  /** Stops, and cancels an order in progress. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** The numbers of orders by outcome, and of consecutive failures by host. */
  metrics(): readonly Metric[] {
    return renewalMetrics(this.#orders, this.#renewals);
  }

  async #run(): Promise<void> {
    const { acme, now, wait } = this.#parts;
    const { signal } = this.#stopped;
    this.#renewals = await Promise.all(acme.hosts.map((host) => this.#plan(host)));
    while (!signal.aborted) {
      const [next] = this.#renewals.toSorted((one, other) => one.dueMs - other.dueMs);
      if (next === undefined) return;
      const leftMs = next.dueMs - now();
      if (leftMs <= 0) await this.#renew(next);
      else await wait(Math.min(leftMs, acmeCheckMs), signal);
    }
  }

  /** Plans the next order for a host from its saved state and certificate. */
  async #plan(host: string): Promise<Renewal> {
    const { folder, now, random } = this.#parts;
    const state = await folder.state(host);
    const failures = state?.failures ?? 0;
    const lastMs = timeOf(state?.since);
    // A process that ended during an order has not saved a time for the next one.
    const isBroken = state?.state === 'obtaining' && lastMs !== undefined;
    const nextMs = isBroken ? lastMs + acmeRestartMs : timeOf(state?.next);
    const lifetime = await this.#lifetimeOf(host);
    const dueMs =
      failures > 0 || lifetime === undefined
        ? orderAfterStartMs({ lastMs, nextMs }, now())
        : renewalAfterStartMs(lifetime, nextMs, { nowMs: now(), random: random() });
    return { host, failures, dueMs };
  }

  /** The validity of the certificate of a host; undefined if it has no usable one. */
  async #lifetimeOf(host: string): Promise<Lifetime | undefined> {
    const known = this.#parts.folder.certificates.find((one) => one.host === host);
    const pair = known && (await readKeyPair(known));
    if (pair === undefined || 'refused' in pair) return undefined;
    return isFor(pair.certificate, host) ? lifetimeOf(pair.certificate) : undefined;
  }

  async #renew(renewal: Renewal): Promise<void> {
    const { folder, log, acme, now, random } = this.#parts;
    const { host } = renewal;
    const server = new URL(acme.directory).hostname;
    try {
      log.info({ host }, `Ordering a certificate for ${host} from ${server}.`);
      await this.#saveState(renewal, 'obtaining', null);
      const issued = await this.#order(renewal);
      const certificate = new X509Certificate(issued.cert);
      if (!isFor(certificate, host)) {
        throw new Error(`The issued certificate is not for ${host}.`);
      }
      await folder.saveCertificate(host, issued);
      renewal.failures = 0;
      renewal.dueMs = renewalAfterIssueMs(lifetimeOf(certificate), now(), random());
      this.#orders.issued += 1;
      await this.#saveState(renewal, 'valid', null);
      const until = certificate.validToDate.toISOString();
      log.info({ host }, `${server} has issued a certificate for ${host}, valid until ${until}.`);
    } catch (error) {
      await this.#failed(renewal, error);
    }
  }

  async #failed(renewal: Renewal, error: unknown): Promise<void> {
    const { log, now, random } = this.#parts;
    if (this.#stopped.signal.aborted) {
      // The next start repeats the order at once.
      renewal.dueMs = now();
      await this.#saveState(renewal, 'failed', 'The server stopped during the order.');
      return;
    }
    renewal.failures += 1;
    this.#orders.failed += 1;
    const field = error instanceof OrderError ? error.retryAfter : undefined;
    const afterMs = readRetryAfter(field, { nowMs: now(), msMax: acmeRetryAfterMsMax }) ?? 0;
    renewal.dueMs = now() + Math.max(retryDelayMs(renewal.failures, random()), afterMs);
    const reason = sentence(error);
    await this.#saveState(renewal, 'failed', reason);
    const { host, dueMs } = renewal;
    log.error({ host }, `No certificate for ${host}: ${reason} Retrying at ${isoOf(dueMs)}.`);
  }

  /** Saves the state of a host for the other processes and the next start. */
  #saveState(
    { host, failures, dueMs }: Renewal,
    state: HostState['state'],
    error: string | null,
  ): Promise<void> {
    const since = isoOf(this.#parts.now());
    const next = state === 'obtaining' ? null : isoOf(dueMs);
    return this.#tryWrite(host, () =>
      this.#parts.folder.saveState(host, { state, since, failures, next, error }),
    );
  }

  /** Logs a failed write: a full disk must not end the renewals. */
  async #tryWrite(host: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      const message = `Cannot update the ACME files of ${host}.`;
      this.#parts.log.error({ err: error, host }, message);
    }
  }

  async #order({ host, failures }: Renewal): Promise<IssuedCertificate> {
    const { acme, folder, challenges, order } = this.#parts;
    const { signal } = this.#stopped;
    const { directory, email, caFile } = acme;
    const allowPrivate = acme.allowPrivate.map((network) => network.text);
    const binding = await readBinding(acme);
    const ca = caFile === undefined ? undefined : await readFile(caFile, 'utf8');
    const accountKey = await folder.accountKey();
    // The challenge may be the cause of a failure, so the next order prefers the other one.
    const preferred = failures % 2 === 1 ? challenges.toReversed() : challenges;
    try {
      return await order(
        { directory, email, binding, ca, allowPrivate, accountKey, host, challenges: preferred },
        {
          saveChallenge: (response) =>
            response.type === 'http-01'
              ? folder.saveChallenge(response.token, response.keyAuthorization)
              : folder.saveChallenge(host, response),
          signal,
        },
      );
    } finally {
      await this.#tryWrite(host, () => folder.removeChallenges());
    }
  }
}

async function readBinding({ eabKid: kid, eabKeyFile }: AcmeConfig): Promise<AcmeOrder['binding']> {
  if (kid === undefined || eabKeyFile === undefined) return undefined;
  const read = await readEabKey(eabKeyFile);
  if ('refused' in read) throw new Error(`acme_eab_key ${read.refused}.`);
  return { kid, key: read.key };
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return certificate.checkHost(host, { subject: 'never' }) !== undefined;
}

function lifetimeOf({ validFromDate, validToDate }: X509Certificate): Lifetime {
  return { beginsMs: validFromDate.getTime(), endsMs: validToDate.getTime() };
}

function timeOf(iso: string | null | undefined): number | undefined {
  const ms = Date.parse(iso ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** The message of an error as one line that ends with a full stop. */
function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.replace(/\s+/g, ' ').trim().slice(0, acmeErrorCharactersMax);
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

/** The metrics of orders. */
function renewalMetrics(
  orders: { readonly issued: number; readonly failed: number },
  hosts: readonly { readonly host: string; readonly failures: number }[],
): readonly Metric[] {
  return [
    {
      type: 'counter',
      name: 'waymark_acme_orders_total',
      help: 'Orders of certificates from an ACME server, by outcome.',
      samples: Object.entries(orders).map(([outcome, value]) => ({ labels: { outcome }, value })),
    },
    {
      type: 'gauge',
      name: 'waymark_acme_failures',
      help: 'Consecutive failed orders of a certificate, by host.',
      samples: hosts.map(({ host, failures }) => ({ labels: { host }, value: failures })),
    },
  ];
}
