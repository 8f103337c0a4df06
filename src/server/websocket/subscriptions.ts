import type { WebSocket } from 'ws';
import { Failure, type FailureCode } from '../../model/failure.ts';
import type { Caller } from '../../model/key.ts';
import { jsonPieces } from '../../model/prepared-json.ts';
import { subscriptionIdCharactersMax, subscriptionUnsentBytesMax } from './limits.ts';
import type { LimitLog } from '../../observability/limit-log.ts';
import type { AnyChange, Call, ChangeStream } from '../../api/operation.ts';
import { socketSubscriptionsMax } from '../limits.ts';
import type { Serving } from '../serving.ts';
import type { Allocation } from '../../model/shared-limit.ts';
import type { SharedLimits } from '../shared-limits.ts';
import { sendPieces } from './send-pieces.ts';

/** A stream of changes for a client. */
interface Subscription {
  /** The operation that started the subscription. */
  readonly name: string;
  readonly stream: ChangeStream;
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

/** An active subscription, and the seq up to which it has seen the log. */
interface ActiveSubscription extends Subscription {
  readonly allocation: Allocation;
  after: number;
}

/**
 * The subscriptions of one websocket. They follow the log together, from the lowest `after`, so
 * that all packets are in the order of seq. They follow at the pace of the client: unread changes
 * wait in the log, not in memory.
 */
export class Subscriptions {
  readonly #parts: SubscriptionParts;
  #active: readonly ActiveSubscription[] = [];
  /** Interrupts the wait for the next change. */
  #interrupt = new AbortController();
  readonly #stopped = new AbortController();
  #unsentBytes = 0;
  #isPaused = false;
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
    const { after } = subscription.stream;
    this.#active = [...this.#active, { ...subscription, allocation, after }];
    // The new subscription may start at a lower seq than the others wait for.
    this.#interrupt.abort();
    this.#interrupt = new AbortController();
    if (!this.#isFollowing) void this.#follow();
  }

  /** Ends the subscriptions that requests with this id began. */
  remove(id: unknown): void {
    const ended = this.#active.filter(({ echo }) => echo.id === id);
    for (const { allocation } of ended) allocation.free();
    this.#active = this.#active.filter((one) => !ended.includes(one));
    this.#interrupt.abort();
    this.#interrupt = new AbortController();
  }

  /** Ends all subscriptions and stops reading the log. */
  stop(): void {
    this.#stopped.abort();
    for (const { allocation } of this.#active) allocation.free();
    this.#active = [];
    this.#interrupt.abort();
  }

  /** Whether changes wait until the client reads earlier packets. */
  get isPaused(): boolean {
    return this.#isPaused;
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
      while (this.#active.length > 0) await this.#deliverBatch(this.#active);
    } catch (thrown) {
      this.#end(thrown);
    } finally {
      this.#isFollowing = false;
    }
  }

  /** Delivers the next batch of the log to the subscriptions that exist when the read begins. */
  async #deliverBatch(active: readonly ActiveSubscription[]): Promise<void> {
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

  async #deliver({ name, call, echo }: ActiveSubscription, change: AnyChange): Promise<void> {
    const { websocket, serving } = this.#parts;
    const caller = this.#parts.caller();
    const { execute, requireUnrevoked } = serving();
    requireUnrevoked(caller);
    const packet = execute.packet(name, change, { ...call, caller });
    const pieces = jsonPieces({ ...packet, ...echo });
    const free = await this.#countWhenRead(pieces);
    if (free === undefined) return;
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    this.#unsentBytes += bytes;
    const read = new Promise<void>((resolve) => {
      // `sendPieces` also calls this when the connection ends first.
      sendPieces(websocket, pieces, () => {
        this.#unsentBytes -= bytes;
        free();
        resolve();
      });
    });
    if (this.#unsentBytes <= subscriptionUnsentBytesMax) return;
    this.#isPaused = true;
    await read;
    this.#isPaused = false;
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
        this.#isPaused = true;
        await shared.unread.freed();
        this.#isPaused = false;
      }
    }
    return undefined;
  }

  #end(thrown: unknown): void {
    if (this.#isStopped()) return;
    let code: FailureCode | undefined;
    for (const { name, echo } of this.#active)
      code = this.#parts.sendFailure(name, thrown, echo).code;
    this.stop();
    if (code === 'unauthenticated' || code === 'forbidden') {
      this.#parts.websocket.close(1008, 'The caller may no longer read the changes.');
    } else {
      this.#parts.websocket.close(1011, 'The server cannot read the changes.');
    }
  }
}
