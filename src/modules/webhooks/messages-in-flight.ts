import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A version of a hook. Each message in flight belongs to one. */
export interface Version {
  readonly seq: number;
  /** Cancels all attempts that began with this version. */
  readonly cancellation: AbortController;
}

/** Makes the version of a hook with a seq. */
export function newVersion(seq: number): Version {
  const cancellation = new AbortController();
  setMaxListeners(0, cancellation.signal);
  return { seq, cancellation };
}

/** A message from the start of its attempt until the attempt is recorded. */
interface MessageInFlight {
  readonly version: Version;
  readonly ended: Promise<void>;
}

/** The messages of one hook that are in flight, by the number of their first event. */
export class MessagesInFlight {
  readonly #messages = new Map<number, MessageInFlight>();
  /** Messages with a completed attempt that is not recorded yet. */
  readonly #completed = new Set<number>();

  get size(): number {
    return this.#messages.size;
  }

  readonly has = (n: number): boolean => this.#messages.has(n);

  add(n: number, message: MessageInFlight): void {
    this.#messages.set(n, message);
  }

  /** Notes that the receiver has accepted a message. */
  complete(n: number): void {
    this.#completed.add(n);
  }

  /** Whether the receiver has accepted all messages in flight. */
  get areCompleted(): boolean {
    return this.#completed.size === this.#messages.size;
  }

  delete(n: number): void {
    this.#messages.delete(n);
    this.#completed.delete(n);
  }

  /**
   * Waits up to graceMs for all messages except those of one version, then cancels them; resolves
   * when they have ended.
   */
  async end(graceMs: number, exceptSeq?: number): Promise<void> {
    const ending = [...this.#messages.values()].filter(({ version }) => version.seq !== exceptSeq);
    const all = Promise.all(ending.map(({ ended }) => ended));
    const inTime = new AbortController();
    const grace = delay(graceMs, undefined, { signal: inTime.signal }).catch(() => undefined);
    await Promise.race([all, grace]);
    inTime.abort();
    for (const { version } of ending) version.cancellation.abort();
    await all;
  }
}
