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
import { breakBody } from '../h1/body.ts';
import { ConnectionLimiter, type ConnectionLimits } from '../h1/connection-limiter.ts';
import { headerSectionTooLarge, requestLineTooLong } from '../../http/refusals.ts';
import { tooLate } from '../h1/refusal.ts';
import {
  cutWhenLeft,
  lookAtFlow,
  newSession,
  surviveStreamErrors,
  type OpenRequest,
  type Http2Session,
} from './session.ts';
import { StreamAnswer } from './stream-answer.ts';
import { listBytes, StreamMessage, type Peer } from './stream-message.ts';

/** What sessions need of their surroundings; `monotonicMs` measures durations. */
interface Surroundings extends Pick<ConnectionLimits, 'perAddress'> {
  readonly limits: LimitLog;
  readonly monotonicMs: () => number;
  /** Requests that may be open; as many as the process may have unless told otherwise. */
  readonly streamsMax?: number;
}

/** `:method`, `:scheme`, `:authority`, `:path`, which come first. */
const pseudoFieldsMax = 4;

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL } = constants;

/**
 * The sessions of HTTP/2 (RFC 9113), each with its open requests: they last as long as they are
 * used, and no longer than their client keeps to what others could bear as well (§10.5).
 */
export class Http2Sessions {
  readonly #sessions = new Map<ServerHttp2Session, Http2Session>();
  readonly #surroundings: Surroundings;
  readonly #looking: NodeJS.Timeout;
  readonly #crowd: ConnectionLimiter;
  #open = 0;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    const { perAddress, streamsMax: max = http2StreamsMax } = surroundings;
    this.#crowd = new ConnectionLimiter({ max, perAddress });
    this.#looking = setInterval(() => {
      this.look();
    }, http2CheckMs);
    this.#looking.unref();
  }

  /** Follows the sessions of a server, and hands on each request with what answers it. */
  watch(
    server: Http2Server,
    request: (message: StreamMessage, answer: StreamAnswer) => void,
  ): void {
    // Node makes the session of a connection as soon as it comes, and hides the socket in it.
    let newest: Socket;
    server.prependListener('connection', (socket: Socket) => (newest = socket));
    server.on('session', (session: ServerHttp2Session) => {
      this.#admit(session, newest);
    });
    server.on('stream', (stream: ServerHttp2Stream, _headers, flags, rawHeaders: string[]) => {
      const hasContent = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
      const open = this.#begin(stream, rawHeaders, hasContent);
      if (open !== undefined) request(open.message, open.answer);
    });
    server.on('sessionError', (error: NodeJS.ErrnoException, session: ServerHttp2Session) => {
      this.#tell(session, error);
    });
  }

  /** How many sessions there are. */
  get size(): number {
    return this.#sessions.size;
  }

  /** How many answers are owed. */
  get owed(): number {
    return this.#open;
  }

  /** Tells every client that no further request is taken (RFC 9113 §6.8). */
  close(): void {
    clearInterval(this.#looking);
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Closes the sessions on which nothing is owed: their file descriptors are needed. */
  shedIdle(): void {
    for (const [session, { idleSinceMs }] of this.#sessions) {
      if (idleSinceMs !== undefined) session.close();
    }
  }

  /** Resolves when no answer is owed any more. */
  async settled(): Promise<void> {
    const ends = [...this.#sessions.values()].flatMap(({ open }) =>
      [...open].map(({ stream }) => new Promise((resolve) => stream.once('close', resolve))),
    );
    await Promise.all(ends);
    if (this.#open > 0) await this.settled();
  }

  /**
   * Resolves when no answer is owed any more, and every client whose latest one ended just now has
   * closed its side, as it does when it has read all: who reads tells how far it is, and to that a
   * connection that is gone would answer with a reset, which takes away what was not read.
   */
  async left(): Promise<void> {
    await this.settled();
    const recentMs = this.#surroundings.monotonicMs() - http2LeaveMs;
    const leaving = [...this.#sessions].filter(
      ([, { heads, idleSinceMs = recentMs }]) => heads.newest > 0 && idleSinceMs >= recentMs,
    );
    await Promise.all(
      leaving.map(([session]) => new Promise((resolve) => session.once('close', resolve))),
    );
  }

  /** Cuts off every session that is still there. */
  destroyAll(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** Looks at what has taken too long: called at intervals. */
  look(): void {
    const nowMs = this.#surroundings.monotonicMs();
    for (const [session, known] of this.#sessions) {
      const { heads, idleSinceMs } = known;
      if (session.destroyed) {
        cutWhenLeft(known, nowMs);
        continue;
      }
      if (heads.look(session.state.lastProcStreamID ?? 0, nowMs))
        this.#passed(known, 'http2_heads');
      if (idleSinceMs === undefined) this.#lookAtOpen(session, known, nowMs);
      else if (
        nowMs - idleSinceMs >= keepAliveTimeoutMs ||
        nowMs - (heads.untakenSinceMs ?? nowMs) >= headersTimeoutMs
      ) {
        // With half a head, or with a client that reads nothing, it would go on for good.
        if (session.closed) session.destroy();
        else session.close();
      }
    }
  }

  #admit(session: ServerHttp2Session, socket: Socket): void {
    const known = newSession(socket, this.#surroundings.monotonicMs());
    this.#sessions.set(session, known);
    session.once('close', () => {
      this.#sessions.delete(session);
    });
    const count = (): void => {
      this.#count(session, known, 'idleFrames');
    };
    session.on('ping', count);
    session.on('remoteSettings', count);
    surviveStreamErrors(session, {
      met: count,
      survived: (error) => {
        this.#tell(session, error);
      },
    });
  }

  #begin(
    stream: ServerHttp2Stream,
    rawHeaders: readonly string[],
    hasContent: boolean,
  ): OpenRequest | undefined {
    const session = stream.session as ServerHttp2Session;
    const known = this.#sessions.get(session);
    if (known !== undefined) known.heads.newest = stream.id ?? 0;
    if (known !== undefined && known.open.size >= 2 * http2ConcurrentStreamsMax) {
      // Node lets in no more than half of that: the others were taken back in the same breath.
      this.#end(session, 'http2_resets');
    }
    const address = addressOf(known?.peer);
    if (known === undefined || known.isOver || this.#crowd.enter(address) !== undefined) {
      if (known?.isOver === false) this.#passed(known, 'http2_streams');
      // Nothing was done about it: the client may ask again elsewhere (RFC 9113 §8.7).
      stream.on('error', () => undefined).close(NGHTTP2_REFUSED_STREAM);
      return undefined;
    }
    const { monotonicMs } = this.#surroundings;
    const isTooLarge = listBytes(rawHeaders) > headerBlockBytesMax + requestLineBytesMax;
    const message = new StreamMessage({
      stream,
      // What it asks for, and no more of it, is looked at.
      rawHeaders: isTooLarge ? rawHeaders.slice(0, 2 * pseudoFieldsMax) : rawHeaders,
      hasContent,
      peer: known.peer,
    });
    if (isTooLarge) {
      const isLine = message.url.length > requestLineBytesMax;
      const failure = isLine ? requestLineTooLong() : headerSectionTooLarge();
      breakBody(message as unknown as IncomingMessage, failure);
    }
    const answer = new StreamAnswer(stream, message, monotonicMs);
    const open: OpenRequest = {
      stream,
      message,
      answer,
      startedMs: monotonicMs(),
      isLate: false,
      heldUpSinceMs: undefined,
    };
    known.open.add(open);
    // What was seen before the session was idle says nothing any more.
    if (known.idleSinceMs !== undefined) known.window = NaN;
    known.idleSinceMs = undefined;
    this.#open += 1;
    stream.once('close', () => {
      const isCut = stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR;
      if (isCut && !answer.isGivenUp) this.#count(session, known, 'resets');
      this.#open -= 1;
      this.#crowd.leave(address);
      known.open.delete(open);
      if (known.open.size === 0) known.idleSinceMs = monotonicMs();
      if (isCut) known.lostBytes += answer.unsentBytes;
      // Before Node would refuse requests: the client opens another connection for those to come.
      if (known.lostBytes > http2LostBytesMax && !session.closed) session.close();
    });
    return open;
  }

  #lookAtOpen(session: ServerHttp2Session, known: Http2Session, nowMs: number): void {
    const isFree = lookAtFlow(session, known, nowMs);
    if (nowMs - known.movedMs >= stalledMs) {
      this.#end(session, 'unread_answer');
      return;
    }
    for (const open of known.open) {
      const { stream, message, answer, startedMs, isLate } = open;
      const { waitsSinceMs } = answer;
      open.heldUpSinceMs =
        isFree && waitsSinceMs !== undefined
          ? Math.max(open.heldUpSinceMs ?? nowMs, waitsSinceMs)
          : undefined;
      if (nowMs - (open.heldUpSinceMs ?? nowMs) >= stalledMs) {
        this.#passed(known, 'unread_answer');
        stream.close(NGHTTP2_CANCEL);
      } else if (!message.complete && !isLate && nowMs - startedMs >= requestTimeoutMs) {
        open.isLate = true;
        const content = message as unknown as IncomingMessage;
        if (!breakBody(content, tooLate('request_time'))) this.#passed(known, 'request_time');
      }
    }
  }

  /** Counts what is harmless in itself, and ends the session when it is too much. */
  #count(session: ServerHttp2Session, known: Http2Session, what: 'idleFrames' | 'resets'): void {
    const nowMs = this.#surroundings.monotonicMs();
    if (nowMs - known.countedSinceMs >= http2CountingMs) {
      known.countedSinceMs = nowMs;
      known.idleFrames = 0;
      known.resets = 0;
    }
    known[what] += 1;
    if (known.idleFrames > http2IdleFramesMax) this.#end(session, 'http2_pings');
    if (known.resets > http2ResetsMax) this.#end(session, 'http2_resets');
  }

  /** Ends a session that asks for too much (RFC 9113 §10.5). */
  #end(session: ServerHttp2Session, limit: LimitName): void {
    const known = this.#sessions.get(session);
    if (known === undefined || known.isOver) return;
    known.isOver = true;
    this.#passed(known, limit);
    // Node may be in the middle of the frames that it has read.
    setImmediate(() => {
      session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM);
    });
  }

  /** What a client has done is said once, when its session ends by it. */
  #tell(session: ServerHttp2Session, error: NodeJS.ErrnoException): void {
    const known = this.#sessions.get(session);
    const code = error.code ?? '';
    // The client has been dealt with, has said that something was wrong with us, or has gone.
    if (known === undefined || known.isOver || code === 'ERR_HTTP2_SESSION_ERROR') return;
    if (code.startsWith('ERR_HTTP2_')) this.#passed(known, 'http2_frames', error.message);
  }

  #passed({ peer }: Http2Session, limit: LimitName, why?: string): void {
    this.#surroundings.limits.passed(limit, addressOf(peer), why);
  }
}

/** The address of a client; empty where it is not known. */
function addressOf(peer: Peer | undefined): string {
  return plainAddress(peer?.remoteAddress ?? '');
}
