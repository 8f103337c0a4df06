import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { BackgroundTasks, RunningTask } from '../../core/background/tasks.ts';
import type { AcmeConfig } from '../../core/config/config.ts';
import { readEabKey } from './section.ts';
import { readRetryAfter } from '../../core/http/date.ts';
import type { Log } from '../../core/report/log.ts';
import type { Metric } from '../../core/report/metrics.ts';
import { Failure } from '../../core/values/failure.ts';
import {
  type AcmeChallenge,
  type AcmeOrder,
  type ChallengeResponse,
  type IssuedCertificate,
  OrderError,
} from './acme-order.ts';
import type { AcmeStore, HostState } from './acme-store.ts';
import { certificateId } from './certificate-id.ts';
import type { DnsRecord, DnsRecords } from './dns/update-message.ts';
import { acmeErrorCharactersMax, acmeInfoMs, acmeOrderMs, acmeRestartMs } from './limits.ts';
import type { Permissions } from './permissions.ts';
import type { RenewalInfo, RenewalQuestion } from './renewal-info.ts';
import {
  type Lifetime,
  orderAfterStartMs,
  renewalAfterIssueMs,
  renewalAfterStartMs,
  renewalMs,
  retryDelayMs,
  suggestedMs,
} from './schedule.ts';

/** How often certificates that are due are searched, even if the clock was changed. */
const acmeCheckMs = 3_600_000;

/** The longest Retry-After of an ACME server that is obeyed. */
export const acmeRetryAfterMsMax = 7 * 86_400_000;

/** How often a node tries to order while another one orders. */
export const acmeTurnPollMs = 5_000;

/** The extra pause of a node whose order failed, so that another node orders first. */
export const acmeYieldMs = 15_000;

/** The pause of a node after it could not order. */
const acmeProblemMs = 60_000;

/** How long the removal of a record may take when the server stops. */
const dnsCleanupStoppedMs = 3_000;

/** How often the names that other processes want are read. */
const onDemandPollMs = 2_000;

/** The period of `acme_on_demand_rate`. */
const onDemandRateMs = 60_000;

/** A name is forgotten after so many failed orders in a row without a certificate. */
const onDemandFailuresMax = 3;

/** How long a renewal waits for the answer whether it is still allowed. */
const onDemandAskAgainMs = 3_600_000;

export interface RenewalParts {
  readonly acme: AcmeConfig;
  readonly store: AcmeStore;
  /** Undefined for a single machine. */
  readonly cluster?: AcmeCluster | undefined;
  /** The challenges that the listeners can answer, in order of preference. */
  readonly challenges: readonly AcmeChallenge[];
  /** Changes records, which then prove control of all hosts; undefined without dns-01. */
  readonly dns?: DnsRecords | undefined;
  readonly log: Log;
  readonly tasks: Pick<BackgroundTasks, 'start'>;
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
  /** readRenewalInfo. */
  readonly renewalInfo: (question: RenewalQuestion) => Promise<RenewalInfo | undefined>;
  /** Resolves after a time; rejects when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The names that the ini file does not have; undefined without `acme_on_demand`. */
  readonly onDemand?: OnDemandOrders | undefined;
}

/** Which names on demand are ordered, and how many. */
interface OnDemandOrders {
  readonly permissions: Pick<Permissions, 'confirm'>;
  /** Orders in a minute. */
  readonly ordersPerMinute: number;
  /** The most names; those that were not used for the longest time are forgotten first. */
  readonly namesMax: number;
}

/** The nodes of a cluster, of which one at a time orders: see SharedAcme. */
export interface AcmeCluster {
  /** The name of this node. */
  readonly node: string;
  /**
   * Takes the turn of this node; `lost` is called if another node has taken it over. Rejects with
   * `conflict` while it is another's, with `unavailable` without the shared log, and with `invalid`
   * if this node cannot order.
   */
  readonly take: (lost: () => void) => Promise<void>;
  readonly release: () => Promise<void>;
  /** Encrypts all stored values again, with the newest key. */
  readonly encryptAgain: () => Promise<void>;
}

/** The next order of the certificate of a host. */
interface Renewal {
  readonly host: string;
  failures: number;
  dueMs: number;
  /** Whether `dueMs` is that of a start: see orderAfterStartMs. */
  readonly isFromStart: boolean;
  /** Why its state or certificate could not be read; at `dueMs`, it is planned again. */
  readonly unread?: { readonly problem: string; readonly times: number } | undefined;
}

/** When the ACME server suggests to renew the certificate of a host. */
interface Suggestion {
  readonly certificateId: string;
  /** Undefined if the server has suggested no time. */
  readonly dueMs: number | undefined;
  /** When to ask again. */
  readonly askMs: number;
}

/**
 * Orders the certificates of the ini file from an ACME server, and renews them in time: one after
 * the other; a failed order is repeated at growing intervals. Only one process of a server may run
 * it. In a cluster, all nodes plan by the states that they share, and one at a time orders.
 */
export class Renewals {
  readonly #parts: RenewalParts;
  readonly #stopped = new AbortController();
  readonly #orders = { issued: 0, failed: 0 };
  /** By host. */
  readonly #suggestions = new Map<string, Suggestion>();
  #renewals: readonly Renewal[] = [];
  #running: readonly RunningTask[] = [];
  /** Another node has taken over the turn. */
  #lost = new AbortController();
  /** Resolves when the states in the cluster have changed. */
  #changed = Promise.withResolvers<undefined>();
  #isChanged = false;
  #isWatched = false;
  #encryptedMs = -Infinity;
  /** The names on demand with their last use, and why they could not be read. */
  #names: ReadonlyMap<string, number> = new Map();
  #namesProblem = '';
  /** When the latest orders on demand began. */
  #onDemandOrders: readonly number[] = [];
  /** Why this node cannot order, as it was logged last. */
  #problem = '';
  readonly #stop = (): void => {
    this.#stopped.abort();
  };

  constructor(parts: RenewalParts) {
    this.#parts = parts;
  }

  /** Starts in the background. The caller has prepared the store. */
  start(): void {
    const { tasks, cluster } = this.#parts;
    const renewal = tasks.start({
      name: 'certificate_renewal',
      title: 'The renewal of certificates',
      meanwhile: 'The certificates that are in use stay.',
      run: (signal, well) => {
        signal.addEventListener('abort', this.#stop);
        return this.#run(well);
      },
    });
    if (cluster === undefined) {
      this.#running = [renewal];
      return;
    }
    const watch = tasks.start({
      name: 'certificate_states',
      title: 'The look at what other machines do with certificates',
      run: (signal, well) => this.#watch(signal, well),
    });
    this.#running = [renewal, watch];
  }

  /** Stops, and cancels an order in progress. */
  async stop(): Promise<void> {
    this.#stop();
    await Promise.all(this.#running.map((one) => one.stop()));
  }

  /** Looks for names on demand at once. */
  wake(): void {
    this.#isChanged = true;
    this.#changed.resolve(undefined);
  }

  /** The numbers of orders by outcome, and of consecutive failures by host. */
  metrics(): readonly Metric[] {
    // Any number of names may be on demand.
    return renewalMetrics(
      this.#orders,
      this.#renewals.filter(({ host }) => this.#isConfigured(host)),
    );
  }

  async #run(well: () => void): Promise<void> {
    const { acme, now, onDemand } = this.#parts;
    const { signal } = this.#stopped;
    // After an error, the plans stay: a certificate is not ordered before its time.
    const planned = new Set(this.#renewals.map(({ host }) => host));
    const added = acme.hosts.filter((host) => !planned.has(host));
    this.#renewals = [...this.#renewals, ...(await this.#plansAtStart(added))];
    await this.#followDemand();
    while (!signal.aborted) {
      const next = this.#next();
      if (next === undefined && onDemand === undefined) return;
      const leftMs = next === undefined ? acmeCheckMs : next.dueMs - now();
      await this.#step(next, leftMs);
      well();
      if (this.#isChanged) await this.#planAgain();
    }
  }

  /** Waits for the next order, or begins it; what cannot be read delays one host only. */
  async #step(next: Renewal | undefined, leftMs: number): Promise<void> {
    const { cluster } = this.#parts;
    if (cluster !== undefined) await this.#encryptAgain(cluster);
    if (leftMs > 0) {
      if (!(await this.#askNext())) await this.#pauseUntilDue(Math.min(leftMs, acmeCheckMs));
      return;
    }
    if (next === undefined) return;
    try {
      if (next.unread !== undefined) this.#replace(next, await this.#planAtStart(next.host));
      else if (!(await this.#mayOrder(next))) return;
      else if (cluster === undefined) await this.#renew(next);
      else await this.#renewInTurn(next, cluster);
    } catch (error) {
      this.#replace(next, this.#unreadPlan(next, error));
    }
  }

  #replace(before: Renewal, plan: Renewal): void {
    this.#renewals = this.#renewals.map((one) => (one === before ? plan : one));
  }

  #plansAtStart(hosts: readonly string[]): Promise<readonly Renewal[]> {
    return Promise.all(
      hosts.map(async (host) => {
        try {
          return await this.#planAtStart(host);
        } catch (error) {
          return this.#unreadPlan({ host, failures: 0 }, error);
        }
      }),
    );
  }

  /** The plan for a host whose state or certificate cannot be read: to read it again later. */
  #unreadPlan(
    { host, failures, unread }: Pick<Renewal, 'host' | 'failures' | 'unread'>,
    error: unknown,
  ): Renewal {
    const { now, random, log } = this.#parts;
    const problem = sentence(error);
    const times = (unread?.times ?? 0) + 1;
    const dueMs = now() + retryDelayMs(times, random());
    if (problem !== unread?.problem && !this.#stopped.signal.aborted) {
      const what = `The renewal of the certificate of ${host} waits: ${problem}`;
      log.error({ err: error, host }, `${what} Retrying at ${isoOf(dueMs)}.`);
    }
    return { host, failures, dueMs, isFromStart: true, unread: { problem, times } };
  }

  #next(): Renewal | undefined {
    const first = (one: Renewal, other: Renewal): number => one.dueMs - other.dueMs;
    return this.#renewals.toSorted(first)[0];
  }

  #isConfigured(host: string): boolean {
    return this.#parts.acme.hosts.includes(host);
  }

  /** Plans orders for new names on demand; forgets names beyond the limit. */
  async #followDemand(): Promise<void> {
    const { onDemand } = this.#parts;
    if (onDemand === undefined) return;
    const hosts = await this.#namesOnDemand();
    const byUse = [...hosts].toSorted((one, other) => one[1] - other[1]).map(([host]) => host);
    const left = byUse.slice(0, Math.max(0, byUse.length - onDemand.namesMax));
    if (left.length > 0) await this.#forget(left, 'acme_on_demand_max has been reached');
    const wanted = new Set(byUse.slice(left.length));
    const planned = new Set(this.#renewals.map(({ host }) => host));
    const added = [...wanted].filter((host) => !planned.has(host));
    const plans = await this.#plansAtStart(added);
    const kept = this.#renewals.filter(({ host }) => this.#isConfigured(host) || wanted.has(host));
    this.#renewals = [...kept, ...plans];
  }

  /** The names on demand with their last use; those that were known, if they cannot be read. */
  async #namesOnDemand(): Promise<ReadonlyMap<string, number>> {
    const { store, log } = this.#parts;
    try {
      const names = await store.onDemand.hosts();
      // A name that came to the ini file later is no longer on demand.
      this.#names = new Map([...names].filter(([host]) => !this.#isConfigured(host)));
      this.#namesProblem = '';
    } catch (error) {
      const problem = sentence(error);
      const isNew = problem !== this.#namesProblem;
      if (isNew) log.error({}, `Cannot read which certificates are on demand: ${problem}`);
      this.#namesProblem = problem;
    }
    return this.#names;
  }

  /** Whether the certificate of a name may be ordered now; if not, it is planned or forgotten. */
  async #mayOrder(renewal: Renewal): Promise<boolean> {
    const { onDemand, now } = this.#parts;
    const { host, failures } = renewal;
    if (onDemand === undefined || this.#isConfigured(host)) return true;
    const [beganMs = -Infinity] = this.#onDemandOrders.slice(-onDemand.ordersPerMinute);
    const isFull = this.#onDemandOrders.length >= onDemand.ordersPerMinute;
    if (isFull && now() - beganMs < onDemandRateMs) {
      renewal.dueMs = beganMs + onDemandRateMs;
      return false;
    }
    const lifetime = await this.#lifetimeOf(host);
    const usedMs = (await this.#namesOnDemand()).get(host) ?? -Infinity;
    const isUsed = lifetime === undefined || usedMs > lifetime.beginsMs + unusedMs(lifetime);
    const isFailing = lifetime === undefined && failures >= onDemandFailuresMax;
    const permission =
      isUsed && !isFailing ? await onDemand.permissions.confirm(host) : ('refused' as const);
    if (permission === 'allowed') {
      this.#onDemandOrders = [...this.#onDemandOrders, now()].slice(-onDemand.ordersPerMinute);
      return true;
    }
    if (permission === 'unknown' && lifetime !== undefined && lifetime.endsMs > now()) {
      renewal.dueMs = now() + onDemandAskAgainMs;
      return false;
    }
    const why = isFailing ? 'its orders fail' : 'it is not allowed any more';
    await this.#forget([host], isUsed ? why : 'nobody uses it');
    return false;
  }

  async #forget(hosts: readonly string[], why: string): Promise<void> {
    const { store, log } = this.#parts;
    const [host = ''] = hosts;
    await this.#tryWrite(host, () => store.onDemand.forget(hosts));
    this.#renewals = this.#renewals.filter((one) => !hosts.includes(one.host));
    for (const one of hosts) this.#suggestions.delete(one);
    const names = hosts.length === 1 ? host : `${hosts.length} names`;
    log.info({ host }, `No more certificates on demand for ${names}: ${why}.`);
  }

  /** Pauses; ends early if another process wants certificates on demand. */
  async #pauseUntilDue(ms: number): Promise<void> {
    const { now, onDemand } = this.#parts;
    if (onDemand === undefined) return this.#pause(ms);
    const endMs = now() + ms;
    while (!this.#stopped.signal.aborted && !this.#isChanged) {
      const leftMs = endMs - now();
      if (leftMs <= 0) return;
      await this.#pause(Math.min(leftMs, onDemandPollMs));
      const planned = new Set(this.#renewals.map(({ host }) => host));
      const hosts = await this.#namesOnDemand();
      this.#isChanged ||= [...hosts.keys()].some((host) => !planned.has(host));
    }
  }

  /**
   * Asks about one certificate at a time, so that an order that is due does not wait; false if
   * there is nothing to ask.
   */
  async #askNext(): Promise<boolean> {
    for (const renewal of this.#renewals) {
      try {
        if (await this.#askWhen(renewal)) return true;
      } catch (error) {
        this.#replace(renewal, this.#unreadPlan(renewal, error));
      }
    }
    return false;
  }

  /**
   * Plans the renewal of a valid certificate by the suggestion of the ACME server, if it has one.
   * Without an answer, the plan stays. Resolves to whether it has asked.
   */
  async #askWhen(renewal: Renewal): Promise<boolean> {
    const { now, random, store, cluster } = this.#parts;
    const { host } = renewal;
    if (renewal.failures > 0 || renewal.unread || renewal.dueMs <= now()) return false;
    const certificate = await this.#certificateOf(host);
    const id = certificate && certificateId(certificate);
    if (certificate === undefined || id === undefined) return false;
    const known = this.#suggestions.get(host);
    if (known?.certificateId === id && now() < known.askMs) {
      const beforeMs = renewal.dueMs;
      const soonMs = Math.min(beforeMs, now() + acmeTurnPollMs);
      const dueMs = known.dueMs ?? beforeMs;
      // Another node may have the turn: a due renewal waits for it.
      renewal.dueMs = dueMs > now() ? dueMs : soonMs;
      return renewal.dueMs !== beforeMs;
    }
    const info = await this.#renewalInfo(host, id);
    const holdsMs = info?.holdsMs ?? acmeInfoMs;
    const before = known?.certificateId === id ? known.dueMs : undefined;
    // A failed question says nothing about the suggestion before it.
    const isSame = info === undefined || isWithin(before, info);
    const state = await store.state(host);
    const lifetime = lifetimeOf(certificate);
    const issuedMs = Math.max(lifetime.beginsMs, Math.min(timeOf(state?.since) ?? now(), now()));
    const dueMs = isSame ? before : suggestedMs(lifetime, info, { issuedMs, random: random() });
    this.#suggestions.set(host, { certificateId: id, dueMs, askMs: now() + holdsMs });
    if (dueMs === undefined || isSame) return true;
    this.#logEarlier(renewal, dueMs, info.why);
    renewal.dueMs = dueMs;
    // In a cluster, only the node that orders writes states.
    if (cluster !== undefined || state?.state !== 'valid') return true;
    await this.#tryWrite(host, () => store.saveState(host, { ...state, next: isoOf(dueMs) }));
    return true;
  }

  #logEarlier(renewal: Renewal, dueMs: number, page: string | undefined): void {
    if (dueMs >= renewal.dueMs) return;
    const { host } = renewal;
    const what = `The ACME server suggests to renew the certificate of ${host} at ${isoOf(dueMs)}.`;
    this.#parts.log.info({ host }, page === undefined ? what : `${what} It says why: ${page}`);
  }

  async #renewalInfo(host: string, id: string): Promise<RenewalInfo | undefined> {
    const { acme, log, now, renewalInfo } = this.#parts;
    try {
      const { directory } = acme;
      const trusted = await trustedBy(acme);
      const { signal } = this.#stopped;
      const asked = { directory, ...trusted, certificateId: id, nowMs: now(), signal };
      return await renewalInfo(asked);
    } catch (error) {
      if (this.#stopped.signal.aborted) return undefined;
      const server = new URL(acme.directory).hostname;
      const what = `${server} does not say when to renew the certificate of ${host}`;
      log.warn({ host }, `${what}: ${sentence(error)} The former plan stays.`);
      return undefined;
    }
  }

  /** Resolves after a time, or when the states in the cluster have changed. */
  async #pause(ms: number): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([this.#stopped.signal, over.signal]);
    try {
      await Promise.race([this.#parts.wait(ms, signal), this.#changed.promise]);
    } finally {
      over.abort();
    }
  }

  /** At most once an hour, because machines may disagree for a while which key is the newest. */
  async #encryptAgain(cluster: AcmeCluster): Promise<void> {
    const nowMs = this.#parts.now();
    if (Math.abs(nowMs - this.#encryptedMs) < acmeCheckMs) return;
    this.#encryptedMs = nowMs;
    // The turn reports problems with the keys.
    await cluster.encryptAgain().catch(() => undefined);
  }

  /** Notices changes by other nodes. */
  async #watch(signal: AbortSignal, well: () => void): Promise<void> {
    let isFirst = !this.#isWatched;
    this.#isWatched = true;
    const changes = this.#parts.store.changes(signal);
    while ((await changes.next()).done !== true) {
      well();
      // The plans are made after the first one.
      this.#isChanged = !isFirst;
      if (!isFirst) this.#changed.resolve(undefined);
      isFirst = false;
    }
  }

  /** Plans again after the states in the cluster have changed. */
  async #planAgain(): Promise<void> {
    this.#isChanged = false;
    this.#changed = Promise.withResolvers<undefined>();
    if (this.#parts.cluster !== undefined) {
      this.#renewals = await Promise.all(
        this.#renewals.map(async (renewal) => {
          try {
            return (await this.#planOfState(renewal.host)) ?? renewal;
          } catch (error) {
            return this.#unreadPlan(renewal, error);
          }
        }),
      );
    }
    await this.#followDemand();
  }

  /** Plans the next order for a host as the nodes of a cluster have agreed; undefined for none. */
  async #planOfState(host: string): Promise<Renewal | undefined> {
    const { store, cluster, now } = this.#parts;
    const state = await store.state(host);
    if (state === undefined) return undefined;
    const { failures, node } = state;
    const [sinceMs, nextMs] = [timeOf(state.since) ?? now(), timeOf(state.next)];
    const isOwn = node !== undefined && node === cluster?.node;
    if (nextMs !== undefined) {
      const afterMs = isOwn && state.state === 'failed' ? acmeYieldMs : 0;
      return { host, failures, dueMs: nextMs + afterMs, isFromStart: false };
    }
    // The node that orders may be killed, or has stored the certificate, but not the state.
    const lifetime = await this.#lifetimeOf(host);
    const isDone = lifetime !== undefined && renewalMs(lifetime, 1) > now();
    const dueMs = isDone ? renewalMs(lifetime, 0) : sinceMs + retryDelayMs(failures + 1, 1);
    return { host, failures: isDone ? 0 : failures + 1, dueMs, isFromStart: false };
  }

  /** Plans the next order for a host from its saved state and certificate. */
  async #planAtStart(host: string): Promise<Renewal> {
    const { store, cluster, now, random } = this.#parts;
    const state = await store.state(host);
    const failures = state?.failures ?? 0;
    if (cluster !== undefined && state?.state === 'obtaining') {
      return (await this.#planOfState(host)) ?? { host, failures, dueMs: now(), isFromStart: true };
    }
    const lastMs = timeOf(state?.since);
    // A process that ended during an order has not saved a time for the next one.
    const isBroken = state?.state === 'obtaining' && lastMs !== undefined;
    const nextMs = isBroken ? lastMs + acmeRestartMs : timeOf(state?.next);
    const lifetime = await this.#lifetimeOf(host);
    const dueMs =
      failures > 0 || lifetime === undefined
        ? orderAfterStartMs({ lastMs, nextMs }, now())
        : renewalAfterStartMs(lifetime, nextMs, { nowMs: now(), random: random() });
    return { host, failures, dueMs, isFromStart: true };
  }

  /** The validity of the certificate of a host; undefined if it has no usable one. */
  async #lifetimeOf(host: string): Promise<Lifetime | undefined> {
    const certificate = await this.#certificateOf(host);
    return certificate && lifetimeOf(certificate);
  }

  /** Rejects if there is a certificate that cannot be read: it must not be ordered again. */
  async #certificateOf(host: string): Promise<X509Certificate | undefined> {
    const { store } = this.#parts;
    const pair = await store.keyPair(host);
    if (pair === undefined) return undefined;
    if ('refused' in pair) {
      if (pair.isUnread) throw new Error(`${store.placeOf(host)} ${pair.refused}`);
      return undefined;
    }
    return isFor(pair.certificate, host) ? pair.certificate : undefined;
  }

  /** Whether the ACME server has suggested to renew the certificate that a host still has. */
  async #isSuggested(host: string): Promise<boolean> {
    const { dueMs, certificateId: id } = this.#suggestions.get(host) ?? {};
    if (dueMs === undefined || dueMs > this.#parts.now()) return false;
    const certificate = await this.#certificateOf(host);
    return certificate !== undefined && certificateId(certificate) === id;
  }

  /** Orders a certificate in the turn of this node, unless another node has ordered it by then. */
  async #renewInTurn(renewal: Renewal, cluster: AcmeCluster): Promise<void> {
    const { log, now } = this.#parts;
    this.#lost = new AbortController();
    try {
      await cluster.take(() => {
        this.#lost.abort();
      });
      this.#problem = '';
    } catch (error) {
      const isProblem = !(error instanceof Failure && isPassing.includes(error.code));
      renewal.dueMs = now() + (isProblem ? acmeProblemMs : acmeTurnPollMs);
      const problem = error instanceof Error ? error.message : String(error);
      if (!isProblem || problem === this.#problem || this.#stopped.signal.aborted) return;
      this.#problem = problem;
      log.error({ host: renewal.host }, `This machine cannot order certificates: ${problem}`);
      return;
    }
    try {
      const { host, isFromStart } = renewal;
      const plan = isFromStart ? await this.#planAtStart(host) : await this.#planOfState(host);
      renewal.failures = plan?.failures ?? renewal.failures;
      const isDue = plan === undefined || plan.dueMs <= now() || (await this.#isSuggested(host));
      if (isDue) await this.#renew(renewal);
      else renewal.dueMs = plan.dueMs;
    } finally {
      await cluster.release().catch(() => undefined);
    }
  }

  async #renew(renewal: Renewal): Promise<void> {
    const { store, log, acme, now, random } = this.#parts;
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
      await store.saveCertificate(host, issued, this.#stopped.signal);
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
    if (this.#lost.signal.aborted) {
      const { host } = renewal;
      log.warn({ host }, `Another machine has taken over the order of a certificate for ${host}.`);
      renewal.dueMs = now() + acmeTurnPollMs;
      return;
    }
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
    // Also when the certificate cannot be read, the next order has to wait.
    const lifetime = await this.#lifetimeOf(renewal.host).catch(() => undefined);
    const leftMs = lifetime === undefined ? undefined : lifetime.endsMs - now();
    const delayMs = retryDelayMs(renewal.failures, random(), leftMs);
    renewal.dueMs = now() + Math.max(delayMs, afterMs);
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
    const { store, cluster } = this.#parts;
    const saved = { state, since, failures, next, error, ...(cluster && { node: cluster.node }) };
    return this.#tryWrite(host, () => store.saveState(host, saved));
  }

  /** Logs a failed write: a full disk must not end the renewals. */
  async #tryWrite(host: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      const message = `Cannot store the state of the order for ${host}.`;
      this.#parts.log.error({ err: error, host }, message);
    }
  }

  /** The certificate of a host, for an ACME server that has suggested when to renew it. */
  async #replacedBy(host: string): Promise<string | undefined> {
    const known = this.#suggestions.get(host);
    if (known?.dueMs === undefined) return undefined;
    const certificate = await this.#certificateOf(host);
    const id = certificate && certificateId(certificate);
    return id === known.certificateId ? id : undefined;
  }

  async #order({ host, failures }: Renewal): Promise<IssuedCertificate> {
    const { acme, store, cluster, dns, order, wait } = this.#parts;
    const challenges = dns === undefined ? this.#parts.challenges : (['dns-01'] as const);
    const records: DnsRecord[] = [];
    const signal = AbortSignal.any([this.#stopped.signal, this.#lost.signal]);
    const { directory, email, profile } = acme;
    const binding = await readBinding(acme);
    const trusted = await trustedBy(acme);
    const replaces = await this.#replacedBy(host);
    const accountKey = await store.accountKey();
    // The challenge may be the cause of a failure, so the next order prefers the other one.
    const preferred = failures % 2 === 1 ? challenges.toReversed() : challenges;
    try {
      return await order(
        {
          ...{ directory, email, profile, binding, ...trusted, accountKey, host, replaces },
          challenges: preferred,
        },
        {
          async saveChallenge(response) {
            if (response.type !== 'dns-01') return saveResponse(store, host, response);
            // Also one that may not be there: a program may fail when it has made it.
            records.push(response);
            await dns?.present(response, signal);
            if (acme.dnsWaitMs > 0) await wait(acme.dnsWaitMs, signal);
          },
          signal,
        },
      );
    } finally {
      // In a cluster, the next order removes those of one that was cut off.
      const isLeft = cluster !== undefined && signal.aborted;
      if (!isLeft) await this.#tryWrite(host, () => store.removeChallenges());
      for (const record of records) await this.#cleanup(record);
    }
  }

  /** Removes a record; a failure ends nothing that works, and the next order does not need it. */
  async #cleanup(record: DnsRecord): Promise<void> {
    const { dns, log } = this.#parts;
    const isStopped = this.#stopped.signal.aborted;
    const signal = AbortSignal.timeout(isStopped ? dnsCleanupStoppedMs : acmeOrderMs);
    await dns?.cleanup(record, signal).catch((error: unknown) => {
      log.warn({}, `The TXT record of ${record.name} is still there: ${sentence(error)}`);
    });
  }
}

function saveResponse(
  store: AcmeStore,
  host: string,
  response: Exclude<ChallengeResponse, { readonly type: 'dns-01' }>,
): Promise<void> {
  return response.type === 'http-01'
    ? store.saveChallenge(response.token, response.keyAuthorization)
    : store.saveChallenge(host, response);
}

/** The certification authorities and networks that are trusted for an ACME server. */
async function trustedBy({
  allowPrivate,
  caFile,
}: AcmeConfig): Promise<Pick<AcmeOrder, 'ca' | 'allowPrivate'>> {
  return {
    allowPrivate: allowPrivate.map((network) => network.text),
    ca: caFile === undefined ? undefined : await readFile(caFile, 'utf8'),
  };
}

function isWithin(ms: number | undefined, { startMs, endMs }: RenewalInfo): boolean {
  return ms !== undefined && ms >= startMs && ms <= endMs;
}

/** How long after its issue the use of a certificate does not count as use of the new one. */
function unusedMs({ beginsMs, endsMs }: Lifetime): number {
  return (endsMs - beginsMs) / 10;
}

/** Failures of a turn that pass by themselves. */
const isPassing: readonly string[] = ['conflict', 'unavailable'];

async function readBinding({ eabKid: kid, eabKeyFile }: AcmeConfig): Promise<AcmeOrder['binding']> {
  if (kid === undefined || eabKeyFile === undefined) return undefined;
  const read = await readEabKey(eabKeyFile);
  if ('refused' in read) throw new Error(`acme_eab_key ${read.refused}.`);
  return { kid, key: read.key };
}

function isFor(certificate: X509Certificate, host: string): boolean {
  // Of a wildcard, any name below it.
  const sample = host.replace(/^\*/, 'www');
  return certificate.checkHost(sample, { subject: 'never' }) !== undefined;
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
