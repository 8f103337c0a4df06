import type { Duplex } from 'node:stream';
import { replyField, type Reply } from '../http/reply.ts';
import { Failure } from '../model/failure.ts';
import { sayLast } from './connections.ts';

/**
 * Whether a websocket is opened by a page of its own origin, or by no page at all. Throws
 * `forbidden` for a page of an origin that `[auth] cors_origins` does not name.
 */
export function requireAllowedOrigin(
  origin: string | undefined,
  own: string,
  allowed: readonly string[],
): boolean {
  if (origin === undefined || origin === own) return true;
  if (allowed.includes('*') || allowed.includes(origin)) return false;
  throw new Failure('forbidden', 'Pages of this origin may not open a websocket here.');
}

/** Answers a request for a websocket that there will not be, and ends its connection. */
export function refuseUpgrade(socket: Duplex, { status, fields, body }: Reply): void {
  const text = body.kind === 'bytes' ? body.bytes.toString() : '';
  const location = replyField({ fields }, 'location');
  sayLast(
    socket,
    `HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      (location === undefined ? '' : `Location: ${location}\r\n`) +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  );
}
