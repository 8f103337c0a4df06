import type { Caller } from '../values/key.ts';
import { KIB, MIB } from '../values/units.ts';
import { type Allocation, SharedLimit } from './shared-limit.ts';

/** Shorter content does not count: the limit of connections bounds it. */
export const unreadPieceBytesMin = 64 * KIB;
const releaseNothing = (): void => undefined;

/**
 * Limits the memory of answers that clients have not read yet. Content of several answers counts
 * once, for the caller of the first one.
 */
export class UnreadAnswers {
  readonly #limit: SharedLimit;
  readonly #held = new Map<ArrayBufferLike, HeldContent>();
  #freed = Promise.withResolvers<undefined>();

  constructor(limit: SharedLimit) {
    this.#limit = limit;
  }

  /** The bytes that count now. */
  get size(): number {
    return this.#limit.size;
  }

  /**
   * Counts the content of an answer until the returned function is called. Short content does not
   * count; `encrypted` content is a copy for each answer. Throws `rate_limited` if it exceeds the
   * share of the caller, and `unavailable` if all clients together have too much.
   */
  hold(
    caller: Pick<Caller, 'keyId' | 'address'>,
    pieces: readonly Buffer[],
    { encrypted = false } = {},
  ): () => void {
    const large = pieces.filter(({ length }) => length >= unreadPieceBytesMin);
    if (large.length === 0) return releaseNothing;
    const frees: (() => void)[] = [];
    const free = (): void => {
      for (const one of frees.splice(0)) one();
      this.#freed.resolve(undefined);
      this.#freed = Promise.withResolvers();
    };
    try {
      for (const piece of large) {
        frees.push(encrypted ? this.#take(caller, piece.length) : this.#share(caller, piece));
      }
      return free;
    } catch (thrown) {
      free();
      throw thrown;
    }
  }

  /** Resolves as soon as a client has read an answer, or has disconnected. */
  async freed(): Promise<void> {
    await this.#freed.promise;
  }

  #take(caller: Pick<Caller, 'keyId' | 'address'>, bytes: number): () => void {
    const allocation = this.#limit.allocation(caller);
    allocation.grow(bytes);
    return () => {
      allocation.free();
    };
  }

  /** Counts the memory that a piece is a part of, unless it counts for another answer already. */
  #share(caller: Pick<Caller, 'keyId' | 'address'>, { buffer }: Buffer): () => void {
    const held = this.#held.get(buffer) ?? {
      answers: 0,
      allocation: this.#limit.allocation(caller),
    };
    if (held.answers === 0) held.allocation.grow(buffer.byteLength);
    held.answers += 1;
    this.#held.set(buffer, held);
    return () => {
      held.answers -= 1;
      if (held.answers > 0) return;
      held.allocation.free();
      this.#held.delete(buffer);
    };
  }
}

/**
 * Subscriptions of all websockets of a process; of callers without a key, of one address without a
 * key; and of one websocket. A key, too, holds no more than is left for others.
 */
export const subscriptionsMax = 1_000;
export const subscriptionsWithoutKeyMax = 750;
export const subscriptionsPerAddressMax = 128;

/**
 * Bytes of unanswered requests in memory, limited in the same way: bodies of operations and
 * messages of websockets, complete or not. A piece costs a little more than its bytes.
 */
export const requestsHeldBytesMax = 256 * MIB;
export const requestsHeldWithoutKeyBytesMax = 64 * MIB;
export const requestsHeldPerAddressBytesMax = 8 * MIB;

/** Bytes of unread answers in memory, limited in the same way. */
export const unreadBytesMax = 256 * MIB;
export const unreadWithoutKeyBytesMax = 192 * MIB;
export const unreadPerAddressBytesMax = 96 * MIB;

/** Websockets to sources, of one process and of one address. */
export const tunnelsMax = 4_096;
export const tunnelsPerAddressMax = 1_024;

/** The limits that all clients of a process share. */
export interface SharedLimits {
  /** Subscriptions of websockets. */
  readonly subscriptions: SharedLimit;
  /** Bytes of unanswered requests: bodies of operations, messages of websockets. */
  readonly requests: SharedLimit;
  readonly unread: UnreadAnswers;
  /** Websockets to sources; their clients have no API key. */
  readonly tunnels: SharedLimit;
}

/** Makes the shared limits of a process. */
export function createSharedLimits(): SharedLimits {
  return {
    subscriptions: new SharedLimit({
      what: 'subscriptions',
      limit: 'subscriptions',
      held: 'long',
      max: subscriptionsMax,
      withoutKeyMax: subscriptionsWithoutKeyMax,
      perAddressMax: subscriptionsPerAddressMax,
    }),
    requests: new SharedLimit({
      what: 'large requests that are not answered yet',
      limit: 'requests_held',
      held: 'long',
      max: requestsHeldBytesMax,
      withoutKeyMax: requestsHeldWithoutKeyBytesMax,
      perAddressMax: requestsHeldPerAddressBytesMax,
    }),
    tunnels: new SharedLimit({
      what: 'websockets to this site',
      limit: 'tunnels',
      held: 'long',
      max: tunnelsMax,
      perAddressMax: tunnelsPerAddressMax,
    }),
    unread: new UnreadAnswers(
      new SharedLimit({
        what: 'answers that are not read yet',
        limit: 'unread_answers',
        held: 'long',
        max: unreadBytesMax,
        withoutKeyMax: unreadWithoutKeyBytesMax,
        perAddressMax: unreadPerAddressBytesMax,
      }),
    ),
  };
}

/** Content in memory, and the number of answers with it. */
interface HeldContent {
  answers: number;
  readonly allocation: Allocation;
}
