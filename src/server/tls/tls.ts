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

/** What TLS needs of its surroundings. */
interface TlsParts {
  readonly config: Config;
  readonly log: Log;
  /** Of several processes, the one that gets certificates, and tells the log of them. */
  readonly isPrimary: boolean;
}

/** Certificates, and where they come from. */
export interface Tls {
  readonly certificates: Certificates;
  /** Answers the challenges of an ACME server; undefined where ACME is off. */
  readonly acme: AcmeFolder | undefined;
  /** Begins to get certificates, once the server listens. */
  start(): void;
  /** Takes over what a reload has changed of ACME, in the background. */
  reload(acme: AcmeConfig): void;
  metrics(): readonly Metric[];
  close(): Promise<void>;
}

/** Reads the certificates; rejects with `invalid` where one of the ini file cannot be used. */
export async function openTls({ config, log, isPrimary }: TlsParts): Promise<Tls> {
  const { certificates: files, acme } = config.tls;
  const folder = await folderOf(config.server, acme, isPrimary);
  const surroundings = { log: isPrimary ? log : silentLog, now };
  const certificates = await Certificates.open(files, folder, surroundings);
  return new OpenTls({ config, log: surroundings.log, isPrimary, certificates, folder });
}

class OpenTls implements Tls {
  readonly certificates: Certificates;
  readonly #server: Config['server'];
  readonly #log: Log;
  readonly #isPrimary: boolean;
  #acme: { readonly settings: AcmeConfig; readonly folder: AcmeFolder | undefined };
  #renewals: Renewals | undefined;
  #taking = Promise.resolve();

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
    this.#taking = this.#taking
      .then(() => this.#take(acme))
      .catch((error: unknown) => {
        this.#log.error({ err: error }, 'The changed settings of ACME could not be taken over.');
      });
  }

  metrics(): readonly Metric[] {
    return [...this.certificates.metrics(), ...(this.#renewals?.metrics() ?? [])];
  }

  async close(): Promise<void> {
    await this.#taking;
    await this.#renewals?.stop();
    await this.certificates.close();
  }

  async #take(settings: AcmeConfig): Promise<void> {
    if (isDeepStrictEqual(settings, this.#acme.settings)) return;
    await this.#renewals?.stop();
    this.#renewals = undefined;
    const folder = await folderOf(this.#server, settings, this.#isPrimary);
    this.#acme = { settings, folder };
    await this.certificates.manage(folder);
    this.start();
  }
}

/** The folder of ACME's files; undefined where no certificate is ordered. */
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
