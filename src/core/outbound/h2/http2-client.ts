import type { ClientHttp2Session } from 'node:http2';
import { headerBlockBytesMax, headerFieldsMax } from '../../http/limits.ts';
import { Failure } from '../../values/failure.ts';
import { MIB } from '../../values/units.ts';
import type { ConnectionInfo } from '../connection.ts';
import type { Connect } from '../connector.ts';
import { connectionClosed, timedOut } from '../failure.ts';
import type { ConnectionChoice, OutgoingRequest, ResponseHandler } from '../outgoing-request.ts';
import { type ServerPlace, placeOf } from '../place.ts';
import { Http2Request } from './http2-request.ts';

/** Requests on one session before the client opens another, and sessions with one server. */
const http2StreamsPerSession = 100;
const http2SessionsMax = 16;

/** Requests to one server at the same time; further ones would wait in a session. */
export const http2RequestsMax = http2StreamsPerSession * http2SessionsMax;

/** The window of a session: more than all windows of its streams, of 64 KiB each. */
const http2SessionWindowBytes = 16 * MIB;

/** How long a session without requests stays open. */
const http2IdleMs = 30_000;

/** How a client connects; `timeoutMs` limits the waits for a header section and for content. */
interface Http2ClientOptions {
  readonly connect: Connect;
  readonly timeoutMs: number;
}

/** A session with its open requests. */
interface OpenSession extends ConnectionInfo {
  readonly session: ClientHttp2Session;
  open: number;
}

/**
 * An HTTP/2 client (RFC 9113) for servers that the configuration says speak it: over TLS by ALPN,
 * in the clear with prior knowledge (§3.3). Requests to one origin share sessions.
 */
export class Http2Client {
  readonly #options: Http2ClientOptions;
  /** By origin and server name. */
  readonly #pools = new Map<string, Pool>();
  #isClosed = false;

  constructor(options: Http2ClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a request. With `alone`, and after close, over a session that no other request uses; so
   * does one with a preamble.
   */
  send(request: OutgoingRequest, exchange: ResponseHandler, how: ConnectionChoice): void {
    const { origin, serverName, preamble } = request;
    const isAlone = how === 'alone' || this.#isClosed || preamble !== undefined;
    const key = `${origin} ${serverName ?? ''}`;
    let pool = isAlone ? undefined : this.#pools.get(key);
    if (pool === undefined) {
      pool = new Pool({ ...placeOf(origin, serverName), preamble }, this.#options, () => {
        if (this.#pools.get(key) === pool) this.#pools.delete(key);
      });
      if (!isAlone) this.#pools.set(key, pool);
    }
    pool.send(request, exchange);
    if (isAlone) void pool.close();
  }

  /** Lets requests in progress end, then closes all sessions. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }
}

/** The sessions with one server. */
class Pool {
  readonly #place: ServerPlace & Pick<OutgoingRequest, 'preamble'>;
  readonly #options: Http2ClientOptions;
  readonly #onEmpty: () => void;
  readonly #sessions = new Set<OpenSession>();
  /** The newest connection that is being made, which later requests wait for. */
  #connecting: Promise<OpenSession> | undefined;
  #waiting = 0;
  #isClosing = false;
  readonly #ended = Promise.withResolvers<undefined>();

  constructor(
    place: ServerPlace & Pick<OutgoingRequest, 'preamble'>,
    options: Http2ClientOptions,
    onEmpty: () => void,
  ) {
    this.#place = place;
    this.#options = options;
    this.#onEmpty = onEmpty;
  }

  send(request: OutgoingRequest, exchange: ResponseHandler): void {
    const free = this.#free();
    if (free !== undefined) {
      this.#start(free, request, exchange);
      return;
    }
    this.#waiting += 1;
    this.#connecting ??= this.#connect();
    this.#connecting.then(
      (session) => {
        this.#waiting -= 1;
        // Others that waited may have filled it.
        if (isFree(session) || !this.#mayConnect()) this.#start(session, request, exchange);
        else this.send(request, exchange);
        this.#closeIfIdle(session);
      },
      (error: unknown) => {
        this.#waiting -= 1;
        exchange.onResponseError(null, error as Error);
        this.#checkEmpty();
      },
    );
  }

  /** Lets requests in progress end, then closes all sessions. */
  close(): Promise<undefined> {
    this.#isClosing = true;
    for (const one of this.#sessions) this.#closeIfIdle(one);
    this.#checkEmpty();
    return this.#ended.promise;
  }

  /** A session with place for a request; the least used one if there may be no more sessions. */
  #free(): OpenSession | undefined {
    const usable = [...this.#sessions].filter(({ session }) => !session.closed);
    const free = usable.find(isFree);
    if (free !== undefined || this.#mayConnect()) return free;
    return usable.toSorted((one, other) => one.open - other.open)[0];
  }

  #mayConnect(): boolean {
    return this.#sessions.size < http2SessionsMax;
  }

  #start(one: OpenSession, request: OutgoingRequest, exchange: ResponseHandler): void {
    // Servers end sessions on which too many streams are reset.
    if (exchange.isOver) return;
    if (one.session.closed || one.session.destroyed) {
      exchange.onResponseError(null, connectionClosed());
      return;
    }
    one.open += 1;
    exchange.connection = one;
    const started = new Http2Request(one.session, request, exchange, this.#options.timeoutMs);
    void started.closed.then(() => {
      one.open -= 1;
      this.#closeIfIdle(one);
    });
  }

  async #connect(): Promise<OpenSession> {
    try {
      const session = await this.#newSession();
      const one: OpenSession = {
        ...{ session, open: 0, hasAnswered: false, hasBrokenOff: false },
      };
      this.#sessions.add(one);
      session.setTimeout(http2IdleMs, () => {
        if (one.open === 0) session.close();
      });
      // The server takes no further requests; those that it has taken go on.
      session.once('goaway', () => {
        session.close();
      });
      session.once('close', () => {
        this.#sessions.delete(one);
        this.#checkEmpty();
      });
      return one;
    } finally {
      this.#connecting = undefined;
    }
  }

  #newSession(): Promise<ClientHttp2Session> {
    const { url } = this.#place;
    return new Promise((resolve, reject) => {
      this.#options.connect({ ...this.#place, isHttp2: true }, (...[error, socket]) => {
        if (error !== null) {
          reject(error);
          return;
        }
        if (url.protocol === 'https:' && Reflect.get(socket, 'alpnProtocol') !== 'h2') {
          socket.destroy();
          reject(new Failure('bad_gateway', 'The source does not offer HTTP/2 over TLS (ALPN).'));
          return;
        }
        const { connect } = process.getBuiltinModule('node:http2');
        const session = connect(url, {
          createConnection: () => socket,
          settings: { enablePush: false, maxHeaderListSize: headerBlockBytesMax },
          maxHeaderListPairs: headerFieldsMax,
          // In MB; by default Node refuses streams beyond 10.
          maxSessionMemory: 2 * (http2SessionWindowBytes / 2 ** 20),
        });
        // The streams of the session report the error.
        session.on('error', () => undefined);
        // Content that one client does not read must not fill the window of all.
        const timer = setTimeout(() => {
          reject(timedOut());
          session.destroy();
        }, this.#options.timeoutMs);
        // The first frame of a server says how many requests it takes (RFC 9113 §3.4).
        session.once('remoteSettings', () => {
          clearTimeout(timer);
          session.setLocalWindowSize(http2SessionWindowBytes);
          resolve(session);
        });
        session.once('close', () => {
          clearTimeout(timer);
          reject(connectionClosed());
        });
      });
    });
  }

  #closeIfIdle({ session, open }: OpenSession): void {
    if (this.#isClosing && open === 0 && this.#waiting === 0) session.close();
  }

  #checkEmpty(): void {
    if (this.#sessions.size > 0 || this.#waiting > 0) return;
    this.#onEmpty();
    if (this.#isClosing) this.#ended.resolve(undefined);
  }
}

function isFree({ session, open }: OpenSession): boolean {
  if (session.closed || session.destroyed) return false;
  const { maxConcurrentStreams = http2StreamsPerSession } = session.remoteSettings;
  return open < Math.min(maxConcurrentStreams, http2StreamsPerSession);
}
