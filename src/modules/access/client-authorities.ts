import { coversHost } from '../../core/values/network/origin-pattern.ts';
import type { X509Certificate } from 'node:crypto';
import { type SecureContext, type TLSSocket, createSecureContext } from 'node:tls';
import type { BackgroundTasks, RunningTask } from '../../core/background/tasks.ts';
import type { AccessConfig } from '../../core/config/config.ts';
import { readCaCertificates } from '../../core/config/key-pair.ts';
import { fileChanges } from '../../core/config/watch.ts';
import type { Log } from '../../core/report/log.ts';
import { askForCertificate } from '../../core/server/listening/node-internals.ts';
import type { ActivePair } from '../../core/server/tls/loaded-certificate.ts';
import { Failure } from '../../core/values/failure.ts';
import type { ClientCertificate, ClientIdentity } from '../../core/values/network/networks.ts';

/** The parts of an access rule that decide which clients need a certificate. */
type CertificateRule = Pick<AccessConfig, 'origin' | 'clientCertificate'>;

/** The authorities of a file, as they were read; another content is another object. */
interface Authority {
  readonly file: string;
  readonly pem: string;
  readonly contexts: WeakMap<ActivePair, SecureContext>;
}

/** The authorities by which the handshake of a connection has checked its client. */
interface Asked {
  readonly socket: TLSSocket;
  readonly authorities: ClientAuthorities;
  readonly authority: Authority;
  identity?: ClientIdentity;
}

const askedOf = new WeakMap<object, Asked>();

/**
 * The authorities whose certificates clients need for some hosts (`client_certificate`). A
 * handshake for such a host asks for a certificate and checks it by the file of the host; that of
 * every other host asks for none. A host has one file, so that what a handshake has checked holds
 * for each request that expects this file, and for no other.
 */
export class ClientAuthorities {
  readonly #log: Log;
  readonly #changed: () => void;
  #rules: readonly CertificateRule[] = [];
  #authorities: ReadonlyMap<string, Authority> = new Map();
  readonly #tasks: Pick<BackgroundTasks, 'start'>;
  #watch: RunningTask | undefined;

  /** `changed` is called when rules have changed. */
  constructor({
    log,
    tasks,
    changed,
  }: {
    readonly log: Log;
    readonly tasks: Pick<BackgroundTasks, 'start'>;
    readonly changed: () => void;
  }) {
    this.#log = log;
    this.#tasks = tasks;
    this.#changed = changed;
  }

  /** Whether any host needs certificates. */
  get areNeeded(): boolean {
    return this.#rules.length > 0;
  }

  /**
   * Follows the rules of a configuration. Rejects with `invalid` for a file that cannot be used,
   * and keeps the former rules then.
   */
  async set(access: readonly CertificateRule[]): Promise<void> {
    const rules = access.filter(({ clientCertificate: file }) => file !== undefined);
    const files = [...new Set(rules.flatMap(({ clientCertificate: file }) => file ?? []))];
    const authorities = new Map<string, Authority>();
    for (const file of files) {
      const read = await readCaCertificates(file);
      if ('refused' in read) throw new Failure('invalid', `${file} ${read.refused}.`);
      authorities.set(file, this.#authority(file, read.pem));
    }
    await this.#endWatch();
    [this.#rules, this.#authorities] = [rules, authorities];
    this.#changed();
    if (files.length === 0) return;
    this.#watch = this.#tasks.start({
      name: 'client_authority_watch',
      title: 'The watch of the files of `client_certificate`',
      meanwhile: 'The authorities that are in use stay.',
      run: (signal, well) => this.#follow(files, signal, well),
    });
  }

  /**
   * The context of a handshake for a host, which asks the client for a certificate; undefined for a
   * host without rules.
   */
  contextFor(socket: TLSSocket, host: string, pair: ActivePair): SecureContext | undefined {
    const authority = this.#authorityOf(host);
    if (authority === undefined) return undefined;
    const known = authority.contexts.get(pair);
    const context = known ?? createSecureContext({ ...pair.options, ca: authority.pem });
    authority.contexts.set(pair, context);
    askForCertificate(socket);
    askedOf.set(socket, { socket, authorities: this, authority });
    return context;
  }

  /** What a connection says about its client to a host. */
  identity(asked: Asked, host: string): ClientIdentity {
    const { socket } = asked;
    // A ticket would prove the certificate of another handshake, whose authorities are unknown.
    const isOther = asked.authority !== this.#authorityOf(host) || socket.isSessionReused();
    if (isOther) return { state: 'not_asked' };
    asked.identity ??= identityOf(socket);
    return asked.identity;
  }

  async close(): Promise<void> {
    await this.#endWatch();
  }

  #authority(file: string, pem: string): Authority {
    const before = this.#authorities.get(file);
    return before?.pem === pem ? before : { file, pem, contexts: new WeakMap() };
  }

  #authorityOf(host: string): Authority | undefined {
    const file = this.#rules.find(({ origin }) => coversHost(origin, host))?.clientCertificate;
    return file === undefined ? undefined : this.#authorities.get(file);
  }

  async #endWatch(): Promise<void> {
    await this.#watch?.stop();
    this.#watch = undefined;
  }

  async #follow(files: readonly string[], signal: AbortSignal, well: () => void): Promise<void> {
    const changes = fileChanges(() => files, signal);
    while ((await changes.next()).done !== true) {
      for (const file of files) await this.#reload(file);
      well();
    }
  }

  async #reload(file: string): Promise<void> {
    const read = await readCaCertificates(file);
    if ('refused' in read) {
      const effect = 'The former authorities of `client_certificate` stay in use';
      this.#log.error({}, `${effect}: ${file} ${read.refused}.`);
      return;
    }
    const authority = this.#authority(file, read.pem);
    if (authority === this.#authorities.get(file)) return;
    this.#authorities = new Map([...this.#authorities, [file, authority]]);
    this.#log.info({}, `The authorities of \`client_certificate\` were read again: ${file}.`);
  }
}

/**
 * What a connection says about its client to an origin; undefined if its handshake has asked for no
 * certificate.
 */
export function clientIdentity(connection: object, origin: string): ClientIdentity | undefined {
  const asked = askedOf.get(connection);
  return asked?.authorities.identity(asked, new URL(origin).hostname);
}

function identityOf(socket: TLSSocket): ClientIdentity {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return { state: 'none' };
  if (socket.authorized) return { state: 'valid', certificate: described(certificate) };
  // @types/node says Error; Node sets the code of OpenSSL.
  const code = String(socket.authorizationError);
  return { state: 'refused', says: reasons[code] ?? otherAuthority };
}

const otherAuthority = 'The client certificate is of no authority that this page accepts.';

const reasons: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'The client certificate has ended.',
  CERT_NOT_YET_VALID: 'The client certificate is not valid yet.',
  INVALID_PURPOSE: 'The certificate is not one for clients.',
};

function described(certificate: X509Certificate): ClientCertificate {
  const { CN = [] } = certificate.toLegacyObject().subject;
  return {
    subject: distinguishedName(certificate.subject),
    issuer: distinguishedName(certificate.issuer),
    serial: certificate.serialNumber,
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    names: [CN, alternativeNames(certificate.subjectAltName ?? '')].flat(),
    endMs: certificate.validToDate.getTime(),
  };
}

/** Node writes the parts of a name in lines, the least specific first, escaped by RFC 4514. */
function distinguishedName(lines: string | undefined): string {
  return lines?.split('\n').toReversed().join(',') ?? '';
}

/**
 * The names of a list such as `DNS:a.example, email:"a\u002cb"`: Node quotes, as JSON, those that
 * could be read as several.
 */
function alternativeNames(list: string): readonly string[] {
  return [...list.matchAll(/(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)/gy)].flatMap(
    ([, kind = '', text = '']) => {
      if (!['DNS', 'email', 'URI'].includes(kind)) return [];
      return text.startsWith('"') ? [JSON.parse(text) as string] : [text];
    },
  );
}
