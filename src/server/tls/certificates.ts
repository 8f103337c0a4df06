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
import { fileOf, hold, namesOf, read, type Held } from './held.ts';

/** What certificates need of their surroundings. */
interface Surroundings {
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The certificates of the ini file, each for the name that it is asked for by (SNI, RFC 6066 §3).
 * They follow their files: a new pair is used for the next handshake, and one that is no pair
 * leaves the old one in use.
 */
export class Certificates {
  readonly #surroundings: Surroundings;
  readonly #own: readonly Held[];
  readonly #servers = new Set<Server>();
  readonly #looking: NodeJS.Timeout;
  /** Those that are got by ACME. */
  #managed: readonly Held[] = [];
  #acme: AcmeFolder | undefined;
  #watch: { readonly end: AbortController; readonly over: Promise<void> } | undefined;

  private constructor(own: readonly Held[], surroundings: Surroundings) {
    this.#own = own;
    this.#surroundings = surroundings;
    this.#looking = setInterval(() => {
      this.#warnOfAll();
    }, certificateCheckMs);
    this.#looking.unref();
  }

  /**
   * Reads all certificates of the ini file, and those that ACME has got so far. Rejects with
   * `invalid` where one of the ini file cannot be used.
   */
  static async open(
    files: readonly Certificate[],
    acme: AcmeFolder | undefined,
    surroundings: Surroundings,
  ): Promise<Certificates> {
    const own = await Promise.all(files.map((one) => hold(one, false)));
    const certificates = new Certificates(own, surroundings);
    await certificates.manage(acme);
    return certificates;
  }

  /** Has ACME get other certificates than before; those that it has got so far are used at once. */
  async manage(acme: AcmeFolder | undefined): Promise<void> {
    await this.#endWatch();
    this.#managed = await Promise.all((acme?.certificates ?? []).map((one) => hold(one, true)));
    this.#acme = acme;
    const end = new AbortController();
    this.#watch = { end, over: this.#follow(end.signal) };
    this.#warnOfAll();
  }

  /** Gives a server the certificate for clients that name no host, now and whenever it changes. */
  serve(server: Server): void {
    this.#servers.add(server);
    const fallback = this.#fallback()?.current;
    if (fallback !== undefined) server.setSecureContext(fallback.options);
  }

  /**
   * What a client gets that asks for a host: the certificate of that name, of the wildcard above
   * it, or the default one; undefined where there is none for it.
   */
  contextFor(host: string): SecureContext | undefined {
    return this.#holderOf(host.toLowerCase())?.current?.context;
  }

  /** Whether the certificate for a host (lower case, without port) is valid for it. */
  isFor(host: string): boolean {
    const held = this.#holderOf(host);
    if (held?.current === undefined) return false;
    if (held.files.host !== undefined) return true;
    const { certificate } = held.current.pair;
    const address = host.replace(/^\[(.*)\]$/, '$1');
    return isIP(address) === 0
      ? certificate.checkHost(host, { subject: 'never' }) !== undefined
      : certificate.checkIP(address) !== undefined;
  }

  /** Whether ACME has yet to get the first certificate of a host, and nothing else is for it. */
  awaits(host: string): boolean {
    const isManaged = this.#managed.some(({ files }) => files.host === host);
    return isManaged && !this.isFor(host);
  }

  /** The host that the site is surely reached by over TLS; undefined where no certificate says. */
  get mainHost(): string | undefined {
    const sections = this.#inUse().map(({ files }) => files.host ?? '');
    const names = [...namesOf(this.#fallback()?.current), ...sections];
    return names.find((name) => name !== '' && !name.startsWith('*'));
  }

  /** The certificates of the ini file with what is in use of each, for another process. */
  inUse(): readonly Certificate[] {
    return this.#own.map(({ files, current }) => {
      if (current === undefined) return files;
      const { cert, key } = current.pair;
      return { ...files, inUse: { cert, key } };
    });
  }

  /** How each certificate stands. */
  states(): Promise<readonly CertificateState[]> {
    return Promise.all(
      this.#all().map(async ({ section, current, problem, isManaged, files }) => ({
        section,
        names: namesOf(current),
        issuer: current?.pair.certificate.issuer.replaceAll('\n', ', ') ?? null,
        valid_until: current?.pair.certificate.validToDate.toISOString() ?? null,
        problem,
        acme: isManaged ? ((await this.#acme?.state(files.host ?? '')) ?? null) : null,
      })),
    );
  }

  /** When each certificate in use ends. */
  metrics(): readonly Metric[] {
    return [
      {
        type: 'gauge',
        name: 'waymark_certificate_end_seconds',
        help: 'When the certificate of a section of the ini file ends, in seconds since 1970.',
        samples: this.#inUse().map(({ section, current }) => ({
          labels: { section },
          value: (current?.pair.certificate.validToDate.getTime() ?? 0) / 1000,
        })),
      },
    ];
  }

  /** Ends the watch of the files. */
  async close(): Promise<void> {
    clearInterval(this.#looking);
    await this.#endWatch();
  }

  #all(): readonly Held[] {
    return [...this.#own, ...this.#managed];
  }

  #inUse(): readonly Held[] {
    return this.#all().filter(({ current }) => current !== undefined);
  }

  #fallback(): Held | undefined {
    return this.#own.find(({ files }) => files.host === undefined);
  }

  #holderOf(host: string): Held | undefined {
    return this.#usedFor(host) ?? this.#usedFor(host.replace(/^[^.]+/, '*')) ?? this.#fallback();
  }

  #usedFor(name: string): Held | undefined {
    const isIt = ({ files, current }: Held) => files.host === name && current !== undefined;
    return this.#own.find(isIt) ?? this.#managed.find(isIt);
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
        for (const held of all) await this.#renew(held);
      }
    } catch (error) {
      const message = 'Certificates are no longer watched; restart to read them again.';
      this.#surroundings.log.error({ err: error }, message);
    }
  }

  /** Puts what is in the files now in place of what is in use, where it can be used. */
  async #renew(held: Held): Promise<void> {
    const { log } = this.#surroundings;
    const next = await read(held.files);
    if ('refused' in next) {
      const problem = `\`${next.key}\` ${next.refused}`;
      // What ACME has not got yet is not there, as its log says.
      if (problem === held.problem || held.current === undefined) return;
      held.problem = problem;
      const why = `${fileOf(held.files, next)} ${next.refused}`;
      log.error({}, `The certificate of ${held.section} stays as it is: ${why}.`);
      return;
    }
    const { cert, key } = held.current?.pair ?? { cert: undefined, key: undefined };
    const isSame = next.pair.cert === cert && next.pair.key === key;
    const wasBroken = held.problem !== null;
    held.current = next;
    held.problem = null;
    if (isSame && !wasBroken) return;
    if (held.files.host === undefined) {
      for (const server of this.#servers) server.setSecureContext(next.options);
    }
    const until = next.pair.certificate.validToDate.toISOString();
    const what = cert === undefined ? 'is in use' : 'was read again';
    log.info({}, `The certificate of ${held.section} ${what}: valid until ${until}.`);
    this.#warnOf(held);
  }

  #warnOfAll(): void {
    for (const held of this.#all()) this.#warnOf(held);
  }

  #warnOf({ current, files }: Held): void {
    if (current === undefined) return;
    const { log, now } = this.#surroundings;
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
