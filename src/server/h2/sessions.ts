import type { IncomingMessage } from 'node:http';
import {
  constants,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { requestTimeoutMs } from '../../api/limits.ts';
import { headerBlockBytesMax, requestLineBytesMax } from '../../http/limits.ts';
import {
  http2CheckMs,
  http2ConcurrentStreamsMax,
  http2CountingMs,
  http2IdleFramesMax,
  http2LeaveMs,
  http2LostBytesMax,
  http2ResetsMax,
  http2StreamsMax,
} from './limits.ts';
import { headersTimeoutMs, keepAliveTimeoutMs, stalledMs } from '../limits.ts';
import { plainAddress } from '../../http/forwarded.ts';
import type { LimitName } from '../../model/limit.ts';
import type { LimitLog } from '../../observability/limit-log.ts';
import { breakBody } from '../../http/broken-content.ts';
import { ConnectionLimiter, type ConnectionLimits } from '../h1/connection-limiter.ts';
import { headerSectionTooLarge, requestLineTooLong } from '../../http/refusals.ts';
import { tooLate } from '../h1/refusal.ts';
import {
  destroyAfterEnd,
  updateFlow,
  newSession,
  ignoreStreamErrors,
  type OpenRequest,
  type Http2Session,
} from './session.ts';
import { StreamAnswer } from './stream-answer.ts';
import { fieldListBytes, StreamMessage, type Peer } from './stream-message.ts';

/** The dependencies of sessions; `monotonicMs` measures durations. */
interface Dependencies extends Pick<ConnectionLimits, 'perAddress'> {
  readonly limits: LimitLog;
  readonly monotonicMs: () => number;
  /** Requests that may be open; by default the limit of the process. */
  readonly streamsMax?: number;
}

/** `:method`, `:scheme`, `:authority` and `:path`, which come first. */
const pseudoFieldsMax = 4;

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL } = constants;

/**
 * The HTTP/2 sessions (RFC 9113) with their open requests. Closes a session that is idle, stalled
 * or abusive (§10.5).
 */
export class Http2Sessions {
  readonly #sessions = new Map<ServerHttp2Session, Http2Session>();
  readonly #dependencies: Dependencies;
  readonly #checkTimer: NodeJS.Timeout;
  readonly #limiter: ConnectionLimiter;
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

  /** Tracks the sessions of a server, and calls `request` with each request and its response. */
  watch(
    server: Http2Server,
    request: (message: StreamMessage, answer: StreamAnswer) => void,
  ): void {
    // Node creates the session of a connection synchronously, and hides the socket in it.
    let newest: Socket;
    server.prependListener('connection', (socket: Socket) => (newest = socket));
    server.on('session', (session: ServerHttp2Session) => {
      this.#admit(session, newest);
    });
    server.on('stream', (stream: ServerHttp2Stream, _headers, flags, rawHeaders: string[]) => {
      const hasContent = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
      const open = this.#beginRequest(stream, rawHeaders, hasContent);
      if (open !== undefined) request(open.message, open.answer);
    });
    server.on('sessionError', (error: NodeJS.ErrnoException, session: ServerHttp2Session) => {
      this.#logError(session, error);
    });
  }

  /** The number of sessions. */
  get size(): number {
    return this.#sessions.size;
  }

  /** The number of open requests. */
  get unanswered(): number {
    return this.#open;
  }

  /** Tells every client that the server takes no further request (RFC 9113 §6.8). */
  close(): void {
    clearInterval(this.#checkTimer);
    for (const session of this.#sessions.keys()) session.close();
  }

  /**
   * Makes every client open another connection: sends GOAWAY directly after a response, when no
   * other request is open, or after `http2LeaveMs`. The server refuses a request that crosses the
   * GOAWAY, and the client sends it again (RFC 9113 §8.7), because nghttp2 accepts none after the
   * warning of §6.8.
   */
  drain(): void {
    for (const [session, tracked] of this.#sessions) {
      tracked.drainSinceMs = this.#dependencies.monotonicMs();
      if (tracked.open.size === 0) session.close();
    }
  }

  /** Closes the sessions without open requests, to free their file descriptors. */
  closeIdle(): void {
    for (const [session, { idleSinceMs }] of this.#sessions) {
      if (idleSinceMs !== undefined) session.close();
    }
  }

  /** Resolves when no request is open. */
  async settled(): Promise<void> {
    const ends = [...this.#sessions.values()].flatMap(({ open }) =>
      [...open].map(({ stream }) => new Promise((resolve) => stream.once('close', resolve))),
    );
    await Promise.all(ends);
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
    const closing = [...this.#sessions].filter(
      ([, { heads, idleSinceMs = recentMs }]) => heads.newestStream > 0 && idleSinceMs >= recentMs,
    );
    await Promise.all(
      closing.map(([session]) => new Promise((resolve) => session.once('close', resolve))),
    );
  }

  /** Destroys every open session. */
  destroyAll(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** Closes sessions and streams that have exceeded a time limit; called at intervals. */
  check(): void {
    const nowMs = this.#dependencies.monotonicMs();
    for (const [session, tracked] of this.#sessions) {
      const { heads, idleSinceMs, drainSinceMs = Infinity } = tracked;
      if (session.destroyed) {
        destroyAfterEnd(tracked, nowMs);
        continue;
      }
      if (nowMs - drainSinceMs >= http2LeaveMs && !session.closed) session.close();
      if (heads.check(session.state.lastProcStreamID ?? 0, nowMs))
        this.#logLimit(tracked, 'http2_heads');
      if (idleSinceMs === undefined) this.#checkOpenRequests(session, tracked, nowMs);
      else if (
        nowMs - idleSinceMs >= keepAliveTimeoutMs ||
        nowMs - (heads.pendingSinceMs ?? nowMs) >= headersTimeoutMs
      ) {
        // With an incomplete head, or a client that reads nothing, `close` would never end.
        if (session.closed) session.destroy();
        else session.close();
      }
    }
  }

  #admit(session: ServerHttp2Session, socket: Socket): void {
    const tracked = newSession(socket, this.#dependencies.monotonicMs());
    this.#sessions.set(session, tracked);
    session.once('close', () => {
      this.#sessions.delete(session);
    });
    const count = (): void => {
      this.#count(session, tracked, 'idleFrames');
    };
    session.on('ping', count);
    session.on('remoteSettings', count);
    ignoreStreamErrors(session, {
      onError: count,
      onIgnored: (error) => {
        this.#logError(session, error);
      },
    });
  }

  #beginRequest(
    stream: ServerHttp2Stream,
    rawHeaders: readonly string[],
    hasContent: boolean,
  ): OpenRequest | undefined {
    const session = stream.session as ServerHttp2Session;
    const tracked = this.#sessions.get(session);
    if (tracked !== undefined) tracked.heads.newestStream = stream.id ?? 0;
    if (tracked !== undefined && tracked.open.size >= 2 * http2ConcurrentStreamsMax) {
      // Node accepts at most half as many; the client reset the others at once.
      this.#end(session, 'http2_resets');
    }
    const address = addressOf(tracked?.peer);
    if (tracked === undefined || tracked.isAborted || this.#limiter.add(address) !== undefined) {
      if (tracked?.isAborted === false) this.#logLimit(tracked, 'http2_streams');
      // The server did not process the request: the client may retry it elsewhere (RFC 9113 §8.7).
      stream.on('error', () => undefined).close(NGHTTP2_REFUSED_STREAM);
      return undefined;
    }
    const { monotonicMs } = this.#dependencies;
    const isTooLarge = fieldListBytes(rawHeaders) > headerBlockBytesMax + requestLineBytesMax;
    const message = new StreamMessage({
      stream,
      // A refusal needs the pseudo-header fields only.
      rawHeaders: isTooLarge ? rawHeaders.slice(0, 2 * pseudoFieldsMax) : rawHeaders,
      hasContent,
      peer: tracked.peer,
    });
    if (isTooLarge) {
      const isLine = message.url.length > requestLineBytesMax;
      const failure = isLine ? requestLineTooLong() : headerSectionTooLarge();
      breakBody(message, failure);
    }
    const answer = new StreamAnswer(stream, message, monotonicMs);
    const open: OpenRequest = {
      stream,
      message,
      answer,
      startedMs: monotonicMs(),
      isLate: false,
      blockedSinceMs: undefined,
    };
    tracked.open.add(open);
    // A window from before the idle time is no longer comparable.
    if (tracked.idleSinceMs !== undefined) tracked.window = NaN;
    tracked.idleSinceMs = undefined;
    this.#open += 1;
    stream.once('close', () => {
      const isCut = stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR;
      if (isCut && !answer.isReset) this.#count(session, tracked, 'resets');
      this.#open -= 1;
      this.#limiter.remove(address);
      tracked.open.delete(open);
      if (tracked.open.size === 0) {
        tracked.idleSinceMs = monotonicMs();
        if (tracked.drainSinceMs !== undefined && !session.closed) session.close();
      }
      if (isCut) tracked.lostBytes += answer.unsentBytes;
      // Closes before Node would refuse requests; the client opens another connection for new ones.
      if (tracked.lostBytes > http2LostBytesMax && !session.closed) session.close();
    });
    return open;
  }

  #checkOpenRequests(session: ServerHttp2Session, tracked: Http2Session, nowMs: number): void {
    const isFree = updateFlow(session, tracked, nowMs);
    if (nowMs - tracked.lastProgressMs >= stalledMs) {
      this.#end(session, 'unread_answer');
      return;
    }
    for (const open of tracked.open) {
      const { stream, message, answer, startedMs, isLate } = open;
      const { waitingSinceMs } = answer;
      open.blockedSinceMs =
        isFree && waitingSinceMs !== undefined
          ? Math.max(open.blockedSinceMs ?? nowMs, waitingSinceMs)
          : undefined;
      if (nowMs - (open.blockedSinceMs ?? nowMs) >= stalledMs) {
        this.#logLimit(tracked, 'unread_answer');
        stream.close(NGHTTP2_CANCEL);
      } else if (!message.complete && !isLate && nowMs - startedMs >= requestTimeoutMs) {
        open.isLate = true;
        const content = message as unknown as IncomingMessage;
        if (!breakBody(content, tooLate('request_time'))) this.#logLimit(tracked, 'request_time');
      }
    }
  }

  /** Counts frames that are harmless alone, and ends the session when there are too many. */
  #count(session: ServerHttp2Session, tracked: Http2Session, what: 'idleFrames' | 'resets'): void {
    const nowMs = this.#dependencies.monotonicMs();
    if (nowMs - tracked.countedSinceMs >= http2CountingMs) {
      tracked.countedSinceMs = nowMs;
      tracked.idleFrames = 0;
      tracked.resets = 0;
    }
    tracked[what] += 1;
    if (tracked.idleFrames > http2IdleFramesMax) this.#end(session, 'http2_pings');
    if (tracked.resets > http2ResetsMax) this.#end(session, 'http2_resets');
  }

  /** Ends a session whose client exceeds a limit (RFC 9113 §10.5). */
  #end(session: ServerHttp2Session, limit: LimitName): void {
    const tracked = this.#sessions.get(session);
    if (tracked === undefined || tracked.isAborted) return;
    tracked.isAborted = true;
    this.#logLimit(tracked, limit);
    // Node may still be processing the frames that it has read.
    setImmediate(() => {
      session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM);
    });
  }

  /** Logs the error of a client, once for each session that ends by it. */
  #logError(session: ServerHttp2Session, error: NodeJS.ErrnoException): void {
    const tracked = this.#sessions.get(session);
    const code = error.code ?? '';
    // The server has already ended the session, or the client reported an error or disconnected.
    if (tracked === undefined || tracked.isAborted || code === 'ERR_HTTP2_SESSION_ERROR') return;
    if (code.startsWith('ERR_HTTP2_')) this.#logLimit(tracked, 'http2_frames', error.message);
  }

  #logLimit({ peer }: Http2Session, limit: LimitName, why?: string): void {
    this.#dependencies.limits.passed(limit, addressOf(peer), why);
  }
}

/** Returns the address of a client; empty if unknown. */
function addressOf(peer: Peer | undefined): string {
  return plainAddress(peer?.remoteAddress ?? '');
}
