import { headerBlockBytesMax, requestLineBytesMax } from '../../http/limits.ts';
import { tokenSource, trimOws } from '../../http/syntax.ts';
import {
  ChunkedContent,
  CloseDelimitedContent,
  SizedContent,
  type ResponseContent,
} from './response-content.ts';

/** A request without content. */
interface BodylessRequest {
  /** Path and query, percent-encoded. */
  readonly path: string;
  /** Name, value, name, value. */
  readonly headers: readonly string[];
}

const targetPattern = /^\/[\x21-\x7e]*$/;
const namePattern = new RegExp(`^${tokenSource}$`);
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Fields that frame a message or concern its connection: the client alone decides about them. */
const framingFields: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/**
 * The head of a GET to an origin, in latin1. Undefined if HTTP cannot carry it, or if a Host field
 * names another server over TLS, whose certificate would have to be checked.
 */
export function getHead(
  { path, headers }: BodylessRequest,
  { host, protocol }: URL,
): string | undefined {
  if (!targetPattern.test(path)) return undefined;
  let hostLine = `host: ${host}\r\n`;
  let fields = '';
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    const lower = name.toLowerCase();
    if (!namePattern.test(name) || !valuePattern.test(value) || framingFields.has(lower)) {
      return undefined;
    }
    if (lower !== 'host') fields += `${name}: ${value}\r\n`;
    else if (protocol === 'https:') return undefined;
    else hostLine = `host: ${value}\r\n`;
  }
  return `GET ${path} HTTP/1.1\r\n${hostLine}connection: keep-alive\r\n${fields}\r\n`;
}

/** The head of a response to a GET. */
interface ResponseHead {
  readonly status: number;
  readonly version: '1.0' | '1.1';
  /** Name, value, name, value, as they were sent, in latin1. */
  readonly fields: readonly string[];
  /** Reads the content that follows. */
  readonly content: ResponseContent;
  /**
   * How long the server keeps the idle connection (Keep-Alive: timeout, RFC 2068 §19.7.1.1): 0 if
   * it closes it after this response (RFC 9112 §9.3), undefined if it does not say.
   */
  readonly keepAliveSeconds: number | undefined;
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?\r\n/;
const fieldLines = new RegExp(`^(?:${tokenSource}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)*$`);
const decimal = /^\d{1,100}$/;
const keepAliveTimeout = /(?:^|[\s,;])timeout=(\d{1,6})(?:[\s,;]|$)/i;

/** The fields that decide where content ends, and whether the connection stays open. */
interface FramingFields {
  contentLength: number | undefined;
  transferEncoding: string | undefined;
  /** Undefined if Connection names neither. */
  connection: 'close' | 'keep-alive' | undefined;
  keepAliveSeconds: number | undefined;
}

/**
 * Parses the head of a response to a GET, up to and including the CR LF of its last field, from
 * latin1 (RFC 9112 §4 to §6). As strict as llhttp, which undici uses: undefined for bare line
 * feeds, folded lines, two lengths, a length next to a transfer coding, and for a 101, since no GET
 * here asks for another protocol.
 */
export function parseResponseHead(text: string): ResponseHead | undefined {
  const [line = '', minor, digits] = statusLine.exec(text) ?? [];
  const status = Number(digits);
  if (line === '' || status === 101) return undefined;
  const block = text.slice(line.length);
  if (block.length > headerBlockBytesMax || !fieldLines.test(block)) return undefined;
  const fields: string[] = [];
  const framing: FramingFields = {
    contentLength: undefined,
    transferEncoding: undefined,
    connection: undefined,
    keepAliveSeconds: undefined,
  };
  for (let start = 0; start < block.length;) {
    const colon = block.indexOf(':', start);
    const end = block.indexOf('\r\n', colon);
    const name = block.slice(start, colon);
    const value = readFraming(framing, name, trimOws(block.slice(colon + 1, end)));
    if (value === undefined) return undefined;
    fields.push(name, value);
    start = end + 2;
  }
  const content = contentOf(status, framing);
  if (content === undefined) return undefined;
  const { connection, keepAliveSeconds } = framing;
  const closes =
    content.endsWithConnection ||
    connection === 'close' ||
    (minor === '0' && connection !== 'keep-alive');
  const version = minor === '0' ? '1.0' : '1.1';
  return { status, version, fields, content, keepAliveSeconds: closes ? 0 : keepAliveSeconds };
}

/** Reads a field that concerns framing; returns its value for later code, undefined if invalid. */
function readFraming(framing: FramingFields, name: string, value: string): string | undefined {
  // Most names have another length.
  switch (name.length) {
    case 'connection'.length: {
      const lower = name.toLowerCase();
      if (lower === 'connection') readConnection(framing, value);
      else if (lower === 'keep-alive') {
        const [, seconds] = keepAliveTimeout.exec(value) ?? [];
        if (seconds !== undefined) framing.keepAliveSeconds = Number(seconds);
      }
      return value;
    }
    case 'content-length'.length: {
      if (name.toLowerCase() !== 'content-length') return value;
      const isFirst = framing.contentLength === undefined;
      const length = Number(value);
      framing.contentLength = length;
      if (!isFirst || !decimal.test(value) || !Number.isSafeInteger(length)) return undefined;
      // Some clients would read `05` as octal.
      return String(length);
    }
    case 'transfer-encoding'.length: {
      if (name.toLowerCase() !== 'transfer-encoding') return value;
      framing.transferEncoding = value;
      return value;
    }
    default:
      return value;
  }
}

function readConnection(framing: FramingFields, value: string): void {
  for (const option of value.toLowerCase().split(',')) {
    const name = trimOws(option);
    if (name === 'close') framing.connection = 'close';
    else if (name === 'keep-alive') framing.connection ??= 'keep-alive';
  }
}

/** The content of a response to a GET (RFC 9112 §6.3); undefined if its length is ambiguous. */
function contentOf(
  status: number,
  { contentLength, transferEncoding }: FramingFields,
): ResponseContent | undefined {
  if (contentLength !== undefined && transferEncoding !== undefined) return undefined;
  // These have no content, whatever length they name.
  if (status < 200 || status === 204 || status === 304) return new SizedContent(0);
  if (transferEncoding === undefined) {
    return contentLength === undefined
      ? new CloseDelimitedContent()
      : new SizedContent(contentLength);
  }
  const last = transferEncoding.slice(transferEncoding.lastIndexOf(',') + 1);
  return trimOws(last).toLowerCase() === 'chunked'
    ? new ChunkedContent()
    : new CloseDelimitedContent();
}

const headEnd = '\r\n\r\n';
const headBytesMax = requestLineBytesMax + headerBlockBytesMax;

/** Collects the head of a response, which may arrive in several chunks. */
export class HeadReader {
  #collected: Buffer | undefined;
  #bytes = 0;

  /**
   * Reads a chunk. Returns the head up to the CR LF of its last field with the bytes that follow
   * it; `incomplete`, or `too_large` if it exceeds the limits.
   */
  read(
    chunk: Buffer,
  ): { readonly text: string; readonly rest: Buffer } | 'incomplete' | 'too_large' {
    if (this.#collected === undefined) {
      const end = chunk.indexOf(headEnd);
      if (end !== -1) {
        return {
          text: chunk.toString('latin1', 0, end + 2),
          rest: chunk.subarray(end + headEnd.length),
        };
      }
    }
    const collected = (this.#collected ??= Buffer.allocUnsafe(headBytesMax));
    const before = this.#bytes;
    this.#bytes += chunk.copy(collected, before);
    // The end may begin in an earlier chunk.
    const end = collected.subarray(0, this.#bytes).indexOf(headEnd, Math.max(0, before - 3));
    if (end === -1) return this.#bytes === headBytesMax ? 'too_large' : 'incomplete';
    this.#collected = undefined;
    this.#bytes = 0;
    return {
      text: collected.toString('latin1', 0, end + 2),
      rest: chunk.subarray(end + headEnd.length - before),
    };
  }
}
