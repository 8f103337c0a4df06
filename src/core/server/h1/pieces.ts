import type { Writable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { KIB } from '../../values/units.ts';

/** Bytes of content that TLS gets at a time. */
export const tlsWriteBytes = 256 * KIB;

/**
 * Whether content is written piece by piece. TLS encrypts each write at once, and would hold the
 * encrypted copy for every client that does not read; without TLS, all share the same bytes.
 */
export function goesInPieces(connection: Writable | null | undefined, bytes: Buffer): boolean {
  if (bytes.length <= tlsWriteBytes) return false;
  return (connection as Partial<TLSSocket> | null | undefined)?.encrypted === true;
}

/** Writes content piece by piece; resolves to the number of bytes that the socket took. */
export async function writeInPieces(socket: Writable, bytes: Buffer): Promise<number> {
  let at = 0;
  while (at < bytes.length) {
    const sent = await writeAll(socket, bytes.subarray(at, at + tlsWriteBytes));
    if (sent === 0) return at;
    at += sent;
  }
  return at;
}

/**
 * Resolves when the socket has written the chunk, whose memory is free for other content then: to
 * its length, or 0 if the connection has closed.
 */
export function writeAll(response: Writable, chunk: Buffer): Promise<number> {
  if (response.destroyed) return Promise.resolve(0);
  return new Promise((resolve) => {
    const done = (bytes: number): void => {
      response.off('close', gone);
      resolve(bytes);
    };
    const gone = (): void => {
      done(0);
    };
    response.once('close', gone);
    response.write(chunk, (error) => {
      done(error ? 0 : chunk.length);
    });
  });
}
