import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { now } from '../../model/clock.ts';
import { AcmeFolder } from '../../acme/folder.ts';
import { Renewals } from '../../acme/renewals.ts';
import type { ListenAddress } from '../../config/addresses.ts';
import type { AcmeConfig, Config } from '../../config/config.ts';
import { silentLog, type Log } from '../../observability/log.ts';
import type { Metric } from '../../observability/metrics.ts';
import { challengesFor, orderCertificate } from '../../acme/acme-order.ts';
import { Certificates } from './certificates.ts';

/** The dependencies of TLS. */
interface TlsParts {
  readonly config: Config;
  readonly log: Log;
  /** Whether this process, of several, runs ACME and logs the state of certificates. */
  readonly isPrimary: boolean;
}

/** The certificates of the server, and the ACME client that gets some of them. */
export interface Tls {
  readonly certificates: Certificates;
  /** The folder with the answers to ACME challenges; undefined without ACME. */
  readonly acme: AcmeFolder | undefined;
  /** Starts ACME; called when the server listens. */
  start(): void;
  /** Applies changed settings of ACME after a reload, in the background. */
  reload(acme: AcmeConfig): void;
  metrics(): readonly Metric[];
  /** Leaves the orders of certificates to another process. */
  stopOrders(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the certificates; rejects with `invalid` if one of the ini file is unusable. */
export async function openTls({ config, log, isPrimary }: TlsParts): Promise<Tls> {
  const { certificates: files, acme } = config.tls;
  const folder = await folderOf(config.server, acme, isPrimary);
  const dependencies = { log: isPrimary ? log : silentLog, now };
  const certificates = await Certificates.open(files, folder, dependencies);
  return new OpenTls({ config, log: dependencies.log, isPrimary, certificates, folder });
}

class OpenTls implements Tls {
  readonly certificates: Certificates;
  readonly #server: Config['server'];
  readonly #log: Log;
  readonly #isPrimary: boolean;
  #acme: { readonly settings: AcmeConfig; readonly folder: AcmeFolder | undefined };
  #renewals: Renewals | undefined;
  #reloading = Promise.resolve();

  constructor({
    config,
    log,
    isPrimary,
    certificates,
    folder,
  }: TlsParts & { readonly certificates: Certificates; readonly folder: AcmeFolder | undefined }) {
    this.certificates = certificates;
    this.#server = config.server;
    this.#log = log;
    this.#isPrimary = isPrimary;
    this.#acme = { settings: config.tls.acme, folder };
  }

  get acme(): AcmeFolder | undefined {
    return this.#acme.folder;
  }

  start(): void {
    const { settings, folder } = this.#acme;
    if (folder === undefined || !this.#isPrimary) return;
    this.#renewals = new Renewals({
      acme: settings,
      folder,
      challenges: challengesFor(this.#server.listen),
      log: this.#log,
      now,
      random: Math.random,
      order: orderCertificate,
      wait: (ms, signal) => delay(ms, undefined, { ref: false, signal }),
    });
    this.#renewals.start();
  }

  reload(acme: AcmeConfig): void {
    this.#reloading = this.#reloading
      .then(() => this.#apply(acme))
      .catch((error: unknown) => {
        this.#log.error(
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
  }

  async #apply(settings: AcmeConfig): Promise<void> {
    if (isDeepStrictEqual(settings, this.#acme.settings)) return;
    // What can fail comes first, so that a failure leaves the former settings and their renewals.
    const folder = await folderOf(this.#server, settings, this.#isPrimary);
    await this.certificates.setAcme(folder);
    await this.#renewals?.stop();
    this.#renewals = undefined;
    this.#acme = { settings, folder };
    this.start();
  }
}

/** Opens the folder of ACME; undefined if it has no certificates to get. */
async function folderOf(
  { data, listen }: { readonly data: string; readonly listen: readonly ListenAddress[] },
  acme: AcmeConfig,
  isPrimary: boolean,
): Promise<AcmeFolder | undefined> {
  const isTls = listen.some((one) => one.kind === 'tcp' && one.scheme === 'https');
  if (acme.hosts.length === 0 || !isTls) return undefined;
  const folder = new AcmeFolder(data, acme);
  if (isPrimary) await folder.prepare();
  return folder;
}
