import type { Duplex } from 'node:stream';
import { headerSectionTooLarge } from '../../http/reading/refusals.ts';
import type { Reply } from '../../http/reply.ts';
import { Failure } from '../../values/failure.ts';
import { lingerMs } from '../limits.ts';
import { fieldText, statusLine } from '../../pipeline/response-head.ts';

/** Returns the failure for an error of Node's parser. */
export function parserFailure({ code }: NodeJS.ErrnoException): Failure {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return headerSectionTooLarge();
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return tooLate('header_time');
  }
  if (code === 'HPE_INVALID_EOF_STATE') return incompleteRequest();
  return malformedRequest();
}

/** The failure for a request that Node's parser does not accept. */
export function malformedRequest(): Failure {
  return new Failure('invalid', 'The request is not valid HTTP/1.1.');
}

/** The failure for a connection that ends within a request (RFC 9112 §8). */
function incompleteRequest(): Failure {
  return new Failure('invalid', 'The connection ended before the whole request had arrived.');
}

/** Returns the failure for a client that sends plain HTTP to a TLS port. */
export function notTls(): Failure {
  return new Failure('invalid', 'This port speaks HTTPS: ask for https:// instead of http://.');
}

/** Returns the failure for a request that takes too long. */
export function tooLate(limit: 'header_time' | 'request_time' | 'slow_content'): Failure {
  return new Failure('invalid', 'The request did not arrive in time.', { status: 408, limit });
}

/**
 * Sends the last answer of a connection and closes it, even if the client does not close its side.
 * The client gets a moment to read, since a reset discards the answer (RFC 9112 §9.6). `nowMs` is
 * milliseconds since 1970. Returns the bytes of content.
 */
export function writeAndClose(
  socket: Duplex,
  { status, fields, body }: Reply,
  nowMs: number,
): number {
  const head = lastHead({ status, fields }, nowMs);
  const content = body.kind === 'bytes' ? body.bytes : Buffer.alloc(0);
  socket.write(Buffer.concat([head, content]));
  linger(socket);
  return content.length;
}

/** Sends the head of the last answer of a connection; its content follows. */
export function writeLastHead(socket: Duplex, head: LastHead, nowMs: number): void {
  socket.write(lastHead(head, nowMs));
}

type LastHead = Pick<Reply, 'status' | 'fields'>;

function lastHead({ status, fields }: LastHead, nowMs: number): Buffer {
  const text = `${statusLine(status)}${fieldText(fields, nowMs)}Connection: close\r\n\r\n`;
  return Buffer.from(text, 'latin1');
}

/**
 * Closes our side of a connection, and the whole connection when the client has had a moment to
 * read. Calls `cut` if the client has not closed its side by then.
 */
export function linger(socket: Duplex, cut: () => void = () => undefined): void {
  socket.resume();
  socket.end(() => {
    const timer = setTimeout(() => {
      cut();
      socket.destroy();
    }, lingerMs);
    timer.unref();
    socket.once('close', () => {
      clearTimeout(timer);
    });
  });
}
