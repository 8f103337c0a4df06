import type { WebSocket } from 'ws';

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
