import type { IncomingMessage, Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { connectionsMax } from '../../config/limits.ts';
import { plainAddress } from '../../http/forwarded.ts';
import type { Failure } from '../../model/failure.ts';
import type { LimitName } from '../../model/limit.ts';
import type { LimitLog } from '../../observability/limit-log.ts';
import { tcpKeepAliveMs } from '../../outbound/limits.ts';
import type { RequestMessage, ResponseMessage } from '../http-message.ts';
import { lingerMs } from '../limits.ts';
import { tcpBelow } from '../node-internals.ts';
import { breakBody } from './body.ts';
import { Connection, isArriving, type TryAnswer } from './connection.ts';
import { ConnectionLimiter, type ConnectionLimits } from './connection-limiter.ts';
import { resetIfUnframed } from './node-http.ts';
import type { Timeouts } from './timeouts.ts';

/** One that answers HTTP/1.1, in the clear or over TLS. */
type Server = HttpServer | HttpsServer;

/** The callbacks and limits of the connections of a port. */
interface ConnectionParts extends ConnectionLimits {
  /** Answers a request that could not be read, by its head as far as it came, as the last one. */
  readonly refuse: (socket: Duplex, failure: Failure, head: string) => void;
  readonly passed: LimitLog['passed'];
}

/** How a server waits for its clients, and what answers requests ahead of Node's parser. */
interface Watch {
  readonly waits: Timeouts;
  readonly tryAnswer?: TryAnswer | undefined;
}

/**
 * The connections of a server: each answers one request after the other, holds no more than it may,
 * and is removed when it closes.
 */
export class Connections {
  readonly #open = new Map<Duplex, Connection>();
  /** What TLS runs over, from before its handshake. */
  readonly #underTls = new Set<Duplex>();
  readonly #limiter: ConnectionLimiter;
  readonly #parts: ConnectionParts;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#limiter = new ConnectionLimiter(parts);
  }

  /**
   * Follows the connections of a server, and closes those on which nothing happens for too long.
   * Node's HTTP server gets a connection when its parser has to read from it.
   */
  watch(server: Server, { waits, tryAnswer }: Watch): void {
    const isTls = server instanceof TlsServer;
    const event = isTls ? 'secureConnection' : 'connection';
    const [serveByNode] = server.listeners(event) as ((socket: Socket) => void)[];
    server.removeAllListeners(event);
    const parts = {
      serve: (socket: Socket) => {
        if (!isTls) optimise(socket);
        serveByNode?.call(server, socket);
      },
      tryAnswer,
      refused: (socket: Socket, failure: Failure) => {
        this.refuse(socket, failure);
      },
      headMs: waits.headersMs,
    };
    if (isTls) {
      server.on('connection', (socket: Socket) => {
        this.#count(socket);
        this.#underTls.add(socket);
        socket.once('close', () => {
          this.#underTls.delete(socket);
        });
      });
    }
    server.on(event, (socket: Socket) => {
      if (!isTls && !this.#count(socket)) return;
      const connection = new Connection(socket, parts);
      this.#open.set(socket, connection);
      socket.on('close', () => {
        this.#open.delete(socket);
        connection.close();
      });
    });
    const left = ({ socket }: IncomingMessage): void => {
      const connection = this.#open.get(socket);
      if (connection !== undefined) connection.reader = 'other';
    };
    server.on('upgrade', left);
    server.on('connect', left);
    server.setTimeout(waits.stalledMs, (socket) => {
      this.silent(socket, waits.stalledMs);
    });
    if (tryAnswer !== undefined) this.#checkUnparsed(server, waits);
  }

  /**
   * Ends a connection on which nothing has passed for so long, if it is its client that keeps
   * silent.
   */
  silent(socket: Socket, stalledMs: number): void {
    // What has been answered in this turn does not wait for the client yet.
    while (socket.writableCorked > 0) socket.uncork();
    // The client is the silent side only while bytes wait for it, or while it has no request open.
    const isOurs = this.lastAnswer(socket) !== undefined && socket.writableLength === 0;
    if (isOurs) {
      socket.setTimeout(stalledMs);
      return;
    }
    if (socket.writableLength > 0) this.passed('unread_answer', socket);
    socket.destroy();
  }

  /**
   * Whether a request is to be answered now, since all before it on its connection are; a promise
   * of it while that is not so. False if it gets no answer. A client that sends too many requests
   * ahead loses its connection.
   */
  turn(request: RequestMessage, response: ResponseMessage): boolean | Promise<boolean> {
    const connection = this.#open.get(request.socket);
    if (connection === undefined) return false;
    const turn = connection.turn(request, response);
    if (turn !== 'too_many') return turn;
    this.passed('pipelined', request.socket);
    request.socket.destroy();
    return false;
  }

  /**
   * Answers what cannot be read, in its turn, and ends the connection: there is no telling where
   * the next request would begin.
   */
  refuse(socket: Duplex, failure: Failure): void {
    const connection = this.#open.get(socket);
    if (connection?.reader !== 'http') return;
    connection.reader = 'nobody';
    const { owed } = connection;
    if (owed === undefined && this.hasHead(socket)) {
      // It was answered without its content, which never came: no other response is due.
      this.#passedBy(failure, socket);
      socket.destroy();
      return;
    }
    if (owed !== undefined && isArriving(owed.request)) {
      // The content of a request is broken: its reader reports that.
      owed.response.shouldKeepAlive = false;
      if (!breakBody(owed.request, failure)) this.#passedBy(failure, socket);
      setTimeout(() => socket.destroy(), lingerMs).unref();
      return;
    }
    const answer = (): void => {
      if (socket.writable) this.#parts.refuse(socket, failure, connection.head);
    };
    if (owed === undefined) answer();
    else owed.response.once('close', answer);
  }

  /**
   * Answers in the clear what came so where TLS is spoken; Node ends the connection right behind
   * it.
   */
  refuseInClear(handshake: Duplex, failure: Failure): void {
    const socket = tcpBelow(handshake);
    if (socket?.writable === true) this.#parts.refuse(socket, failure, '');
  }

  /** Whether the head of the newest request has come, and its content has not. */
  hasHead(socket: Duplex): boolean {
    return this.#open.get(socket)?.newest?.request.complete === false;
  }

  /** Tells of a connection that has run into a limit. */
  passed(limit: LimitName, socket: Duplex): void {
    this.#parts.passed(limit, peerAddress(socket));
  }

  /** The response that is the last one owed on a connection; undefined where none is. */
  lastAnswer(socket: Duplex): ResponseMessage | undefined {
    return this.#open.get(socket)?.owed?.response;
  }

  /** The response that is being written on a connection, or was written last. */
  currentAnswer(socket: Duplex): ResponseMessage | undefined {
    return this.#open.get(socket)?.current;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Whether a connection is one that requests can come on: a TLS handshake is over by then. */
  isOpen(socket: Duplex): boolean {
    return this.#open.has(socket);
  }

  /** How many answers are owed, those to requests that wait for their turn left out. */
  get owed(): number {
    let owed = 0;
    for (const { owes } of this.#open.values()) owed += owes ? 1 : 0;
    return owed;
  }

  /** Closes the connections on which nothing is owed. */
  closeIdle(): void {
    for (const [socket, { isIdle }] of this.#open) if (isIdle) socket.destroy();
  }

  /** Resolves when no answer is owed any more. */
  async settled(): Promise<void> {
    for (const [socket, connection] of this.#open) {
      for (let last = connection.owed; last !== undefined; last = connection.owed) {
        await ended(last.response, socket);
      }
      await connection.read();
    }
    if (this.owed > 0) await this.settled();
  }

  /** Tells that a connection could not be taken for want of a file descriptor. */
  lacksDescriptors(): void {
    this.#parts.passed('open_files', '');
  }

  /** Cuts off every connection that is still open. */
  destroyAll(): void {
    for (const { owed } of this.#open.values()) {
      if (owed !== undefined) resetIfUnframed(owed.response);
    }
    for (const socket of [...this.#open.keys(), ...this.#underTls]) socket.destroy();
  }

  /** Records a limit whose failure is not sent to the client. */
  #passedBy({ limit }: Failure, socket: Duplex): void {
    if (limit !== undefined) this.passed(limit, socket);
  }

  /** Counts a connection; closes it and returns false where it is one too many. */
  #count(socket: Socket): boolean {
    const address = peerAddress(socket);
    const passed = this.#limiter.enter(address);
    if (passed === undefined) {
      socket.on('close', () => {
        this.#limiter.leave(address);
      });
      return true;
    }
    if (passed === 'perAddress') this.passed('connections_per_address', socket);
    else this.#parts.passed('connections', address, this.#whyFull());
    socket.destroy();
    return false;
  }

  /** Why there is no room, where that is for want of file descriptors. */
  #whyFull(): string | undefined {
    const { max } = this.#parts;
    if (max === connectionsMax) return undefined;
    return `there are file descriptors for ${max}: raise LimitNOFILE= or ulimit -n`;
  }

  /**
   * Looks after the connections that Node's HTTP server has not got: it gets those that have sent
   * nothing yet, and bounds the time for their first head; the others have a time-out of their own.
   * A timer for each connection would cost more than this one for all.
   */
  #checkUnparsed(server: Server, { keepAliveMs, stalledMs, lookMs }: Timeouts): void {
    const timer = setInterval(() => {
      for (const connection of this.#open.values()) {
        if (connection.isParsed) continue;
        const { socket } = connection;
        if (connection.newest === undefined) {
          connection.serve();
          continue;
        }
        const waitMs = connection.owes ? stalledMs : keepAliveMs;
        if (socket.timeout === waitMs) continue;
        if (socket.timeout === undefined) {
          optimise(socket);
          socket.on('timeout', () => {
            if (!connection.isParsed) this.silent(socket, stalledMs);
          });
        }
        socket.setTimeout(waitMs);
      }
    }, lookMs).unref();
    server.once('close', () => {
      clearInterval(timer);
    });
  }
}

/** Sets the options of TCP that only a connection that stays open for some time needs. */
function optimise(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, tcpKeepAliveMs);
}

/** The address at the other end of a connection; empty for a unix socket. */
export function peerAddress(socket: Duplex): string {
  return plainAddress((socket as Partial<Socket>).remoteAddress ?? '');
}

/** An answer ends, or it never begins because its connection does. */
function ended(response: ResponseMessage, socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      resolve();
    };
    response.once('close', done);
    socket.once('close', done);
  });
}
