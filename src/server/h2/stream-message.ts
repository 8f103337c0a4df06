import { constants, type ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';
import { Failure } from '../../model/failure.ts';
import { lingerMs, unreadBodyBytesMax } from '../limits.ts';

/** The remote side of a session. */
export interface Peer {
  readonly remoteAddress: string | undefined;
  readonly encrypted: true;
}

/** An HTTP/2 request before translation. */
interface IncomingStream {
  readonly stream: ServerHttp2Stream;
  /** Flat list of name, value, …, pseudo-header fields first; latin1. */
  readonly rawHeaders: readonly string[];
  /** Whether the request has content. */
  readonly hasContent: boolean;
  readonly peer: Peer;
}

/**
 * An HTTP/2 request in the form of HTTP/1.1 (RFC 9113 §8.3.1, §8.1), so that one validation and one
 * handler serve both: `:authority` becomes Host, and content of unknown length becomes chunked. It
 * has the members of IncomingMessage that the server uses.
 */
export class StreamMessage extends Readable {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly rawHeaders: readonly string[];
  readonly socket: Peer;
  /** Whether all of the request has arrived. */
  complete: boolean;
  /** The trailer fields (RFC 9113 §8.1) as name, value, …, once the content has ended. */
  rawTrailers: readonly string[] = [];
  readonly #stream: ServerHttp2Stream;
  #headers: Record<string, string | undefined> | undefined;
  #isBeingRead = false;
  #isDiscarding = false;

  constructor({ stream, rawHeaders, hasContent, peer }: IncomingStream) {
    super();
    const { method, url, fields } = translate(rawHeaders, hasContent);
    this.method = method;
    this.url = url;
    this.rawHeaders = fields;
    this.socket = peer;
    this.complete = !hasContent;
    this.#stream = stream;
    if (!hasContent) {
      // Node resets a stream without a reader as soon as its response ends, before END_STREAM is
      // sent if the client's window is empty (RFC 9113 §8.1).
      stream.resume();
      return;
    }
    stream.once('trailers', (_headers, _flags, raw: readonly string[]) => {
      this.rawTrailers = raw;
    });
    // Empty content ends even without a reader.
    stream.once('end', () => {
      // A reset stream ends as well.
      if (stream.rstCode !== 0 || stream.aborted) return;
      this.complete = true;
      if (this.#isBeingRead) this.push(null);
    });
  }

  /** The fields by lower-case name; the first value of a repeated field. */
  get headers(): Readonly<Record<string, string | undefined>> {
    if (this.#headers !== undefined) return this.#headers;
    const headers = Object.create(null) as Record<string, string | undefined>;
    for (let at = 0; at < this.rawHeaders.length; at += 2) {
      headers[(this.rawHeaders[at] ?? '').toLowerCase()] ??= this.rawHeaders[at + 1];
    }
    this.#headers = headers;
    return headers;
  }

  /** Like IncomingMessage, emits an error to its listeners and does not throw without them. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const hasListener = this.listenerCount('error') > 0;
    // A listener may be removed before the error is emitted.
    this.on('error', () => undefined);
    done(hasListener ? error : null);
  }

  override _read(): void {
    const stream = this.#stream;
    if (this.complete && !this.#isBeingRead) this.push(null);
    else if (this.#isBeingRead) stream.resume();
    else {
      // Sends 100 Continue when the content is read (RFC 9110 §10.1.1).
      if (this.headers.expect?.toLowerCase() === '100-continue' && !stream.headersSent) {
        stream.additionalHeaders({ ':status': 100 });
      }
      this.#startReading();
    }
  }

  /**
   * Discards unread content if it is small and arrives soon. Otherwise resets the stream with
   * NO_ERROR (RFC 9113 §8.1), which makes some clients lose the answer.
   */
  discardContent(): void {
    const stream = this.#stream;
    if (this.complete || stream.destroyed || this.#isDiscarding) return;
    this.#isDiscarding = true;
    if (!this.#isBeingRead) this.#startReading();
    stream.resume();
    // All content has arrived; unread content would only keep the stream open.
    if (stream.closed) return;
    const timer = setTimeout(() => {
      stopContent(stream);
    }, lingerMs).unref();
    stream.once('close', () => {
      clearTimeout(timer);
    });
  }

  #startReading(): void {
    const stream = this.#stream;
    this.#isBeingRead = true;
    let discardedBytes = 0;
    stream.on('data', (chunk: Buffer) => {
      if (this.#isDiscarding) {
        discardedBytes += chunk.length;
        if (discardedBytes > unreadBodyBytesMax) stopContent(stream);
      } else if (!this.push(chunk)) stream.pause();
    });
    stream.once('close', () => {
      if (this.complete) return;
      this.destroy(new Failure('invalid', 'The request ended before its content was complete.'));
    });
  }
}

function stopContent(stream: ServerHttp2Stream): void {
  if (!stream.closed) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Translates the field lines of a request into method, target and fields of HTTP/1.1. */
function translate(
  rawHeaders: readonly string[],
  hasContent: boolean,
): { readonly method: string; readonly url: string; readonly fields: readonly string[] } {
  const pseudo: Record<string, string> = { ':method': '', ':path': '', ':scheme': '' };
  let at = 0;
  for (; rawHeaders[at]?.startsWith(':') === true; at += 2) {
    pseudo[rawHeaders[at] ?? ''] = rawHeaders[at + 1] ?? '';
  }
  const { ':method': method = '', ':path': path = '', ':scheme': scheme = '' } = pseudo;
  const authority = pseudo[':authority'];
  const fields = authority === undefined ? [] : ['host', authority];
  let hasLength = false;
  const cookies: string[] = [];
  for (; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    // An equal Host is harmless; validation refuses a different one.
    if (name === 'host' && value === authority) continue;
    if (name === 'content-length') hasLength = true;
    // Browsers send each cookie in its own field (RFC 9113 §8.2.3).
    if (name === 'cookie') cookies.push(value);
    else fields.push(name, value);
  }
  if (cookies.length > 0) fields.push('cookie', cookies.join('; '));
  if (hasContent && !hasLength) fields.push('transfer-encoding', 'chunked');
  // CONNECT has neither scheme nor path (RFC 9113 §8.5).
  if (method === 'CONNECT') return { method, url: authority ?? '', fields };
  // A scheme other than the connection's names another site (RFC 9110 §7.4).
  const url = scheme === 'https' ? path : `${scheme}://${authority ?? ''}${path}`;
  return { method, url, fields };
}

/** Returns the size of a field list in bytes (RFC 9113 §6.5.2). */
export function fieldListBytes(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length + fieldOverheadBytes / 2;
  return bytes;
}

const fieldOverheadBytes = 32;
