import { createHash, generateKeyPairSync } from 'node:crypto';
import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AcmeConfig, Certificate } from '../config/config.ts';

/** What is known of the certificate of a host besides itself. */
export interface HostState {
  readonly state: 'obtaining' | 'valid' | 'failed';
  /** ISO 8601, UTC: when it came to be so. */
  readonly since: string;
  /** Tries in a row that failed. */
  readonly failures: number;
  /** ISO 8601, UTC: when it will be tried again, or renewed. */
  readonly next: string | null;
  readonly error: string | null;
}

/** A certificate and its key, both PEM. */
interface PemPair {
  readonly cert: string;
  readonly key: string;
}

/** What a challenge token is made of (RFC 8555 §8.1), and so what may name a file. */
const tokenPattern = /^[A-Za-z0-9_-]{16,256}$/;
const hostPattern = /^[a-z0-9_.-]{1,253}$/;

/**
 * What ACME needs is kept below the data folder, for its owner alone: accounts, certificates with
 * their keys and how they stand by ACME server, and the challenges that are under way. All
 * processes of a server read it, one of them writes it.
 */
export class AcmeFolder {
  readonly #root: string;
  /** Of one ACME server: what another one knows or has issued is nothing to it. */
  readonly #folder: string;
  readonly #hosts: readonly string[];

  constructor(dataFolder: string, { directory, hosts }: AcmeConfig) {
    this.#root = join(dataFolder, 'acme');
    const name = new URL(directory).hostname.replace(/[^a-z0-9.-]/g, '_');
    const digest = createHash('sha256').update(directory).digest('hex').slice(0, 8);
    this.#folder = join(this.#root, `${name}-${digest}`);
    this.#hosts = hosts;
  }

  /** The certificates as those of the ini file; their files may not be there yet. */
  get certificates(): readonly Certificate[] {
    return this.#hosts.map((host) => {
      const file = this.#file(`${host}.pem`);
      return { host, certFile: file, keyFile: file };
    });
  }

  /** Makes the folders, and takes away what a process has left behind that ended at work. */
  async prepare(): Promise<void> {
    for (const folder of [this.#root, this.#folder, this.#challenges]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await chmod(folder, 0o700);
    }
    // The folder stays: on a full disk it could not be made again.
    for (const name of await readdir(this.#challenges)) {
      await rm(join(this.#challenges, name), { recursive: true, force: true });
    }
    const drafts = (await readdir(this.#folder)).filter((name) => name.endsWith('.draft'));
    for (const name of drafts) await rm(this.#file(name), { force: true });
  }

  /** The key of the account, PEM; made when it is first asked for. */
  async accountKey(): Promise<string> {
    const file = this.#file('account.key');
    const known = await readIfThere(file);
    if (known !== undefined) return known;
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    await write(file, pem);
    return pem;
  }

  /** Puts a certificate in the place of the one before, both parts at once. */
  async keep(host: string, { cert, key }: PemPair): Promise<void> {
    await write(this.#file(`${host}.pem`), `${key.trim()}\n${cert.trim()}\n`);
  }

  /** How the certificate of a host stands; undefined where nothing is known. */
  async state(host: string): Promise<HostState | undefined> {
    const text = await readIfThere(this.#file(`${host}.json`));
    return text === undefined ? undefined : parseState(text);
  }

  async setState(host: string, state: HostState): Promise<void> {
    await write(this.#file(`${host}.json`), `${JSON.stringify(state)}\n`);
  }

  /** What answers http-01 for a token (RFC 8555 §8.3); undefined where nobody has asked for it. */
  async keyAuthorization(token: string): Promise<string | undefined> {
    return tokenPattern.test(token) ? readIfThere(join(this.#challenges, token)) : undefined;
  }

  /** What answers tls-alpn-01 for a host (RFC 8737 §3); undefined where nobody has asked for it. */
  async challengeCertificate(host: string): Promise<PemPair | undefined> {
    if (!hostPattern.test(host)) return undefined;
    const text = await readIfThere(join(this.#challenges, `${host}.pem`));
    return text === undefined ? undefined : { cert: text, key: text };
  }

  /** Answers a challenge from then on, by a token or the name of a host. */
  async present(name: string, content: string | PemPair): Promise<void> {
    if (typeof content === 'string') {
      if (!tokenPattern.test(name)) throw new TypeError('the token of a challenge is none');
      await write(join(this.#challenges, name), content);
    } else {
      await write(join(this.#challenges, `${name}.pem`), `${content.key}\n${content.cert}`);
    }
  }

  /** Answers no challenge any more. */
  async withdraw(): Promise<void> {
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

/** What somebody has spoilt says nothing. */
function parseState(text: string): HostState | undefined {
  try {
    const state = JSON.parse(text) as Partial<HostState> | null;
    const isWhole = Number.isSafeInteger(state?.failures) && typeof state?.since === 'string';
    return isWhole ? (state as HostState) : undefined;
  } catch {
    return undefined;
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Writes a file for its owner alone: who reads it sees the one before, or all of this one. */
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
