import type { WebSocket } from 'ws';

/**
 * Sends pieces of text as one message, a frame each, without a copy of them; `sent` is called once
 * the connection has taken them all, or has ended.
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
