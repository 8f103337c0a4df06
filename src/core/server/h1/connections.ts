import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { connectionsMax } from '../../config/limits.ts';
import type { Failure } from '../../values/failure.ts';
import type { LimitName } from '../../values/limit.ts';
import type { Peer } from '../../values/network/peer.ts';
import type { LimitLog } from '../../report/limit-log.ts';
import { tcpKeepAliveMs } from '../../outbound/limits.ts';
import { lingerMs } from '../limits.ts';
import { peerOf } from '../listening/accept.ts';
import { tcpBelow } from '../listening/node-internals.ts';
import { Connection, type Http1Handlers } from './connection.ts';
import { ConnectionLimiter, type ConnectionLimits } from './connection-limiter.ts';
import type { Http1Exchange } from './http1-exchange.ts';
import { resetIfUnframed, tooLate } from './refusal.ts';
import type { Timeouts } from './timeouts.ts';

/** The callbacks and limits of the connections of a port. */
interface ConnectionParts extends ConnectionLimits {
  /**
   * Refuses a malformed request, by the head as far as it has arrived, and closes the connection.
   */
  readonly refuse: (socket: Duplex, failure: Failure, head: string) => void;
  readonly passed: LimitLog['passed'];
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The timeouts of a server, and who answers. */
interface Watch extends Http1Handlers {
  readonly waits: Timeouts;
  /** Takes a connection of HTTP/2 in the clear. */
  readonly serveHttp2?: ((socket: Socket, first: Buffer) => void) | undefined;
}

/**
 * The connections of a port. Each answers its requests in order and is limited in time and number.
 */
export class Connections {
  readonly #open = new Map<Duplex, Connection>();
  /** The TCP connections below TLS, from before the handshake. */
  readonly #underTls = new Set<Duplex>();
  readonly #limiter: ConnectionLimiter;
  readonly #parts: ConnectionParts;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#limiter = new ConnectionLimiter(parts);
  }

  /**
   * Answers the requests of a server's connections, and closes those on which nothing happens for
   * too long.
   */
  watch(server: Server, { waits, serveHttp2, ...handlers }: Watch): void {
    const isTls = server instanceof TlsServer;
    const parts = {
      ...handlers,
      serveHttp2:
        serveHttp2 &&
        ((socket: Socket, first: Buffer) => {
          this.#open.delete(socket);
          socket.setKeepAlive(true, tcpKeepAliveMs);
          serveHttp2(socket, first);
        }),
      refused: (socket: Socket, failure: Failure) => {
        this.refuse(socket, failure);
      },
      now: this.#parts.now,
    };
    if (isTls) {
      // One that is refused gets no session of TLS.
      server.prependListener('connection', (socket: Socket) => {
        const peer = this.#count(socket);
        if (peer === undefined) return;
        this.#underTls.add(socket);
        socket.on('close', () => {
          this.#limiter.remove(peer);
          this.#underTls.delete(socket);
        });
      });
    }
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
      const counted = isTls ? undefined : this.#count(socket);
      if (!isTls && counted === undefined) return;
      const connection = new Connection(socket, parts);
      this.#open.set(socket, connection);
      socket.on('close', () => {
        if (counted !== undefined) this.#limiter.remove(counted);
        this.#open.delete(socket);
        connection.close();
      });
    });
    this.#check(server, waits);
  }

  /** Closes a connection after a timeout, if its client is the silent side. */
  handleTimeout(socket: Socket, stalledMs: number): void {
    // An answer of this turn of the event loop has not reached the client yet.
    while (socket.writableCorked > 0) socket.uncork();
    // The client is the silent side if bytes wait for it, or if no request is open.
    const isOurs = this.#open.get(socket)?.unfinished !== undefined && socket.writableLength === 0;
    if (isOurs) {
      socket.setTimeout(stalledMs);
      return;
    }
    if (socket.writableLength > 0) this.passed('unread_answer', socket);
    socket.destroy();
  }

  /**
   * Refuses a malformed request and closes the connection: the start of the next request would be
   * uncertain.
   */
  refuse(socket: Duplex, failure: Failure): void {
    const connection = this.#open.get(socket);
    if (connection?.reader !== 'http') return;
    connection.reader = 'none';
    const { unfinished } = connection;
    if (unfinished === undefined && this.hasHead(socket)) {
      // The request is answered already, without its content, which is missing.
      this.#passedBy(failure, socket);
      socket.destroy();
      return;
    }
    if (unfinished?.hasArrived === false) {
      // The content of the request is malformed: its reader reports that.
      unfinished.shouldKeepAlive = false;
      if (!unfinished.breakOff(failure)) this.#passedBy(failure, socket);
      setTimeout(() => socket.destroy(), lingerMs).unref();
      return;
    }
    if (socket.writable) this.#parts.refuse(socket, failure, connection.head);
  }

  /** Refuses plain HTTP on a TLS port, in the clear; Node closes the connection after that. */
  refuseInClear(handshake: Duplex, failure: Failure): void {
    const socket = tcpBelow(handshake);
    if (socket?.writable === true) this.#parts.refuse(socket, failure, '');
  }

  /** Whether the newest request has a head, and its content is still to come. */
  hasHead(socket: Duplex): boolean {
    return this.#open.get(socket)?.newest?.hasArrived === false;
  }

  /** Logs that a connection has reached a limit. */
  passed(limit: LimitName, socket: Duplex): void {
    this.#parts.passed(limit, peerOf(socket).address);
  }

  get size(): number {
    return this.#open.size;
  }

  /** The number of connections with an unwritten or unread response. */
  get unanswered(): number {
    let count = 0;
    for (const { isUnfinished } of this.#open.values()) count += isUnfinished ? 1 : 0;
    return count;
  }

  /** Closes the connections without an unwritten or unread response. */
  closeIdle(): void {
    for (const [socket, { isIdle }] of this.#open) if (isIdle) socket.destroy();
  }

  /** Resolves when all responses are written and read. */
  async settled(): Promise<void> {
    for (const [socket, connection] of this.#open) {
      for (let last = connection.unfinished; last !== undefined; last = connection.unfinished) {
        await ended(last, socket);
      }
      await connection.read();
    }
    if (this.unanswered > 0) await this.settled();
  }

  /** Logs that the system refused a connection for want of a file descriptor. */
  lacksDescriptors(): void {
    this.#parts.passed('open_files', undefined);
  }

  /** Closes every open connection at once. */
  destroyAll(): void {
    for (const { unfinished } of this.#open.values()) {
      if (unfinished !== undefined) resetIfUnframed(unfinished);
    }
    for (const socket of [...this.#open.keys(), ...this.#underTls]) socket.destroy();
  }

  /** Records a limit if the client does not get the failure. */
  #passedBy({ limit }: Failure, socket: Duplex): void {
    if (limit !== undefined) this.passed(limit, socket);
  }

  /** Counts a connection and returns its peer. If there are too many, closes it instead. */
  #count(socket: Socket): Peer | undefined {
    const peer = peerOf(socket);
    const passed = this.#limiter.add(peer);
    if (passed === undefined) return peer;
    if (passed === 'perAddress') this.passed('connections_per_address', socket);
    else this.#parts.passed('connections', peer.address, this.#whyFull());
    socket.destroy();
    return undefined;
  }

  /** Names the reason if file descriptors limit the number of connections. */
  #whyFull(): string | undefined {
    const { max } = this.#parts;
    if (max === connectionsMax) return undefined;
    return `there are file descriptors for ${max}: raise LimitNOFILE= or ulimit -n`;
  }

  /**
   * Refuses requests whose head or content takes too long or is too slow, and closes connections
   * that are idle or whose clients read too slowly, at intervals: one timer for all costs less than
   * a timer for each.
   */
  #check(server: Server, waits: Timeouts): void {
    const timer = setInterval(() => {
      const nowMs = performance.now();
      for (const connection of this.#open.values()) this.#checkOne(connection, nowMs, waits);
    }, waits.checkMs).unref();
    server.once('close', () => {
      clearInterval(timer);
    });
  }

  #checkOne(connection: Connection, nowMs: number, waits: Timeouts): void {
    const { socket } = connection;
    const { headersMs, requestMs, leastRate, keepAliveMs, stalledMs } = waits;
    if (connection.isHeadLate(nowMs, headersMs)) this.refuse(socket, tooLate('header_time'));
    else if (connection.isContentLate(nowMs, requestMs))
      this.refuse(socket, tooLate('request_time'));
    else if (connection.isContentSlow(nowMs, leastRate))
      this.refuse(socket, tooLate('slow_content'));
    else if (connection.isReadSlowly(nowMs, leastRate)) {
      this.passed('slow_answer', socket);
      socket.destroy();
    }
    const { newest, isUnfinished, reader } = connection;
    if (newest === undefined || (reader === 'other' && !isUnfinished)) return;
    const waitMs = isUnfinished ? stalledMs : keepAliveMs;
    if (socket.timeout === waitMs) return;
    if (socket.timeout === undefined) {
      socket.setKeepAlive(true, tcpKeepAliveMs);
      socket.on('timeout', () => {
        this.handleTimeout(socket, stalledMs);
      });
    }
    socket.setTimeout(waitMs);
  }
}

/** Resolves when an answer ends, or its connection closes before. */
function ended(exchange: Http1Exchange, socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      resolve();
    };
    exchange.onClose(done);
    socket.once('close', done);
  });
}
