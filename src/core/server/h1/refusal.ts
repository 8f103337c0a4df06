import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Reply } from '../../http/reply.ts';
import { Failure } from '../../values/failure.ts';
import { lingerMs } from '../limits.ts';
import type { Arrived } from '../../pipeline/exchange.ts';
import { fieldText, statusLine } from '../../pipeline/response-head.ts';
import { tcpBelow } from '../listening/node-internals.ts';

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

/**
 * Resets the connection of an HTTP/1.0 client whose answer is not complete: its content ends with
 * the connection, and an orderly end would make a part look like the whole (RFC 9112 §8). Over TLS
 * too, since many clients ignore that close_notify is missing.
 */
export function resetIfUnframed({
  head,
  peer,
  socket,
}: Arrived & { readonly socket: Socket }): void {
  // A unix socket has no reset.
  if (head.version !== '1.0' || peer.listener === 'unix') return;
  const tcp = peer.tls === undefined ? socket : tcpBelow(socket);
  tcp?.resetAndDestroy();
}
