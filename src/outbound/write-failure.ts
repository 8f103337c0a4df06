import type { Socket } from 'node:net';
import { answerBehindFailureMs } from './limits.ts';

type Done = (error?: Error | null) => void;

/**
 * Has a connection read on for a moment when it cannot be written to any more: a server may answer
 * before it has read all of a request, and end the connection (RFC 9112 §9.6). Its answer lies
 * there unread then, and would go with the connection, which Node ends at the first write that
 * fails.
 */
export function readOnAfterFailure(socket: Socket): Socket {
  const [write, writev] = [socket._write.bind(socket), socket._writev?.bind(socket)];
  const held = (done: Done) => (error?: Error | null) => {
    if (!error || socket.destroyed) done(error);
    else holdFailure(socket, error, done);
  };
  socket._write = (chunk, encoding, done) => {
    write(chunk, encoding, held(done));
  };
  if (writev !== undefined) {
    socket._writev = (chunks, done) => {
      writev(chunks, held(done));
    };
  }
  return socket;
}

/** Tells of a failed write when the connection has ended, or nothing has come in time. */
function holdFailure(socket: Socket, error: Error, done: Done): void {
  const tell = (): void => {
    clearTimeout(waiting);
    socket.off('close', tell);
    done(error);
  };
  const waiting = setTimeout(tell, answerBehindFailureMs);
  socket.once('close', tell);
}
