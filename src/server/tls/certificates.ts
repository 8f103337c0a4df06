import { isIP } from 'node:net';
import type { SecureContext, Server } from 'node:tls';
import type { AcmeFolder } from '../../acme/folder.ts';
import type { CertificateState } from '../../api/server-status.ts';
import type { Certificate } from '../../config/config.ts';
import { certificateWarnings } from '../../config/warnings.ts';
import { fileChanges } from '../../config/watch.ts';
import type { Log } from '../../observability/log.ts';
import type { Metric } from '../../observability/metrics.ts';
import { certificateCheckMs } from '../limits.ts';
import {
  refusedFile,
  loadCertificate,
  certificateNames,
  readCertificate,
  type LoadedCertificate,
} from './loaded-certificate.ts';

/** The dependencies of certificates. */
interface Dependencies {
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
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
  readonly #expiryTimer: NodeJS.Timeout;
  /** The certificates that ACME gets. */
  #acmeCertificates: readonly LoadedCertificate[] = [];
  #acme: AcmeFolder | undefined;
  #watch: { readonly end: AbortController; readonly over: Promise<void> } | undefined;

  private constructor(configured: readonly LoadedCertificate[], dependencies: Dependencies) {
    this.#configured = configured;
    this.#dependencies = dependencies;
    this.#expiryTimer = setInterval(() => {
      this.#warnAll();
    }, certificateCheckMs);
    this.#expiryTimer.unref();
  }

  /**
   * Reads all certificates of the ini file, and those that ACME has already got. Rejects with
   * `invalid` if one of the ini file is unusable.
   */
  static async open(
    files: readonly Certificate[],
    acme: AcmeFolder | undefined,
    dependencies: Dependencies,
  ): Promise<Certificates> {
    const configured = await Promise.all(files.map((one) => loadCertificate(one, false)));
    const certificates = new Certificates(configured, dependencies);
    await certificates.setAcme(acme);
    return certificates;
  }

  /**
   * Replaces the certificates of ACME after a change of its configuration; those that it has
   * already got are used at once.
   */
  async setAcme(acme: AcmeFolder | undefined): Promise<void> {
    const loaded = await Promise.all(
      (acme?.certificates ?? []).map((one) => loadCertificate(one, true)),
    );
    await this.#endWatch();
    this.#acmeCertificates = loaded;
    this.#acme = acme;
    const end = new AbortController();
    this.#watch = { end, over: this.#follow(end.signal) };
    this.#warnAll();
  }

  /**
   * Sets the certificate that clients without SNI get. `#reload` sets it again after each change.
   */
  serve(server: Server): void {
    this.#servers.add(server);
    const fallback = this.#fallback()?.current;
    if (fallback !== undefined) server.setSecureContext(fallback.options);
  }

  /**
   * Returns the TLS context for a host: that of `[tls.<host>]`, else of the wildcard that covers
   * the host, else of `[tls]`; undefined without any of them.
   */
  contextFor(host: string): SecureContext | undefined {
    return this.#certificateFor(host.toLowerCase())?.current?.context;
  }

  /** Whether a certificate is valid for a host (lower case, without port). */
  covers(host: string): boolean {
    const loaded = this.#certificateFor(host);
    if (loaded?.current === undefined) return false;
    if (loaded.files.host !== undefined) return true;
    const { certificate } = loaded.current.pair;
    const address = host.replace(/^\[(.*)\]$/, '$1');
    return isIP(address) === 0
      ? certificate.checkHost(host, { subject: 'never' }) !== undefined
      : certificate.checkIP(address) !== undefined;
  }

  /**
   * Whether a host waits for its first certificate from ACME, and no other certificate covers it.
   */
  isPendingFor(host: string): boolean {
    const isFromAcme = this.#acmeCertificates.some(({ files }) => files.host === host);
    return isFromAcme && !this.covers(host);
  }

  /** The first exact hostname of the certificates; undefined if there is none. */
  get mainHost(): string | undefined {
    const sections = this.#active().map(({ files }) => files.host ?? '');
    const names = [...certificateNames(this.#fallback()?.current), ...sections];
    return names.find((name) => name !== '' && !name.startsWith('*'));
  }

  /** Returns the certificates of the ini file with the pairs in use, for another process. */
  activeCertificates(): readonly Certificate[] {
    return this.#configured.map(({ files, current }) => {
      if (current === undefined) return files;
      const { cert, key } = current.pair;
      return { ...files, inUse: { cert, key } };
    });
  }

  /** Returns the state of each certificate. */
  states(): Promise<readonly CertificateState[]> {
    return Promise.all(
      this.#all().map(async ({ section, current, problem, isFromAcme, files }) => ({
        section,
        names: certificateNames(current),
        issuer: current?.pair.certificate.issuer.replaceAll('\n', ', ') ?? null,
        valid_until: current?.pair.certificate.validToDate.toISOString() ?? null,
        problem,
        acme: isFromAcme ? ((await this.#acme?.state(files.host ?? '')) ?? null) : null,
      })),
    );
  }

  /** Returns the expiry time of each certificate in use. */
  metrics(): readonly Metric[] {
    return [
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
    clearInterval(this.#expiryTimer);
    await this.#endWatch();
  }

  #all(): readonly LoadedCertificate[] {
    return [...this.#configured, ...this.#acmeCertificates];
  }

  #active(): readonly LoadedCertificate[] {
    return this.#all().filter(({ current }) => current !== undefined);
  }

  #fallback(): LoadedCertificate | undefined {
    return this.#configured.find(({ files }) => files.host === undefined);
  }

  #certificateFor(host: string): LoadedCertificate | undefined {
    return (
      this.#activeFor(host) ?? this.#activeFor(host.replace(/^[^.]+/, '*')) ?? this.#fallback()
    );
  }

  #activeFor(name: string): LoadedCertificate | undefined {
    const isMatch = ({ files, current }: LoadedCertificate) =>
      files.host === name && current !== undefined;
    return this.#configured.find(isMatch) ?? this.#acmeCertificates.find(isMatch);
  }

  async #endWatch(): Promise<void> {
    this.#watch?.end.abort();
    await this.#watch?.over;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const all = this.#all();
    const files = all.flatMap(({ files: { certFile, keyFile } }) => [certFile, keyFile]);
    if (files.length === 0) return;
    try {
      const changes = fileChanges(() => files, signal);
      while ((await changes.next()).done !== true) {
        for (const loaded of all) await this.#reload(loaded);
      }
    } catch (error) {
      const message =
        'The server cannot watch the files of certificates. Restart it to read them again.';
      this.#dependencies.log.error({ err: error }, message);
    }
  }

  /** Replaces the pair in use by the pair in the files, if that is usable. */
  async #reload(loaded: LoadedCertificate): Promise<void> {
    const { log } = this.#dependencies;
    const next = await readCertificate(loaded.files);
    if ('refused' in next) {
      const problem = `\`${next.key}\` ${next.refused}`;
      // The log of ACME reports a certificate that it has not got yet.
      if (problem === loaded.problem || loaded.current === undefined) return;
      loaded.problem = problem;
      const why = `${refusedFile(loaded.files, next)} ${next.refused}`;
      log.error({}, `The old certificate of ${loaded.section} stays in use: ${why}.`);
      return;
    }
    const { cert, key } = loaded.current?.pair ?? { cert: undefined, key: undefined };
    const isSame = next.pair.cert === cert && next.pair.key === key;
    const wasBroken = loaded.problem !== null;
    loaded.current = next;
    loaded.problem = null;
    if (isSame && !wasBroken) return;
    if (loaded.files.host === undefined) {
      for (const server of this.#servers) server.setSecureContext(next.options);
    }
    const until = next.pair.certificate.validToDate.toISOString();
    const what = cert === undefined ? 'is in use' : 'was read again';
    log.info({}, `The certificate of ${loaded.section} ${what}: valid until ${until}.`);
    this.#warn(loaded);
  }

  #warnAll(): void {
    for (const loaded of this.#all()) this.#warn(loaded);
  }

  #warn({ current, files }: LoadedCertificate): void {
    if (current === undefined) return;
    const { log, now } = this.#dependencies;
    for (const { isExpired, message } of certificateWarnings(
      files,
      current.pair.certificate,
      now(),
    )) {
      if (isExpired) log.error({}, message);
      else log.warn({}, message);
    }
  }
}
