import { constants } from 'node:crypto';
import { isIP } from 'node:net';
import type { SecureContext, SecureContextOptions, Server, TLSSocket } from 'node:tls';
import { ClientAuthorities } from '../../../modules/access/client-authorities.ts';
import type { AcmeStore } from '../../../modules/acme/acme-store.ts';
import type { OnDemandCertificates } from '../../../modules/acme/on-demand-certificates.ts';
import type { CertificateState } from '../../../modules/status/server-status.ts';
import { type BackgroundTasks, type RunningTask, afterIntervals } from '../../background/tasks.ts';
import type { Certificate } from '../../config/config.ts';
import { certificateWarnings } from '../../config/warnings.ts';
import { fileChanges } from '../../config/watch.ts';
import type { Log } from '../../report/log.ts';
import type { Metric } from '../../report/metrics.ts';
import { unknownAddress } from '../../values/network/peer.ts';
import { peerOf } from '../listening/accept.ts';
import {
  type LoadedCertificate,
  certificateNames,
  certificateState,
  loadAcmeCertificate,
  loadCertificate,
  protocolOptions,
} from './loaded-certificate.ts';
import { isPublicName } from './public-name.ts';

/** The interval between two checks of certificates for their expiry. */
const certificateCheckMs = 12 * 3_600_000;

/** The dependencies of certificates. */
interface Dependencies {
  readonly log: Log;
  readonly tasks: Pick<BackgroundTasks, 'start'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** How often it looks for certificates that expire; by default, a few times a day. */
  readonly checkMs?: number;
}

/**
 * The certificates of the ini file and of ACME, chosen by server name (SNI, RFC 6066 §3). The
 * server reads changed files again: the next handshake uses the new pair if it is valid, otherwise
 * the old one.
 */
export class Certificates {
  readonly #dependencies: Dependencies;
  readonly #configured: readonly LoadedCertificate[];
  readonly #servers = new Set<Server>();
  /** Those of the certificates that clients need. */
  readonly clientAuthorities: ClientAuthorities;
  readonly #expiry: RunningTask;
  /** The certificates that ACME gets. */
  #acmeCertificates: readonly LoadedCertificate[] = [];
  #acme: AcmeStore | undefined;
  #ticketKey: Buffer | undefined;
  /** Undefined without `acme_on_demand`. */
  #onDemand: OnDemandCertificates | undefined;
  #watches: readonly RunningTask[] = [];

  private constructor(configured: readonly LoadedCertificate[], dependencies: Dependencies) {
    this.#configured = configured;
    this.#dependencies = dependencies;
    this.clientAuthorities = new ClientAuthorities({
      log: dependencies.log,
      tasks: dependencies.tasks,
      changed: () => {
        this.#configureAll();
      },
    });
    this.#expiry = dependencies.tasks.start({
      name: 'certificate_expiry',
      title: 'The warning about certificates that expire',
      run: afterIntervals(dependencies.checkMs ?? certificateCheckMs, () => {
        this.#warnAll();
        return undefined;
      }),
    });
  }

  /**
   * Reads all certificates of the ini file, and those that ACME has already got. Rejects with
   * `invalid` if one of the ini file is unusable.
   */
  static async open(
    files: readonly Certificate[],
    acme: AcmeStore | undefined,
    dependencies: Dependencies,
    onDemand?: OnDemandCertificates,
  ): Promise<Certificates> {
    const configured = await Promise.all(files.map((one) => loadCertificate(one)));
    const certificates = new Certificates(configured, dependencies);
    await certificates.setAcme(acme, onDemand);
    return certificates;
  }

  /**
   * Replaces the certificates of ACME after a change of its configuration; those that it has
   * already got are used at once.
   */
  async setAcme(acme: AcmeStore | undefined, onDemand?: OnDemandCertificates): Promise<void> {
    const loaded =
      acme === undefined
        ? []
        : await Promise.all(acme.hosts.map((host) => loadAcmeCertificate(host, acme)));
    await this.#endWatch();
    for (const one of loaded) if (one.problem !== null) this.#logProblem(one, one.problem);
    this.#acmeCertificates = loaded;
    this.#acme = acme;
    this.#onDemand = onDemand;
    this.#follow();
    this.#warnAll();
  }

  /**
   * Sets the certificate that clients without SNI get, and the key of session tickets. `#reload`
   * sets both again after each change.
   */
  serve(server: Server): void {
    this.#servers.add(server);
    this.#configure(server, this.#defaultOptions());
    // To a worker that begins to listen, node:cluster gives the key that the first worker had then.
    server.on('listening', () => {
      this.#configure(server, undefined);
    });
  }

  /** Encrypts the session tickets of all servers with another key: see TicketKey. */
  setTicketKey(key: Buffer): void {
    this.#ticketKey = key;
    for (const server of this.#servers) server.setTicketKeys(key);
  }

  #configureAll(): void {
    for (const server of this.#servers) this.#configure(server, this.#defaultOptions());
  }

  /** The options of clients without SNI, and of the sessions of all. */
  #defaultOptions(): SecureContextOptions {
    const options = this.#fallback()?.current?.options ?? protocolOptions;
    if (!this.clientAuthorities.areNeeded) return options;
    // The client of a continued session proves no certificate to the authorities of its host.
    const { secureOptions = 0 } = options;
    return { ...options, secureOptions: secureOptions | constants.SSL_OP_NO_TICKET };
  }

  /** A new context has a ticket key of its own, until it gets that of all. */
  #configure(server: Server, options: SecureContextOptions | undefined): void {
    if (options !== undefined) server.setSecureContext(options);
    if (this.#ticketKey !== undefined) server.setTicketKeys(this.#ticketKey);
  }

  /**
   * Returns the TLS context for a host: that of `[tls.<host>]`, else of the wildcard that covers
   * the host, else of `[tls]`; undefined without any of them. It asks the client of a connection
   * for a certificate if rules of the host need one.
   */
  contextFor(host: string, socket?: TLSSocket): SecureContext | undefined {
    const name = host.toLowerCase();
    const pair = this.#certificateFor(name)?.current;
    if (pair === undefined || socket === undefined) return pair?.context;
    return this.clientAuthorities.contextFor(socket, name, pair) ?? pair.context;
  }

  /**
   * As contextFor, for any name that a client may send: one that no certificate covers may get one
   * on demand, which can take some seconds. Never rejects.
   */
  handshakeContext(
    host: string,
    socket?: TLSSocket,
  ): SecureContext | undefined | Promise<SecureContext | undefined> {
    const name = host.toLowerCase();
    const onDemand = this.isOnDemand(name) ? this.#onDemand : undefined;
    if (onDemand === undefined) return this.contextFor(name, socket);
    const address = socket === undefined ? unknownAddress : peerOf(socket).address;
    return onDemand.pairFor(name, address).then(
      (pair) => {
        if (pair === undefined) return this.contextFor(name, socket);
        const asking = socket && this.clientAuthorities.contextFor(socket, name, pair);
        return asking ?? pair.context;
      },
      (error: unknown) => {
        const message = `The server cannot look for a certificate for ${name}.`;
        this.#dependencies.log.error({ err: error, host: name }, message);
        return this.contextFor(name, socket);
      },
    );
  }

  /** Whether a certificate is valid for a host (lower case, without port). */
  covers(host: string): boolean {
    const loaded = this.#certificateFor(host);
    if (loaded?.current === undefined) return false;
    if (loaded.host !== undefined) return true;
    const { certificate } = loaded.current.pair;
    const address = host.replace(/^\[(.*)\]$/, '$1');
    return isIP(address) === 0
      ? certificate.checkHost(host, { subject: 'never' }) !== undefined
      : certificate.checkIP(address) !== undefined;
  }

  /** Whether a host may have a certificate on demand: no other one is for it, now or later. */
  isOnDemand(host: string): boolean {
    if (this.#onDemand === undefined || !isPublicName(host)) return false;
    return !this.covers(host) && !this.isPendingFor(host);
  }

  /**
   * Whether a host waits for its first certificate from ACME, and no other certificate covers it.
   */
  isPendingFor(host: string): boolean {
    const names = [host, host.replace(/^[^.]+/, '*')];
    const isFromAcme = this.#acmeCertificates.some((one) => names.includes(one.host ?? ''));
    return isFromAcme && !this.covers(host);
  }

  /** The first exact hostname of the certificates; undefined if there is none. */
  get mainHost(): string | undefined {
    const sections = this.#active().map((one) => one.host ?? '');
    const names = [...certificateNames(this.#fallback()?.current), ...sections];
    return names.find((name) => name !== '' && !name.startsWith('*'));
  }

  /** Returns the certificates of the ini file with the pairs in use, for another process. */
  activeCertificates(): readonly Certificate[] {
    return this.#configured.flatMap(({ files, current }) => {
      if (files === undefined || current === undefined) return files ?? [];
      const { cert, key } = current.pair;
      return { ...files, inUse: { cert, key } };
    });
  }

  /** Returns the state of each certificate. */
  async states(): Promise<readonly CertificateState[]> {
    const own = await Promise.all(this.#all().map((one) => certificateState(one, this.#acme)));
    return [...own, ...((await this.#onDemand?.states()) ?? [])];
  }

  /** Returns from when until when each certificate in use is valid. */
  metrics(): readonly Metric[] {
    return [
      {
        type: 'gauge',
        name: 'waymark_certificate_start_seconds',
        help: 'When the certificate of a section of the ini file begins, in seconds since 1970.',
        samples: this.#active().map(({ section, current }) => ({
          labels: { section },
          value: (current?.pair.certificate.validFromDate.getTime() ?? 0) / 1000,
        })),
      },
      {
        type: 'gauge',
        name: 'waymark_certificate_end_seconds',
        help: 'When the certificate of a section of the ini file ends, in seconds since 1970.',
        samples: this.#active().map(({ section, current }) => ({
          labels: { section },
          value: (current?.pair.certificate.validToDate.getTime() ?? 0) / 1000,
        })),
      },
    ];
  }

  /** Stops watching the files. */
  async close(): Promise<void> {
    await this.#expiry.stop();
    await this.clientAuthorities.close();
    await this.#endWatch();
  }

  #all(): readonly LoadedCertificate[] {
    return [...this.#configured, ...this.#acmeCertificates];
  }

  #active(): readonly LoadedCertificate[] {
    return this.#all().filter(({ current }) => current !== undefined);
  }

  #fallback(): LoadedCertificate | undefined {
    return this.#configured.find(({ host }) => host === undefined);
  }

  #certificateFor(host: string): LoadedCertificate | undefined {
    return (
      this.#activeFor(host) ?? this.#activeFor(host.replace(/^[^.]+/, '*')) ?? this.#fallback()
    );
  }

  #activeFor(name: string): LoadedCertificate | undefined {
    const isMatch = ({ host, current }: LoadedCertificate) =>
      host === name && current !== undefined;
    return this.#configured.find(isMatch) ?? this.#acmeCertificates.find(isMatch);
  }

  async #endWatch(): Promise<void> {
    await Promise.all(this.#watches.map((one) => one.stop()));
    this.#watches = [];
  }

  #follow(): void {
    const files = this.#configured.flatMap((one) =>
      one.files === undefined ? [] : [one.files.certFile, one.files.keyFile],
    );
    const [acme, own] = [this.#acmeCertificates, this.#configured];
    const store = this.#acme;
    this.#watches = [
      ...(files.length > 0 ? [this.#watch(own, (signal) => fileChanges(() => files, signal))] : []),
      ...(acme.length > 0 && store !== undefined
        ? [this.#watch(acme, (signal) => store.changes(signal))]
        : []),
    ];
  }

  /** Reads certificates again after each change, the first of which is the begin of the watch. */
  #watch(
    certificates: readonly LoadedCertificate[],
    changesUntil: (signal: AbortSignal) => AsyncIterator<unknown>,
  ): RunningTask {
    return this.#dependencies.tasks.start({
      name: 'certificate_watch',
      title: 'The watch of the files of certificates',
      meanwhile: 'The certificates that are in use stay.',
      run: async (signal, well) => {
        const changes = changesUntil(signal);
        while ((await changes.next()).done !== true) {
          for (const loaded of certificates) await this.#reload(loaded);
          well();
        }
      },
    });
  }

  /** Replaces the pair in use by the pair that is stored, if that is usable. */
  async #reload(loaded: LoadedCertificate): Promise<void> {
    const { log } = this.#dependencies;
    const stored = await loaded.read();
    // The log of ACME reports a certificate that it has not got yet.
    if (stored === undefined && loaded.current === undefined) return;
    const next = stored ?? { key: 'cert' as const, refused: 'does not exist' };
    if ('refused' in next) {
      const place = loaded.placeOf(next);
      const problem =
        loaded.files === undefined ? `${place} ${next.refused}` : `\`${next.key}\` ${next.refused}`;
      if (problem === loaded.problem) return;
      loaded.problem = problem;
      this.#logProblem(loaded, `${place} ${next.refused}`);
      return;
    }
    const { cert, key } = loaded.current?.pair ?? { cert: undefined, key: undefined };
    const isSame = next.pair.cert === cert && next.pair.key === key;
    const wasBroken = loaded.problem !== null;
    loaded.current = next;
    loaded.problem = null;
    if (isSame && !wasBroken) return;
    if (loaded.host === undefined) this.#configureAll();
    const until = next.pair.certificate.validToDate.toISOString();
    const what = cert === undefined ? 'is in use' : 'was read again';
    log.info({}, `The certificate of ${loaded.section} ${what}: valid until ${until}.`);
    this.#warn(loaded);
  }

  #logProblem({ section, current }: LoadedCertificate, why: string): void {
    const effect = current === undefined ? 'There is no certificate for' : 'The old certificate of';
    const end = current === undefined ? '' : ' stays in use';
    this.#dependencies.log.error({}, `${effect} ${section}${end}: ${why}.`);
  }

  #warnAll(): void {
    for (const loaded of this.#all()) this.#warn(loaded);
  }

  #warn({ current, host }: LoadedCertificate): void {
    if (current === undefined) return;
    const { log, now } = this.#dependencies;
    const { certificate } = current.pair;
    for (const { isExpired, message } of certificateWarnings({ host }, certificate, now())) {
      if (isExpired) log.error({}, message);
      else log.warn({}, message);
    }
  }
}
