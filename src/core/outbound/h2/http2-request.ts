import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import type { Readable } from 'node:stream';
import type { FieldList } from '../../http/reply.ts';
import { Failure } from '../../values/failure.ts';
import type { OutgoingRequest, Control, ResponseHandler } from '../outgoing-request.ts';
import { connectionClosed } from '../failure.ts';
import { placeOf } from '../place.ts';
import { RequestContent } from '../request-content.ts';
import { StalledTimer } from '../stalled-timer.ts';

const noError = 0;
const refusedStream = 7;
const cancel = 8;
const endStreamFlag = 1;

/** One request on a session; it calls its handler. */
export class Http2Request {
  /** Resolves when the stream has closed. */
  readonly closed: Promise<undefined>;
  readonly #exchange: ResponseHandler;
  readonly #stream: ClientHttp2Stream | undefined;
  readonly #timer: StalledTimer;
  readonly #control: Control;
  #content: RequestContent | undefined;
  #trailers: readonly string[] = [];
  #isOver = false;
  #hasAnswered = false;
  /** Whether the server has ended its stream by END_STREAM (RFC 9113 §8.1). */
  #hasEnded = false;

  constructor(
    session: ClientHttp2Session,
    request: OutgoingRequest,
    exchange: ResponseHandler,
    timeoutMs: number,
  ) {
    this.#exchange = exchange;
    const limitMs = request.timeoutMs ?? timeoutMs;
    this.#timer = new StalledTimer(limitMs, (error) => {
      this.#fail(error);
    });
    this.#control = {
      httpVersion: '2',
      abort: () => {
        this.#finish();
        this.#stream?.close(cancel);
      },
      pause: () => this.#stream?.pause(),
      resume: () => this.#stream?.resume(),
    };
    try {
      this.#stream = this.#open(session, request);
    } catch (error) {
      this.#finish();
      this.closed = Promise.resolve(undefined);
      const failure = new Failure('invalid', 'HTTP/2 cannot carry this request to the source.', {
        cause: error,
      });
      exchange.onResponseError(null, failure);
      return;
    }
    this.closed = this.#watch(this.#stream);
    exchange.onRequestStart(this.#control);
    if (request.body !== undefined) this.#send(request, this.#stream);
  }

  #open(session: ClientHttp2Session, request: OutgoingRequest): ClientHttp2Stream {
    const { method, target, origin, body, trailers, expectsContinue = false } = request;
    const { host, protocol } = placeOf(origin).url;
    const { host: authority = host, ...fields } = headersOf(request.fields);
    return session.request(
      {
        ':method': method,
        ':scheme': protocol.slice(0, -1),
        ':authority': authority,
        ':path': target,
        ...fields,
        ...(expectsContinue && { expect: '100-continue' }),
      },
      {
        endStream: body === undefined,
        waitForTrailers: body !== undefined && trailers !== undefined,
      },
    );
  }

  #send(
    { body, trailers, expectsContinue = false }: OutgoingRequest,
    stream: ClientHttp2Stream,
  ): void {
    this.#content = new RequestContent(body as Readable, stream, {
      expectsContinue,
      sent: this.#timer.restart,
      broken: (error) => {
        this.#fail(error);
      },
    });
    stream.once('continue', () => this.#content?.begin());
    stream.once('wantTrailers', () => {
      stream.sendTrailers(headersOf(trailers?.() ?? []));
    });
  }

  #watch(stream: ClientHttp2Stream): Promise<undefined> {
    stream.on('headers', (_headers, _flags, raw: readonly string[]) => {
      this.#timer.restart();
      this.#begin(raw);
    });
    stream.once('response', (_headers, flags, raw: readonly string[]) => {
      this.#hasAnswered = true;
      this.#exchange.onResponseStarted();
      this.#timer.restart();
      this.#begin(raw);
      if ((flags & endStreamFlag) !== 0) this.#end();
    });
    stream.on('data', (chunk: Buffer) => {
      this.#timer.restart();
      if (!this.#isOver) this.#exchange.onResponseData(this.#control, chunk);
    });
    stream.once('trailers', (_headers, _flags, raw: readonly string[]) => {
      this.#trailers = raw;
    });
    this.#noteEndStream(stream);
    stream.once('end', () => {
      if (this.#hasAnswered && this.#hasEnded) this.#end();
    });
    // `close` handles it.
    stream.on('error', () => undefined);
    return new Promise((resolve) => {
      stream.once('close', () => {
        const { rstCode } = stream;
        // The next request on the session may meet its end.
        if (this.#exchange.connection !== undefined) this.#exchange.connection.hasAnswered = true;
        const isLost = rstCode === noError || rstCode === refusedStream || rstCode === cancel;
        this.#fail(isLost ? connectionClosed() : streamError(rstCode));
        resolve(undefined);
      });
    });
  }

  /**
   * Notes whether END_STREAM ends the content. Node ends the readable side after a RST_STREAM with
   * NO_ERROR, too, and has no event that tells the two apart; only the reset closes the stream
   * first. A response that END_STREAM has ended is whole even if such a reset follows, by which a
   * server says that it needs no more of the request (RFC 9113 §8.1).
   */
  #noteEndStream(stream: ClientHttp2Stream): void {
    const push = stream.push.bind(stream);
    stream.push = (chunk: Buffer | null) => {
      if (chunk === null && !stream.closed) this.#hasEnded = true;
      return push(chunk);
    };
  }

  #begin(raw: readonly string[]): void {
    if (this.#isOver) return;
    const at = raw.indexOf(':status');
    const status = Number(raw[at + 1]);
    const rawHeaders = raw.filter((_, place) => !raw[place - (place % 2)]?.startsWith(':'));
    this.#exchange.onResponseStart({ ...this.#control, rawHeaders }, status);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#finish();
    this.#exchange.onResponseEnd({ ...this.#control, rawTrailers: this.#trailers });
    const stream = this.#stream;
    // The server has answered without the rest of the content.
    if (stream?.writableEnded === false) stream.close(cancel);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#finish();
    this.#exchange.onResponseError(null, error);
    this.#stream?.close(cancel);
  }

  #finish(): void {
    this.#isOver = true;
    this.#timer.stop();
    this.#content?.end();
  }
}

/** Fields by lower-case name; several lines of one name become a list. */
function headersOf(fields: FieldList): OutgoingHttpHeaders {
  const byName = Object.create(null) as Record<string, string | string[]>;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase();
    const value = fields[at + 1] ?? '';
    const before = byName[name];
    byName[name] = before === undefined ? value : [before, value].flat();
  }
  return byName;
}

function streamError(code: number): Error {
  const error = new Error(`The server has reset the stream with the code ${code}.`);
  return Object.assign(error, { code: 'ERR_HTTP2_STREAM_ERROR' });
}
