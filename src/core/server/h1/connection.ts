import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { RequestScanner } from '../../http/reading/request-scanner.ts';
import { isPassedOn } from '../../pipeline/body.ts';
import type { PreparableExchange } from '../../pipeline/exchange.ts';
import type { Failure } from '../../values/failure.ts';
import type { Peer } from '../../values/network/peer.ts';
import { preface } from '../h2/frames.ts';
import { LeastRate, type RateLimit } from '../least-rate.ts';
import { peerOf } from '../listening/accept.ts';
import { deliveredBytes } from '../listening/node-internals.ts';
import { malformedRequest, tooLate } from './refusal.ts';

/** Requests that a client may send before it has read the answers to earlier ones. */
export const pipelinedRequestsMax = 100;

/** The part that reads the bytes of a connection: HTTP, another protocol, or none. */
type Reader = 'http' | 'other' | 'none';

/**
 * Answers a request without Node's parser, from the bytes that have arrived. False if the parser
 * has to read them.
 */
export type TryAnswer = (connection: Connection, bytes: Buffer) => boolean;

/** The parts that all connections of a server share. */
interface ConnectionParts {
  /** Gives a connection to Node's HTTP server. */
  readonly serve: (socket: Socket) => void;
  /** Undefined if Node's parser reads all requests. */
  readonly tryAnswer: TryAnswer | undefined;
  /** Takes a connection of HTTP/2, with what has arrived; undefined where only ALPN begins one. */
  readonly serveHttp2: ((socket: Socket, first: Buffer) => void) | undefined;
  readonly refused: (socket: Socket, failure: Failure) => void;
  /** Milliseconds for a head that the parser does not get to see. */
  readonly headMs: number;
}

/** A request on a connection of HTTP/1.1, with its answer. */
export interface Http1Exchange extends PreparableExchange {
  readonly socket: Socket;
  /** The response of Node's HTTP server; undefined while its parser has not seen the request. */
  readonly response: ServerResponse | undefined;
  /**
   * Fails the content of the request, for its present or future reader; returns whether there is
   * one now.
   */
  breakOff(failure: Failure): boolean;
}

/**
 * One open connection of HTTP/1.1. Node's HTTP server gets it with the first bytes that its parser
 * has to read, and after that gets only the bytes that `http/reading/request-scanner.ts` permits.
 */
export class Connection {
  readonly socket: Socket;
  readonly peer: Peer;
  /** The newest request. */
  newest: Http1Exchange | undefined;
  /** The request that is answered now, or was answered last. */
  current: Http1Exchange | undefined;
  reader: Reader = 'http';
  readonly #parts: ConnectionParts;
  readonly #openedMs = performance.now();
  /** Requests that Node's server has read: before the first, it limits the time for one. */
  #parsedRequests = 0;
  /** Resolvers of requests that wait for the response to the request before them. */
  #waiting: Set<(isOpen: boolean) => void> | undefined;
  #scanner: RequestScanner | undefined;
  /** A request for another protocol, whose content has not arrived yet. */
  #switching: IncomingMessage | undefined;
  /** The listeners of Node's parser for data. */
  #parsers: readonly ((chunk: Buffer) => void)[] = [];
  #headTimer: NodeJS.Timeout | undefined;
  /** Since when content of the newest request is to come, and the bytes read by then. */
  #contentSinceMs = 0;
  #contentBytes = 0;
  /** The rates at which content arrives and answers are read; undefined while neither does. */
  #arriving: LeastRate | undefined;
  #leaving: LeastRate | undefined;
  /** What has arrived, while it may be the preface of HTTP/2 (RFC 9113 §3.3); undefined later. */
  #opening: Buffer | undefined;
  /** Receives a request that Node's parser has read again. */
  #parsedAgain: ((exchange: Http1Exchange) => void) | undefined;

  constructor(socket: Socket, parts: ConnectionParts) {
    this.socket = socket;
    this.peer = peerOf(socket);
    this.#parts = parts;
    // Otherwise Node's TLS server closes our side with the client's, whatever is unanswered.
    socket.allowHalfOpen = true;
    if (parts.tryAnswer === undefined) {
      this.serve();
      return;
    }
    if (parts.serveHttp2 !== undefined) this.#opening = nothing;
    socket.on('error', ignore);
    socket.on('data', this.#read);
    socket.on('end', () => {
      if (!this.isParsed && this.unfinished === undefined) socket.end();
    });
  }

  /** Whether Node's HTTP server has the connection. */
  get isParsed(): boolean {
    return this.#scanner !== undefined;
  }

  /** The head of the newest request as far as it has arrived, latin1. */
  get head(): string {
    return this.#scanner?.head ?? '';
  }

  /** The newest request, until its answer is written; undefined after that. */
  get unfinished(): Http1Exchange | undefined {
    return this.newest?.isSent === false ? this.newest : undefined;
  }

  /** Whether a response is not written yet, or not read yet. */
  get isUnfinished(): boolean {
    return this.unfinished !== undefined || this.isUnread;
  }

  /** Whether all requests that have arrived are answered. */
  get isIdle(): boolean {
    return this.reader === 'http' && this.#isBetweenMessages && !this.isUnfinished;
  }

  /** Whether a request that arrives now can be answered at once, and others after it. */
  get isFree(): boolean {
    if (this.reader !== 'http' || !this.#isBetweenMessages) return false;
    if (this.isParsed && this.#parsedRequests === 0) return false;
    if (this.newest !== undefined) {
      const { hasArrived, shouldKeepAlive, isSent } = this.newest;
      if (!hasArrived || !shouldKeepAlive || !isSent) return false;
    }
    return this.socket.writable && this.socket.writableLength === 0;
  }

  /** Whether bytes wait for the client to read. */
  get isUnread(): boolean {
    const { destroyed, writableLength } = this.socket;
    return this.reader !== 'other' && !destroyed && writableLength > 0;
  }

  get #isBetweenMessages(): boolean {
    return this.#scanner?.isBetweenMessages ?? true;
  }

  /** Gives the connection to Node's HTTP server, behind a `RequestScanner`. */
  serve(): void {
    if (this.#scanner !== undefined) return;
    const { socket } = this;
    this.#scanner = new RequestScanner();
    this.#parts.serve(socket);
    socket.off('data', this.#read);
    this.#parsers = socket.listeners('data') as ((chunk: Buffer) => void)[];
    socket.removeAllListeners('data');
    // Stops Node's parser from reading the socket directly (docs/design/invariants.md).
    socket.on('data', this.#read);
  }

  /** Gives the connection away, after the rest of the content of a request. */
  switchProtocol(message: IncomingMessage): void {
    this.#parsedRequests += 1;
    if (message.complete) this.reader = 'other';
    else this.#switching = message;
  }

  /** Gives a whole request that has arrived earlier to Node's parser; returns what it makes. */
  handToNodeParser(request: Buffer): Http1Exchange | undefined {
    let parsed: Http1Exchange | undefined;
    this.#parsedAgain = (made) => {
      parsed = made;
    };
    this.#parse(request);
    this.#parsedAgain = undefined;
    return parsed;
  }

  /**
   * Returns whether a request is to be answered now, or a promise of it. `too_many` if the client
   * has sent too many requests ahead; false if this one gets no answer.
   */
  turn(exchange: Http1Exchange): boolean | Promise<boolean> | 'too_many' {
    if (this.socket.destroyed) return false;
    if (exchange.response !== undefined) {
      this.#parsedRequests += 1;
      if (this.#parsedAgain !== undefined) {
        this.current = exchange;
        this.#parsedAgain(exchange);
        return false;
      }
    }
    const before = this.newest;
    this.newest = exchange;
    if (!exchange.hasArrived) this.#contentSinceMs = performance.now();
    // While no request waits, answers get no listener for their end.
    if (before?.isSent !== false) return this.#isNext(before, exchange);
    const waiting = (this.#waiting ??= new Set());
    if (waiting.size + 2 > pipelinedRequestsMax) return 'too_many';
    return new Promise((resolve) => {
      waiting.add(resolve);
      before.onClose(() => {
        waiting.delete(resolve);
        resolve(this.#isNext(before, exchange));
      });
    });
  }

  /** Whether another answer follows one: the last of a connection has no successor. */
  #isNext(before: Http1Exchange | undefined, exchange: Http1Exchange): boolean {
    if (this.socket.destroyed) return false;
    if (before?.shouldKeepAlive === false) {
      this.reader = 'none';
      return false;
    }
    this.current = exchange;
    return true;
  }

  /**
   * Whether the first request takes too long, at a time in milliseconds. Node's server does not
   * have the connection before its parser has to read: until then, it may become one of HTTP/2.
   */
  isFirstLate(nowMs: number): boolean {
    if (this.isParsed || this.newest !== undefined || this.reader !== 'http') return false;
    return nowMs - this.#openedMs >= this.#parts.headMs;
  }

  /**
   * Whether the content of the newest request takes too long: all of it, or a pause in it if it
   * goes to another server. To be called at intervals, with times in milliseconds.
   */
  isContentLate(nowMs: number, limitMs: number): boolean {
    const { newest, socket } = this;
    if (newest === undefined || newest.hasArrived || this.reader !== 'http') return false;
    const hasMoved = socket.bytesRead !== this.#contentBytes || socket.isPaused();
    this.#contentBytes = socket.bytesRead;
    if (hasMoved && isPassedOn(newest.body)) this.#contentSinceMs = nowMs;
    return nowMs - this.#contentSinceMs >= limitMs;
  }

  /**
   * Whether the client sends the content of the newest request too slowly. To be called as
   * isContentLate.
   */
  isContentSlow(nowMs: number, limit: RateLimit): boolean {
    const { newest, socket } = this;
    const isArriving = newest?.hasArrived === false && this.reader === 'http';
    if (!isArriving || isStream(newest)) {
      this.#arriving = undefined;
      return false;
    }
    this.#arriving ??= new LeastRate(limit);
    // A paused socket waits for the reader of the content, not for the client.
    const isWaiting = !socket.isPaused();
    return this.#arriving.isTooSlow(nowMs, { bytes: socket.bytesRead, isWaiting });
  }

  /** Whether the client reads its answers too slowly. To be called as isContentLate. */
  isReadSlowly(nowMs: number, limit: RateLimit): boolean {
    if (!this.isUnread) {
      this.#leaving = undefined;
      return false;
    }
    this.#leaving ??= new LeastRate(limit);
    const bytes = deliveredBytes(this.socket);
    return this.#leaving.isTooSlow(nowMs, { bytes, isWaiting: true });
  }

  /** Resolves when the client has read all responses, or has disconnected. */
  read(): Promise<void> {
    if (!this.isUnread) return Promise.resolve();
    const { socket } = this;
    return new Promise((resolve) => {
      const done = (): void => {
        resolve();
      };
      socket.once('close', done);
      // Called after all earlier bytes. If the server has already ended its side, the connection
      // closes by itself.
      if (!socket.writableEnded) socket.write('', done);
    });
  }

  /** Closes the connection as soon as the system has taken all written bytes. */
  closeWhenWritten(): void {
    const { socket } = this;
    // A TLS session ends with a message of its own.
    const isTls = this.peer.tls !== undefined;
    if (socket.writableLength === 0 && !isTls) socket.destroy();
    else socket.destroySoon();
  }

  /** To be called when the connection has closed. */
  close(): void {
    clearTimeout(this.#headTimer);
    for (const resolve of this.#waiting ?? []) resolve(false);
  }

  readonly #read = (given: Buffer): void => {
    const chunk = this.#opening === undefined ? given : this.#open(this.#opening, given);
    if (chunk === undefined) return;
    if (this.#parts.tryAnswer?.(this, chunk) !== true) this.#parse(chunk);
  };

  /** Gives a connection that begins as HTTP/2 away; returns the bytes of any other. */
  #open(before: Buffer, given: Buffer): Buffer | undefined {
    const bytes = before.length === 0 ? given : Buffer.concat([before, given]);
    const length = Math.min(bytes.length, preface.length);
    const isPreface = bytes.compare(preface, 0, length, 0, length) === 0;
    this.#opening = isPreface && length < preface.length ? bytes : undefined;
    if (!isPreface) return bytes;
    if (this.#opening !== undefined) return undefined;
    this.reader = 'other';
    this.socket.off('data', this.#read);
    this.#parts.serveHttp2?.(this.socket, bytes);
    return undefined;
  }

  #parse(chunk: Buffer): void {
    this.serve();
    const { socket } = this;
    const scanner = this.#scanner ?? new RequestScanner();
    let at = 0;
    while (at < chunk.length && this.#readsHttp()) {
      // The parser pauses the socket when it is full; the rest is read again later.
      if (at > 0 && socket.isPaused()) break;
      const end = scanner.read(chunk, at);
      if (scanner.isWithheld) this.#limitHeadTime(scanner);
      else if (end > at) {
        const before = this.#parsedRequests;
        const part = end - at === chunk.length ? chunk : chunk.subarray(at, end);
        for (const parse of this.#parsers) parse.call(socket, part);
        if (this.#switching?.complete === true) this.reader = 'other';
        if (scanner.endsHead && this.#parsedRequests === before) this.#refuseUnparsed();
      }
      at = end;
      if (scanner.refusal !== undefined && this.#readsHttp()) {
        this.#parts.refused(socket, scanner.refusal);
      }
    }
    if (this.reader === 'other') socket.off('data', this.#read);
    if (at < chunk.length && this.reader !== 'none') socket.unshift(chunk.subarray(at));
  }

  /**
   * Refuses a complete head for which Node's parser has reported no request. The parser does not
   * report an error in the message after one whose Upgrade it ignores: the request would get no
   * response, and the client would match the next response with it.
   */
  #refuseUnparsed(): void {
    // Behind the last request, all bytes are ignored (RFC 9112 §9.6).
    const isLast = this.newest?.shouldKeepAlive === false;
    if (this.#readsHttp() && !isLast && !this.socket.destroyed) {
      this.#parts.refused(this.socket, malformedRequest());
    }
  }

  #readsHttp(): boolean {
    return this.reader === 'http';
  }

  #limitHeadTime(scanner: RequestScanner): void {
    this.#headTimer ??= setTimeout(() => {
      if (scanner.refusal === undefined) this.#parts.refused(this.socket, tooLate('header_time'));
    }, this.#parts.headMs).unref();
  }
}

/** Whether the content of a request has no rate: a stream to another server, such as gRPC. */
function isStream({ body, head }: Http1Exchange): boolean {
  if (!isPassedOn(body)) return false;
  const { fields } = head;
  return !fields.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'content-length');
}

const nothing: Buffer = Buffer.alloc(0);

/** A listener for errors of a socket, which closes by itself. */
const ignore = (): void => undefined;
