import type { WebSocket } from 'ws';
import { Failure, type FailureCode } from '../../model/failure.ts';
import type { Caller } from '../../model/key.ts';
import { jsonPieces } from '../../model/prepared-json.ts';
import { subscriptionIdCharactersMax, subscriptionUnsentBytesMax } from './limits.ts';
import type { LimitLog } from '../../observability/limit-log.ts';
import type { RuleChange } from '../../store/store.ts';
import type { Call, Stream } from '../../api/operation.ts';
import { socketSubscriptionsMax } from '../limits.ts';
import type { Serving } from '../serving.ts';
import type { Allocation } from '../../model/shared-limit.ts';
import type { SharedLimits } from '../shared-limits.ts';
import { sendPieces } from './send-pieces.ts';

/** A stream that a client asked for. */
interface Subscription {
  /** The operation that it asked by. */
  readonly name: string;
  readonly stream: Stream;
  readonly call: Call;
  /** The members that every packet repeats of the request: its id, where it had one. */
  readonly echo: { readonly id?: unknown };
}

/** What the subscriptions of a websocket stand on. */
interface SubscriptionParts {
  readonly websocket: WebSocket;
  readonly serving: () => Serving;
  /** Who is at the other end by now. */
  readonly caller: () => Caller;
  readonly shared: SharedLimits;
  /** Counts a packet as unread until the returned function is called; throws where too much is. */
  readonly hold: (pieces: readonly Buffer[]) => () => void;
  readonly limits: LimitLog;
  /** Tells the client why an operation has failed. */
  readonly tell: (name: string, thrown: unknown, echo: object) => Failure;
}

/** A subscription and the seq up to which the log has been looked through for it. */
interface Followed extends Subscription {
  readonly allocation: Allocation;
  after: number;
}

/**
 * The subscriptions of one websocket. They follow the log together, from the one that is furthest
 * behind, so that packets are in the order of seq over all of them; and at the pace of the client:
 * what it has not read yet waits in the log, not in memory.
 */
export class Subscriptions {
  readonly #parts: SubscriptionParts;
  #followed: readonly Followed[] = [];
  /** Interrupts the wait for a change. */
  #interrupt = new AbortController();
  readonly #stopped = new AbortController();
  #unsentBytes = 0;
  #isHeldUp = false;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#followed.length;
  }

  /** Bytes of packets that the client has still to read. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /**
   * Adds a subscription; its first packet comes in a later turn of the event loop, so after the
   * answer to its request. Throws `too_large` when the websocket has enough of them, or an id that
   * is too long to repeat; `rate_limited` when the caller has enough of them, and `unavailable`
   * when the process has.
   */
  add(subscription: Subscription): void {
    if (this.#isStopped()) return;
    this.#requireRoom(subscription);
    const allocation = this.#parts.shared.subscriptions.allocation(subscription.call.caller);
    allocation.grow(1);
    const isFirst = this.#followed.length === 0;
    const { after } = subscription.stream;
    this.#followed = [...this.#followed, { ...subscription, allocation, after }];
    // One that starts further back is not to wait for what the others wait for.
    this.#interrupt.abort();
    this.#interrupt = new AbortController();
    if (isFirst) void this.#follow();
  }

  /** Ends all of them; nothing is read of the log any more. */
  stop(): void {
    this.#stopped.abort();
    for (const { allocation } of this.#followed) allocation.free();
    this.#followed = [];
    this.#interrupt.abort();
  }

  /** Whether changes wait for the client to read what was sent before them. */
  get isHeldUp(): boolean {
    return this.#isHeldUp;
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
    try {
      while (!this.#isStopped()) await this.#deliverPiece(this.#followed);
    } catch (thrown) {
      this.#end(thrown);
    }
  }

  /** The next slice of the log, for the subscriptions that exist when it is read. */
  async #deliverPiece(followed: readonly Followed[]): Promise<void> {
    const [first] = followed;
    if (first === undefined) return;
    const after = Math.min(...followed.map((one) => one.after));
    const piece = await first.stream.changesAfter(after, this.#interrupt.signal);
    if (this.#isStopped()) return;
    // A revoked key is a change too: its holder is notified at once, not with the next packet.
    this.#parts.serving().requireUnrevoked(this.#parts.caller());
    for (const change of piece.changes) {
      for (const one of followed) {
        if (change.change.seq <= one.after || !one.stream.matches(change)) continue;
        await this.#deliver(one, change);
        if (this.#isStopped()) return;
      }
    }
    for (const one of followed) one.after = Math.max(one.after, piece.upTo);
  }

  async #deliver({ name, call, echo }: Followed, change: RuleChange): Promise<void> {
    const { websocket, serving } = this.#parts;
    const caller = this.#parts.caller();
    const { execute, requireUnrevoked } = serving();
    requireUnrevoked(caller);
    const packet = execute.packet(name, change, { ...call, caller });
    const pieces = jsonPieces({ ...packet, ...echo });
    const free = await this.#held(pieces);
    if (free === undefined) return;
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    this.#unsentBytes += bytes;
    const read = new Promise<void>((resolve) => {
      // It is called when the connection ends before, too.
      sendPieces(websocket, pieces, () => {
        this.#unsentBytes -= bytes;
        free();
        resolve();
      });
    });
    if (this.#unsentBytes <= subscriptionUnsentBytesMax) return;
    this.#isHeldUp = true;
    await read;
    this.#isHeldUp = false;
  }

  /**
   * Counts a packet as unread, as soon as others have been read where too much is not; undefined
   * when the subscriptions have ended before.
   */
  async #held(pieces: readonly Buffer[]): Promise<(() => void) | undefined> {
    const { hold, shared } = this.#parts;
    while (!this.#isStopped()) {
      try {
        return hold(pieces);
      } catch (thrown) {
        if (!(thrown instanceof Failure)) throw thrown;
        this.#parts.limits.passed('unread_answers', this.#parts.caller().address);
        this.#isHeldUp = true;
        await shared.unread.freed();
        this.#isHeldUp = false;
      }
    }
    return undefined;
  }

  #end(thrown: unknown): void {
    if (this.#isStopped()) return;
    let code: FailureCode | undefined;
    for (const { name, echo } of this.#followed) code = this.#parts.tell(name, thrown, echo).code;
    this.stop();
    if (code === 'unauthenticated' || code === 'forbidden') {
      this.#parts.websocket.close(1008, 'The changes may not be read any more.');
    } else {
      this.#parts.websocket.close(1011, 'The changes cannot be read any more.');
    }
  }
}
