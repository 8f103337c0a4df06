import type { Socket } from 'node:net';
import { turnsName } from '../fair/shared-limit.ts';
import { type EventLoop, eventLoop } from '../fair/turns.ts';
import type { Peer } from '../values/network/peer.ts';

/** How long one turn of the event loop reads what connections have sent; the rest waits. */
export const readingMs = 10;

/**
 * Cuts a turn of the event loop in which too many connections have sent something: a thousand
 * requests that arrive together took a quarter of a second, in which nobody else had an answer.
 * The rest is read in turns of the clients. A turn that is short costs one look at the clock.
 */
export class ReadTurns {
  readonly #turns: Pick<EventLoop, 'turns'>;
  readonly #monotonicMs: () => number;
  /** The connections that wait, by client. */
  readonly #waiting = new Map<string, Socket[]>();
  #beganMs = -Infinity;
  /** Whether the turn that began then still goes on. */
  #isBegun = false;
  #isReading = false;

  /** `monotonicMs` measures durations. */
  constructor(turns: Pick<EventLoop, 'turns'>, monotonicMs: () => number) {
    this.#turns = turns;
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Whether what a connection has sent has to wait. Then the socket has it again, and emits it in a
   * later turn; it is paused until then.
   */
  isLater(socket: Socket, { address }: Pick<Peer, 'address'>, bytes: Buffer): boolean {
    if (this.#isReading || !this.#isLong()) return false;
    socket.pause();
    socket.unshift(bytes);
    const client = turnsName({ address, keyId: undefined });
    const line = this.#waiting.get(client);
    line?.push(socket);
    if (line !== undefined) return true;
    const begun = [socket];
    this.#waiting.set(client, begun);
    void this.#read(client, begun);
    return true;
  }

  /** Whether this turn has read for long enough. It begins with the first call after a while. */
  #isLong(): boolean {
    const nowMs = this.#monotonicMs();
    if (nowMs - this.#beganMs < readingMs) return false;
    if (this.#isBegun) return true;
    this.#beganMs = nowMs;
    this.#isBegun = true;
    setImmediate(this.#end);
    return false;
  }

  readonly #end = (): void => {
    this.#isBegun = false;
  };

  /** Reads from the connections of a client, of which more may come meanwhile. */
  async #read(client: string, line: Socket[]): Promise<void> {
    const turns = this.#turns.turns(client);
    for (let socket = line.shift(); socket !== undefined; socket = line.shift()) {
      if (turns.isOver()) await turns.next();
      this.#resume(socket);
    }
    this.#waiting.delete(client);
  }

  #resume(socket: Socket): void {
    if (socket.destroyed) return;
    this.#isReading = true;
    try {
      socket.resume();
      // Emits what it has at once, within this turn.
      if (socket.listenerCount('data') > 0) socket.read();
    } finally {
      this.#isReading = false;
    }
  }
}

/** The reads of this thread. */
export const readTurns = new ReadTurns(eventLoop, () => performance.now());
