import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Wire } from '../../http/wire.ts';
import type { Failure } from '../../model/failure.ts';
import type { Corks } from '../../outbound/fast/corks.ts';
import { DirectResponse } from '../h1-fast/direct-response.ts';
import { readAlong, type Reader } from './read-along.ts';

/** The callbacks of the part that answers on a connection. */
interface ConnectionOwner {
  /**
   * Answers a request by its bytes, if it can do so without Node's parser; says whether it does.
   * `direct` gives what to answer with later.
   */
  readonly answerAtOnce: (text: string, direct: () => DirectResponse) => boolean;
  readonly refused: (failure: Failure) => void;
  /** Milliseconds for a head, where the parser does not see that one has begun. */
  readonly headMs: number;
  readonly corks: Corks;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** One open connection, and what is owed on it. */
export class Connection {
  /** The answer of Node's to its newest request. */
  last: ServerResponse | undefined;
  /**
   * Requests that have come before the one ahead of them was answered, each waiting for its turn.
   */
  readonly waiting = new Set<(isOpen: boolean) => void>();
  /** What reads what the client sends. */
  reader: Reader = 'http';
  readonly #socket: Socket;
  readonly #wire: Wire;
  readonly #corks: Corks;
  readonly #now: () => number;
  /** The answer that is being made without Node. */
  #direct: DirectResponse | undefined;
  /** The answer that Node has made for the request that it was given after all. */
  #handedOver: ServerResponse | undefined;

  constructor(socket: Socket, { answerAtOnce, refused, headMs, corks, now }: ConnectionOwner) {
    this.#socket = socket;
    this.#corks = corks;
    this.#now = now;
    this.#wire = readAlong(socket, {
      reader: () => this.reader,
      answerAtOnce: (text, parse) =>
        this.#isFree && answerAtOnce(text, () => this.#answerDirectly(parse)),
      more: () => {
        this.#direct?.handOver();
      },
      refused,
      headMs,
    });
    // Before Node hears of it, which would end the other side too where it owes nothing.
    socket.prependOnceListener('end', () => {
      this.#direct?.handOver();
    });
  }

  /** What has come of the head of the newest request, latin1. */
  get head(): string {
    return this.#wire.head;
  }

  /** The answer of Node's that is the last one owed; undefined where none is. */
  get owed(): ServerResponse | undefined {
    return this.last?.writableFinished === false ? this.last : undefined;
  }

  /** Whether any answer is owed, or the client has not taken all of it. */
  get owes(): boolean {
    return this.#direct !== undefined || this.owed !== undefined || this.#isUntaken;
  }

  /** Whether nothing has been asked that is not answered. */
  get isIdle(): boolean {
    return this.reader === 'http' && this.#wire.isBetweenMessages && !this.owes;
  }

  /** Resolves when the client has taken all that it was answered, or is gone. */
  taken(): Promise<void> {
    if (!this.#isUntaken) return Promise.resolve();
    const socket = this.#socket;
    return new Promise((resolve) => {
      const done = (): void => {
        resolve();
      };
      socket.once('close', done);
      // Behind all else; a connection whose end has been said closes by itself.
      if (!socket.writableEnded) socket.write('', done);
    });
  }

  /** Lets Node finish what is being answered without it. */
  handOver(): void {
    this.#direct?.handOver();
  }

  /** Whether an answer of Node's is for a request that was handed over, and is answered already. */
  takeOver(response: ServerResponse): boolean {
    if (this.#direct === undefined) return false;
    this.last = response;
    this.#handedOver = response;
    return true;
  }

  /** The connection has ended. */
  close(): void {
    this.#direct?.close();
    for (const resolve of this.waiting) resolve(false);
  }

  get #isUntaken(): boolean {
    const { destroyed, writableLength } = this.#socket;
    return this.reader !== 'other' && !destroyed && writableLength > 0;
  }

  /** Node has to have seen a request of the connection, or it would be silent in its eyes. */
  get #isFree(): boolean {
    const { last } = this;
    if (last?.shouldKeepAlive !== true || !last.writableFinished) return false;
    // One that has said it is the last ends our side, though its client might have gone on.
    return this.#socket.writable && this.#socket.writableLength === 0;
  }

  #answerDirectly(parse: () => void): DirectResponse {
    this.#direct = new DirectResponse({
      socket: this.#socket,
      corks: this.#corks,
      handOver: () => {
        this.#handedOver = undefined;
        if (!this.#socket.destroyed) parse();
        this.#direct = undefined;
        return this.#handedOver;
      },
      done: () => {
        this.#direct = undefined;
      },
      now: this.#now,
    });
    return this.#direct;
  }
}
