import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { Writable } from 'node:stream';
import type { FieldList } from '../../http/reply.ts';
import { http2WriteBytes } from './limits.ts';
import type { StreamMessage } from './stream-message.ts';

type Done = (error?: Error | null) => void;

/**
 * The answer to an HTTP/2 request: a stream with the members of ServerResponse that the server
 * uses. An answer that is destroyed before its end resets its stream, so that the client detects
 * the missing rest (RFC 9113 §8.1.1).
 */
export class StreamAnswer extends Writable {
  /** Has no effect: an HTTP/2 connection does not end with one request. */
  shouldKeepAlive = true;
  /** The time since which written content waits for the client; undefined while none waits. */
  waitingSinceMs: number | undefined;
  /** Whether the server reset the stream. */
  isReset = false;
  readonly #stream: ServerHttp2Stream;
  readonly #message: StreamMessage;
  readonly #monotonicMs: () => number;
  #head: OutgoingHttpHeaders | undefined;
  #trailers: (() => FieldList) | undefined;
  /** The bytes of the last write, until they are sent. */
  #unsent: Buffer | string = '';
  /** Whether the socket has been read again since the head of the request arrived. */
  #hasReadAgain = false;
  /** The action that waits for that read. */
  #onReadAgain: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream, message: StreamMessage, monotonicMs: () => number) {
    super({ decodeStrings: false });
    this.#stream = stream;
    this.#message = message;
    this.#monotonicMs = monotonicMs;
    // The first `setImmediate` runs at the end of this turn of the event loop, the second after the
    // reads of the next one.
    setImmediate(() =>
      setImmediate(() => {
        this.#hasReadAgain = true;
        this.#onReadAgain?.();
      }),
    );
    // The `close` listener handles the error.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.destroy();
    });
  }

  /** Whether the head of the answer has been sent. */
  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  /** The bytes of the last write that were not sent when the stream ended. */
  get unsentBytes(): number {
    return Buffer.byteLength(this.#unsent);
  }

  /** Holds the head back until the server knows whether content follows. */
  writeHead(status: number, fields: FieldList): this {
    const head = fieldsOf(fields);
    head[':status'] = status;
    this.#head = head;
    return this;
  }

  /** Sends the head now; content follows later. */
  flushHeaders(): void {
    this.#respond(false);
  }

  /**
   * Sets the trailer fields (RFC 9113 §8.1), which are read after the content has been written;
   * called before the first write.
   */
  trailWith(trailers: () => FieldList): void {
    this.#trailers = trailers;
  }

  /** Sends an interim answer (RFC 9113 §8.1). */
  writeInformation(status: number, fields: FieldList): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    const head = fieldsOf(fields);
    head[':status'] = status;
    stream.additionalHeaders(head);
  }

  /** Ends the answer; content of the last call is sent together with the head. */
  override end(...given: unknown[]): this {
    const [content, encoding] = given;
    const stream = this.#stream;
    const isWhole = !stream.headersSent && this.writableLength === 0 && !this.writableEnded;
    const isText = typeof content === 'string' || Buffer.isBuffer(content);
    if (isWhole && isText && content.length <= http2WriteBytes) {
      this.#afterNextRead(() => {
        this.#respond(false);
        if (!stream.destroyed && !stream.writableEnded) {
          this.waitingSinceMs = this.#monotonicMs();
          this.#unsent = content;
          stream.end(content, encoding === 'latin1' ? 'latin1' : 'utf8');
        }
        super.end();
      });
      return this;
    }
    return super.end(...(given as []));
  }

  /**
   * Delays a complete answer until the data after the request has been read. Otherwise the stream
   * ends on both sides first, and nghttp2 does not detect DATA on a stream that the client has
   * ended (RFC 9113 §5.1).
   */
  #afterNextRead(answer: () => void): void {
    if (this.#hasReadAgain) answer();
    else this.#onReadAgain = answer;
  }

  /** Writes in pieces, so that `waitingSinceMs` follows the progress of the client. */
  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    const stream = this.#stream;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
    this.#respond(false);
    let at = 0;
    const next = (error?: Error | null): void => {
      this.waitingSinceMs = undefined;
      if (!error) this.#unsent = '';
      if (error || at >= bytes.length) {
        done(error);
      } else if (stream.destroyed || stream.writableEnded) {
        done(new Error('The stream is closed.'));
      } else {
        const piece = bytes.subarray(at, at + http2WriteBytes);
        at += piece.length;
        this.waitingSinceMs = this.#monotonicMs();
        this.#unsent = piece;
        stream.write(piece, next);
      }
    };
    next();
  }

  override _final(done: Done): void {
    if (this.#stream.headersSent) this.#finish(done);
    else {
      this.#afterNextRead(() => {
        this.#finish(done);
      });
    }
  }

  #finish(done: Done): void {
    const stream = this.#stream;
    // Without a reader of the content, Node resets the stream when an answer without content ends.
    if (!stream.headersSent) this.#message.discardContent();
    this.#respond(true);
    const end = (): void => {
      // The end is sent like content: it waits for the client until the stream closes.
      this.waitingSinceMs = this.#monotonicMs();
      if (stream.writableFinished) this.#unsent = '';
      this.#message.discardContent();
      done();
    };
    if (stream.destroyed || stream.writableFinished) end();
    else {
      const trailers = this.#trailers;
      if (trailers === undefined) stream.once('finish', end);
      else {
        stream.once('wantTrailers', () => {
          this.#unsent = '';
          stream.sendTrailers(fieldsOf(trailers()));
          end();
        });
      }
      if (!stream.writableEnded) stream.end();
    }
  }

  override _destroy(_error: Error | null, done: Done): void {
    const stream = this.#stream;
    // `close` would make the answer look complete.
    if (!this.writableFinished && !stream.destroyed) {
      this.isReset = true;
      stream.destroy(new Error('The answer was destroyed before its end.'));
    }
    done();
  }

  #respond(endStream: boolean): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    const waitForTrailers = this.#trailers !== undefined;
    stream.respond(this.#head, waitForTrailers ? { waitForTrailers } : { endStream });
  }
}

/** Returns fields by lower-case name; several lines of one name become a list. */
function fieldsOf(fields: FieldList): OutgoingHttpHeaders {
  const byName = Object.create(null) as Record<string, string | string[]>;
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase();
    const value = fields[at + 1] ?? '';
    const before = byName[name];
    if (before === undefined) byName[name] = value;
    else byName[name] = Array.isArray(before) ? [...before, value] : [before, value];
  }
  return byName;
}
