import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { plainAddress } from '../../http/forwarded.ts';
import type { Failure } from '../../model/failure.ts';
import type { LimitName } from '../../model/limit.ts';
import { connectionsMax } from '../../config/limits.ts';
import { pipelinedRequestsMax } from './limits.ts';
import { lingerMs } from '../limits.ts';
import type { LimitLog } from '../../observability/limit-log.ts';
import { breakBody } from './body.ts';
import { ConnectionLimiter, type ConnectionLimits } from './connection-limiter.ts';
import { Corks } from '../../outbound/fast/corks.ts';
import { Connection } from './connection.ts';
import type { DirectResponse } from '../h1-fast/direct-response.ts';
import { resetIfUnframed } from './reset.ts';

/** One that answers HTTP/1.1, in the clear or over TLS. */
type Server = HttpServer | HttpsServer;

/**
 * Answers a request by its bytes, if it can do so without Node's parser; says whether it does.
 * `direct` gives what to answer with later.
 */
type AnswerAtOnce = (socket: Socket, text: string, direct: () => DirectResponse) => boolean;

/** The callbacks and limits of the connections of a port. */
interface ConnectionParts extends ConnectionLimits {
  /** Answers a request that could not be read, by its head as far as it came, as the last one. */
  readonly refuse: (socket: Duplex, failure: Failure, head: string) => void;
  readonly passed: LimitLog['passed'];
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The connections of a server: each answers one request after the other, holds no more than it may,
 * and is removed when it closes.
 */
export class Connections {
  readonly #open = new Map<Duplex, Connection>();
  /** What TLS runs over, from before its handshake. */
  readonly #underTls = new Set<Duplex>();
  readonly #answerAtOnce = new WeakMap<Server, AnswerAtOnce>();
  readonly #crowd: ConnectionLimiter;
  readonly #corks = new Corks();
  readonly #parts: ConnectionParts;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#crowd = new ConnectionLimiter(parts);
  }

  /** Has `answer` tried on requests to a server, before they are parsed. */
  answerAtOnce(server: Server, answer: AnswerAtOnce): void {
    this.#answerAtOnce.set(server, answer);
  }

  /** Lets Node finish what is being answered without it, and sends what has been answered. */
  handOver(): void {
    this.#corks.uncork();
    for (const connection of this.#open.values()) connection.handOver();
  }

  /**
   * Follows the connections of a server; one that is silent for so long, while an answer waits to
   * be read or nothing is asked, is closed.
   */
  watch(server: Server, stalledMs: number): void {
    server.on('connection', (socket: Socket) => {
      this.#count(socket);
    });
    const isTls = server instanceof TlsServer;
    if (isTls) {
      server.on('connection', (socket: Duplex) => {
        this.#underTls.add(socket);
        socket.once('close', () => {
          this.#underTls.delete(socket);
        });
      });
    }
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#admit(server, socket);
    });
    const left = ({ socket }: IncomingMessage): void => {
      const connection = this.#open.get(socket);
      if (connection !== undefined) connection.reader = 'other';
    };
    server.on('upgrade', left);
    server.on('connect', left);
    server.setTimeout(stalledMs, (socket) => {
      this.silent(socket, stalledMs);
    });
  }

  /**
   * Ends a connection on which nothing has passed for so long, if it is its client that keeps
   * silent.
   */
  silent(socket: Socket, stalledMs: number): void {
    this.#open.get(socket)?.handOver();
    // What has been answered in this turn does not wait for the client yet.
    this.#corks.uncork();
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
   * Whether it is the turn of a request to be answered, that is, all before it on its connection
   * are; a promise of it while it is not. False for one that will never be answered. A client that
   * has asked for too much ahead loses its connection.
   */
  turn(message: IncomingMessage, response: ServerResponse): boolean | Promise<boolean> {
    const { socket } = message;
    const connection = this.#open.get(socket);
    if (connection === undefined || socket.destroyed) return false;
    if (connection.takeOver(response)) return false;
    const { last, waiting } = connection;
    connection.last = response;
    // No listener is added for the end of a response as long as no request waits for it.
    if (last === undefined) return true;
    if (last.writableFinished) return this.#goesOn(socket, connection, last);
    if (waiting.size + 2 > pipelinedRequestsMax) {
      this.passed('pipelined', socket);
      socket.destroy();
      return false;
    }
    return new Promise((resolve) => {
      waiting.add(resolve);
      last.once('close', () => {
        waiting.delete(resolve);
        resolve(this.#goesOn(socket, connection, last));
      });
    });
  }

  /** Whether a request is looked at behind an answer: none is behind the last one of all. */
  #goesOn(socket: Duplex, connection: Connection, last: ServerResponse): boolean {
    if (socket.destroyed) return false;
    if (last.shouldKeepAlive) return true;
    connection.reader = 'nobody';
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
    const owed = this.lastAnswer(socket);
    if (owed === undefined && this.hasHead(socket)) {
      // It was answered without its content, which never came: no other response is due.
      this.#passedBy(failure, socket);
      socket.destroy();
      return;
    }
    if (owed !== undefined && !owed.req.complete) {
      // The content of a request is broken: its reader reports that.
      owed.shouldKeepAlive = false;
      if (!breakBody(owed.req, failure)) this.#passedBy(failure, socket);
      if (owed.socket !== null) setTimeout(() => socket.destroy(), lingerMs).unref();
      return;
    }
    const answer = (): void => {
      if (socket.writable) this.#parts.refuse(socket, failure, connection.head);
    };
    if (owed === undefined) answer();
    else owed.once('close', answer);
  }

  /**
   * Answers in the clear what came so where TLS is spoken; Node ends the connection right behind
   * it. What the handshake ran over has no public name: without it, nobody is answered.
   */
  refuseInClear(handshake: Duplex & { readonly _parent?: Duplex }, failure: Failure): void {
    const { _parent: socket } = handshake;
    if (socket?.writable === true) this.#parts.refuse(socket, failure, '');
  }

  /** Whether the head of the newest request has come, and its content has not. */
  hasHead(socket: Duplex): boolean {
    return this.#open.get(socket)?.last?.req.complete === false;
  }

  /** Tells of a connection that has run into a limit. */
  passed(limit: LimitName, socket: Duplex): void {
    this.#parts.passed(limit, peerAddress(socket));
  }

  /** The answer that is the last one owed on a connection; undefined where none is. */
  lastAnswer(socket: Duplex): ServerResponse | undefined {
    return this.#open.get(socket)?.owed;
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

  /** Lets go of the connections on which nothing is owed, and hands the others over. */
  windDown(): void {
    this.handOver();
    for (const [socket, { isIdle }] of this.#open) if (isIdle) socket.destroy();
  }

  /** Resolves when no answer is owed any more. */
  async settled(): Promise<void> {
    // Only the end of an answer of Node's can be waited for.
    this.handOver();
    for (const [socket, connection] of this.#open) {
      for (let last = connection.owed; last !== undefined; last = connection.owed) {
        await ended(last, socket);
      }
      await connection.taken();
    }
    if (this.owed > 0) await this.settled();
  }

  /** Closes the connections on which nothing is owed: their file descriptors are needed. */
  shedIdle(): void {
    for (const [socket, { isIdle }] of this.#open) if (isIdle) socket.destroy();
  }

  /** Tells that a connection could not be taken for want of a file descriptor. */
  lacksDescriptors(): void {
    this.#parts.passed('open_files', '');
  }

  /** Cuts off every connection that is still open. */
  destroyAll(): void {
    for (const { owed } of this.#open.values()) if (owed !== undefined) resetIfUnframed(owed);
    for (const socket of [...this.#open.keys(), ...this.#underTls]) socket.destroy();
  }

  /** Records a limit whose failure is not sent to the client. */
  #passedBy({ limit }: Failure, socket: Duplex): void {
    if (limit !== undefined) this.passed(limit, socket);
  }

  #count(socket: Socket): void {
    const address = peerAddress(socket);
    const passed = this.#crowd.enter(address);
    if (passed === undefined) {
      socket.once('close', () => {
        this.#crowd.leave(address);
      });
      return;
    }
    if (passed === 'perAddress') this.passed('connections_per_address', socket);
    else this.#parts.passed('connections', address, this.#whyFull());
    socket.destroy();
  }

  /** Why there is no room, where that is for want of file descriptors. */
  #whyFull(): string | undefined {
    const { max } = this.#parts;
    if (max === connectionsMax) return undefined;
    return `there are file descriptors for ${max}: raise LimitNOFILE= or ulimit -n`;
  }

  #admit(server: Server, socket: Socket): void {
    // A connection of Node's TLS server ends our side with the client's, whatever is owed on it.
    socket.allowHalfOpen = true;
    const connection = new Connection(socket, {
      answerAtOnce: (text, direct) =>
        this.#answerAtOnce.get(server)?.(socket, text, direct) === true,
      refused: (failure) => {
        this.refuse(socket, failure);
      },
      headMs: server.headersTimeout,
      corks: this.#corks,
      now: this.#parts.now,
    });
    this.#open.set(socket, connection);
    socket.once('close', () => {
      this.#open.delete(socket);
      connection.close();
    });
  }
}

/** The address at the other end of a connection; empty for a unix socket. */
export function peerAddress(socket: Duplex): string {
  return plainAddress((socket as Partial<Socket>).remoteAddress ?? '');
}

/** An answer ends, or it never begins because its connection does. */
function ended(response: ServerResponse, socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      resolve();
    };
    response.once('close', done);
    socket.once('close', done);
  });
}
