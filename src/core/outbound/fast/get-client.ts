import type { Dispatcher } from 'undici';
import type { Connect } from '../connector.ts';
import type { OutboundExchange } from '../exchange.ts';
import { outboundConnectionsMax } from '../limits.ts';
import { TurnWriteBatcher } from './turn-write-batcher.ts';
import { GetConnection, type ConnectionPool } from './get-connection.ts';
import { getHead } from './heads.ts';
import {
  outboundCheckMs,
  outboundIdleMarginSeconds,
  outboundIdleSeconds,
  outboundReadBytes,
} from './limits.ts';

/** How a client connects; `timeoutMs` limits the waits for a header section and for content. */
interface GetClientOptions {
  readonly connect: Connect;
  readonly timeoutMs: number;
}

/**
 * An HTTP/1.1 client for a GET without content, the request that most pages are fetched by. undici
 * sends all other requests. With undici, a fetched page would cost a fifth to a third more CPU time
 * (bench/README.md).
 */
export class GetClient {
  readonly #options: GetClientOptions;
  readonly #batcher = new TurnWriteBatcher();
  readonly #pools = new Map<string, Pool>();
  #closed: PromiseWithResolvers<void> | undefined;
  #ticking: NodeJS.Timeout | undefined;

  constructor(options: GetClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a request and calls the exchange as undici would. Returns false, and does nothing, for a
   * request that undici has to send: any other method, one that HTTP cannot carry (undici refuses
   * it), and one for which no connection is free.
   */
  send(request: Dispatcher.DispatchOptions, exchange: OutboundExchange): boolean {
    const { method, body, upgrade } = request;
    if (method !== 'GET' || body !== null || upgrade !== undefined) return false;
    if (this.#closed !== undefined) return false;
    const origin = String(request.origin);
    const pool = this.#pools.get(origin) ?? this.#open(origin);
    const headers = request.headers as readonly string[];
    const head = getHead({ path: request.path, headers }, pool.origin);
    return head !== undefined && pool.send(head, exchange);
  }

  /** Lets responses in progress end, then closes all connections. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers();
      for (const pool of this.#pools.values()) pool.close();
      if (this.#pools.size === 0) this.#closed.resolve();
    }
    return this.#closed.promise;
  }

  #open(origin: string): Pool {
    const pool = new Pool(new URL(origin), {
      ...this.#options,
      batcher: this.#batcher,
      onEmpty: () => {
        this.#pools.delete(origin);
        if (this.#pools.size > 0) return;
        clearInterval(this.#ticking);
        this.#ticking = undefined;
        this.#closed?.resolve();
      },
    });
    this.#pools.set(origin, pool);
    this.#ticking ??= setInterval(() => {
      for (const one of this.#pools.values()) one.tick();
    }, outboundCheckMs).unref();
    return pool;
  }
}

/** An idle connection. */
interface IdleConnection {
  readonly connection: GetConnection;
  /** The tick of the pool at which it is closed. */
  readonly until: number;
}

/** The connections to one origin. */
class Pool {
  readonly origin: URL;
  readonly #connect: Connect;
  readonly #onEmpty: () => void;
  readonly #shared: ConnectionPool;
  /** The one used last is the last one. */
  #idle: IdleConnection[] = [];
  /** The number of connections, including those that are being made. */
  #open = 0;
  #ticks = 0;
  #isClosing = false;

  constructor(
    origin: URL,
    {
      connect,
      timeoutMs,
      batcher,
      onEmpty,
    }: GetClientOptions & { readonly batcher: TurnWriteBatcher; readonly onEmpty: () => void },
  ) {
    this.origin = origin;
    this.#connect = connect;
    this.#onEmpty = onEmpty;
    this.#shared = { batcher, timeoutMs, release: this.#release, remove: this.#remove };
  }

  /** Sends the head of a GET. Returns false if all connections are in use. */
  send(head: string, exchange: OutboundExchange): boolean {
    let idle = this.#idle.pop();
    while (idle?.connection.isOpen === false) idle = this.#idle.pop();
    if (idle !== undefined) idle.connection.send(head, exchange);
    else if (this.#open < outboundConnectionsMax) this.#connectAndSend(head, exchange);
    else return false;
    return true;
  }

  /** Closes connections that were idle for too long; called once a second. */
  tick(): void {
    this.#ticks += 1;
    const isExpired = ({ until }: IdleConnection): boolean => until <= this.#ticks;
    const expired = this.#idle.filter(isExpired);
    if (expired.length > 0) this.#idle = this.#idle.filter((idle) => !isExpired(idle));
    for (const { connection } of expired) connection.destroy();
    // A pool whose first request could not be sent has no connection that would empty it.
    if (this.#open === 0) this.#onEmpty();
  }

  /** Closes idle connections now, and the others as soon as they are idle. */
  close(): void {
    this.#isClosing = true;
    for (const { connection } of this.#idle) connection.destroy();
    this.#idle = [];
    if (this.#open === 0) this.#onEmpty();
  }

  #connectAndSend(head: string, exchange: OutboundExchange): void {
    const { host, hostname, protocol, port } = this.origin;
    // undici's connector expects an IPv6 address without its brackets.
    const to = { host, hostname: hostname.replace(/^\[|\]$/g, ''), protocol, port };
    this.#open += 1;
    let connection: GetConnection | undefined;
    const buffer = readBuffer();
    const onread = {
      buffer,
      callback: (length: number): boolean => {
        // The next bytes of any connection overwrite the buffer.
        const chunk = Buffer.allocUnsafe(length);
        buffer.copy(chunk, 0, 0, length);
        connection?.read(chunk);
        return true;
      },
    };
    this.#connect({ ...to, onread }, (...[error, socket]) => {
      if (error === null) {
        connection = new GetConnection(socket, this.#shared);
        connection.send(head, exchange);
      } else {
        exchange.onResponseError(null, error);
        this.#countClosed();
      }
    });
  }

  readonly #release = (connection: GetConnection): void => {
    const { keepAliveSeconds } = connection;
    // The connection closes earlier than the server would: a request that meets the end of its
    // connection has to be repeated.
    const seconds =
      keepAliveSeconds === undefined
        ? outboundIdleSeconds
        : keepAliveSeconds - outboundIdleMarginSeconds;
    if (this.#isClosing || seconds <= 0) connection.destroy();
    else this.#idle.push({ connection, until: this.#ticks + seconds });
  };

  readonly #remove = (connection: GetConnection): void => {
    const at = this.#idle.findIndex((idle) => idle.connection === connection);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#countClosed();
  };

  #countClosed(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#onEmpty();
  }
}

/**
 * The buffer that all connections without TLS are read into, one after the other: a stream would
 * have a new one of this size for each read.
 */
function readBuffer(): Buffer {
  shared ??= Buffer.allocUnsafeSlow(outboundReadBytes);
  return shared;
}

let shared: Buffer | undefined;
