import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/** Bytes that wait for the end of a turn of the event loop, to be sent in one system call. */
export const corkedBytesMax = 64 * 1024;

/**
 * Sends all writes of a turn of the event loop in one system call, because a call for each answer
 * takes longer than its serialization. Large amounts go out at once.
 */
export function corkForTurn(connection: Duplex): void {
  if (connection.writableLength >= corkedBytesMax) {
    connection.uncork();
  } else if (connection.writableCorked === 0) {
    connection.cork();
    process.nextTick(() => {
      connection.uncork();
    });
  }
}

/**
 * Sends pieces of text as one message with a frame for each, without copying them. Calls `sent`
 * when the connection has taken all of them, or has ended.
 */
export function sendPieces(
  websocket: WebSocket,
  pieces: readonly Buffer[],
  sent: () => void,
): void {
  for (const [at, piece] of pieces.entries()) {
    const fin = at === pieces.length - 1;
    websocket.send(piece, { binary: false, fin }, fin ? sent : undefined);
  }
}
