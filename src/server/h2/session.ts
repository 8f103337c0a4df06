import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { http2ControlBytesMax } from './limits.ts';
import { lingerMs, stalledMs } from '../limits.ts';
import { queuedBytes } from '../node-internals.ts';
import { PendingHeads } from './pending-heads.ts';
import type { StreamAnswer } from './stream-answer.ts';
import type { Peer, StreamMessage } from './stream-message.ts';

/** The state of one session. */
export interface Http2Session {
  readonly socket: Socket;
  readonly peer: Peer;
  readonly open: Set<OpenRequest>;
  readonly heads: PendingHeads;
  /** The time since which no request is open; undefined while one is. */
  idleSinceMs: number | undefined;
  /** The flow-control window at the last check; NaN at first. */
  window: number;
  /** At the last check: bytes queued for the socket, and bytes written to it in total. */
  queuedBytes: number;
  writtenBytes: number;
  /** The time when content last moved. */
  lastProgressMs: number;
  /** Idle frames and resets of the client since `countedSinceMs`. */
  idleFrames: number;
  resets: number;
  countedSinceMs: number;
  /** Whether the client exceeded a limit; the server sends it nothing more. */
  isAborted: boolean;
  /** Bytes written to streams that were reset before the bytes were sent. */
  lostBytes: number;
  /** The time since which another process takes new connections. */
  drainSinceMs: number | undefined;
  /** The time of the first check after the session ended, while its socket is open. */
  endedSinceMs: number | undefined;
}

/** A request that the server is answering. */
export interface OpenRequest {
  readonly stream: ServerHttp2Stream;
  readonly message: StreamMessage;
  readonly answer: StreamAnswer;
  readonly startedMs: number;
  /** Whether its content exceeded the time limit. */
  isLate: boolean;
  /** The time since which every check found that its answer waits only for the client. */
  blockedSinceMs: number | undefined;
}

/** Makes the state of a new session on a socket. */
export function newSession(socket: Socket, nowMs: number): Http2Session {
  return {
    socket,
    peer: { remoteAddress: socket.remoteAddress, encrypted: true },
    open: new Set(),
    heads: new PendingHeads(),
    idleSinceMs: nowMs,
    window: NaN,
    queuedBytes: 0,
    writtenBytes: 0,
    lastProgressMs: nowMs,
    idleFrames: 0,
    resets: 0,
    countedSinceMs: nowMs,
    isAborted: false,
    lostBytes: 0,
    drainSinceMs: undefined,
    endedSinceMs: undefined,
  };
}

/**
 * Updates `lastProgressMs` of a session with open requests; called at intervals. Returns whether
 * the socket took all that the client's windows allow: an answer that still waits then waits for
 * the client alone.
 */
export function updateFlow(
  session: ServerHttp2Session,
  tracked: Http2Session,
  nowMs: number,
): boolean {
  const { remoteWindowSize = 0, outboundQueueSize = 0 } = session.state;
  const queued = queuedBytes(tracked.socket);
  const { bytesWritten: writtenBytes } = tracked.socket;
  const isWaiting = [...tracked.open].some(({ answer }) => answer.waitingSinceMs !== undefined);
  // Both can grow without the client reading: they depend on the frames that it sends.
  const isLess = !(remoteWindowSize >= tracked.window) || queued < tracked.queuedBytes;
  // A window that is used up as soon as it opens has the same size at each check.
  const isMore = writtenBytes - tracked.writtenBytes > http2ControlBytesMax;
  if (isLess || isMore || !isWaiting) tracked.lastProgressMs = nowMs;
  tracked.window = remoteWindowSize;
  tracked.queuedBytes = queued;
  tracked.writtenBytes = writtenBytes;
  return remoteWindowSize > 0 && outboundQueueSize === 0 && queued === 0;
}

/**
 * Closes the socket of an ended session after the client had time to read the rest and to close its
 * side; Node would wait forever. Called at intervals.
 */
export function destroyAfterEnd(session: Http2Session, nowMs: number): void {
  session.endedSinceMs ??= nowMs;
  const graceMs = session.isAborted ? lingerMs : stalledMs;
  if (nowMs - session.endedSinceMs >= graceMs) session.socket.destroy();
}

/** The value of NGHTTP2_ERR_PROTO in nghttp2; Node has no name for it. */
const protocolErrno = -505;

/**
 * Keeps a session open after errors that are not connection errors, for which Node would end it: a
 * PING with ACK that acknowledges none (RFC 9113 §6.7), or a malformed request (§5.4.2), whose
 * stream nghttp2 resets. Calls `onError` for each protocol error, including connection errors, and
 * `onIgnored` for each error that the session survives.
 */
export function ignoreStreamErrors(
  session: ServerHttp2Session,
  {
    onError,
    onIgnored,
  }: { readonly onError: () => void; readonly onIgnored: (error: Error) => void },
): void {
  const destroy = session.destroy.bind(session);
  let isProbed = false;
  const probe = async (error: Error): Promise<void> => {
    isProbed = true;
    await written();
    // After the GOAWAY for a connection error, nghttp2 sends nothing: a PING stays queued.
    if (!session.destroyed) session.ping(() => undefined);
    await written();
    isProbed = false;
    if (session.destroyed) return;
    if ((session.state.outboundQueueSize ?? 0) > 0) destroy(error);
    else onIgnored(error);
  };
  session.destroy = (error?: Error, code?: number): void => {
    const isProtocolError =
      (error as Partial<NodeJS.ErrnoException> | undefined)?.errno === protocolErrno;
    if (error === undefined || !isProtocolError) {
      destroy(error, code);
      return;
    }
    onError();
    if (!isProbed && !session.destroyed) void probe(error);
  };
}

/** Resolves once nghttp2 has written its current queue. */
async function written(): Promise<void> {
  await turn();
  await turn();
}
