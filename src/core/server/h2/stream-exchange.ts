import { Writable } from 'node:stream';
import { formatHttpDate } from '../../http/date.ts';
import { type FieldList, type Reply, discard, replyField } from '../../http/reply.ts';
import { hasBody } from '../../pipeline/body.ts';
import { ClientGone } from '../../pipeline/client-gone.ts';
import type {
  Arrival,
  MessageHead,
  PreparableExchange,
  Prepared,
  Sent,
} from '../../pipeline/exchange.ts';
import type { Cancellation, Failure } from '../../values/failure.ts';
import type { Peer } from '../../values/network/peer.ts';
import { KIB } from '../../values/units.ts';
import { sendContent } from '../send-content.ts';
import { encodeFields } from './hpack/encoder.ts';
import type { Http2RequestHead } from './request-head.ts';
import { StreamBody } from './stream-body.ts';
import { type BytesTaken, type Stream, joinedHead } from './stream.ts';

/** A piece of streamed content or of a file. */
export const http2WriteBytes = 64 * KIB;

type Done = (error?: Error | null) => void;

/** What a stream needs from its connection; `now` gives milliseconds since 1970. */
interface StreamParts {
  readonly peer: Peer;
  readonly arrival: Arrival;
  readonly now: () => number;
}

/**
 * A request on a stream of HTTP/2. An answer that is destroyed before its end resets the stream, so
 * that the client detects the missing rest (RFC 9113 §8.1.1).
 */
export class StreamExchange implements PreparableExchange {
  readonly head: MessageHead;
  readonly peer: Peer;
  readonly arrival: Arrival;
  /** What arrives behind the head, content or not; undefined if the request ends with it. */
  readonly content: StreamBody | undefined;
  failure: Failure | undefined;
  shouldKeepAlive = true;
  hasBegun = false;
  isSent = false;
  readonly #stream: Stream;
  readonly #now: () => number;
  #listeners: (() => void)[] | undefined;
  #answer: StreamContent | undefined;
  #hasEnded = false;
  /** Whether the connection has closed before the system took the end of the answer. */
  #isLost = false;

  constructor(stream: Stream, head: Http2RequestHead, { peer, arrival, now }: StreamParts) {
    this.head = head;
    this.peer = peer;
    this.arrival = arrival;
    this.#stream = stream;
    this.#now = now;
    this.content = stream.hasRequestEnded ? undefined : this.#begin();
  }

  get body(): StreamBody | undefined {
    const { content } = this;
    return content !== undefined && hasBody(framingOf(this.head)) ? content : undefined;
  }

  get hasArrived(): boolean {
    return this.content?.complete ?? true;
  }

  get signal(): Cancellation {
    return new ClientGone(this, undefined);
  }

  get isOver(): boolean {
    return this.#stream.resetBy !== undefined || this.isSent || this.#isLost;
  }

  onClose(listener: () => void): void {
    (this.#listeners ??= []).push(listener);
  }

  /** Unread content ends its stream and not the connection. */
  leaveUnread(): void {
    return undefined;
  }

  destroy(): void {
    if (!this.#hasEnded) this.#stream.reset('INTERNAL_ERROR');
  }

  /** To be called when the stream has closed. */
  closed(): void {
    if (this.#stream.resetBy === undefined) return;
    this.#answer?.destroy();
    this.#callListeners();
  }

  respond(reply: Reply, address = this.peer.address): Sent | Promise<Sent> {
    if (this.isOver) return cutOff(reply);
    const { status, fields, body } = reply;
    if (body.kind === 'stream' || body.kind === 'file') {
      const content = this.beginAnswer(status, fields);
      return sendContent(content, content, body, address);
    }
    const isDated = replyField(reply, 'date') !== undefined;
    const content = body.kind === 'bytes' ? body.bytes : undefined;
    this.#sendWhole(encodeFields(status, fields), content, isDated ? undefined : this.#now());
    return { bytes: content?.length ?? 0, cut: false };
  }

  respondPrepared(prepared: Prepared, nowMs: number): void {
    const { block, content } = encodedAnswer(prepared);
    this.#sendWhole(block, content, prepared.isDated ? undefined : nowMs);
  }

  interim(status: number, fields: FieldList): void {
    if (!this.hasBegun && !this.isOver) this.#stream.head(encodeFields(status, fields));
  }

  /** Sends the head of an answer whose content follows; its end belongs to the content. */
  beginAnswer(status: number, fields: FieldList): StreamContent {
    const isDated = replyField({ fields }, 'date') !== undefined;
    const block = encodeFields(status, fields);
    const head = isDated ? block : Buffer.concat([block, dateBlock(this.#now())]);
    const content = new StreamContent(this.#stream, {
      sendHead: () => {
        if (this.hasBegun) return;
        this.hasBegun = true;
        this.#stream.head(head);
      },
      end: (trailers, done) => {
        this.#hasEnded = true;
        const ended: BytesTaken = (isTaken) => {
          this.#finish(isTaken);
          done(isTaken ? null : lost());
        };
        this.#stream.end(ended, undefined, trailers);
        this.#answered();
      },
      destroy: () => {
        this.destroy();
      },
    });
    this.#answer = content;
    return content;
  }

  #sendWhole(block: Buffer, content: Buffer | undefined, dateMs: number | undefined): void {
    this.hasBegun = true;
    const stream = this.#stream;
    const head = { block, date: dateMs === undefined ? undefined : dateBlock(dateMs) };
    if (content === undefined || content.length === 0) {
      stream.head(joinedHead(head), true);
      this.#end();
      return;
    }
    this.#hasEnded = true;
    stream.whole(head, content, this.#finish);
    this.#answered();
  }

  /** The head was the whole answer. */
  #end(): void {
    this.#hasEnded = true;
    this.#finish(true);
    this.#answered();
  }

  readonly #finish: BytesTaken = (isTaken) => {
    this.isSent = isTaken && this.#stream.resetBy === undefined;
    this.#isLost = !isTaken;
    this.#callListeners();
  };

  /** The whole answer has been handed to the connection. */
  #answered(): void {
    this.content?.discardContent();
  }

  /** Begins to read; a client may wait for that (RFC 9110 §10.1.1). */
  #begin(): StreamBody {
    return new StreamBody(this.#stream, () => {
      const { expect } = framingOf(this.head);
      if (expect?.toLowerCase() === '100-continue') this.interim(100, []);
    });
  }

  #callListeners(): void {
    const listeners = this.#listeners;
    this.#listeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) listener();
  }
}

/** The fields about the content of a request; the first one of a name. */
function framingOf({ fields }: MessageHead): Partial<Record<FramingField, string>> {
  const found: Partial<Record<FramingField, string>> = {};
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as FramingField;
    if (framingFields.includes(name)) found[name] ??= fields[at + 1] ?? '';
  }
  return found;
}

const framingFields = ['content-length', 'expect', 'transfer-encoding'] as const;
type FramingField = (typeof framingFields)[number];

/** What streamed content does with its answer. */
interface ContentParts {
  readonly sendHead: () => void;
  readonly end: (trailers: Buffer | undefined, done: Done) => void;
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

  readonly sendHead = (): void => {
    this.#parts.sendHead();
  };

  readonly trailWith = (trailers: () => FieldList): void => {
    this.#trailers = trailers;
  };

  /** A reset of the stream says that a part is missing. */
  readonly failed = (): void => undefined;

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#parts.sendHead();
    const stream = this.#stream;
    stream.write(chunk, (isTaken) => {
      const isCut = !isTaken || stream.resetBy !== undefined;
      done(isCut ? lost() : null);
    });
  }

  override _final(done: Done): void {
    const trailers = this.#trailers?.() ?? [];
    this.#parts.sendHead();
    const block = trailers.length === 0 ? undefined : encodeFields(undefined, trailers);
    this.#parts.end(block, done);
  }

  override _destroy(_error: Error | null, done: Done): void {
    if (!this.writableFinished) this.#parts.destroy();
    done();
  }
}

const ignore = (): void => undefined;

function lost(): Error {
  return new Error('The stream is closed.');
}

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
