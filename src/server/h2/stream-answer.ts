import { Writable } from 'node:stream';
import { formatHttpDate } from '../../http/date.ts';
import { discard, replyField, type FieldList, type Reply } from '../../http/reply.ts';
import type { Prepared, SendingResponse, Sent } from '../http-message.ts';
import { sendContent } from '../send.ts';
import { encodeFields } from './hpack/encoder.ts';
import { http2WriteBytes } from './limits.ts';
import type { Stream } from './stream.ts';

type Done = (error?: Error | null) => void;

/**
 * The answer to an HTTP/2 request. One that is destroyed before its end resets its stream, so that
 * the client detects the missing rest (RFC 9113 §8.1.1).
 */
export class StreamAnswer implements SendingResponse {
  /** Has no effect: an HTTP/2 connection does not end with one request. */
  shouldKeepAlive = true;
  headersSent = false;
  /** Whether the system has taken the whole answer. */
  writableFinished = false;
  readonly #stream: Stream;
  readonly #now: () => number;
  readonly #answered: () => void;
  #listeners: (() => void)[] | undefined;
  #content: StreamContent | undefined;
  #hasEnded = false;

  /**
   * `now` is milliseconds since 1970; `answered` is called when the whole answer has been handed to
   * the connection.
   */
  constructor(stream: Stream, now: () => number, answered: () => void) {
    this.#stream = stream;
    this.#now = now;
    this.#answered = answered;
  }

  get destroyed(): boolean {
    return this.#stream.resetBy !== undefined || this.writableFinished;
  }

  once(_: 'close', listener: () => void): void {
    (this.#listeners ??= []).push(listener);
  }

  destroy(): void {
    if (!this.#hasEnded) this.#stream.reset('INTERNAL_ERROR');
  }

  /** To be called when the stream has closed. */
  closed(): void {
    if (this.#stream.resetBy === undefined) return;
    this.#content?.destroy();
    this.#callListeners();
  }

  sendReply(reply: Reply): Sent | Promise<Sent> {
    if (this.destroyed) return cutOff(reply);
    const { status, fields, body } = reply;
    if (body.kind === 'stream' || body.kind === 'file') {
      return sendContent(this.writeHead(status, fields), body);
    }
    const isDated = replyField(reply, 'date') !== undefined;
    const content = body.kind === 'bytes' ? body.bytes : undefined;
    this.#sendWhole(encodeFields(status, fields), content, isDated ? undefined : this.#now());
    return { bytes: content?.length ?? 0, cut: false };
  }

  sendPrepared(prepared: Prepared, nowMs: number): void {
    const { block, content } = encodedAnswer(prepared);
    this.#sendWhole(block, content, prepared.isDated ? undefined : nowMs);
  }

  sendInterim(status: number, fields: FieldList): void {
    if (!this.headersSent && !this.destroyed) this.#stream.head(encodeFields(status, fields));
  }

  /** Sends the head of an answer whose content follows; its end belongs to the content. */
  writeHead(status: number, fields: FieldList): StreamContent {
    const isDated = replyField({ fields }, 'date') !== undefined;
    const block = encodeFields(status, fields);
    const head = isDated ? block : Buffer.concat([block, dateBlock(this.#now())]);
    const content = new StreamContent(this.#stream, {
      sendHead: () => {
        if (this.headersSent) return;
        this.headersSent = true;
        this.#stream.head(head);
      },
      end: (trailers) => {
        this.#hasEnded = true;
        this.#stream.end(this.#finish, undefined, trailers);
        this.#answered();
      },
      destroy: () => {
        this.destroy();
      },
    });
    this.#content = content;
    return content;
  }

  #sendWhole(block: Buffer, content: Buffer | undefined, dateMs: number | undefined): void {
    this.headersSent = true;
    const stream = this.#stream;
    const head = dateMs === undefined ? block : Buffer.concat([block, dateBlock(dateMs)]);
    if (content === undefined || content.length === 0) {
      stream.head(head, true);
      this.#end();
      return;
    }
    stream.head(head);
    this.#hasEnded = true;
    stream.end(this.#finish, content);
    this.#answered();
  }

  /** The head was the whole answer. */
  #end(): void {
    this.#hasEnded = true;
    this.#finish();
    this.#answered();
  }

  readonly #finish = (): void => {
    this.writableFinished = this.#stream.resetBy === undefined;
    this.#callListeners();
  };

  #callListeners(): void {
    const listeners = this.#listeners;
    this.#listeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) listener();
  }
}

/** What streamed content does with its answer. */
interface ContentParts {
  readonly sendHead: () => void;
  readonly end: (trailers: Buffer | undefined) => void;
  readonly destroy: () => void;
}

/** The content of an answer that is written piece by piece, at the pace of the client. */
export class StreamContent extends Writable {
  readonly #stream: Stream;
  readonly #parts: ContentParts;
  #trailers: (() => FieldList) | undefined;

  constructor(stream: Stream, parts: ContentParts) {
    super({ highWaterMark: http2WriteBytes });
    this.#stream = stream;
    this.#parts = parts;
    this.on('error', ignore);
    if (stream.isClosed) this.destroy();
  }

  /** Sends the head now; content follows later. */
  flushHeaders(): void {
    this.#parts.sendHead();
  }

  /**
   * Sets the trailer fields (RFC 9113 §8.1), which are read after the content has been written;
   * called before the first write.
   */
  trailWith(trailers: () => FieldList): void {
    this.#trailers = trailers;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#parts.sendHead();
    const stream = this.#stream;
    stream.write(chunk, () => {
      const isCut = stream.resetBy !== undefined;
      done(isCut ? new Error('The stream is closed.') : null);
    });
  }

  override _final(done: Done): void {
    const trailers = this.#trailers?.() ?? [];
    this.#parts.sendHead();
    this.#parts.end(trailers.length === 0 ? undefined : encodeFields(undefined, trailers));
    done();
  }

  override _destroy(_error: Error | null, done: Done): void {
    if (!this.writableFinished) this.#parts.destroy();
    done();
  }
}

const ignore = (): void => undefined;

/** Discards a reply whose stream has closed. */
async function cutOff(reply: Reply): Promise<Sent> {
  await discard(reply);
  return { bytes: 0, cut: true };
}

/** A prepared answer as it is sent. */
interface EncodedAnswer {
  readonly block: Buffer;
  readonly content: Buffer | undefined;
}

const encodedAnswers = new WeakMap<Prepared, EncodedAnswer>();

function encodedAnswer(prepared: Prepared): EncodedAnswer {
  const known = encodedAnswers.get(prepared);
  if (known !== undefined) return known;
  const { status, fields, content } = prepared;
  const encoded = {
    block: encodeFields(status, fields),
    content: typeof content === 'string' ? Buffer.from(content, 'latin1') : content,
  };
  encodedAnswers.set(prepared, encoded);
  return encoded;
}

let encodedSecond = -1;
let encodedDate: Buffer = Buffer.alloc(0);

/** The encoded Date (RFC 9110 §6.6.1), made once a second. */
function dateBlock(nowMs: number): Buffer {
  const second = Math.floor(nowMs / 1_000);
  if (second !== encodedSecond) {
    encodedSecond = second;
    encodedDate = encodeFields(undefined, ['date', formatHttpDate(second * 1_000)]);
  }
  return encodedDate;
}
