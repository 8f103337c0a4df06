import { constants, type ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';
import { Failure } from '../../model/failure.ts';
import { lingerMs, unreadBodyBytesMax } from '../limits.ts';

/** Who is at the other end of a session. */
export interface Peer {
  readonly remoteAddress: string | undefined;
  readonly encrypted: true;
}

/** A request of HTTP/2 as it comes in. */
interface Arriving {
  readonly stream: ServerHttp2Stream;
  /** Flat list of name, value, …, pseudo-header fields first; latin1. */
  readonly rawHeaders: readonly string[];
  /** Whether content follows. */
  readonly hasContent: boolean;
  readonly peer: Peer;
}

/**
 * A request of HTTP/2 in the form that it would have had in HTTP/1.1 (RFC 9113 §8.3.1, §8.1), so
 * that there is one door, and one way behind it, for both: `:authority` is its Host, and content
 * of unknown length is chunked. It has the members of an IncomingMessage that the way looks at.
 */
export class StreamMessage extends Readable {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly rawHeaders: readonly string[];
  readonly socket: Peer;
  /** Whether all of it has come. */
  complete: boolean;
  readonly #stream: ServerHttp2Stream;
  #headers: Record<string, string | undefined> | undefined;
  #isBeingRead = false;
  #isUnwanted = false;

  constructor({ stream, rawHeaders, hasContent, peer }: Arriving) {
    super();
    const { method, url, fields } = translate(rawHeaders, hasContent);
    this.method = method;
    this.url = url;
    this.rawHeaders = fields;
    this.socket = peer;
    this.complete = !hasContent;
    this.#stream = stream;
    if (!hasContent) {
      // Node resets a stream that has no reader as soon as its response ends,
      // and so before that end where the client lets nothing more come as yet (RFC 9113 §8.1).
      stream.resume();
      return;
    }
    // Of content that is empty, the end comes whether or not anybody reads.
    stream.once('end', () => {
      // A stream that was reset ends as well.
      if (stream.rstCode !== 0 || stream.aborted) return;
      this.complete = true;
      if (this.#isBeingRead) this.push(null);
    });
  }

  /** The fields by lower-case name; the first one counts where several have it. */
  get headers(): Readonly<Record<string, string | undefined>> {
    if (this.#headers !== undefined) return this.#headers;
    const headers = Object.create(null) as Record<string, string | undefined>;
    for (let at = 0; at < this.rawHeaders.length; at += 2) {
      headers[(this.rawHeaders[at] ?? '').toLowerCase()] ??= this.rawHeaders[at + 1];
    }
    this.#headers = headers;
    return headers;
  }

  /** As with an IncomingMessage, an error reaches its listeners and does not throw without them. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isHeard = this.listenerCount('error') > 0;
    // A listener may have been removed by the time that the error is emitted.
    this.on('error', () => undefined);
    done(isHeard ? error : null);
  }

  override _read(): void {
    const stream = this.#stream;
    if (this.complete && !this.#isBeingRead) this.push(null);
    else if (this.#isBeingRead) stream.resume();
    else {
      // 100 Continue is sent when the content is read (RFC 9110 §10.1.1).
      if (this.headers.expect?.toLowerCase() === '100-continue' && !stream.headersSent) {
        stream.additionalHeaders({ ':status': 100 });
      }
      this.#readOn();
    }
  }

  /**
   * Reads over content that nobody wants any more, if it is little and comes soon; the client is
   * told to send no more of it then (RFC 9113 §8.1), which costs some clients the answer.
   */
  readOver(): void {
    const stream = this.#stream;
    if (this.complete || stream.destroyed || this.#isUnwanted) return;
    this.#isUnwanted = true;
    if (!this.#isBeingRead) this.#readOn();
    stream.resume();
    // All has come, and what is left of it only keeps the stream.
    if (stream.closed) return;
    const timer = setTimeout(() => {
      stopContent(stream);
    }, lingerMs).unref();
    stream.once('close', () => {
      clearTimeout(timer);
    });
  }

  #readOn(): void {
    const stream = this.#stream;
    this.#isBeingRead = true;
    let overBytes = 0;
    stream.on('data', (chunk: Buffer) => {
      if (this.#isUnwanted) {
        overBytes += chunk.length;
        if (overBytes > unreadBodyBytesMax) stopContent(stream);
      } else if (!this.push(chunk)) stream.pause();
    });
    stream.once('close', () => {
      if (this.complete) return;
      this.destroy(new Failure('invalid', 'The request ended before its content did.'));
    });
  }
}

function stopContent(stream: ServerHttp2Stream): void {
  if (!stream.closed) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Method, target and fields of HTTP/1.1 for the field lines of a request. */
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
    // The same host twice does no harm; two different ones are refused by validation.
    if (name === 'host' && value === authority) continue;
    if (name === 'content-length') hasLength = true;
    // Browsers send each cookie in a field of its own (RFC 9113 §8.2.3).
    if (name === 'cookie') cookies.push(value);
    else fields.push(name, value);
  }
  if (cookies.length > 0) fields.push('cookie', cookies.join('; '));
  if (hasContent && !hasLength) fields.push('transfer-encoding', 'chunked');
  // RFC 9113 §8.5: it has neither scheme nor path.
  if (method === 'CONNECT') return { method, url: authority ?? '', fields };
  // Of another scheme than that of the connection is another site's (RFC 9110 §7.4).
  const url = scheme === 'https' ? path : `${scheme}://${authority ?? ''}${path}`;
  return { method, url, fields };
}

/** The size of a list of fields in bytes (RFC 9113 §6.5.2). */
export function listBytes(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length + fieldOverheadBytes / 2;
  return bytes;
}

const fieldOverheadBytes = 32;
