import { Readable } from 'node:stream';
import type { RequestBody } from '../../pipeline/exchange.ts';
import { Failure } from '../../values/failure.ts';
import { lingerMs, unreadBodyBytesMax } from '../limits.ts';
import { http2TinyPieceBytes } from './limits.ts';
import type { Stream } from './stream.ts';

/** Such pieces of a request's content that wait for a reader. */
const http2UnreadTinyPiecesMax = 16_384;

/**
 * The content of a request of HTTP/2. A slow reader slows its client, because only content that was
 * read makes room for more.
 */
export class StreamBody extends Readable implements RequestBody {
  complete = false;
  rawTrailers: readonly string[] = [];
  readonly #stream: Stream;
  /** Called when somebody begins to read. */
  readonly #reading: () => void;
  /** Bytes that have arrived, and those of them that the stream may count as read. */
  #arrived = 0;
  #returned = 0;
  #hasReader = false;
  #isDiscarding = false;
  #isStreamClosed = false;
  /** Tiny pieces behind a position in the content that the reader has not reached. */
  #tinyPieces = 0;
  #tinySince = 0;
  /** Discarded content after which the stream is reset. */
  #discardedMax = Infinity;

  /** `reading` is called when somebody begins to read. */
  constructor(stream: Stream, reading: () => void) {
    super();
    this.#stream = stream;
    this.#reading = reading;
  }

  /** To be called with content that has arrived. */
  arrived(bytes: Buffer): void {
    this.#arrived += bytes.length;
    if (!this.#isDiscarding) {
      this.push(bytes);
      this.#returnRead();
      this.#limitTiny(bytes.length);
      return;
    }
    this.#returnRead();
    if (this.#arrived > this.#discardedMax) this.#stop();
  }

  /** Resets the stream if much content in tiny pieces waits: a piece costs far more than a byte. */
  #limitTiny(bytes: number): void {
    if (this.#returned >= this.#tinySince) {
      this.#tinySince = this.#arrived;
      this.#tinyPieces = 0;
    } else if (bytes < http2TinyPieceBytes) this.#tinyPieces += 1;
    if (this.#tinyPieces > http2UnreadTinyPiecesMax) this.#stream.reset('ENHANCE_YOUR_CALM');
  }

  /** To be called at the end of the request. */
  ended(trailers: readonly string[]): void {
    this.complete = true;
    this.rawTrailers = trailers;
    if (!this.#isDiscarding) this.push(null);
  }

  /**
   * To be called when the stream has closed. What nobody has read makes room on the connection
   * nevertheless: other streams share its window.
   */
  streamClosed(): void {
    this.#isStreamClosed = true;
    this.#returnRead();
    if (this.complete || this.destroyed) return;
    this.destroy(new Failure('invalid', 'The request ended before its content was complete.'));
  }

  /**
   * Discards unread content if it is small and arrives soon. Otherwise resets the stream with
   * NO_ERROR (RFC 9113 §8.1), which makes some clients lose the answer.
   */
  discardContent(): void {
    if (this.complete || this.#stream.isClosed || this.#isDiscarding) return;
    this.#isDiscarding = true;
    this.#discardedMax = this.#arrived + unreadBodyBytesMax;
    this.#returnRead();
    setTimeout(() => {
      this.#stop();
    }, lingerMs).unref();
  }

  #stop(): void {
    this.#stream.reset('NO_ERROR');
  }

  override _read(): void {
    if (!this.#hasReader) {
      this.#hasReader = true;
      this.#reading();
    }
  }

  /** Every reader takes content by this, except what `arrived` gives to it at once. */
  override read(size?: number): unknown {
    const taken: unknown = super.read(size);
    this.#returnRead();
    return taken;
  }

  /** Like IncomingMessage, emits an error to its listeners and does not throw without them. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const hasListener = this.listenerCount('error') > 0;
    // A listener may be removed before the error is emitted.
    this.on('error', ignore);
    done(hasListener ? error : null);
  }

  /** Makes room for as many bytes as the reader has taken. */
  #returnRead(): void {
    const isOver = this.#isStreamClosed || this.#isDiscarding || this.destroyed;
    const unread = isOver ? 0 : this.readableLength;
    const read = this.#arrived - unread;
    const bytes = read - this.#returned;
    this.#returned = read;
    this.#stream.consumed(bytes);
  }
}

const ignore = (): void => undefined;
