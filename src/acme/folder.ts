import { createHash, generateKeyPairSync } from 'node:crypto';
import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AcmeConfig, Certificate } from '../config/config.ts';

/** The state of the certificate of a host. */
export interface HostState {
  readonly state: 'obtaining' | 'valid' | 'failed';
  /** When the state began, ISO 8601, UTC. */
  readonly since: string;
  /** The number of consecutive failed orders. */
  readonly failures: number;
  /** When the next order is due, ISO 8601, UTC; null during an order. */
  readonly next: string | null;
  readonly error: string | null;
}

/** A certificate and its private key, both as PEM. */
interface PemPair {
  readonly cert: string;
  readonly key: string;
}

/** The syntax of a token (RFC 8555 §8.1), which becomes the name of a file. */
const tokenPattern = /^[A-Za-z0-9_-]{16,256}$/;
const hostPattern = /^[a-z0-9_.-]{1,253}$/;

/**
 * The files of ACME below the data folder, which only their owner can read: for each ACME server an
 * account key, certificates with their keys and states; and the responses to challenges. One
 * process of a server writes them, all read them.
 */
export class AcmeFolder {
  readonly #root: string;
  /** The folder of the configured ACME server: accounts and certificates belong to a server. */
  readonly #folder: string;
  readonly #hosts: readonly string[];

  constructor(dataFolder: string, { directory, hosts }: AcmeConfig) {
    this.#root = join(dataFolder, 'acme');
    const name = new URL(directory).hostname.replace(/[^a-z0-9.-]/g, '_');
    const digest = createHash('sha256').update(directory).digest('hex').slice(0, 8);
    this.#folder = join(this.#root, `${name}-${digest}`);
    this.#hosts = hosts;
  }

  /** The certificates in the form of the ini file. Their files may not exist yet. */
  get certificates(): readonly Certificate[] {
    return this.#hosts.map((host) => {
      const file = this.#file(`${host}.pem`);
      return { host, certFile: file, keyFile: file };
    });
  }

  /** Creates the folders, and removes files that a crashed process has left behind. */
  async prepare(): Promise<void> {
    for (const folder of [this.#root, this.#folder, this.#challenges]) {
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

  /** The private key of the account, as PEM; the first call makes it. */
  async accountKey(): Promise<string> {
    const file = this.#file('account.key');
    const known = await readIfExists(file);
    if (known !== undefined) return known;
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    await write(file, pem);
    return pem;
  }

  /** Replaces the certificate and the key of a host. Both are one file, so both change at once. */
  async saveCertificate(host: string, { cert, key }: PemPair): Promise<void> {
    await write(this.#file(`${host}.pem`), `${key.trim()}\n${cert.trim()}\n`);
  }

  /** The state of the certificate of a host; undefined if it is unknown. */
  async state(host: string): Promise<HostState | undefined> {
    const text = await readIfExists(this.#file(`${host}.json`));
    return text === undefined ? undefined : parseState(text);
  }

  async saveState(host: string, state: HostState): Promise<void> {
    await write(this.#file(`${host}.json`), `${JSON.stringify(state)}\n`);
  }

  /** The response to an http-01 challenge (RFC 8555 §8.3); undefined for an unknown token. */
  async keyAuthorization(token: string): Promise<string | undefined> {
    return tokenPattern.test(token) ? readIfExists(join(this.#challenges, token)) : undefined;
  }

  /** The response to a tls-alpn-01 challenge (RFC 8737 §3); undefined for a host without one. */
  async challengeCertificate(host: string): Promise<PemPair | undefined> {
    if (!hostPattern.test(host)) return undefined;
    const text = await readIfExists(join(this.#challenges, `${host}.pem`));
    return text === undefined ? undefined : { cert: text, key: text };
  }

  /** Saves the response to a challenge, by its token or its host. */
  async saveChallenge(name: string, content: string | PemPair): Promise<void> {
    if (typeof content === 'string') {
      if (!tokenPattern.test(name)) throw new TypeError('The token of the challenge is malformed.');
      await write(join(this.#challenges, name), content);
    } else {
      await write(join(this.#challenges, `${name}.pem`), `${content.key}\n${content.cert}`);
    }
  }

  /** Removes the responses to all challenges. */
  async removeChallenges(): Promise<void> {
    for (const name of await readdir(this.#challenges)) {
      await rm(join(this.#challenges, name), { force: true });
    }
  }

  get #challenges(): string {
    return join(this.#root, 'challenges');
  }

  #file(name: string): string {
    return join(this.#folder, name);
  }
}

/** Undefined for a file that somebody has damaged. */
function parseState(text: string): HostState | undefined {
  try {
    const state = JSON.parse(text) as Partial<HostState> | null;
    const isWhole = Number.isSafeInteger(state?.failures) && typeof state?.since === 'string';
    return isWhole ? (state as HostState) : undefined;
  } catch {
    return undefined;
  }
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
