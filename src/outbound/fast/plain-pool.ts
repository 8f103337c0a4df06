import type { buildConnector, Dispatcher } from 'undici';
import { outboundIdleMarginSeconds, outboundIdleSeconds } from './limits.ts';
import { outboundConnectionsMax } from '../limits.ts';
import type { OutboundExchange } from '../exchange.ts';
import { PlainConnection, type PlainConnectionOwner } from './plain-connection.ts';
import { plainRequests, type SerializedRequest } from './plain-request.ts';

/** What a pool stands on, and tells. */
export interface PlainPoolParts extends Pick<PlainConnectionOwner, 'corks' | 'handOver'> {
  readonly connect: buildConnector.connector;
  readonly timeoutMs: number;
  /** Told when its last connection has ended. */
  readonly empty: () => void;
}

/** A connection that nobody uses. */
interface Idle {
  readonly connection: PlainConnection;
  /** When it is to be closed, in seconds as `tick` counts them. */
  readonly until: number;
}

/** The plain connections to one origin. */
export class PlainPool {
  readonly #origin: URL;
  readonly #parts: PlainPoolParts;
  readonly #owner: PlainConnectionOwner;
  readonly #requestOf: ReturnType<typeof plainRequests>;
  /** The last one is the one that was used last. */
  #idle: Idle[] = [];
  /** Connections, those that are being made among them. */
  #open = 0;
  #seconds = 0;
  #isClosing = false;

  constructor(origin: string, parts: PlainPoolParts) {
    this.#origin = new URL(origin);
    this.#requestOf = plainRequests(this.#origin);
    this.#parts = parts;
    this.#owner = {
      corks: parts.corks,
      free: this.#free,
      gone: this.#gone,
      handOver: parts.handOver,
    };
  }

  /**
   * Sends a request and tells the exchange all that undici would. False where it is not one for
   * plain connections, or there are as many of them as there may be and none is free.
   */
  send(options: Dispatcher.DispatchOptions, exchange: OutboundExchange): boolean {
    const request = this.#requestOf(options);
    if (request === undefined) return false;
    let free = this.#idle.pop();
    while (free?.connection.isOpen === false) free = this.#idle.pop();
    if (free !== undefined) free.connection.send(request, exchange);
    else if (this.#open < outboundConnectionsMax) this.#connect(request, exchange);
    else return false;
    return true;
  }

  /** To be called each second: closes what has been idle for too long. */
  tick(): void {
    this.#seconds += 1;
    const isOver = ({ until }: Idle): boolean => until <= this.#seconds;
    const over = this.#idle.filter(isOver);
    if (over.length > 0) this.#idle = this.#idle.filter((idle) => !isOver(idle));
    for (const { connection } of over) connection.destroy();
    // Where nothing could be sent from the first on.
    if (this.#open === 0) this.#parts.empty();
  }

  /** Closes what is idle now, and all else when it is. */
  close(): void {
    this.#isClosing = true;
    for (const { connection } of this.#idle) connection.destroy();
    this.#idle = [];
    if (this.#open === 0) this.#parts.empty();
  }

  #connect(request: SerializedRequest, exchange: OutboundExchange): void {
    const { host, hostname, protocol, port } = this.#origin;
    // An address of IPv6 without its brackets, as undici asks for it.
    const to = { host, hostname: hostname.replace(/^\[|\]$/g, ''), protocol, port };
    this.#open += 1;
    this.#parts.connect(to, (...[error, socket]) => {
      if (error === null) {
        new PlainConnection(socket, this.#parts.timeoutMs, this.#owner).send(request, exchange);
      } else {
        exchange.onResponseError(null, error);
        this.#leave();
      }
    });
  }

  readonly #free = (connection: PlainConnection): void => {
    const { idleSeconds: said } = connection;
    // A request that meets the end of its connection would have to be sent again.
    const seconds = said === undefined ? outboundIdleSeconds : said - outboundIdleMarginSeconds;
    if (this.#isClosing || seconds <= 0) connection.destroy();
    else this.#idle.push({ connection, until: this.#seconds + seconds });
  };

  readonly #gone = (connection: PlainConnection): void => {
    const at = this.#idle.findIndex((idle) => idle.connection === connection);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#leave();
  };

  #leave(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#parts.empty();
  }
}
