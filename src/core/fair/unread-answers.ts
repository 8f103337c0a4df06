import type { Caller } from '../values/key.ts';
import { KIB } from '../values/units.ts';
import type { Allocation, SharedLimit } from './shared-limit.ts';

/** Shorter content does not count: the limit of connections bounds it. */
export const unreadPieceBytesMin = 64 * KIB;

/** Content in memory, and the number of answers with it. */
interface HeldContent {
  answers: number;
  readonly allocation: Allocation;
}

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
