import { chmod, mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { AcmeConfig, Certificate } from '../../core/config/config.ts';
import { readKeyPair, type KeyPair, type RefusedPair } from '../../core/config/key-pair.ts';
import { fileChanges } from '../../core/config/watch.ts';
import type { IssuedCertificate } from './acme-order.ts';
import {
  acmeServerName,
  isHost,
  isToken,
  newAccountKey,
  parseHostState,
  type AcmeStore,
  type HostState,
  type OnDemandStore,
} from './acme-store.ts';

/**
 * The files of ACME below the data folder, which only their owner can read: for each ACME server an
 * account key, certificates with their keys and states; and the responses to challenges. One
 * process of a server writes them, all read them.
 */
export class AcmeFolder implements AcmeStore {
  readonly hosts: readonly string[];
  readonly #root: string;
  /** The folder of the configured ACME server: accounts and certificates belong to a server. */
  readonly #folder: string;

  constructor(dataFolder: string, { directory, hosts }: AcmeConfig) {
    this.#root = join(dataFolder, 'acme');
    this.#folder = join(this.#root, acmeServerName(directory));
    this.hosts = hosts;
  }

  /** The certificates in the form of the ini file. Their files may not exist yet. */
  get certificates(): readonly Certificate[] {
    return this.hosts.map((host) => {
      const file = this.#file(`${host}.pem`);
      return { host, certFile: file, keyFile: file };
    });
  }

  /** Creates the folders, and removes files that a crashed process has left behind. */
  async prepare(): Promise<void> {
    for (const folder of [this.#root, this.#folder, this.#challenges, this.#onDemand]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await chmod(folder, 0o700);
    }
    // The folder itself stays, because a full disk could prevent its creation.
    for (const name of await readdir(this.#challenges)) {
      await rm(join(this.#challenges, name), { recursive: true, force: true });
    }
    const drafts = (await readdir(this.#folder)).filter((name) => name.endsWith('.draft'));
    for (const name of drafts) await rm(this.#file(name), { force: true });
  }

  placeOf(host: string): string {
    return this.#file(`${host}.pem`);
  }

  async keyPair(host: string): Promise<KeyPair | RefusedPair | undefined> {
    const file = this.#file(`${host}.pem`);
    if (!(await exists(file))) return undefined;
    return readKeyPair({ certFile: file, keyFile: file });
  }

  changes(signal: AbortSignal): AsyncIterator<unknown> {
    return fileChanges(() => this.certificates.map(({ certFile }) => certFile), signal);
  }

  async accountKey(): Promise<string> {
    const known = await this.knownAccountKey();
    if (known !== undefined) return known;
    const pem = newAccountKey();
    await write(this.#file('account.key'), pem);
    return pem;
  }

  /** The private key of the account; undefined if there is none yet. */
  knownAccountKey(): Promise<string | undefined> {
    return readIfExists(this.#file('account.key'));
  }

  async saveAccountKey(pem: string): Promise<void> {
    await write(this.#file('account.key'), pem);
  }

  /** Removes the certificates and states of hosts, and the account key. */
  async remove(hosts: readonly string[]): Promise<void> {
    const names = hosts.flatMap((host) => [`${host}.pem`, `${host}.json`]);
    for (const name of [...names, 'account.key']) await rm(this.#file(name), { force: true });
  }

  /** Replaces the certificate and the key of a host. Both are one file, so both change at once. */
  async saveCertificate(host: string, { cert, key }: IssuedCertificate): Promise<void> {
    await write(this.#file(`${host}.pem`), `${key.trim()}\n${cert.trim()}\n`);
  }

  async state(host: string): Promise<HostState | undefined> {
    const text = await readIfExists(this.#file(`${host}.json`));
    return text === undefined ? undefined : parseHostState(text);
  }

  async saveState(host: string, state: HostState): Promise<void> {
    await write(this.#file(`${host}.json`), `${JSON.stringify(state)}\n`);
  }

  async keyAuthorization(token: string): Promise<string | undefined> {
    return isToken(token) ? readIfExists(join(this.#challenges, token)) : undefined;
  }

  async challengeCertificate(host: string): Promise<IssuedCertificate | undefined> {
    if (!isHost(host)) return undefined;
    const text = await readIfExists(join(this.#challenges, `${host}.pem`));
    return text === undefined ? undefined : { cert: text, key: text };
  }

  async saveChallenge(name: string, content: string | IssuedCertificate): Promise<void> {
    if (typeof content === 'string') {
      if (!isToken(name)) throw new TypeError('The token of the challenge is malformed.');
      await write(join(this.#challenges, name), content);
    } else {
      await write(join(this.#challenges, `${name}.pem`), `${content.key}\n${content.cert}`);
    }
  }

  async removeChallenges(): Promise<void> {
    for (const name of await readdir(this.#challenges)) {
      await rm(join(this.#challenges, name), { force: true });
    }
  }

  readonly onDemand: OnDemandStore = {
    hosts: async () => {
      const names = (await readdir(this.#onDemand).catch(absent)) ?? [];
      const times = names.map(async (host) => {
        const found = await stat(join(this.#onDemand, host)).catch(absent);
        return found === undefined ? [] : [[host, found.mtimeMs] as const];
      });
      return new Map((await Promise.all(times)).flat());
    },
    has: async (host) => isHost(host) && exists(join(this.#onDemand, host)),
    use: async (host, nowMs) => {
      if (!isHost(host)) throw new TypeError('The host is malformed.');
      const file = join(this.#onDemand, host);
      // An empty file: its time is that of the last use.
      await (await open(file, 'a', 0o600)).close();
      await utimes(file, nowMs / 1000, nowMs / 1000);
    },
    forget: async (hosts) => {
      for (const host of hosts) {
        for (const name of [`${host}.pem`, `${host}.json`]) {
          await rm(this.#file(name), { force: true });
        }
        await rm(join(this.#onDemand, host), { force: true });
      }
    },
  };

  get #onDemand(): string {
    return this.#file('on-demand');
  }

  get #challenges(): string {
    return join(this.#root, 'challenges');
  }

  #file(name: string): string {
    return join(this.#folder, name);
  }
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: unknown) => (error as NodeJS.ErrnoException).code !== 'ENOENT',
  );
}

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Writes a file atomically; only its owner can read it. */
async function write(file: string, text: string): Promise<void> {
  const draft = `${file}.draft`;
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}
