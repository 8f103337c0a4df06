import type { Socket } from 'node:net';
import type { ResponseMessage } from '../http-message.ts';
import { isNodeResponse } from './node-http.ts';

/**
 * Resets the connection of an HTTP/1.0 client whose answer is not complete: the end of the content
 * is that of the connection, and an orderly one would make what is cut look complete (RFC 9112 §8).
 * So it is over TLS as well: many clients take the end of TCP for an orderly one, with or without a
 * close_notify.
 */
export function resetIfUnframed(response: ResponseMessage): void {
  if (!isNodeResponse(response) || response.req.httpVersion !== '1.0') return;
  // Node has no public name for the connection below TLS.
  const socket: (Socket & { readonly _parent?: Socket }) | null = response.socket;
  const tcp = socket !== null && 'encrypted' in socket ? socket._parent : socket;
  // A unix socket has no reset.
  if (tcp?.remoteAddress !== undefined) tcp.resetAndDestroy();
}
