import { LRUCache } from 'lru-cache';
import { SharedLimit, type Shares } from '../../core/fair/shared-limit.ts';
import { SharedTasks } from '../../core/fair/shared-tasks.ts';
import {
  type ActivePair,
  certificateState,
  loadAcmeCertificate,
  loadOnDemandCertificates,
} from '../../core/server/tls/loaded-certificate.ts';
import { isPublicName } from '../../core/server/tls/public-name.ts';
import type { CertificateState } from '../status/server-status.ts';
import type { AcmeStore } from './acme-store.ts';
import type { Permissions } from './permissions.ts';

/** Contexts of certificates on demand in memory, and how soon one is read again. */
const onDemandContextsMax = 1_000;
const onDemandCheckMs = 60_000;

/** How often a handshake looks for its certificate, and how many handshakes wait. */
const onDemandLookMs = 200;
const onDemandWaitingMax = 256;

/** How often the use of a certificate on demand is noted. */
const onDemandUseMs = 6 * 3_600_000;

interface OnDemandParts {
  readonly store: AcmeStore;
  readonly permissions: Pick<Permissions, 'of'>;
  /** How long a handshake waits for a certificate. */
  readonly waitMs: number;
  /** Called when a certificate is needed. */
  readonly demanded: () => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Resolves after a time. */
  readonly wait: (ms: number) => Promise<unknown>;
}

/** The names that handshakes look for: how long that takes is decided elsewhere. */
const handshakes: Shares = {
  what: 'handshakes for names without a certificate',
  held: 'long',
  max: onDemandWaitingMax,
};

/** A certificate that was read from the store, which may have a newer one by now. */
interface ReadPair {
  readonly pair: ActivePair;
  readonly untilMs: number;
  readonly notedMs: number;
}

/**
 * The certificates for names that the ini file does not have (`acme_on_demand`): they are obtained
 * at the first handshake, if the operator's URL allows it, and read from the store when a client
 * needs them. All processes that share the store find what one of them has obtained.
 */
export class OnDemandCertificates {
  readonly #parts: OnDemandParts;
  readonly #read = new LRUCache<string, ReadPair>({ max: onDemandContextsMax });
  readonly #handshakes = new SharedLimit(handshakes);
  readonly #pending = new SharedTasks<ActivePair | undefined>(this.#handshakes);

  constructor(parts: OnDemandParts) {
    this.#parts = parts;
  }

  /**
   * The pair for a name in lower case, for the handshake of a client; undefined if it must have
   * none, or has none in time.
   */
  async pairFor(name: string, address: string): Promise<ActivePair | undefined> {
    const known = this.#read.get(name);
    if (known !== undefined && this.#parts.now() < known.untilMs) return known.pair;
    if (!isPublicName(name)) return undefined;
    const pending = this.#pending.running(name);
    if (pending !== undefined) return pending;
    const client = { keyId: undefined, address };
    if (!this.#handshakes.hasRoom(client)) return known?.pair;
    return this.#pending.run(name, client, () => this.#find(name, address));
  }

  /** The states of the certificates that were used last. */
  async states(): Promise<readonly CertificateState[]> {
    const { store } = this.#parts;
    const loaded = await loadOnDemandCertificates(store);
    return Promise.all(loaded.map((one) => certificateState(one, store)));
  }

  async #find(name: string, address: string): Promise<ActivePair | undefined> {
    const { store, permissions, demanded, now } = this.#parts;
    if (await store.onDemand.has(name)) {
      const pair = await this.#load(name);
      if (pair !== undefined) return pair;
      const { state, next } = (await store.state(name)) ?? {};
      if (state === 'failed' && Date.parse(next ?? '') > now()) return undefined;
    } else {
      if ((await permissions.of(name, address)) !== 'allowed') return undefined;
      await store.onDemand.use(name, now());
    }
    demanded();
    return this.#arrival(name);
  }

  /** Waits for a certificate; the order goes on without those who do not wait any longer. */
  async #arrival(name: string): Promise<ActivePair | undefined> {
    const { store, now, wait, waitMs } = this.#parts;
    const beganMs = now();
    for (let left = waitMs; left > 0; left -= onDemandLookMs) {
      await wait(Math.min(left, onDemandLookMs));
      const pair = await this.#load(name);
      if (pair !== undefined) return pair;
      const { state, since } = (await store.state(name)) ?? {};
      if (state === 'failed' && Date.parse(since ?? '') >= beganMs) return undefined;
    }
    return undefined;
  }

  /** Reads a certificate, and notes its use now and then. */
  async #load(name: string): Promise<ActivePair | undefined> {
    const { store, now } = this.#parts;
    const before = this.#read.peek(name);
    const { current } = await loadAcmeCertificate(name, store);
    if (current === undefined) {
      this.#read.delete(name);
      return undefined;
    }
    const isSame = before?.pair.pair.cert === current.pair.cert;
    const nowMs = now();
    const isNoted = before !== undefined && nowMs - before.notedMs < onDemandUseMs;
    this.#read.set(name, {
      pair: isSame ? before.pair : current,
      untilMs: nowMs + onDemandCheckMs,
      notedMs: isNoted ? before.notedMs : nowMs,
    });
    // A full disk must not end the handshake.
    if (!isNoted) await store.onDemand.use(name, nowMs).catch(() => undefined);
    return isSame ? before.pair : current;
  }
}
