import { createHash, generateKeyPairSync } from 'node:crypto';
import type { KeyPair, RefusedPair } from '../../core/config/key-pair.ts';
import type { IssuedCertificate } from './acme-order.ts';

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
  /** In a cluster, the machine that has made the order. */
  readonly node?: string;
}

/**
 * The storage of ACME: an account key, certificates with their keys and states, and the responses
 * to challenges. One process writes, all read.
 */
export interface AcmeStore {
  /** The hosts of the ini file with `acme = yes`. */
  readonly hosts: readonly string[];
  /** Names the certificate of a host and its place, as the subject of a sentence. */
  placeOf(host: string): string;
  /** The certificate of a host and its key; undefined if there is none yet. */
  keyPair(host: string): Promise<KeyPair | RefusedPair | undefined>;
  /** Yields after certificates may have changed, until the signal aborts. */
  changes(signal: AbortSignal): AsyncIterator<unknown>;
  /** The state of the certificate of a host; undefined if it is unknown. */
  state(host: string): Promise<HostState | undefined>;
  saveState(host: string, state: HostState): Promise<void>;
  /** The private key of the account, as PEM; the first call makes it. */
  accountKey(): Promise<string>;
  /** Replaces the certificate and the key of a host, both at once; the signal ends retries. */
  saveCertificate(host: string, pair: IssuedCertificate, signal: AbortSignal): Promise<void>;
  /** The response to an http-01 challenge (RFC 8555 §8.3); undefined for an unknown token. */
  keyAuthorization(token: string): Promise<string | undefined>;
  /** The response to a tls-alpn-01 challenge (RFC 8737 §3); undefined for a host without one. */
  challengeCertificate(host: string): Promise<IssuedCertificate | undefined>;
  /** Saves the response to a challenge, by its token or its host. */
  saveChallenge(name: string, content: string | IssuedCertificate): Promise<void>;
  /** Removes the responses to all challenges. */
  removeChallenges(): Promise<void>;
  readonly onDemand: OnDemandStore;
}

/** The hosts beside those of the ini file whose certificates were allowed when clients came. */
export interface OnDemandStore {
  /** The hosts, with the time of their last use in milliseconds since 1970. */
  hosts(): Promise<ReadonlyMap<string, number>>;
  has(host: string): Promise<boolean>;
  /** Adds a host, or notes that it is in use now. Any process may call it. */
  use(host: string, nowMs: number): Promise<void>;
  /** Removes hosts with their certificates and states. */
  forget(hosts: readonly string[]): Promise<void>;
}

/** The syntax of a token (RFC 8555 §8.1). */
const tokenPattern = /^[A-Za-z0-9_-]{16,256}$/;
const hostPattern = /^[a-z0-9_.-]{1,253}$/;

/** Whether a text can be the token of a challenge, and so the name of a file or a value. */
export function isToken(text: string): boolean {
  return tokenPattern.test(text);
}

/** Whether a text can be a host, and so the name of a file or a value. */
export function isHost(text: string): boolean {
  return hostPattern.test(text);
}

/** Undefined for a text that is damaged. */
export function parseHostState(text: string): HostState | undefined {
  try {
    const state = JSON.parse(text) as Partial<HostState> | null;
    const isWhole = Number.isSafeInteger(state?.failures) && typeof state?.since === 'string';
    return isWhole ? (state as HostState) : undefined;
  } catch {
    return undefined;
  }
}

/** Makes the private key of an account, as PEM. */
export function newAccountKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
}

/** The name of an ACME server in files and values: its host, and a hash of its directory's URL. */
export function acmeServerName(directory: string): string {
  const name = new URL(directory).hostname.replace(/[^a-z0-9.-]/g, '_');
  const digest = createHash('sha256').update(directory).digest('hex').slice(0, 8);
  return `${name}-${digest}`;
}
