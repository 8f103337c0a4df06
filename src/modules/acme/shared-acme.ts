import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { AcmeConfig } from '../../core/config/config.ts';
import type { KeyPair, RefusedPair } from '../../core/config/key-pair.ts';
import { type SecretsKey, readSecretsKeys } from '../../core/config/secrets-keys.ts';
import type { ReadValues, ValueChange, Values } from '../../core/log/shared/shared-values.ts';
import type { SharedPart } from '../../core/log/store.ts';
import { Failure } from '../../core/values/failure.ts';
import type { ClusterTask } from '../../core/log/shared/shared-log.ts';
import type { IssuedCertificate } from './acme-order.ts';
import {
  type AcmeStore,
  type HostState,
  type OnDemandStore,
  acmeServerName,
  isHost,
  isToken,
  newAccountKey,
  parseHostState,
} from './acme-store.ts';
import type { AcmeFolder } from './folder.ts';
import { seal, unseal } from './sealed.ts';
import {
  accountPrefix,
  certificateKey,
  encryptedAgain,
  missingKey,
  onDemandHosts,
  onDemandKey,
  readSharedPair,
  stateKey,
  storedOf,
  untilOf,
  usedKeys,
} from './shared-certificates.ts';

/** How often a certificate that was issued is stored again while the cluster cannot be reached. */
const acmeSaveRetryMs = 1_000;

/** The time between two looks at the shared log for challenges that a node does not know. */
const challengeCatchUpMs = 200;

interface SharedAcmeParts {
  readonly acme: Pick<AcmeConfig, 'hosts' | 'directory'>;
  readonly values: Values;
  /** Only one node of a cluster orders at a time: the one that has the turn. */
  readonly task: ClusterTask;
  /** Applies what the shared log has. */
  readonly catchUp: () => Promise<void>;
  /** `secrets_key_file`. */
  readonly keyFile: string;
  /** The storage of this machine from before it joined the cluster. */
  readonly folder: AcmeFolder;
}

const challengePrefix = 'acme challenge ';

/**
 * The account, certificates and challenges of ACME that the nodes of a cluster share
 * (docs/design/cluster.md#certificates). Private keys are encrypted.
 */
export class SharedAcme implements AcmeStore {
  readonly hosts: readonly string[];
  readonly #parts: SharedAcmeParts;
  readonly #server: string;
  /** The catch-up that unknown tokens and hosts wait for, and the one that runs. */
  #nextCatchUp: Promise<void> | undefined;
  #catchUp: Promise<void> = Promise.resolve();

  constructor(parts: SharedAcmeParts) {
    this.#parts = parts;
    this.hosts = parts.acme.hosts;
    this.#server = acmeServerName(parts.acme.directory);
  }

  placeOf(host: string): string {
    return `the certificate of ${host} in the cluster`;
  }

  async keyPair(host: string): Promise<KeyPair | RefusedPair | undefined> {
    const keyFile = this.#parts.keyFile;
    return readSharedPair(this.#parts.values, { server: this.#server, host, keyFile });
  }

  async *changes(signal: AbortSignal): AsyncGenerator<undefined, void, undefined> {
    let changed = Promise.withResolvers<undefined>();
    const end = this.#parts.values.onChange(() => {
      changed.resolve(undefined);
    });
    const aborted = once(signal, 'abort').catch(() => undefined);
    try {
      // The first call also reports changes from before it.
      while (!signal.aborted) {
        yield;
        await Promise.race([changed.promise, aborted]);
        changed = Promise.withResolvers<undefined>();
      }
    } finally {
      end();
    }
  }

  state(host: string): Promise<HostState | undefined> {
    const text = this.#parts.values.get(this.#stateKey(host));
    return Promise.resolve(text === undefined ? undefined : parseHostState(text));
  }

  async saveState(host: string, state: HostState): Promise<void> {
    await this.#write([[this.#stateKey(host), JSON.stringify(state)]]);
  }

  async accountKey(): Promise<string> {
    const { values, keyFile } = this.#parts;
    const name = this.#accountKey;
    const known = values.get(name);
    const keys = await requireKeys(keyFile);
    if (known === undefined) {
      const pem = newAccountKey();
      await this.#write([[name, seal(pem, name, keys[0])]]);
      return pem;
    }
    const read = unseal(known, name, keys);
    if ('refused' in read) throw new Error(`The account key of the cluster ${read.refused}.`);
    return read.text;
  }

  /**
   * Stores a certificate, unless another one that ends later is there: also if another node has the
   * turn by now, because a certificate that was issued is of use. While the shared log cannot be
   * reached, it tries again until the signal aborts.
   */
  async saveCertificate(host: string, pair: IssuedCertificate, signal: AbortSignal): Promise<void> {
    const stored = await this.#sealed(host, pair);
    for (;;) {
      try {
        await this.#parts.values.write((values) => this.#newer(values, host, stored));
        return;
      } catch (error) {
        const isAway = error instanceof Failure && error.code === 'unavailable';
        if (!isAway || signal.aborted) throw error;
        await delay(acmeSaveRetryMs, undefined, { ref: false, signal }).catch(() => undefined);
      }
    }
  }

  async keyAuthorization(token: string): Promise<string | undefined> {
    return isToken(token) ? this.#challenge(token) : undefined;
  }

  async challengeCertificate(host: string): Promise<IssuedCertificate | undefined> {
    if (!isHost(host)) return undefined;
    const text = await this.#challenge(`${host}.pem`);
    return text === undefined ? undefined : { cert: text, key: text };
  }

  async saveChallenge(name: string, content: string | IssuedCertificate): Promise<void> {
    const isPair = typeof content !== 'string';
    if (!isPair && !isToken(name)) throw new TypeError('The token of the challenge is malformed.');
    const [key] = await requireKeys(this.#parts.keyFile);
    const id = `${challengePrefix}${isPair ? `${name}.pem` : name}`;
    const text = isPair ? `${content.key}\n${content.cert}` : content;
    await this.#write([[id, seal(text, id, key)]]);
  }

  async removeChallenges(): Promise<void> {
    await this.#parts.values.write(
      (values) => values.withPrefix(challengePrefix).map(([key]) => [key, null] as const),
      this.#parts.task,
    );
  }

  /**
   * Takes the turn of this node to order. Rejects with `conflict` while it is another's, with
   * `unavailable` without the shared log, and with `invalid` if this node has another secrets key.
   */
  async take(lost: () => void): Promise<void> {
    const problem = await this.problem();
    if (problem !== undefined) throw new Failure('invalid', problem);
    await this.moveFiles();
    await this.#parts.task.take(lost);
    // Those of a node that was killed during an order.
    await this.removeChallenges();
  }

  release(): Promise<void> {
    return this.#parts.task.release();
  }

  /**
   * Moves what this machine has in files into the cluster: certificates that end later than those
   * of the cluster, their states, and the account key if the cluster has none. Resolves to the
   * hosts whose files were moved.
   */
  async moveFiles(): Promise<readonly string[]> {
    const { folder, values, keyFile } = this.#parts;
    const account = await folder.knownAccountKey();
    const found: { readonly host: string; readonly pair: KeyPair; readonly state: string }[] = [];
    for (const host of this.hosts) {
      const pair = await folder.keyPair(host);
      if (pair === undefined || 'refused' in pair) continue;
      found.push({ host, pair, state: JSON.stringify((await folder.state(host)) ?? null) });
    }
    if (account === undefined && found.length === 0) return [];
    const [key] = await requireKeys(keyFile);
    const name = this.#accountKey;
    const sealed = found.map(({ host, pair, state }) => {
      const stored = storedOf(this.#certificateKey(host), pair, key);
      return { host, stored, state };
    });
    const accountKey = account === undefined ? undefined : seal(account, name, key);
    await values.write((read) => [
      ...sealed.flatMap(({ host, stored, state }) => {
        const changes = this.#newer(read, host, stored);
        const isMoved = changes.length > 0 && state !== 'null';
        return isMoved ? [...changes, [this.#stateKey(host), state] as const] : changes;
      }),
      ...(accountKey !== undefined && read.get(name) === undefined
        ? [[name, accountKey] as const]
        : []),
    ]);
    const hosts = found.map(({ host }) => host);
    await folder.remove(hosts);
    return hosts;
  }

  /** Why this node cannot order, as a sentence; undefined if it can. */
  async problem(): Promise<string | undefined> {
    const read = await readSecretsKeys(this.#parts.keyFile);
    if ('refused' in read) return `${this.#parts.keyFile} ${read.refused}.`;
    const known = new Set(read.keys.map(({ id }) => id));
    const missing = usedKeys(this.#parts.values).find((id) => !known.has(id));
    if (missing === undefined) return undefined;
    const key = missingKey(missing, this.#parts.keyFile);
    return `The certificates of the cluster are encrypted with ${key}.`;
  }

  /** Encrypts all values with the first key of the file; values that already have it stay. */
  async encryptAgain(): Promise<void> {
    const { values, keyFile } = this.#parts;
    const keys = await requireKeys(keyFile);
    const isDone = usedKeys(values).every((id) => id === keys[0].id);
    if (!isDone) await values.write((read) => encryptedAgain(read, keys));
  }

  #write(changes: readonly ValueChange[]): Promise<void> {
    return this.#parts.values.write(() => changes, this.#parts.task);
  }

  async #sealed(host: string, pair: IssuedCertificate): Promise<string> {
    const [key] = await requireKeys(this.#parts.keyFile);
    return storedOf(this.#certificateKey(host), pair, key);
  }

  #newer(values: ReadValues, host: string, stored: string): readonly ValueChange[] {
    const key = this.#certificateKey(host);
    const before = values.get(key);
    const isNewer = before === undefined || untilOf(before) < untilOf(stored);
    return isNewer ? [[key, stored]] : [];
  }

  /**
   * The response to a challenge. If this node does not have it, it first gets the newest entries of
   * the shared log.
   */
  async #challenge(name: string): Promise<string | undefined> {
    const { values, keyFile } = this.#parts;
    const key = challengePrefix + name;
    if (values.get(key) === undefined) await this.#caughtUp();
    const sealed = values.get(key);
    if (sealed === undefined) return undefined;
    const read = await readSecretsKeys(keyFile);
    const opened = 'refused' in read ? read : unseal(sealed, key, read.keys);
    return 'refused' in opened ? undefined : opened.text;
  }

  /**
   * Resolves when this node has all entries that the shared log had at the call, or cannot get
   * them. All callers share one request to the shared log, and there are few of these in a second,
   * because any client may request any token.
   */
  #caughtUp(): Promise<void> {
    this.#nextCatchUp ??= this.#catchUp.then(() => {
      this.#nextCatchUp = undefined;
      const caughtUp = this.#parts.catchUp().catch(() => undefined);
      const pause = delay(challengeCatchUpMs, undefined, { ref: false });
      this.#catchUp = Promise.all([caughtUp, pause]).then(() => undefined);
      return caughtUp;
    });
    return this.#nextCatchUp;
  }

  readonly onDemand: OnDemandStore = {
    hosts: () => Promise.resolve(onDemandHosts(this.#parts.values, this.#server)),
    has: (host) => Promise.resolve(this.#parts.values.get(this.#onDemandKey(host)) !== undefined),
    use: async (host, nowMs) => {
      if (!isHost(host)) throw new TypeError('The host is malformed.');
      const key = this.#onDemandKey(host);
      // Only the day, so that few uses are written to the shared log.
      const day = new Date(nowMs).toISOString().slice(0, 10);
      if (this.#parts.values.get(key) === day) return;
      await this.#parts.values.write(() => [[key, day]]);
    },
    forget: async (hosts) => {
      const keys = hosts.flatMap((host) => [
        ...[this.#onDemandKey(host), this.#certificateKey(host), this.#stateKey(host)],
      ]);
      await this.#parts.values.write((values) =>
        keys.filter((key) => values.get(key) !== undefined).map((key) => [key, null] as const),
      );
    },
  };

  #onDemandKey(host: string): string {
    return onDemandKey(this.#server, host);
  }

  get #accountKey(): string {
    return accountPrefix + this.#server;
  }

  #certificateKey(host: string): string {
    return certificateKey(this.#server, host);
  }

  #stateKey(host: string): string {
    return stateKey(this.#server, host);
  }
}

/** Opens what the nodes of a cluster share, for a machine with a secrets key. */
export function openSharedAcme(
  shared: SharedPart,
  own: Pick<SharedAcmeParts, 'acme' | 'keyFile' | 'folder'>,
): SharedAcme {
  return new SharedAcme({
    ...own,
    values: shared.values,
    catchUp: () => shared.catchUp(),
    task: shared.task('certificates'),
  });
}

async function requireKeys(keyFile: string): Promise<readonly [SecretsKey, ...SecretsKey[]]> {
  const read = await readSecretsKeys(keyFile);
  if ('refused' in read) throw new Error(`${keyFile} ${read.refused}.`);
  return read.keys;
}
