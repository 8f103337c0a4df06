import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import { formatHttpDate } from '../../http/date.ts';
import { socketFrameBytesMax, socketPingMs } from '../../operations/limits.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';
import { Failure } from '../../values/failure.ts';
import { loadWs } from '../../values/lazy-packages.ts';
import { type Close, type SessionParts, type SocketOpening, WebSocketSession } from './session.ts';

/** The longest wait for a client's Close frame. */
const socketCloseMs = 5_000;

/** Frames of one message, and stored pieces of an incomplete frame. */
export const socketFragmentsMax = 4_096;
const socketPiecesMax = 16_384;

/** The websockets of `{base}/svc1/ws` (docs/design/operations.md#one-definition). */
export interface Sockets {
  /**
   * Completes the upgrade of a request that passed validation and the key check. Throws `invalid`
   * for a malformed handshake (RFC 6455 §4.2.1), or if the client has ended its side of the
   * connection.
   */
  open(
    handshake: UpgradeRequest['handshake'],
    socket: Duplex,
    ahead: Buffer,
    opening: SocketOpening,
  ): void;
  readonly size: number;
  /**
   * Closes every websocket after its answers in flight. Resolves to the number of websockets with
   * an answer that the grace period cut off.
   */
  close(graceMs: number, close: Close): Promise<number>;
}

/** The Close frame of a server that stops. */
export const stopClose: Close = { code: 1001, reason: 'The server is stopping.' };
/** The Close frame of a server that another process replaces. */
export const restartClose: Close = { code: 1012, reason: 'The server restarts: connect again.' };

/** Compression is off: the size of a compressed message does not limit the size of its content. */
const frameLimits = {
  perMessageDeflate: false,
  maxPayload: socketFrameBytesMax,
  maxFragments: socketFragmentsMax,
  maxBufferedChunks: socketPiecesMax,
  autoPong: false,
  closeTimeout: socketCloseMs,
};

/**
 * Makes the websocket transport of the operations. The envelopes are those of HTTP; each connection
 * has its own caller.
 */
export function createSockets(
  parts: SessionParts & { /** Milliseconds since 1970. */ readonly now: () => number },
): Sockets {
  let server: WebSocketServer | undefined;
  const sessions = new Set<WebSocketSession>();
  const pings = setInterval(() => {
    for (const session of sessions) session.ping();
  }, socketPingMs);
  pings.unref();

  return {
    open(handshake, socket, ahead, opening) {
      if (!socket.readable) {
        throw new Failure(
          'invalid',
          'The client ended its side of the connection before the websocket opened.',
        );
      }
      server ??= createServer(parts.now);
      // It reads no more of the request.
      const message = handshake as IncomingMessage;
      server.handleUpgrade(message, socket, ahead, (websocket) => {
        const session = new WebSocketSession(websocket, socket, opening, parts);
        sessions.add(session);
        websocket.once('close', () => sessions.delete(session));
      });
    },
    get size() {
      return sessions.size;
    },
    async close(graceMs, close) {
      clearInterval(pings);
      const ends = [...sessions].map((session) => session.end(graceMs, close));
      return (await Promise.all(ends)).filter((cut) => cut).length;
    },
  };
}

function createServer(now: () => number): WebSocketServer {
  const server = new (loadWs().WebSocketServer)({ noServer: true, ...frameLimits });
  // The caller sends the refusal and records it in the access log.
  server.on('wsClientError', ({ message }) => {
    throw new Failure('invalid', `The handshake of the websocket is malformed: ${message}.`, {
      websocketVersion: '13, 8',
    });
  });
  // Every answer has a Date (RFC 9110 §6.6.1).
  server.on('headers', (lines) => {
    lines.push(`Date: ${formatHttpDate(now())}`);
  });
  return server;
}
