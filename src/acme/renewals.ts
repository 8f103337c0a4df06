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
  type Issued,
  type Presented,
} from './acme-order.ts';
import type { AcmeFolder, HostState } from './folder.ts';
import {
  afterIssueMs,
  afterStartMs,
  retryDelayMs,
  tryAfterStartMs,
  type Lifetime,
} from './schedule.ts';

/** What renewals need of their surroundings. */
export interface RenewalParts {
  readonly acme: AcmeConfig;
  readonly folder: AcmeFolder;
  /** The ways to show a host to be ours, the most promising first. */
  readonly challenges: readonly AcmeChallenge[];
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** 0..1. */
  readonly random: () => number;
  /** Gets a certificate from the ACME server; see orderCertificate. */
  readonly order: (
    order: AcmeOrder,
    how: {
      readonly present: (presented: Presented) => Promise<void>;
      readonly signal: AbortSignal;
    },
  ) => Promise<Issued>;
  /** Resolves after a time; rejects when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** One host, and when it is its turn. */
interface Candidate {
  readonly host: string;
  failures: number;
  dueMs: number;
}

/**
 * Gets the certificates that the ini file wants from an ACME server, and renews them in good time:
 * one after the other, each again and again at growing intervals while it fails. Only one process
 * of a server may do it.
 */
export class Renewals {
  readonly #parts: RenewalParts;
  readonly #stopped = new AbortController();
  readonly #orders = { issued: 0, failed: 0 };
  #candidates: readonly Candidate[] = [];
  #running: Promise<void> | undefined;

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** Begins, in the background; the folder has to be prepared. */
  start(): void {
    this.#running = this.#run().catch((error: unknown) => {
      if (this.#stopped.signal.aborted) return;
      const message = 'Certificates are no longer renewed; restart to go on.';
      this.#parts.log.error({ err: error }, message);
    });
  }

  /** Breaks off what is under way. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** How many orders came to what, and for which hosts they keep failing. */
  metrics(): readonly Metric[] {
    return renewalMetrics(this.#orders, this.#candidates);
  }

  async #run(): Promise<void> {
    const { acme, now, wait } = this.#parts;
    const { signal } = this.#stopped;
    this.#candidates = await Promise.all(acme.hosts.map((host) => this.#admit(host)));
    while (!signal.aborted) {
      const [next] = this.#candidates.toSorted((one, other) => one.dueMs - other.dueMs);
      if (next === undefined) return;
      const leftMs = next.dueMs - now();
      if (leftMs <= 0) await this.#try(next);
      else await wait(Math.min(leftMs, acmeCheckMs), signal);
    }
  }

  /** When it is a host's turn, as its files say. */
  async #admit(host: string): Promise<Candidate> {
    const { folder, now, random } = this.#parts;
    const state = await folder.state(host);
    const failures = state?.failures ?? 0;
    const lastMs = timeOf(state?.since);
    // A process that ended in the middle of an order has said nothing of a next one.
    const isBroken = state?.state === 'obtaining' && lastMs !== undefined;
    const nextMs = isBroken ? lastMs + acmeRestartMs : timeOf(state?.next);
    const lifetime = await this.#lifetimeOf(host);
    const dueMs =
      failures > 0 || lifetime === undefined
        ? tryAfterStartMs({ lastMs, nextMs }, now())
        : afterStartMs(lifetime, nextMs, { nowMs: now(), random: random() });
    return { host, failures, dueMs };
  }

  /** The life of the certificate that a host has; undefined where it has none of use. */
  async #lifetimeOf(host: string): Promise<Lifetime | undefined> {
    const known = this.#parts.folder.certificates.find((one) => one.host === host);
    const pair = known && (await readKeyPair(known));
    if (pair === undefined || 'refused' in pair) return undefined;
    return isFor(pair.certificate, host) ? lifetimeOf(pair.certificate) : undefined;
  }

  async #try(candidate: Candidate): Promise<void> {
    const { folder, log, acme, now, random } = this.#parts;
    const { host } = candidate;
    const server = new URL(acme.directory).hostname;
    try {
      log.info({ host }, `A certificate for ${host} is ordered from ${server}.`);
      await this.#tell(candidate, 'obtaining', null);
      const issued = await this.#order(candidate);
      const certificate = new X509Certificate(issued.cert);
      if (!isFor(certificate, host)) throw new Error(`What was issued is not for ${host}.`);
      await folder.keep(host, issued);
      candidate.failures = 0;
      candidate.dueMs = afterIssueMs(lifetimeOf(certificate), now(), random());
      this.#orders.issued += 1;
      await this.#tell(candidate, 'valid', null);
      const until = certificate.validToDate.toISOString();
      log.info(
        { host },
        `A certificate for ${host} was issued by ${server}: valid until ${until}.`,
      );
    } catch (error) {
      await this.#failed(candidate, error);
    }
  }

  async #failed(candidate: Candidate, error: unknown): Promise<void> {
    const { log, now, random } = this.#parts;
    if (this.#stopped.signal.aborted) {
      // It is the first thing to be done after the next start.
      candidate.dueMs = now();
      await this.#tell(candidate, 'failed', 'The order was broken off.');
      return;
    }
    candidate.failures += 1;
    this.#orders.failed += 1;
    const asked = error instanceof OrderError ? error.retryAfter : undefined;
    const askedMs = readRetryAfter(asked, { nowMs: now(), msMax: acmeRetryAfterMsMax }) ?? 0;
    candidate.dueMs = now() + Math.max(retryDelayMs(candidate.failures, random()), askedMs);
    const why = sentence(error);
    await this.#tell(candidate, 'failed', why);
    const { host, dueMs } = candidate;
    log.error({ host }, `No certificate for ${host}: ${why} Next try at ${isoOf(dueMs)}.`);
  }

  /** Puts down how it stands with a host, for the other processes and the next start. */
  #tell(
    { host, failures, dueMs }: Candidate,
    state: HostState['state'],
    error: string | null,
  ): Promise<void> {
    const since = isoOf(this.#parts.now());
    const next = state === 'obtaining' ? null : isoOf(dueMs);
    return this.#puttingDown(host, () =>
      this.#parts.folder.setState(host, { state, since, failures, next, error }),
    );
  }

  /** A disk that is full for a while does not end the renewals. */
  async #puttingDown(host: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      const message = `How it stands with the certificate of ${host} could not be put down.`;
      this.#parts.log.error({ err: error, host }, message);
    }
  }

  async #order({ host, failures }: Candidate): Promise<Issued> {
    const { acme, folder, challenges, order } = this.#parts;
    const { signal } = this.#stopped;
    const { directory, email, caFile } = acme;
    const allowPrivate = acme.allowPrivate.map((network) => network.text);
    const binding = await readBinding(acme);
    const ca = caFile === undefined ? undefined : await readFile(caFile, 'utf8');
    const accountKey = await folder.accountKey();
    // What has failed may be the way in: the other one has its turn.
    const ways = failures % 2 === 1 ? challenges.toReversed() : challenges;
    try {
      return await order(
        { directory, email, binding, ca, allowPrivate, accountKey, host, challenges: ways },
        {
          present: (presented) =>
            presented.type === 'http-01'
              ? folder.present(presented.token, presented.keyAuthorization)
              : folder.present(host, presented),
          signal,
        },
      );
    } finally {
      await this.#puttingDown(host, () => folder.withdraw());
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

/** What went wrong in one line, with its full stop. */
function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.replace(/\s+/g, ' ').trim().slice(0, acmeErrorCharactersMax);
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

/** Orders of certificates, as metrics. */
function renewalMetrics(
  orders: { readonly issued: number; readonly failed: number },
  hosts: readonly { readonly host: string; readonly failures: number }[],
): readonly Metric[] {
  return [
    {
      type: 'counter',
      name: 'waymark_acme_orders_total',
      help: 'Certificates that were ordered from an ACME server, by what came of it.',
      samples: Object.entries(orders).map(([outcome, value]) => ({ labels: { outcome }, value })),
    },
    {
      type: 'gauge',
      name: 'waymark_acme_failures',
      help: 'Orders of a certificate in a row that failed.',
      samples: hosts.map(({ host, failures }) => ({ labels: { host }, value: failures })),
    },
  ];
}
