import type { Socket } from 'node:net';
import type { FieldList } from '../../http/reply.ts';
import { FramedContent } from '../../outbound/h1/framed-content.ts';
import type { ContentWays } from '../send-content.ts';

type Done = (error?: Error | null) => void;

/** What the content of an answer does with its exchange. */
interface AnswerParts {
  /** Status line and fields. */
  readonly head: string;
  /** See FramedContent. */
  readonly length: number | undefined;
  readonly begun: () => void;
  /** Called when the system has taken the whole answer. */
  readonly ended: () => void;
  /** Called when the source has failed, before the connection ends. */
  readonly failed: () => void;
  /** Called if the content ends before its time. */
  readonly cut: () => void;
}

/** The content of an answer of HTTP/1.1 behind its head, at the pace of the client. */
export class AnswerContent extends FramedContent implements ContentWays {
  readonly #socket: Socket;
  readonly #parts: AnswerParts;
  #head: string | undefined;

  constructor(socket: Socket, parts: AnswerParts) {
    super(socket, { length: parts.length, trailers: undefined });
    this.#socket = socket;
    this.#parts = parts;
    this.#head = parts.head;
    this.on('error', ignore);
    socket.once('close', this.#closed);
    if (socket.destroyed) this.destroy();
  }

  readonly sendHead = (): void => {
    const head = this.#head;
    if (head === undefined || this.destroyed) return;
    this.#head = undefined;
    this.#parts.begun();
    this.#socket.write(head, 'latin1');
  };

  readonly trailWith = (trailers: () => FieldList): void => {
    this.trailers = trailers;
  };

  readonly failed = (): void => {
    this.#parts.failed();
  };

  readonly #closed = (): void => {
    this.destroy();
  };

  override _write(chunk: Buffer, encoding: BufferEncoding, done: Done): void {
    this.#socket.cork();
    this.sendHead();
    super._write(chunk, encoding, done);
    this.#socket.uncork();
  }

  override _final(done: Done): void {
    this.#socket.cork();
    this.sendHead();
    super._final((error) => {
      this.#socket.off('close', this.#closed);
      if (!error) this.#parts.ended();
      done(error);
    });
    this.#socket.uncork();
  }

  override _destroy(_: Error | null, done: Done): void {
    this.#socket.off('close', this.#closed);
    if (!this.writableFinished) this.#parts.cut();
    done();
  }
}

const ignore = (): void => undefined;
