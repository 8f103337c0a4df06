import { constants } from 'node:crypto';
import { isIP } from 'node:net';
import {
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
  type Server,
} from 'node:tls';
import type { Certificate } from '../../config/config.ts';
import { fileChanges } from '../../config/file-changes.ts';
import { readKeyPair, type KeyPair, type RefusedPair } from '../../config/key-pair.ts';
import { Failure } from '../../model/failure.ts';
import { certificateLookMs, certificateWarnMs } from '../../model/limits.ts';
import type { Log } from '../../observe/log.ts';
import type { CertificateState } from '../../svc1/server-status.ts';

/** A certificate that is in use. */
interface Held {
  readonly files: Certificate;
  readonly section: string;
  pair: KeyPair;
  options: SecureContextOptions;
  context: SecureContext;
  problem: string | null;
}

/** What certificates need of their surroundings. */
interface Surroundings {
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only, as Mozilla's
 * intermediate list has them (and RFC 9113 §9.2.2 asks for); the client's preference counts, for it
 * knows whether it has AES in hardware.
 */
const protocol: SecureContextOptions = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
  honorCipherOrder: false,
  // RFC 9113 §9.2.1; what it was for, TLS 1.3 has taken out.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
};

/**
 * The certificates of the ini file, each for the name that it is asked for by (SNI, RFC 6066 §3).
 * They follow their files: a new pair is used for the next handshake, and one that is no pair
 * leaves the old one in use.
 */
export class Certificates {
  readonly #surroundings: Surroundings;
  readonly #held: readonly Held[];
  readonly #servers = new Set<Server>();
  readonly #closed = new AbortController();
  readonly #following: Promise<unknown>;
  readonly #looking: NodeJS.Timeout;

  private constructor(held: readonly Held[], surroundings: Surroundings) {
    this.#held = held;
    this.#surroundings = surroundings;
    this.#following = this.#follow();
    this.#looking = setInterval(() => {
      this.#warnOfEnds();
    }, certificateLookMs);
    this.#looking.unref();
    this.#warnOfEnds();
  }

  /** Reads all certificates; rejects with `invalid` where one cannot be used. */
  static async open(
    files: readonly Certificate[],
    surroundings: Surroundings,
  ): Promise<Certificates> {
    return new Certificates(await Promise.all(files.map(hold)), surroundings);
  }

  /** Gives a server the certificate for clients that name no host, now and whenever it changes. */
  serve(server: Server): void {
    this.#servers.add(server);
    const fallback = this.#fallback();
    if (fallback !== undefined) server.setSecureContext(fallback.options);
  }

  /**
   * What a client gets that asks for a host: the certificate of that name, of the wildcard above
   * it, or the default one; undefined where there is none for it.
   */
  contextFor(host: string): SecureContext | undefined {
    return this.#holderOf(host.toLowerCase())?.context;
  }

  /** Whether a client that asks for a host (lower case, without port) can trust what it gets. */
  isFor(host: string): boolean {
    const held = this.#holderOf(host);
    if (held === undefined) return false;
    if (held.files.host !== undefined) return true;
    const { certificate } = held.pair;
    const address = host.replace(/^\[(.*)\]$/, '$1');
    return isIP(address) === 0
      ? certificate.checkHost(host, { subject: 'never' }) !== undefined
      : certificate.checkIP(address) !== undefined;
  }

  /** The host that the site is surely reached by over TLS; undefined where no certificate says. */
  get mainHost(): string | undefined {
    const sections = this.#held.map(({ files }) => files.host ?? '');
    const names = [...namesOf(this.#fallback()?.pair), ...sections];
    return names.find((name) => name !== '' && !name.startsWith('*'));
  }

  /** How each certificate stands. */
  states(): readonly CertificateState[] {
    return this.#held.map(({ section, pair, problem }) => ({
      section,
      names: namesOf(pair),
      issuer: pair.certificate.issuer.replaceAll('\n', ', '),
      valid_until: pair.certificate.validToDate.toISOString(),
      problem,
    }));
  }

  /** Ends the watch of the files. */
  async close(): Promise<void> {
    clearInterval(this.#looking);
    this.#closed.abort();
    await this.#following;
  }

  #fallback(): Held | undefined {
    return this.#held.find(({ files }) => files.host === undefined);
  }

  #holderOf(host: string): Held | undefined {
    const wildcard = host.replace(/^[^.]+/, '*');
    const of = (name: string) => this.#held.find(({ files }) => files.host === name);
    return of(host) ?? of(wildcard) ?? this.#fallback();
  }

  async #follow(): Promise<void> {
    const files = this.#held.flatMap((held) => [held.files.certFile, held.files.keyFile]);
    if (files.length === 0) return;
    try {
      const changes = fileChanges(() => files, this.#closed.signal);
      while ((await changes.next()).done !== true) {
        for (const held of this.#held) await this.#renew(held);
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
      if (problem === held.problem) return;
      held.problem = problem;
      const why = `${fileOf(held.files, next)} ${next.refused}`;
      log.error({}, `The certificate of ${held.section} stays as it is: ${why}.`);
      return;
    }
    const isSame = next.pair.cert === held.pair.cert && next.pair.key === held.pair.key;
    const wasBroken = held.problem !== null;
    Object.assign(held, next, { problem: null });
    if (isSame && !wasBroken) return;
    if (held.files.host === undefined) {
      for (const server of this.#servers) server.setSecureContext(held.options);
    }
    const until = held.pair.certificate.validToDate.toISOString();
    log.info({}, `The certificate of ${held.section} was read again: valid until ${until}.`);
    this.#warnOfEnd(held);
  }

  #warnOfEnds(): void {
    for (const held of this.#held) this.#warnOfEnd(held);
  }

  #warnOfEnd({ pair, section, files }: Held): void {
    const { log, now } = this.#surroundings;
    const { validToDate, validFromDate } = pair.certificate;
    const leftMs = validToDate.getTime() - now();
    const until = validToDate.toISOString();
    if (leftMs <= 0) log.error({}, `The certificate of ${section} has ended: ${until}.`);
    else if (leftMs < certificateWarnMs)
      log.warn({}, `The certificate of ${section} ends ${until}.`);
    if (validFromDate.getTime() > now()) {
      log.warn({}, `The certificate of ${section} begins only ${validFromDate.toISOString()}.`);
    }
    const { host } = files;
    if (host === undefined) return;
    const sample = host.replace(/^\*/, 'www');
    if (pair.certificate.checkHost(sample, { subject: 'never' }) !== undefined) return;
    log.warn({}, `The certificate of ${section} is not for ${host}: browsers will refuse it.`);
  }
}

async function hold(files: Certificate): Promise<Held> {
  const section = files.host === undefined ? '[tls]' : `[tls.${files.host}]`;
  const now = await read(files);
  if ('refused' in now) {
    const { refused } = now;
    throw new Failure(
      'invalid',
      `The certificate of ${section}: ${fileOf(files, now)} ${refused}.`,
    );
  }
  return { files, section, ...now, problem: null };
}

async function read(
  files: Certificate,
): Promise<Pick<Held, 'pair' | 'options' | 'context'> | RefusedPair> {
  const pair = await readKeyPair(files);
  if ('refused' in pair) return pair;
  const options = { ...protocol, cert: pair.cert, key: pair.key };
  try {
    return { pair, options, context: createSecureContext(options) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'for no known reason';
    return { key: 'cert', refused: `is not taken by OpenSSL: ${reason}` };
  }
}

function fileOf({ certFile, keyFile }: Certificate, { key }: RefusedPair): string {
  return key === 'cert' ? certFile : keyFile;
}

/** The names and addresses of a certificate (RFC 9525 §6.3), in its order. */
function namesOf(pair: KeyPair | undefined): readonly string[] {
  const listed = pair?.certificate.subjectAltName ?? '';
  return [...listed.matchAll(/(?:^|, )(DNS|IP Address):([^,"\s]+)/g)].map(
    ([, kind = '', name = '']) => (kind !== 'DNS' && name.includes(':') ? `[${name}]` : name),
  );
}
