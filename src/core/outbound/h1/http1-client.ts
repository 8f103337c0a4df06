import { isIdempotent } from '../../http/request.ts';
import { KIB } from '../../values/units.ts';
import type { Connect } from '../connector.ts';
import type { ConnectionChoice, OutgoingRequest, ResponseHandler } from '../outgoing-request.ts';
import { type ServerPlace, placeOf } from '../place.ts';
import { type OutgoingHead, requestHead } from './heads.ts';
import { type ConnectionPool, Http1Connection, type Http1Request } from './http1-connection.ts';
import { TurnWriteBatcher } from './turn-write-batcher.ts';

/** How long a connection of the client for GETs may be idle. */
const outboundIdleSeconds = 4;

/** How much earlier it is closed than the Keep-Alive field of the source says. */
const outboundIdleMarginSeconds = 2;

/** How often idle connections are checked. */
const outboundCheckMs = 1_000;

/** The buffer that all connections without TLS are read into. */
const outboundReadBytes = 64 * KIB;

/** Connections of HTTP/1.1 of one process to one server at a time; further requests wait. */
export const outboundConnectionsMax = 1_024;

/** How a client connects; `timeoutMs` limits the waits for a header section and for content. */
interface Http1ClientOptions {
  readonly connect: Connect;
  readonly timeoutMs: number;
}

/**
 * An HTTP/1.1 client (RFC 9112) for requests of any method. Requests to one server share
 * connections, with one request on each at a time.
 */
export class Http1Client {
  readonly #options: Http1ClientOptions;
  readonly #batcher = new TurnWriteBatcher();
  /** By server, and the name that TLS checks. */
  readonly #pools = new Map<string, Pool>();
  /** Those of one connection. */
  readonly #alone = new Set<Pool>();
  #closed: PromiseWithResolvers<void> | undefined;
  #ticking: NodeJS.Timeout | undefined;

  constructor(options: Http1ClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a request. With `alone`, and after close, over a connection that no other request uses;
   * so does one with a preamble, or for another protocol.
   */
  send(request: OutgoingRequest, handler: ResponseHandler, how: ConnectionChoice): void {
    const { preamble, upgrade, origin } = request;
    const isShared =
      how === 'pooled' &&
      preamble === undefined &&
      upgrade === undefined &&
      this.#closed === undefined;
    const name = serverNameOf(request);
    const shared = isShared ? this.#shared(origin, name) : undefined;
    const place = shared?.place ?? placeOf(origin, name);
    let head: OutgoingHead;
    try {
      head = requestHead(request, place.url);
    } catch (error) {
      handler.onResponseError(null, error as Error);
      return;
    }
    const pool = shared ?? this.#openAlone(place, request);
    pool.send({ request, head, handler });
    if (shared === undefined) pool.close();
  }

  /** Lets responses in progress end, then closes all connections. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers();
      for (const pool of this.#pools.values()) pool.close();
      this.#settle();
    }
    return this.#closed.promise;
  }

  #shared(origin: string, name: string | undefined): Pool {
    const key = name === undefined ? origin : `${origin} ${name}`;
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const pool = this.#open({ place: placeOf(origin, name) }, () => {
      this.#pools.delete(key);
    });
    this.#pools.set(key, pool);
    this.#ticking ??= setInterval(() => {
      for (const one of this.#pools.values()) one.tick();
    }, outboundCheckMs).unref();
    return pool;
  }

  #openAlone(place: ServerPlace, { preamble, upgrade }: OutgoingRequest): Pool {
    const pool = this.#open({ place, preamble, isStream: upgrade !== undefined }, () => {
      this.#alone.delete(pool);
    });
    this.#alone.add(pool);
    return pool;
  }

  #open(parts: Pick<PoolParts, 'place' | 'preamble' | 'isStream'>, emptied: () => void): Pool {
    return new Pool({
      ...this.#options,
      ...parts,
      batcher: this.#batcher,
      onEmpty: () => {
        emptied();
        this.#settle();
      },
    });
  }

  #settle(): void {
    if (this.#pools.size > 0) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
    if (this.#alone.size === 0) this.#closed?.resolve();
  }
}

/**
 * The name that TLS checks, if it is not that of the origin: by default that of the Host field.
 */
function serverNameOf({ origin, serverName, fields }: OutgoingRequest): string | undefined {
  if (!origin.startsWith('https:')) return undefined;
  if (serverName !== undefined) return serverName;
  const at = fields.findIndex((name, place) => place % 2 === 0 && name.toLowerCase() === 'host');
  return at === -1 ? undefined : fields[at + 1]?.replace(/:\d*$/, '').replace(/^\[|\]$/g, '');
}

/** An idle connection. */
interface IdleConnection {
  readonly connection: Http1Connection;
  /** The tick of the pool at which it is closed. */
  readonly until: number;
}

/** The parts of a pool. */
interface PoolParts extends Http1ClientOptions {
  readonly place: ServerPlace;
  readonly preamble?: Buffer | undefined;
  /** Whether its connections may be given away as streams. */
  readonly isStream?: boolean;
  readonly batcher: TurnWriteBatcher;
  readonly onEmpty: () => void;
}

/** The connections to one server. */
class Pool {
  readonly place: ServerPlace;
  readonly #parts: PoolParts;
  readonly #shared: ConnectionPool;
  /** The one used last is the last one. */
  #idle: IdleConnection[] = [];
  /** Requests for which no connection is free. */
  #waiting: Http1Request[] = [];
  /** The number of connections, including those that are being made. */
  #open = 0;
  /** Requests that are about to be sent. */
  #delayed = 0;
  #ticks = 0;
  #isClosing = false;

  constructor(parts: PoolParts) {
    this.place = parts.place;
    this.#parts = parts;
    const { batcher, timeoutMs } = parts;
    this.#shared = { batcher, timeoutMs, release: this.#release, remove: this.#remove };
  }

  /** Sends a request as soon as a connection is free. */
  send(request: Http1Request): void {
    let idle = this.#idle.pop();
    while (idle?.connection.isOpen === false) idle = this.#idle.pop();
    if (idle !== undefined) this.#sendOver(idle.connection, request);
    else if (this.#open < outboundConnectionsMax) this.#connectAndSend(request);
    else this.#waiting.push(request);
  }

  /**
   * Sends a request over a connection that was idle. The server may have closed it: one that must
   * not be sent twice is sent after the event loop has read what has arrived.
   */
  #sendOver(connection: Http1Connection, sent: Http1Request): void {
    const { body, method } = sent.request;
    if (body === undefined && isIdempotent(method)) {
      connection.send(sent);
      return;
    }
    this.#delayed += 1;
    setImmediate(() => {
      this.#delayed -= 1;
      if (connection.isOpen) connection.send(sent);
      else this.send(sent);
    });
  }

  /** Closes what was idle for too long, and forgets what is not wanted; called once a second. */
  tick(): void {
    this.#ticks += 1;
    const isExpired = ({ until }: IdleConnection): boolean => until <= this.#ticks;
    const expired = this.#idle.filter(isExpired);
    if (expired.length > 0) this.#idle = this.#idle.filter((idle) => !isExpired(idle));
    for (const { connection } of expired) connection.destroy();
    if (this.#waiting.length > 0) {
      this.#waiting = this.#waiting.filter(({ handler }) => !handler.isOver);
    }
    // A pool whose first request could not be sent has no connection that would empty it.
    this.#checkEmpty();
  }

  /** Closes idle connections now, and the others as soon as they are idle. */
  close(): void {
    this.#isClosing = true;
    for (const { connection } of this.#idle) connection.destroy();
    this.#idle = [];
    this.#checkEmpty();
  }

  #connectAndSend(request: Http1Request): void {
    const { connect, place, preamble, isStream = false } = this.#parts;
    this.#open += 1;
    let connection: Http1Connection | undefined;
    const buffer = isStream ? undefined : readBuffer();
    const onread = buffer && {
      buffer,
      callback: (length: number): boolean => {
        // The next bytes of any connection overwrite the buffer.
        const chunk = Buffer.allocUnsafe(length);
        buffer.copy(chunk, 0, 0, length);
        connection?.read(chunk);
        return true;
      },
    };
    connect({ ...place, onread, preamble }, (error, socket) => {
      if (socket === null) {
        request.handler.onResponseError(null, error);
        this.#countClosed();
        return;
      }
      connection = new Http1Connection(socket, this.#shared, isStream);
      connection.send(request);
    });
  }

  readonly #release = (connection: Http1Connection): void => {
    const { keepAliveSeconds } = connection;
    // The connection closes earlier than the server would: a request that meets the end of its
    // connection has to be repeated.
    const seconds =
      keepAliveSeconds === undefined
        ? outboundIdleSeconds
        : keepAliveSeconds - outboundIdleMarginSeconds;
    const next = keepAliveSeconds === 0 ? undefined : this.#nextWaiting();
    if (next !== undefined) this.#sendOver(connection, next);
    else if (this.#isClosing || seconds <= 0) connection.destroy();
    else this.#idle.push({ connection, until: this.#ticks + seconds });
  };

  readonly #remove = (connection: Http1Connection): void => {
    const at = this.#idle.findIndex((idle) => idle.connection === connection);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#countClosed();
  };

  #countClosed(): void {
    this.#open -= 1;
    const next = this.#nextWaiting();
    if (next !== undefined) this.send(next);
    this.#checkEmpty();
  }

  /** Takes the next request whose response is still wanted; drops those before it. */
  #nextWaiting(): Http1Request | undefined {
    const at = this.#waiting.findIndex(({ handler }) => !handler.isOver);
    return this.#waiting.splice(0, at === -1 ? this.#waiting.length : at + 1)[at];
  }

  #checkEmpty(): void {
    if (this.#open + this.#delayed === 0) this.#parts.onEmpty();
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
