import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { Writable } from 'node:stream';
import type { FieldList } from '../../http/reply.ts';
import { http2WriteBytes } from './limits.ts';
import type { StreamMessage } from './stream-message.ts';

type Done = (error?: Error | null) => void;

/**
 * The answer to a request of HTTP/2: a stream with the members of a ServerResponse that are used
 * here. An answer that is given up before its end resets its stream, so that the client sees that
 * something is missing (RFC 9113 §8.1.1).
 */
export class StreamAnswer extends Writable {
  /** Means nothing here: the connection goes on whatever becomes of one request. */
  shouldKeepAlive = true;
  /** Since when the client has not taken what was written; undefined while nothing waits for it. */
  waitsSinceMs: number | undefined;
  /** Whether it was reset from here. */
  isGivenUp = false;
  readonly #stream: ServerHttp2Stream;
  readonly #message: StreamMessage;
  readonly #monotonicMs: () => number;
  #head: OutgoingHttpHeaders | undefined;
  #trailers: (() => FieldList) | undefined;
  /** What was handed to the stream last, as long as it has not gone out. */
  #unsent: Buffer | string = '';
  /** Whether the socket has been read from since the head of the request came. */
  #hasReadOn = false;
  /** What waits for that. */
  #whenReadOn: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream, message: StreamMessage, monotonicMs: () => number) {
    super({ decodeStrings: false });
    this.#stream = stream;
    this.#message = message;
    this.#monotonicMs = monotonicMs;
    // Once at the end of this turn of the event loop, once behind the reads of the next one.
    setImmediate(() =>
      setImmediate(() => {
        this.#hasReadOn = true;
        this.#whenReadOn?.();
      }),
    );
    // The close event carries the error.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.destroy();
    });
  }

  /** Whether the head of the answer has gone out. */
  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  /** How much was handed to the stream and has not gone out, when it ended. */
  get unsentBytes(): number {
    return Buffer.byteLength(this.#unsent);
  }

  /** Holds the head until it is known whether content follows. */
  writeHead(status: number, fields: FieldList): this {
    const head = fieldsOf(fields);
    head[':status'] = status;
    this.#head = head;
    return this;
  }

  /** Sends the head: content follows, whenever that is. */
  flushHeaders(): void {
    this.#respond(false);
  }

  /**
   * Has fields sent behind the content (RFC 9113 §8.1), as they are once that has been written; to
   * be said before any of it is.
   */
  trailWith(trailers: () => FieldList): void {
    this.#trailers = trailers;
  }

  /** Sends an answer ahead of the one that counts (RFC 9113 §8.1). */
  writeInformation(status: number, fields: FieldList): void {
    const stream = this.#stream;
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    const head = fieldsOf(fields);
    head[':status'] = status;
    stream.additionalHeaders(head);
  }

  /** Ends the answer; content that comes with the end goes out with the head. */
  override end(...given: unknown[]): this {
    const [content, encoding] = given;
    const stream = this.#stream;
    const isWhole = !stream.headersSent && this.writableLength === 0 && !this.writableEnded;
    const isText = typeof content === 'string' || Buffer.isBuffer(content);
    if (isWhole && isText && content.length <= http2WriteBytes) {
      this.#onceReadOn(() => {
        this.#respond(false);
        if (!stream.destroyed && !stream.writableEnded) {
          this.waitsSinceMs = this.#monotonicMs();
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
   * Holds an answer that goes out whole until what the client has sent behind its request has been
   * read: behind the end of both, nghttp2 would not see that it sends on a stream that it has ended
   * (RFC 9113 §5.1).
   */
  #onceReadOn(answer: () => void): void {
    if (this.#hasReadOn) answer();
    else this.#whenReadOn = answer;
  }

  /** Writes piece by piece, so that it shows how far the client has come. */
  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    const stream = this.#stream;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
    this.#respond(false);
    let at = 0;
    const next = (error?: Error | null): void => {
      this.waitsSinceMs = undefined;
      if (!error) this.#unsent = '';
      if (error || at >= bytes.length) {
        done(error);
      } else if (stream.destroyed || stream.writableEnded) {
        done(new Error('The stream is closed.'));
      } else {
        const piece = bytes.subarray(at, at + http2WriteBytes);
        at += piece.length;
        this.waitsSinceMs = this.#monotonicMs();
        this.#unsent = piece;
        stream.write(piece, next);
      }
    };
    next();
  }

  override _final(done: Done): void {
    if (this.#stream.headersSent) this.#finish(done);
    else {
      this.#onceReadOn(() => {
        this.#finish(done);
      });
    }
  }

  #finish(done: Done): void {
    const stream = this.#stream;
    // What is not being read when an answer without content ends, Node has the client take back.
    if (!stream.headersSent) this.#message.readOver();
    this.#respond(true);
    const end = (): void => {
      // The end goes out as content does: it waits for the client until the stream closes.
      this.waitsSinceMs = this.#monotonicMs();
      if (stream.writableFinished) this.#unsent = '';
      this.#message.readOver();
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
    // Closed instead, it would seem to have ended where it was given up.
    if (!this.writableFinished && !stream.destroyed) {
      this.isGivenUp = true;
      stream.destroy(new Error('The answer was given up.'));
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

/** Fields by lower-case name, several lines of one name as a list. */
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
