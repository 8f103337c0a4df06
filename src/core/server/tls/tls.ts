import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { BackgroundTasks } from '../../background/tasks.ts';
import { now } from '../../values/clock.ts';
import type { AcmeStore } from '../../../modules/acme/acme-store.ts';
import { AcmeFolder } from '../../../modules/acme/folder.ts';
import { Renewals, type AcmeCluster } from '../../../modules/acme/renewals.ts';
import type { SharedAcme } from '../../../modules/acme/shared-acme.ts';
import type { ListenAddress } from '../../config/addresses.ts';
import type { AcmeConfig, Config } from '../../config/config.ts';
import { silentLog, type Log } from '../../report/log.ts';
import type { Metric } from '../../report/metrics.ts';
import type { SharedPart } from '../../log/store.ts';
import { challengesFor, orderCertificate } from '../../../modules/acme/acme-order.ts';
import { createDnsRecords } from '../../../modules/acme/dns/dns-records.ts';
import { readRenewalInfo } from '../../../modules/acme/renewal-info.ts';
import { createAsk, Permissions } from '../../../modules/acme/permissions.ts';
import { Certificates } from './certificates.ts';
import { OnDemandCertificates } from '../../../modules/acme/on-demand-certificates.ts';
import type { TicketKey } from './ticket-key.ts';

/** The dependencies of TLS. */
interface TlsParts {
  readonly config: Config;
  readonly log: Log;
  readonly tasks: BackgroundTasks;
  /** Whether this process, of several, runs ACME and logs the state of certificates. */
  readonly isPrimary: boolean;
  /** The log that the nodes of a cluster share; undefined for a single machine. */
  readonly shared: SharedPart | undefined;
  readonly ticketKey: TicketKey;
  /** The name of this server in the Via of its questions about names. */
  readonly via?: string | undefined;
}

/** The certificates of the server, and the ACME client that gets some of them. */
export interface Tls {
  readonly certificates: Certificates;
  /** Returns the responses to ACME challenges; undefined without ACME. */
  readonly acme: AcmeStore | undefined;
  /** Starts ACME; called when the server listens. */
  start(): void;
  /** Applies changed settings of ACME and of client certificates, in the background. */
  reload(config: Pick<Config, 'tls' | 'access'>): void;
  metrics(): readonly Metric[];
  /** Leaves the orders of certificates to another process. */
  stopOrders(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the certificates; rejects with `invalid` if one of the ini file is unusable. */
export async function openTls(parts: TlsParts): Promise<Tls> {
  const { config, isPrimary } = parts;
  const log = isPrimary ? parts.log : silentLog;
  const { tasks } = parts;
  const { certificates: files, acme: settings } = config.tls;
  const acme = await openAcme({ ...parts, log }, settings);
  const onDemand = acme.onDemand?.certificates;
  const certificates = await Certificates.open(files, acme.store, { log, now, tasks }, onDemand);
  await certificates.clientAuthorities.set(config.access);
  parts.ticketKey.follow((key) => {
    certificates.setTicketKey(key);
  });
  return new OpenTls({ ...parts, log, certificates, acme });
}

/** The storage of ACME. */
interface OpenAcme {
  /** Undefined if there are no certificates to get. */
  readonly store: AcmeStore | undefined;
  readonly cluster?: AcmeCluster;
  /** Undefined without `acme_on_demand`. */
  readonly onDemand?: OnDemand | undefined;
}

/** The certificates for names that the ini file does not have. */
interface OnDemand {
  readonly certificates: OnDemandCertificates;
  readonly permissions: Permissions;
  /** Called when one is needed; set by the process that orders. */
  wake: () => void;
  readonly close: () => Promise<void>;
}

function openOnDemand(
  { onDemandUrl, onDemandWaitMs: waitMs }: AcmeConfig,
  store: AcmeStore,
  { log, via }: { readonly log: Log; readonly via: string | undefined },
): OnDemand | undefined {
  if (onDemandUrl === undefined) return undefined;
  const { ask, close } = createAsk(onDemandUrl, via);
  const permissions = new Permissions(ask, { log, now });
  const opened: OnDemand = {
    certificates: new OnDemandCertificates({
      ...{ store, permissions, waitMs, now },
      demanded: () => {
        opened.wake();
      },
      wait: (ms) => delay(ms, undefined, { ref: false }),
    }),
    permissions,
    wake: () => undefined,
    close,
  };
  return opened;
}

class OpenTls implements Tls {
  readonly certificates: Certificates;
  readonly #parts: TlsParts;
  #settings: AcmeConfig;
  #acme: OpenAcme;
  #renewals: Renewals | undefined;
  #reloading = Promise.resolve();

  constructor({
    certificates,
    acme,
    ...parts
  }: TlsParts & { readonly certificates: Certificates; readonly acme: OpenAcme }) {
    this.certificates = certificates;
    this.#parts = parts;
    this.#settings = parts.config.tls.acme;
    this.#acme = acme;
  }

  get acme(): AcmeStore | undefined {
    return this.#acme.store;
  }

  start(): void {
    const { config, log, isPrimary, tasks } = this.#parts;
    const { store, cluster, onDemand } = this.#acme;
    if (store === undefined || !isPrimary || !managesHosts(config.server, this.#settings)) return;
    const { onDemandRate: ordersPerMinute, onDemandMax: namesMax } = this.#settings;
    const renewals = new Renewals({
      acme: this.#settings,
      store,
      cluster,
      challenges: challengesFor(config.server.listen),
      dns: createDnsRecords(this.#settings),
      log,
      tasks,
      now,
      random: Math.random,
      order: orderCertificate,
      renewalInfo: readRenewalInfo,
      wait: (ms, signal) => delay(ms, undefined, { ref: false, signal }),
      onDemand: onDemand && { permissions: onDemand.permissions, ordersPerMinute, namesMax },
    });
    if (onDemand !== undefined) {
      onDemand.wake = () => {
        renewals.wake();
      };
    }
    this.#renewals = renewals;
    renewals.start();
  }

  reload({ tls: { acme }, access }: Pick<Config, 'tls' | 'access'>): void {
    this.#reloading = this.#reloading
      .then(() => this.certificates.clientAuthorities.set(access))
      .catch((error: unknown) => {
        this.#parts.log.error(
          { err: error },
          'The server cannot read the files of `client_certificate`: what needs them is refused.',
        );
      })
      .then(() => this.#apply(acme))
      .catch((error: unknown) => {
        this.#parts.log.error(
          { err: error },
          'The server cannot apply the changed settings of ACME, so the former ones stay. ' +
            'Correct the cause, then change the settings again or restart.',
        );
      });
  }

  metrics(): readonly Metric[] {
    return [...this.certificates.metrics(), ...(this.#renewals?.metrics() ?? [])];
  }

  async stopOrders(): Promise<void> {
    await this.#reloading;
    await this.#renewals?.stop();
  }

  async close(): Promise<void> {
    await this.stopOrders();
    await this.certificates.close();
    await this.#acme.onDemand?.close();
  }

  async #apply(settings: AcmeConfig): Promise<void> {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    // The steps that can fail come first, so that a failure leaves the former settings and their
    // renewals.
    const acme = await openAcme(this.#parts, settings);
    await this.certificates.setAcme(acme.store, acme.onDemand?.certificates);
    await this.#renewals?.stop();
    this.#renewals = undefined;
    await this.#acme.onDemand?.close();
    [this.#settings, this.#acme] = [settings, acme];
    this.start();
  }
}

/** Whether there are certificates to get: for a listener that uses them. */
function managesHosts(
  { listen }: { readonly listen: readonly ListenAddress[] },
  { hosts, onDemandUrl }: AcmeConfig,
): boolean {
  const hasNames = hosts.length > 0 || onDemandUrl !== undefined;
  return hasNames && listen.some((one) => one.kind === 'tcp' && one.scheme === 'https');
}

/**
 * Opens what ACME stores: a folder, or what the nodes of a cluster share, each of which answers
 * challenges.
 */
async function openAcme(
  { config, log, isPrimary, shared, via }: TlsParts,
  acme: AcmeConfig,
): Promise<OpenAcme> {
  const { server, cluster, node } = config;
  const { secretsKeyFile: keyFile } = cluster;
  const isManaging = managesHosts(server, acme);
  const folder = new AcmeFolder(server.data, acme);
  if (shared === undefined || keyFile === undefined) {
    if (!isManaging) return { store: undefined };
    if (isPrimary) await folder.prepare();
    return { store: folder, onDemand: openOnDemand(acme, folder, { log, via }) };
  }
  // A single machine does not load it.
  const { openSharedAcme } = await import('../../../modules/acme/shared-acme.ts');
  const hosts = isManaging ? acme.hosts : [];
  const store = openSharedAcme(shared, { acme: { ...acme, hosts }, keyFile, folder });
  if (isPrimary) await moveFiles(store, log);
  return {
    store,
    onDemand: isManaging ? openOnDemand(acme, store, { log, via }) : undefined,
    cluster: {
      node: node.name,
      take: (lost) => store.take(lost),
      release: () => store.release(),
      encryptAgain: () => store.encryptAgain(),
    },
  };
}

/** Moves certificates of this machine into its cluster; a failure is logged, and repeated later. */
async function moveFiles(acme: SharedAcme, log: Log): Promise<void> {
  try {
    const hosts = (await acme.moveFiles()).join(', ');
    if (hosts === '') return;
    log.info({}, `The certificates of this machine are in the cluster now: ${hosts}.`);
  } catch (error) {
    log.error({ err: error }, 'Cannot move the certificates of this machine into the cluster.');
  }
}
