import type { ResponseMessage } from '../http-message.ts';
import { tcpBelow } from '../node-internals.ts';
import { isNodeResponse } from './node-http.ts';

/**
 * Resets the connection of an HTTP/1.0 client whose answer is not complete: the end of the content
 * is that of the connection, and an orderly one would make what is cut look complete (RFC 9112 §8).
 * So it is over TLS as well: many clients take the end of TCP for an orderly one, with or without a
 * close_notify.
 */
export function resetIfUnframed(response: ResponseMessage): void {
  if (!isNodeResponse(response) || response.req.httpVersion !== '1.0') return;
  const { socket } = response;
  const tcp = socket !== null && 'encrypted' in socket ? tcpBelow(socket) : socket;
  // A unix socket has no reset.
  if (tcp?.remoteAddress !== undefined) tcp.resetAndDestroy();
}
