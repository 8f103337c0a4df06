import type { Socket } from 'node:net';
import type { ReadHead } from '../../http/reading/head.ts';
import { type RequestEvents, RequestReader } from '../../http/reading/request-reader.ts';
import { incompleteRequest } from '../../http/reading/refusals.ts';
import { TurnWriteBatcher } from '../../outbound/h1/turn-write-batcher.ts';
import { isPassedOn } from '../../pipeline/body.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';
import type { Failure } from '../../values/failure.ts';
import type { Peer } from '../../values/network/peer.ts';
import { preface } from '../h2/frames.ts';
import { LeastRate, type RateLimit } from '../least-rate.ts';
import { lingerMs } from '../limits.ts';
import { peerOf } from '../listening/accept.ts';
import { deliveredBytes, stopFlowing } from '../listening/node-internals.ts';
import { readTurns } from '../read-turns.ts';
import { ConnectionBody } from './connection-body.ts';
import { type ExchangeParts, Http1Exchange } from './http1-exchange.ts';
import { upgradeOf } from './upgrade.ts';

/** The part that reads the bytes of a connection: HTTP, another protocol, or none. */
type Reader = 'http' | 'other' | 'none';

/** Who answers the requests of connections. */
export interface Http1Handlers {
  /** Answers a request; the next one comes when its answer is sent. */
  readonly answer: (exchange: Http1Exchange) => void;
  /** Whether to act on a CONNECT, or on the Upgrade of a request. */
  readonly switches: (head: ReadHead, peer: Peer) => boolean;
  readonly upgrade: (request: UpgradeRequest) => void;
}

/** The parts that all connections of a server share. */
interface ConnectionParts extends Http1Handlers {
  /** Takes a connection of HTTP/2, with what has arrived; undefined where only ALPN begins one. */
  readonly serveHttp2: ((socket: Socket, first: Buffer) => void) | undefined;
  readonly refused: (socket: Socket, failure: Failure) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** One batcher for all: it writes to one connection right after the other. */
const batcher = new TurnWriteBatcher();

/** One open connection of HTTP/1.1. */
export class Connection implements RequestEvents {
  readonly socket: Socket;
  readonly peer: Peer;
  /** The newest request. */
  newest: Http1Exchange | undefined;
  reader: Reader = 'http';
  readonly #parts: ConnectionParts;
  readonly #requests: RequestReader;
  #exchangeParts: ExchangeParts | undefined;
  /** Since when a head is to come: from the start of the connection, or its own first byte. */
  #headSinceMs: number | undefined = performance.now();
  /** The content of the newest request; undefined for one without. */
  #body: ConnectionBody | undefined;
  /** A request for another protocol, until its end has arrived. */
  #switching: ReadHead | undefined;
  /** Since when content of the newest request is to come, and the bytes read by then. */
  #contentSinceMs = 0;
  #contentBytes = 0;
  /** The rates at which content arrives and answers are read; undefined while neither does. */
  #arriving: LeastRate | undefined;
  #leaving: LeastRate | undefined;
  /** What has arrived, while it may be the preface of HTTP/2 (RFC 9113 §3.3); undefined later. */
  #opening: Buffer | undefined;

  constructor(socket: Socket, parts: ConnectionParts) {
    this.socket = socket;
    this.peer = peerOf(socket);
    this.#parts = parts;
    this.#requests = new RequestReader(this);
    // Otherwise a TLS server closes our side with the client's, whatever is unanswered.
    socket.allowHalfOpen = true;
    if (parts.serveHttp2 !== undefined) this.#opening = nothing;
    socket.on('error', ignore).on('data', this.#read).on('end', this.#end);
  }

  /** The head of the newest request as far as it has arrived, latin1. */
  get head(): string {
    return this.#requests.head;
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
    const isRead = this.socket.readableLength === 0 && this.#requests.isBetweenMessages;
    return this.reader === 'http' && isRead && !this.isUnfinished;
  }

  /** Whether bytes wait for the client to read. */
  get isUnread(): boolean {
    const { destroyed, writableLength } = this.socket;
    return this.reader !== 'other' && !destroyed && writableLength > 0;
  }

  /** Whether the head of a request takes too long, at a time in milliseconds. */
  isHeadLate(nowMs: number, limitMs: number): boolean {
    if (this.#headSinceMs === undefined || this.reader !== 'http') return false;
    return nowMs - this.#headSinceMs >= limitMs;
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
    else {
      socket.destroySoon();
      this.#closeIfStuck();
    }
  }

  /** To be called when the connection has closed. */
  close(): void {
    this.#body?.connectionClosed();
    this.newest?.closed();
  }

  readonly #read = (given: Buffer): void => {
    if (readTurns.isLater(this.socket, this.peer, given)) return;
    const chunk = this.#opening === undefined ? given : this.#open(this.#opening, given);
    if (chunk === undefined) return;
    const requests = this.#requests;
    let at = 0;
    while (at < chunk.length && this.reader === 'http') {
      if (requests.isBetweenMessages) {
        // Behind the last request, all bytes are ignored (RFC 9112 §9.6).
        if (this.newest?.shouldKeepAlive === false) return;
        if (this.unfinished !== undefined || this.socket.writableNeedDrain) {
          this.#readLater(chunk.subarray(at));
          return;
        }
      }
      at = requests.read(chunk, at);
      if (this.#switching !== undefined && this.#body?.complete !== false) {
        this.#switch(this.#switching, chunk.subarray(at));
        return;
      }
      if (requests.refusal !== undefined) {
        this.#parts.refused(this.socket, requests.refusal);
        return;
      }
    }
    if (this.#headSinceMs === undefined && requests.isInHead) {
      this.#headSinceMs = performance.now();
    }
  };

  /**
   * Reads the next request when the one before is answered and its client has read the answers:
   * requests and answers would fill the memory.
   */
  #readLater(rest: Buffer): void {
    const { socket, unfinished } = this;
    socket.pause().unshift(rest);
    const goOn = (): void => {
      if (this.reader === 'http') socket.resume();
    };
    if (unfinished === undefined) socket.once('drain', goOn);
    else unfinished.onClose(goOn);
  }

  /** The client has closed its side. */
  readonly #end = (): void => {
    if (this.reader !== 'http') return;
    const { newest, socket } = this;
    if (!this.#requests.isBetweenMessages) this.#parts.refused(socket, incompleteRequest());
    else if (newest?.isSent === false) newest.shouldKeepAlive = false;
    else {
      socket.end();
      this.#closeIfStuck();
    }
  };

  /**
   * Closes a connection over TLS whose client has closed its side, if nothing goes out in a moment:
   * where the client has reset it as well, Node never ends a write.
   */
  #closeIfStuck(): void {
    const { socket, peer } = this;
    if (peer.tls === undefined || !socket.readableEnded) return;
    const before = deliveredBytes(socket);
    setTimeout(() => {
      if (this.isUnread && deliveredBytes(socket) === before) socket.destroy();
    }, lingerMs).unref();
  }

  /** Begins to answer a request. */
  onHead(head: ReadHead): void {
    this.#headSinceMs = undefined;
    const isSwitching = head.upgrade !== undefined || head.method === 'CONNECT';
    const { answer, switches, upgrade } = this.#parts;
    if (isSwitching && switches(head, this.peer)) {
      this.#switching = head;
      this.#body = this.#contentOf(head);
      if (this.#body === undefined) return;
      upgrade(upgradeOf(this, { head, body: this.#body, ahead: nothing }));
      return;
    }
    const body = this.#contentOf(head);
    this.#body = body;
    const exchange = new Http1Exchange((this.#exchangeParts ??= this.#partsOf()), head, body);
    this.newest = exchange;
    if (body !== undefined) this.#contentSinceMs = performance.now();
    answer(exchange);
  }

  onContent(bytes: Buffer): void {
    this.#body?.arrived(bytes);
  }

  onEnd(trailers: readonly string[]): void {
    this.#body?.ended(trailers);
  }

  #partsOf(): ExchangeParts {
    const { socket, peer } = this;
    const closeWhenWritten = (): void => {
      this.closeWhenWritten();
    };
    return { socket, peer, batcher, now: this.#parts.now, closeWhenWritten };
  }

  #contentOf({ framing }: ReadHead): ConnectionBody | undefined {
    if (framing === 0) return undefined;
    const { socket } = this;
    return new ConnectionBody({
      pause: () => socket.pause(),
      resume: () => {
        if (this.reader !== 'other') socket.resume();
      },
    });
  }

  /** Gives the connection away, with what has arrived behind the request. */
  #switch(head: ReadHead, ahead: Buffer): void {
    const { socket } = this;
    this.reader = 'other';
    this.#switching = undefined;
    socket.off('data', this.#read).off('end', this.#end);
    stopFlowing(socket);
    if (this.#body === undefined) this.#parts.upgrade(upgradeOf(this, { head, ahead }));
    else if (ahead.length > 0) socket.unshift(ahead);
  }

  /** Gives a connection that begins as HTTP/2 away; returns the bytes of any other. */
  #open(before: Buffer, given: Buffer): Buffer | undefined {
    const bytes = before.length === 0 ? given : Buffer.concat([before, given]);
    const length = Math.min(bytes.length, preface.length);
    const isPreface = bytes.compare(preface, 0, length, 0, length) === 0;
    this.#opening = isPreface && length < preface.length ? bytes : undefined;
    if (!isPreface) return bytes;
    if (this.#opening !== undefined) return undefined;
    this.reader = 'other';
    this.socket.off('data', this.#read).off('end', this.#end);
    this.#parts.serveHttp2?.(this.socket, bytes);
    return undefined;
  }
}

/** Whether the content of a request has no rate: a stream to another server, such as gRPC. */
function isStream({ body, head }: Http1Exchange): boolean {
  return isPassedOn(body) && head.framing === 'chunked';
}

const nothing: Buffer = Buffer.alloc(0);

/** A listener for errors of a socket, which closes by itself. */
const ignore = (): void => undefined;
