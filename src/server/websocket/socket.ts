import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { formatHttpDate } from '../../http/date.ts';
import { Failure } from '../../model/failure.ts';
import { socketFrameBytesMax, socketPingMs } from '../../api/limits.ts';
import { socketCloseMs, socketFragmentsMax, socketPiecesMax } from './limits.ts';
import { WebSocketSession, type SessionParts, type SocketOpening } from './session.ts';

/** The websockets of `{base}/svc1/ws` (docs/design/operations.md#one-definition). */
export interface Sockets {
  /**
   * Completes the upgrade of a request that passed validation and the key check. Throws
   * `invalid` for a handshake that is none (RFC 6455 §4.2.1), or one of a client that has ended its
   * side.
   */
  open(message: IncomingMessage, socket: Duplex, head: Buffer, opening: SocketOpening): void;
  readonly size: number;
  /**
   * Closes every websocket with 1001 once its requests in flight are answered; resolves when all
   * are gone.
   */
  close(graceMs: number): Promise<number>;
}

/** Compression is off: what a little of it would come to, no limit of its size tells. */
const frameLimits = {
  perMessageDeflate: false,
  maxPayload: socketFrameBytesMax,
  maxFragments: socketFragmentsMax,
  maxBufferedChunks: socketPiecesMax,
  autoPong: false,
  closeTimeout: socketCloseMs,
};

/**
 * Makes the websocket side of the operations: the same envelopes, each connection with its own
 * caller.
 */
export function createSockets(
  parts: SessionParts & { /** Milliseconds since 1970. */ readonly now: () => number },
): Sockets {
  const server = new WebSocketServer({ noServer: true, ...frameLimits });
  // The caller sends the refusal and records it in the access log.
  server.on('wsClientError', ({ message }) => {
    throw new Failure('invalid', `This is no handshake of a websocket: ${message}.`, {
      websocketVersion: '13, 8',
    });
  });
  // As every other answer has it (RFC 9110 §6.6.1).
  server.on('headers', (lines) => {
    lines.push(`Date: ${formatHttpDate(parts.now())}`);
  });
  const sessions = new Set<WebSocketSession>();
  const pings = setInterval(() => {
    for (const session of sessions) session.ping();
  }, socketPingMs);
  pings.unref();

  return {
    open(message, socket, head, opening) {
      if (!socket.readable) {
        throw new Failure('invalid', 'A websocket needs a client that has not ended its side.');
      }
      server.handleUpgrade(message, socket, head, (websocket) => {
        const session = new WebSocketSession(websocket, socket, opening, parts);
        sessions.add(session);
        websocket.once('close', () => sessions.delete(session));
      });
    },
    get size() {
      return sessions.size;
    },
    async close(graceMs) {
      clearInterval(pings);
      const ends = [...sessions].map((session) => session.end(graceMs));
      return (await Promise.all(ends)).filter((cut) => cut).length;
    },
  };
}
