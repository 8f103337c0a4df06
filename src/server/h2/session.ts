import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { http2ControlBytesMax } from './limits.ts';
import { lingerMs, stalledMs } from '../limits.ts';
import { queuedBytes } from '../node-internals.ts';
import { HeadWatch } from './head-watch.ts';
import type { StreamAnswer } from './stream-answer.ts';
import type { Peer, StreamMessage } from './stream-message.ts';

/** What is known of one session. */
export interface Http2Session {
  readonly socket: Socket;
  readonly peer: Peer;
  readonly open: Set<OpenRequest>;
  readonly heads: HeadWatch;
  /** Since when no request has been open; undefined while one is. */
  idleSinceMs: number | undefined;
  /** The flow-control window when it was looked at last, NaN at first. */
  window: number;
  /** What waited for the socket then, and what had been written to it. */
  queuedBytes: number;
  writtenBytes: number;
  /** When content last moved. */
  movedMs: number;
  /** What the client has done since a moment that costs more than it is worth. */
  idleFrames: number;
  resets: number;
  countedSinceMs: number;
  /** Whether it has done too much of that: it gets nothing any more. */
  isOver: boolean;
  /** Content that was handed to its streams, and had not gone out when they were reset. */
  lostBytes: number;
  /** Since when it has been seen to have ended, its socket being still there. */
  endedSinceMs: number | undefined;
}

/** A request that is being answered. */
export interface OpenRequest {
  readonly stream: ServerHttp2Stream;
  readonly message: StreamMessage;
  readonly answer: StreamAnswer;
  readonly startedMs: number;
  /** Whether its content did not come in time. */
  isLate: boolean;
  /** Since when its answer has been seen to wait for the client alone, at each look. */
  heldUpSinceMs: number | undefined;
}

/** A session that begins, on a socket. */
export function newSession(socket: Socket, nowMs: number): Http2Session {
  return {
    socket,
    peer: { remoteAddress: socket.remoteAddress, encrypted: true },
    open: new Set(),
    heads: new HeadWatch(),
    idleSinceMs: nowMs,
    window: NaN,
    queuedBytes: 0,
    writtenBytes: 0,
    movedMs: nowMs,
    idleFrames: 0,
    resets: 0,
    countedSinceMs: nowMs,
    isOver: false,
    lostBytes: 0,
    endedSinceMs: undefined,
  };
}

/**
 * Looks whether the content of a session with open requests moves, and notes when it does. Returns
 * whether all that its client lets come could go out: what waits then waits for the client alone.
 * To be called at intervals.
 */
export function lookAtFlow(
  session: ServerHttp2Session,
  known: Http2Session,
  nowMs: number,
): boolean {
  const { remoteWindowSize = 0, outboundQueueSize = 0 } = session.state;
  const queued = queuedBytes(known.socket);
  const { bytesWritten: writtenBytes } = known.socket;
  const isWaiting = [...known.open].some(({ answer }) => answer.waitsSinceMs !== undefined);
  // Both grow by what the client sends, whether or not it reads.
  const isLess = !(remoteWindowSize >= known.window) || queued < known.queuedBytes;
  // A window that is used up as soon as it opens looks the same each time.
  const isMore = writtenBytes - known.writtenBytes > http2ControlBytesMax;
  if (isLess || isMore || !isWaiting) known.movedMs = nowMs;
  known.window = remoteWindowSize;
  known.queuedBytes = queued;
  known.writtenBytes = writtenBytes;
  return remoteWindowSize > 0 && outboundQueueSize === 0 && queued === 0;
}

/**
 * Closes the socket of a session that has ended, when its client has had time to read the rest and
 * to close its side: Node would wait for that for good. To be called at intervals.
 */
export function cutWhenLeft(session: Http2Session, nowMs: number): void {
  session.endedSinceMs ??= nowMs;
  const patienceMs = session.isOver ? lingerMs : stalledMs;
  if (nowMs - session.endedSinceMs >= patienceMs) session.socket.destroy();
}

/** NGHTTP2_ERR_PROTO of nghttp2, for which Node has no name. */
const protocolErrno = -505;

/**
 * Keeps a session open that Node would end for an error that is not one of the connection: a PING
 * that acknowledges none (RFC 9113 §6.7), or a malformed request (§5.4.2), whose stream nghttp2
 * resets. `met` is told of each such error, the connection's included, `survived` of those that the
 * session has outlived.
 */
export function surviveStreamErrors(
  session: ServerHttp2Session,
  { met, survived }: { readonly met: () => void; readonly survived: (error: Error) => void },
): void {
  const destroy = session.destroy.bind(session);
  let isProbed = false;
  const probe = async (error: Error): Promise<void> => {
    isProbed = true;
    await written();
    // Behind the GOAWAY for an error of the connection, nghttp2 sends nothing: a PING stays queued.
    if (!session.destroyed) session.ping(() => undefined);
    await written();
    isProbed = false;
    if (session.destroyed) return;
    if ((session.state.outboundQueueSize ?? 0) > 0) destroy(error);
    else survived(error);
  };
  session.destroy = (error?: Error, code?: number): void => {
    const isMet = (error as Partial<NodeJS.ErrnoException> | undefined)?.errno === protocolErrno;
    if (error === undefined || !isMet) {
      destroy(error, code);
      return;
    }
    met();
    if (!isProbed && !session.destroyed) void probe(error);
  };
}

/** Resolves once Node has had nghttp2 write what is queued now. */
async function written(): Promise<void> {
  await turn();
  await turn();
}
