import type { Socket } from 'node:net';
import { failBody } from '../../http/content/content.ts';
import { requestLineBytesMax } from '../../http/limits.ts';
import { headerSectionTooLarge, requestLineTooLong } from '../../http/reading/refusals.ts';
import { requestTimeoutMs } from '../../operations/limits.ts';
import { isPassedOn } from '../../pipeline/body.ts';
import type { Arrival, UpgradeRequest } from '../../pipeline/exchange.ts';
import type { LimitLog } from '../../report/limit-log.ts';
import type { LimitName } from '../../values/limit.ts';
import type { Peer } from '../../values/network/peer.ts';
import { MIB } from '../../values/units.ts';
import { ConnectionLimiter, type ConnectionLimits } from '../h1/connection-limiter.ts';
import { tooLate } from '../h1/refusal.ts';
import { LeastRate } from '../least-rate.ts';
import { headersTimeoutMs, keepAliveTimeoutMs, leastRate, lingerMs, stalledMs } from '../limits.ts';
import { peerOf } from '../listening/accept.ts';
import { queuedBytes } from '../listening/node-internals.ts';
import { readTurns } from '../read-turns.ts';
import { type Counted, Http2Connection } from './connection.ts';
import { http2JoinedBytesMax } from './limits.ts';
import { SharedBytes } from './receive-window.ts';
import type { Http2RequestHead } from './request-head.ts';
import { StreamExchange } from './stream-exchange.ts';
import type { BytesTaken, Stream, StreamReader } from './stream.ts';
import { upgradeOf } from './upgraded-stream.ts';

export const http2StreamsMax = 10_000;

/** What all connections of a process together may have above the initial windows. */
const http2WindowsBytesMax = 128 * MIB;

/** A client may reset this many requests at once, and this many more in each second, as nghttp2. */
export const http2ResetsMax = 1_000;
export const http2ResetsPerSecond = 33;

/** In each period of this length, it may … */
export const http2CountingMs = 10_000;

/** … send this many PING and SETTINGS frames … */
export const http2IdleFramesMax = 100;

/** … as many frames that are invalid, without content, or above the number of open requests … */
export const http2InvalidFramesMax = 100;

/** … as many frames without effect: priorities of RFC 7540, and frames on streams that ended … */
const http2VainFramesMax = 100_000;

/** … and take this many pieces of content that are shorter than the shortest sensible one. */
export const http2TinyPiecesMax = 1_000;

/** The interval between two checks of all connections for timeouts. */
export const http2CheckMs = 5_000;

/** At a stop, the server waits for clients whose last answer ended within this time. */
const http2LeaveMs = 10_000;

/** What becomes of the requests of a connection. */
interface Http2Handlers {
  readonly handle: (exchange: StreamExchange) => void;
  /** Opens a websocket (RFC 8441), as after an Upgrade of HTTP/1.1. */
  readonly upgrade: (request: UpgradeRequest) => void;
}

/** The dependencies of connections; `monotonicMs` measures durations. */
interface Dependencies extends Pick<ConnectionLimits, 'perAddress'> {
  readonly limits: LimitLog;
  readonly monotonicMs: () => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Requests that may be open; by default the limit of the process. */
  readonly streamsMax?: number;
}

/** The frames that are counted by period. */
type CountedFrame = Exclude<Counted, 'reset'>;

/** How many frames of a kind a client may send in a period, and the limit that it then exceeds. */
const countedMax: Readonly<Record<CountedFrame, readonly [max: number, limit: LimitName]>> = {
  idle: [http2IdleFramesMax, 'http2_pings'],
  invalid: [http2InvalidFramesMax, 'http2_frames'],
  tiny: [http2TinyPiecesMax, 'http2_frames'],
  vain: [http2VainFramesMax, 'http2_frames'],
};

/**
 * The HTTP/2 connections of a port (RFC 9113) with their open requests. Closes a connection that is
 * idle, stalled or abusive (§10.5).
 */
export class Http2Connections {
  readonly #served = new Set<ServedConnection>();
  readonly #dependencies: Dependencies;
  readonly #checkTimer: NodeJS.Timeout;
  readonly #limiter: ConnectionLimiter;
  readonly #windows = new SharedBytes(http2WindowsBytesMax);
  #open = 0;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    const { perAddress, streamsMax: max = http2StreamsMax } = dependencies;
    this.#limiter = new ConnectionLimiter({ max, perAddress });
    this.#checkTimer = setInterval(() => {
      this.check();
    }, http2CheckMs);
    this.#checkTimer.unref();
  }

  /** Serves a client, of which some bytes may have been read already. */
  serve(socket: Socket, handlers: Http2Handlers, first?: Buffer): void {
    const { limits, monotonicMs, now } = this.#dependencies;
    const served = new ServedConnection(socket, {
      windows: this.#windows,
      monotonicMs,
      now,
      handlers,
      passed: (limit, why) => {
        limits.passed(limit, served.peer.address, why);
      },
      begin: () => this.#begin(served),
      ended: () => {
        this.#open -= 1;
        this.#limiter.remove(served.peer);
      },
    });
    this.#served.add(served);
    socket.once('close', () => {
      this.#served.delete(served);
    });
    if (first !== undefined) served.connection.receive(first);
  }

  /** The number of connections. */
  get size(): number {
    return this.#served.size;
  }

  /** The number of open requests. */
  get unanswered(): number {
    return this.#open;
  }

  /** Tells every client that the server takes no further request (RFC 9113 §6.8). */
  close(): void {
    clearInterval(this.#checkTimer);
    for (const { connection } of this.#served) connection.leave({ isAnnounced: false });
  }

  /**
   * Makes every client open another connection: warns it, takes the requests that cross the
   * warning, and closes the connection after the last of them (§6.8).
   */
  drain(): void {
    for (const served of this.#served) served.drain();
  }

  /** Closes the connections without open requests, to free their file descriptors. */
  closeIdle(): void {
    for (const { connection } of this.#served) {
      if (connection.streams.size === 0) connection.leave({ isAnnounced: false });
    }
  }

  /** Resolves when no request is open. */
  async settled(): Promise<void> {
    const open = [...this.#served].flatMap(({ requests }) => [...requests]);
    await Promise.all(open.map((request) => request.ended()));
    if (this.#open > 0) await this.settled();
  }

  /**
   * Resolves when no request is open and each client whose last answer ended a moment ago has
   * closed its side, as clients do after reading everything. A client still reading sends
   * WINDOW_UPDATE frames; a closed socket would answer these with a TCP reset, which discards data
   * that the client has not read.
   */
  async clientsClosed(): Promise<void> {
    await this.settled();
    const recentMs = this.#dependencies.monotonicMs() - http2LeaveMs;
    const closing = [...this.#served].filter(
      ({ connection, idleSinceMs = recentMs }) =>
        connection.newestStream > 0 && idleSinceMs >= recentMs,
    );
    await Promise.all(
      closing.map(({ socket }) => new Promise((resolve) => socket.once('close', resolve))),
    );
  }

  /** Closes every connection at once. */
  destroyAll(): void {
    for (const { socket } of this.#served) socket.destroy();
  }

  /** Closes connections and streams that have exceeded a time limit; called at intervals. */
  check(): void {
    const nowMs = this.#dependencies.monotonicMs();
    for (const served of this.#served) served.check(nowMs);
  }

  /** Counts a new request; false if there are too many. */
  #begin({ peer }: ServedConnection): boolean {
    if (this.#limiter.add(peer) === undefined) {
      this.#open += 1;
      return true;
    }
    this.#dependencies.limits.passed('http2_streams', peer.address);
    return false;
  }
}

/** What a served connection needs from its port. */
interface ServedParts extends Pick<Dependencies, 'monotonicMs' | 'now'> {
  readonly windows: SharedBytes;
  readonly handlers: Http2Handlers;
  readonly passed: (limit: LimitName, why?: string) => void;
  /** Counts a new request; false if there are too many. */
  readonly begin: () => boolean;
  /** Stops counting a request. */
  readonly ended: () => void;
}

/** A connection on a socket, with its open requests and its timeouts. */
class ServedConnection {
  readonly socket: Socket;
  readonly peer: Peer;
  readonly connection: Http2Connection;
  readonly requests = new Set<OpenRequest>();
  /** The time since which no request is open; undefined while one is. */
  idleSinceMs: number | undefined;
  readonly #parts: ServedParts;
  /** What the requests in the newest bytes of the client have in common. */
  #arrival: Arrival | undefined;
  /** The time of the first check that found an incomplete head. */
  #waitingSinceMs: number | undefined;
  /** At the last check: content handed to the socket, and bytes that waited for the client. */
  #contentBytes = 0;
  #queuedBytes = 0;
  /** The rate at which the client reads all answers together. */
  readonly #reading = new LeastRate(leastRate);
  /** The time when content last moved. */
  #lastProgressMs: number;
  readonly #counts: Record<CountedFrame, number> = { idle: 0, invalid: 0, tiny: 0, vain: 0 };
  /** How many requests the client may reset at the moment, and when it has reset the last one. */
  #resetsLeft = http2ResetsMax;
  #resetMs: number;
  #countedSinceMs: number;
  /** Whether the client exceeded a limit; the server sends it nothing more. */
  #isAborted = false;
  /** The time since which another process takes new connections. */
  #drainSinceMs: number | undefined;
  /** The time of the first check after the connection ended, while its socket is open. */
  #endedSinceMs: number | undefined;

  constructor(socket: Socket, parts: ServedParts) {
    this.socket = socket;
    this.#parts = parts;
    const nowMs = parts.monotonicMs();
    this.idleSinceMs = nowMs;
    this.#lastProgressMs = nowMs;
    this.#countedSinceMs = nowMs;
    this.#resetMs = nowMs;
    this.peer = peerOf(socket);
    this.connection = new Http2Connection({
      isSecure: this.peer.tls !== undefined,
      windows: parts.windows,
      sink: {
        write: (pieces, done) => {
          writeTogether(socket, pieces, done);
        },
        end: () => socket.end(),
      },
      events: {
        request: (...given) => this.#request(...given),
        idle: () => {
          this.idleSinceMs = parts.monotonicMs();
        },
        counted: (what) => {
          this.#count(what);
        },
        failed: (message) => {
          if (!this.#isAborted) parts.passed('http2_frames', message);
        },
      },
    });
    socket.on('data', (chunk: Buffer) => {
      if (readTurns.isLater(socket, this.peer, chunk)) return;
      this.#arrival = undefined;
      this.connection.receive(chunk);
    });
    socket.on('error', ignore);
    socket.once('close', () => {
      this.connection.close();
    });
    socket.once('end', () => {
      this.connection.close();
      socket.end();
    });
  }

  /** Warns the client that another process takes its next connection. */
  drain(): void {
    this.#drainSinceMs = this.#parts.monotonicMs();
    this.connection.leave({ isAnnounced: true });
  }

  /** Applies the timeouts; called at intervals. */
  check(nowMs: number): void {
    const { connection, socket, idleSinceMs } = this;
    if (connection.isEnded) {
      this.#endedSinceMs ??= nowMs;
      // The client has time to read the rest, and to close its side.
      const graceMs = this.#isAborted ? lingerMs : stalledMs;
      if (nowMs - this.#endedSinceMs >= graceMs) socket.destroy();
      return;
    }
    if (nowMs - (this.#drainSinceMs ?? Infinity) >= http2LeaveMs) {
      connection.leave({ isAnnounced: false });
    }
    this.#waitingSinceMs = connection.isHeadWaiting ? (this.#waitingSinceMs ?? nowMs) : undefined;
    if (nowMs - (this.#waitingSinceMs ?? nowMs) >= headersTimeoutMs) {
      this.#parts.passed('http2_heads');
      connection.end('NO_ERROR');
    } else if (idleSinceMs === undefined) this.#checkRequests(nowMs);
    else if (nowMs - idleSinceMs >= keepAliveTimeoutMs) connection.leave({ isAnnounced: false });
  }

  #checkRequests(nowMs: number): void {
    const { connection, socket } = this;
    const queued = queuedBytes(socket);
    const isWaiting = connection.isSending || queued > 0;
    // Both change only when the client reads.
    const hasMoved = connection.contentBytes !== this.#contentBytes || queued < this.#queuedBytes;
    if (hasMoved || !isWaiting) this.#lastProgressMs = nowMs;
    this.#contentBytes = connection.contentBytes;
    this.#queuedBytes = queued;
    if (nowMs - this.#lastProgressMs >= stalledMs) {
      this.#abort('unread_answer');
      return;
    }
    // Who closes the window of one stream, such as a paused video, may read the others in bits.
    const isUnread = queued > 0 && [...this.requests].some((request) => !request.isTunnel);
    const bytes = connection.contentBytes - queued;
    if (this.#reading.isTooSlow(nowMs, { bytes, isWaiting: isUnread })) {
      this.#abort('slow_answer');
      return;
    }
    for (const request of this.requests) {
      const isBlocked = queued === 0 && connection.queuedBytes === 0;
      if (request.isStalled(nowMs, isBlocked)) {
        this.#parts.passed('unread_answer');
        request.stream.reset('CANCEL');
      } else if (request.isReadSlowly(nowMs, isBlocked)) {
        this.#parts.passed('slow_answer');
        request.stream.reset('CANCEL');
      } else if (request.isLate(nowMs)) this.#parts.passed('request_time');
      else if (request.isSlow(nowMs)) this.#parts.passed('slow_content');
    }
  }

  #request(stream: Stream, head: Http2RequestHead, isTooLarge: boolean): boolean {
    const { begin, ended, handlers, monotonicMs, now } = this.#parts;
    if (!begin()) return false;
    this.idleSinceMs = undefined;
    const known = isTooLarge ? { ...head, fields: head.fields.slice(0, 2) } : head;
    const arrival = (this.#arrival ??= { atMs: monotonicMs() });
    const exchange = new StreamExchange(stream, known, { peer: this.peer, arrival, now });
    const request = new OpenRequest(stream, exchange, {
      closed: () => {
        this.requests.delete(request);
        ended();
      },
    });
    this.requests.add(request);
    if (isTooLarge) {
      const isLine = head.url.length > requestLineBytesMax;
      exchange.failure = isLine ? requestLineTooLong() : headerSectionTooLarge();
    }
    const { protocol } = head;
    if (protocol === undefined) handlers.handle(exchange);
    else handlers.upgrade(upgradeOf(exchange, { isWebsocket: protocol === 'websocket' }));
    return true;
  }

  /** Counts frames that are harmless alone, and ends the connection when there are too many. */
  #count(what: Counted): void {
    const nowMs = this.#parts.monotonicMs();
    if (nowMs - this.#countedSinceMs >= http2CountingMs) {
      this.#countedSinceMs = nowMs;
      Object.assign(this.#counts, { idle: 0, invalid: 0, tiny: 0, vain: 0 });
    }
    if (what === 'reset') {
      this.#countReset(nowMs);
      return;
    }
    this.#counts[what] += 1;
    const [max, limit] = countedMax[what];
    if (this.#counts[what] > max) this.#abort(limit);
  }

  /** Counts a request that the client has reset: browsers cancel many when a page scrolls. */
  #countReset(nowMs: number): void {
    const passedMs = nowMs - this.#resetMs;
    const refilled = this.#resetsLeft + (passedMs * http2ResetsPerSecond) / 1_000;
    this.#resetsLeft = Math.min(http2ResetsMax, refilled) - 1;
    this.#resetMs = nowMs;
    if (this.#resetsLeft < 0) this.#abort('http2_resets');
  }

  /** Ends the connection of a client that exceeds a limit (RFC 9113 §10.5). */
  #abort(limit: LimitName): void {
    if (this.#isAborted || this.connection.isEnded) return;
    this.#isAborted = true;
    this.#parts.passed(limit);
    this.connection.end('ENHANCE_YOUR_CALM');
  }
}

const ignore = (): void => undefined;

/** Writes pieces with one call of the system; copying short ones together costs less than that. */
function writeTogether(socket: Socket, pieces: readonly Buffer[], taken: BytesTaken): void {
  const done = (error?: Error | null): void => {
    taken(error === undefined || error === null);
  };
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  const last = pieces.at(-1) ?? Buffer.alloc(0);
  if (pieces.length === 1 || bytes <= http2JoinedBytesMax) {
    socket.write(pieces.length === 1 ? last : Buffer.concat(pieces, bytes), done);
    return;
  }
  socket.cork();
  for (const piece of pieces.slice(0, -1)) socket.write(piece);
  socket.write(last, done);
  socket.uncork();
}

/** A request that the server is answering. */
class OpenRequest implements StreamReader {
  readonly stream: Stream;
  readonly exchange: StreamExchange;
  readonly #closed: () => void;
  /** Since when content is to come, and the bytes that had arrived at the last check. */
  #contentSinceMs: number;
  #receivedBytes = 0;
  #hasBeenLate = false;
  /**
   * The rates at which content arrives, and at which the client reads this answer; most requests
   * end before a check makes them.
   */
  #arriving: LeastRate | undefined;
  #reading: LeastRate | undefined;
  /** Content sent at the last check, and the time of the check that found it changed. */
  #sentBytes = 0;
  #movedMs: number | undefined;
  #whenEnded: (() => void)[] = [];

  constructor(
    stream: Stream,
    exchange: StreamExchange,
    { closed }: { readonly closed: () => void },
  ) {
    this.stream = stream;
    this.exchange = exchange;
    this.#contentSinceMs = exchange.arrival.atMs;
    this.#closed = closed;
    stream.reader = this;
  }

  data(bytes: Buffer): void {
    this.exchange.content?.arrived(bytes);
  }

  end(trailers: readonly string[]): void {
    this.exchange.content?.ended(trailers);
  }

  close(): void {
    this.#closed();
    this.exchange.content?.streamClosed();
    this.exchange.closed();
    for (const resolve of this.#whenEnded) resolve();
  }

  /** Resolves when the stream has closed. */
  ended(): Promise<void> {
    if (this.stream.isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#whenEnded.push(resolve));
  }

  /** Whether the answer has waited too long for the client alone; `isBlocked` if it does now. */
  isStalled(nowMs: number, isBlocked: boolean): boolean {
    const { sentBytes, unsentBytes } = this.stream;
    const isMoving = sentBytes !== this.#sentBytes || unsentBytes === 0 || !isBlocked;
    if (isMoving) this.#movedMs = nowMs;
    this.#sentBytes = sentBytes;
    return nowMs - (this.#movedMs ?? nowMs) >= stalledMs;
  }

  /** Whether the content has exceeded its time, and has no reader that can say so; true once. */
  isLate(nowMs: number): boolean {
    const { head, content } = this.exchange;
    // A websocket has no end that has to come.
    if (head.method === 'CONNECT') return false;
    if (content === undefined || content.complete || this.#hasBeenLate) return false;
    const { receivedBytes } = this.stream;
    const hasMoved = receivedBytes !== this.#receivedBytes || content.readableLength > 0;
    this.#receivedBytes = receivedBytes;
    if (hasMoved && isPassedOn(content)) this.#contentSinceMs = nowMs;
    if (nowMs - this.#contentSinceMs < requestTimeoutMs) return false;
    return this.#breakOff(content, 'request_time');
  }

  /** Whether this is a websocket. */
  get isTunnel(): boolean {
    return this.exchange.head.method === 'CONNECT';
  }

  /** Whether the client reads this answer too slowly; `isBlocked` as for isStalled. */
  isReadSlowly(nowMs: number, isBlocked: boolean): boolean {
    const { sentBytes: bytes, unsentBytes } = this.stream;
    const isWaiting = isBlocked && unsentBytes > 0 && !this.isTunnel;
    this.#reading ??= new LeastRate(leastRate);
    return this.#reading.isTooSlow(nowMs, { bytes, isWaiting });
  }

  /** Whether the content arrives too slowly, and has no reader that can say so; true once. */
  isSlow(nowMs: number): boolean {
    const { head, content } = this.exchange;
    if (content === undefined || content.complete || this.#hasBeenLate) return false;
    // What goes to another server without a length may be a stream, such as gRPC.
    const isStream = isPassedOn(content) && !head.fields.includes('content-length');
    const isWaiting = !isStream && !this.isTunnel && content.readableLength === 0;
    const { receivedBytes: bytes } = this.stream;
    this.#arriving ??= new LeastRate(leastRate);
    if (!this.#arriving.isTooSlow(nowMs, { bytes, isWaiting })) return false;
    return this.#breakOff(content, 'slow_content');
  }

  /** Fails the content; returns whether it has no reader that says so. */
  #breakOff(
    content: NonNullable<StreamExchange['content']>,
    limit: 'request_time' | 'slow_content',
  ): boolean {
    this.#hasBeenLate = true;
    const failure = tooLate(limit);
    this.exchange.failure = failure;
    return !failBody(content, failure);
  }
}
