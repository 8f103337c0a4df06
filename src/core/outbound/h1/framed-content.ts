import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { FieldList } from '../../http/reply.ts';
import { KIB } from '../../values/units.ts';
import { notCarried } from '../failure.ts';
import { fieldText } from './heads.ts';

/** Content of a message that waits for its connection. */
const framedContentBytesMax = 64 * KIB;

/** How the content of a message ends (RFC 9112 §6). */
interface Framing {
  /** The Content-Length; undefined for chunks, Infinity for the end of the connection. */
  readonly length: number | undefined;
  /** The trailer fields of chunks, once the content has ended. */
  readonly trailers: (() => FieldList) | undefined;
}

type Done = (error?: Error | null) => void;

/**
 * Frames the content of a message for its connection: as it is, or in chunks with a trailer section
 * (RFC 9112 §7.1). Fails with notCarried() for content of another length than its Content-Length,
 * and with the error of a write. It never ends the connection.
 */
export class FramedContent extends Writable {
  /** Whether all of the content has been written. */
  isComplete: boolean;
  trailers: Framing['trailers'];
  readonly #socket: Socket;
  /** The bytes that are missing; undefined for chunks. */
  #missing: number | undefined;

  constructor(socket: Socket, { length, trailers }: Framing) {
    super({ highWaterMark: framedContentBytesMax });
    this.#socket = socket;
    this.#missing = length;
    this.trailers = trailers;
    this.isComplete = length === 0;
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: Done): void {
    const socket = this.#socket;
    // A chunk without bytes would end the content: what follows it would be another request.
    if (chunk.length === 0) {
      done();
      return;
    }
    if (this.#missing === undefined) {
      socket.cork();
      socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
      socket.write(chunk);
      socket.write('\r\n', 'latin1', done);
      socket.uncork();
      return;
    }
    this.#missing -= chunk.length;
    if (this.#missing < 0) {
      done(otherLength());
      return;
    }
    this.isComplete = this.#missing === 0;
    socket.write(chunk, done);
  }

  override _final(done: Done): void {
    if (this.isComplete || this.#missing === Infinity) done();
    else if (this.#missing !== undefined) done(otherLength());
    else {
      let text: string;
      try {
        text = fieldText(this.trailers?.() ?? []);
      } catch (error) {
        done(error as Error);
        return;
      }
      this.isComplete = true;
      this.#socket.write(`0\r\n${text}\r\n`, 'latin1', done);
    }
  }
}

function otherLength(): Error {
  return notCarried('the content, which is not as long as its Content-Length says,');
}
