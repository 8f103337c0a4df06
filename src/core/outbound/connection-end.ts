import type { Socket } from 'node:net';
import { fieldLines, type FieldList } from '../http/reply.ts';

/** Connections over TLS whose TCP connection ended without a close_notify. */
const truncated = new WeakSet<Socket>();

/** Watches a connection over TLS, and the TCP below it, for an end without close_notify. */
export function detectTruncation(socket: Socket, tcp: Socket): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: Buffer | null) => {
    // A close_notify ends TLS while TCP is still open.
    if (chunk === null && tcp.readableEnded) truncated.add(socket);
    return push(chunk);
  };
}

/**
 * Whether a connection has ended incompletely: by a reset, by a timeout, or over TLS without a
 * close_notify (RFC 9112 §9.8).
 */
export function hasBrokenOff(socket: Socket): boolean {
  if (truncated.has(socket) || socket.errored !== null) return true;
  return socket.destroyed && !socket.readableEnded;
}

/**
 * Whether the content of a response lasts until its connection ends (RFC 9112 §6.3): such a
 * response is complete only if the connection ended completely (§8).
 */
export function endsWithConnection(method: string, status: number, fields: FieldList): boolean {
  if (method === 'HEAD' || status === 204 || status === 304) return false;
  // `chunked` is the only transfer coding that the client takes.
  const framing = ['transfer-encoding', 'content-length'];
  return framing.every((name) => fieldLines(fields, name).length === 0);
}
