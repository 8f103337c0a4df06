import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { Allocation } from '../../fair/shared-limit.ts';
import type { SharedLimits } from '../../fair/shared-limits.ts';
import type { RecordChange } from '../../log/store.ts';
import type { Call, ChangeStream, Feed, Packet } from '../../operations/operation.ts';
import type { Serving } from '../../pipeline/serving.ts';
import type { LimitLog } from '../../report/limit-log.ts';
import { Failure, type FailureCode } from '../../values/failure.ts';
import { jsonPieces } from '../../values/json/prepared-json.ts';
import type { Caller } from '../../values/key.ts';
import { MIB } from '../../values/units.ts';
import { sendPieces } from './message.ts';

export const socketSubscriptionsMax = 64;

/** Characters, in JSON, of the id that each packet of a subscription repeats. */
const subscriptionIdCharactersMax = 256;

/** Unsent bytes to a client; with more, further changes wait in the log. */
const subscriptionUnsentBytesMax = MIB;

/** What follows the answer to a request of a client. */
interface Subscription {
  /** The operation that started the subscription. */
  readonly name: string;
  /** Changes of the log, or packets that the operation makes itself. */
  readonly stream: ChangeStream | Feed;
  readonly call: Call;
  /** The members of the request that every packet repeats: the id, if there is one. */
  readonly echo: { readonly id?: unknown };
}

/** The dependencies of the subscriptions of a websocket. */
interface SubscriptionParts {
  readonly websocket: WebSocket;
  readonly serving: () => Serving;
  /** Returns the current caller. */
  readonly caller: () => Caller;
  readonly shared: SharedLimits;
  /**
   * Counts a packet as unread until the caller calls the returned function; throws when too many
   * bytes are unread.
   */
  readonly countUnread: (pieces: readonly Buffer[]) => () => void;
  readonly limits: LimitLog;
  /** Sends the failure of an operation to the client. */
  readonly sendFailure: (name: string, thrown: unknown, echo: object) => Failure;
}

/** An active subscription. */
interface ActiveSubscription extends Subscription {
  readonly allocation: Allocation;
  readonly ending: AbortController;
}

/** A subscription to changes, and the seq up to which it has seen the log. */
interface LogSubscription extends ActiveSubscription {
  readonly stream: ChangeStream;
  after: number;
}

/**
 * The subscriptions of one websocket. Those to changes follow the log together, from the lowest
 * `after`, so that all their packets are in the order of seq. All go at the pace of the client:
 * unread changes wait in the log, not in memory, and a feed makes its next packet when the client
 * has taken the one before.
 */
export class Subscriptions {
  readonly #parts: SubscriptionParts;
  #active: readonly ActiveSubscription[] = [];
  /** Interrupts the wait for the next change. */
  #interrupt = new AbortController();
  readonly #stopped = new AbortController();
  #unsentBytes = 0;
  /** How many packets wait until the client reads earlier ones. */
  #waiting = 0;
  #isFollowing = false;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#active.length;
  }

  /** Bytes of packets that the client has not read. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /**
   * Adds a subscription. Its first packet comes in a later turn of the event loop, after the answer
   * to its request. Throws `too_large` for too many subscriptions of this websocket or too long an
   * id, `rate_limited` for too many of the caller, and `unavailable` for too many of the process.
   */
  add(subscription: Subscription): void {
    if (this.#isStopped()) return;
    this.#requireRoom(subscription);
    const allocation = this.#parts.shared.subscriptions.allocation(subscription.call.caller);
    allocation.grow(1);
    const { stream } = subscription;
    const one = { ...subscription, allocation, ending: new AbortController() };
    if (typeof stream === 'function') {
      this.#active = [...this.#active, one];
      void this.#sendFeed(one, stream(one.ending.signal));
      return;
    }
    const follower: LogSubscription = { ...one, stream, after: stream.after };
    this.#active = [...this.#active, follower];
    const { others } = stream;
    if (others !== undefined) void this.#sendFeed(follower, others(one.ending.signal));
    // The new subscription may start at a lower seq than the others wait for.
    this.#interrupt.abort();
    this.#interrupt = new AbortController();
    if (!this.#isFollowing) void this.#follow();
  }

  /** Ends the subscriptions that requests with this id began. */
  remove(id: unknown): void {
    for (const one of this.#active) if (one.echo.id === id) this.#remove(one);
    this.#interrupt.abort();
    this.#interrupt = new AbortController();
  }

  /** Ends all subscriptions and stops reading the log. */
  stop(): void {
    this.#stopped.abort();
    for (const one of this.#active) this.#remove(one);
    this.#interrupt.abort();
  }

  #remove(one: ActiveSubscription): void {
    one.allocation.free();
    one.ending.abort();
    this.#active = this.#active.filter((other) => other !== one);
  }

  /** Whether packets wait until the client reads earlier packets. */
  get isPaused(): boolean {
    return this.#waiting > 0;
  }

  #isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  #requireRoom({ echo: { id } }: Subscription): void {
    if (id !== undefined && JSON.stringify(id).length > subscriptionIdCharactersMax) {
      throw new Failure(
        'too_large',
        `The id of a subscription has at most ${subscriptionIdCharactersMax} characters.`,
        { field: 'id' },
      );
    }
    if (this.size >= socketSubscriptionsMax) {
      throw new Failure(
        'too_large',
        `One websocket has at most ${socketSubscriptionsMax} subscriptions.`,
      );
    }
  }

  async #follow(): Promise<void> {
    this.#isFollowing = true;
    try {
      for (let those = this.#ofLog(); those.length > 0; those = this.#ofLog()) {
        await this.#deliverBatch(those);
      }
    } catch (thrown) {
      this.#end(thrown);
    } finally {
      this.#isFollowing = false;
    }
  }

  #ofLog(): readonly LogSubscription[] {
    return this.#active.filter((one): one is LogSubscription => 'after' in one);
  }

  /** Sends the packets of a feed in later turns of the event loop, after the answer. */
  async #sendFeed(one: ActiveSubscription, packets: AsyncIterable<Packet>): Promise<void> {
    const { signal } = one.ending;
    try {
      await nextTurn();
      for await (const packet of packets) {
        if (signal.aborted) return;
        // Revoking a key is a change of the log, too.
        this.#parts.serving().requireUnrevoked(this.#parts.caller());
        await this.#send({ ...packet, ...one.echo }, 0);
      }
      this.#remove(one);
    } catch (thrown) {
      if (!signal.aborted) this.#end(thrown);
    }
  }

  /** Delivers the next batch of the log to the subscriptions that exist when the read begins. */
  async #deliverBatch(active: readonly LogSubscription[]): Promise<void> {
    const [first] = active;
    if (first === undefined) return;
    const after = Math.min(...active.map((one) => one.after));
    const families = [...new Set(active.map(({ stream }) => stream.family))];
    const batch = await first.stream.changesAfter(families, after, this.#interrupt.signal);
    if (this.#isStopped()) return;
    // Revoking a key is a change too: its holder is notified now, not with the next packet.
    this.#parts.serving().requireUnrevoked(this.#parts.caller());
    for (const change of batch.changes) {
      for (const one of active) {
        if (change.change.seq <= one.after || !one.stream.matches(change)) continue;
        if (!this.#active.includes(one)) continue;
        await this.#deliver(one, change);
        if (this.#isStopped()) return;
      }
    }
    for (const one of active) one.after = Math.max(one.after, batch.upTo);
  }

  async #deliver({ name, call, echo }: LogSubscription, change: RecordChange): Promise<void> {
    const { serving } = this.#parts;
    const caller = this.#parts.caller();
    const { execute, requireUnrevoked } = serving();
    requireUnrevoked(caller);
    const packet = execute.packet(name, change, { ...call, caller });
    await this.#send({ ...packet, ...echo }, subscriptionUnsentBytesMax);
  }

  /** Sends a packet; resolves when the client has left at most `unsentBytesMax` unread. */
  async #send(packet: object, unsentBytesMax: number): Promise<void> {
    const pieces = jsonPieces(packet);
    const free = await this.#countWhenRead(pieces);
    if (free === undefined) return;
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    this.#unsentBytes += bytes;
    const read = new Promise<void>((resolve) => {
      // `sendPieces` also calls this when the connection ends first.
      sendPieces(this.#parts.websocket, pieces, () => {
        this.#unsentBytes -= bytes;
        free();
        resolve();
      });
    });
    if (this.#unsentBytes > unsentBytesMax) await this.#paused(read);
  }

  async #paused(until: Promise<unknown>): Promise<void> {
    this.#waiting += 1;
    await until;
    this.#waiting -= 1;
  }

  /**
   * Counts a packet as unread; if too many bytes are unread, waits until others have been read.
   * Resolves to undefined if the subscriptions end first.
   */
  async #countWhenRead(pieces: readonly Buffer[]): Promise<(() => void) | undefined> {
    const { countUnread, shared } = this.#parts;
    while (!this.#isStopped()) {
      try {
        return countUnread(pieces);
      } catch (thrown) {
        if (!(thrown instanceof Failure)) throw thrown;
        this.#parts.limits.passed('unread_answers', this.#parts.caller().address);
        await this.#paused(shared.unread.freed());
      }
    }
    return undefined;
  }

  /** Sends a failure as the last packet of each subscription, and ends all; returns its code. */
  fail(thrown: unknown): FailureCode | undefined {
    let code: FailureCode | undefined;
    for (const { name, echo } of this.#active)
      code = this.#parts.sendFailure(name, thrown, echo).code;
    this.stop();
    return code;
  }

  #end(thrown: unknown): void {
    if (this.#isStopped()) return;
    const code = this.fail(thrown);
    if (code === 'unauthenticated' || code === 'forbidden') {
      this.#parts.websocket.close(1008, 'The caller may no longer read this.');
    } else {
      this.#parts.websocket.close(1011, 'The server cannot go on with the subscription.');
    }
  }
}
