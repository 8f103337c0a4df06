import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Reply } from '../http/reply.ts';
import { Failure } from '../model/failure.ts';
import { lingerMs } from '../model/limits.ts';

/** What a client is told whose request Node's parser has given up on, by its error. */
export function parserFailure({ code }: NodeJS.ErrnoException): Failure {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Failure('too_large', 'The header of the request is too large.', { status: 431 });
  }
  return code === 'ERR_HTTP_REQUEST_TIMEOUT'
    ? new Failure('invalid', 'The request did not arrive in time.', { status: 408 })
    : new Failure('invalid', 'The request is not valid HTTP/1.1.');
}

/**
 * Sends an answer as the last of a connection and ends that for good, whether the client ends its
 * side or not; it gets a moment to read, for a reset would take the answer away (RFC 9112 §9.6).
 * Returns the bytes of content.
 */
export function sayLast(socket: Duplex, { status, fields, body }: Reply): number {
  const pairs = fields.flatMap((name, at) =>
    at % 2 === 0 ? [`${name}: ${fields[at + 1] ?? ''}\r\n`] : [],
  );
  const line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\n`;
  const head = Buffer.from(`${line}${pairs.join('')}Connection: close\r\n\r\n`, 'latin1');
  const content = body.kind === 'bytes' ? body.bytes : Buffer.alloc(0);
  socket.write(Buffer.concat([head, content]));
  linger(socket);
  return content.length;
}

/** Ends our side of a connection, and all of it when the client has had a moment to read. */
export function linger(socket: Duplex): void {
  socket.resume();
  socket.end(() => {
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
}
