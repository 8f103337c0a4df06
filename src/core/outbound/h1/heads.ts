import type { FieldList } from '../../http/reply.ts';
import type { OutgoingRequest } from '../outgoing-request.ts';
import { notCarried } from '../failure.ts';
import { headerBlockBytesMax, requestLineBytesMax } from '../../http/limits.ts';
import { tokenSource, trimOws } from '../../http/syntax.ts';
import {
  ChunkedContent,
  CloseDelimitedContent,
  SizedContent,
  type ResponseContent,
} from './response-content.ts';

const targetPattern = /^\/[\x21-\x7e]*$/;
const namePattern = new RegExp(`^${tokenSource}$`);
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Fields that frame a message or concern its connection: the client alone decides about them. */
const framingFields: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/** Methods whose requests say that they have no content (RFC 9110 §8.6). */
const expectsContent: ReadonlySet<string> = new Set(['PATCH', 'POST', 'PUT']);

/** The head of a request, and what the client has to know of it. */
export interface OutgoingHead {
  /** In latin1. */
  readonly text: string;
  /** The length of the content; undefined for chunks. */
  readonly length: number | undefined;
  /** The authority in its Host field. */
  readonly host: string;
}

/**
 * Makes the head of a request to a server with a URL (RFC 9112 §3, §5). Throws notCarried()
 * for a request that HTTP/1.1 cannot carry.
 */
export function requestHead(request: OutgoingRequest, { host: authority }: URL): OutgoingHead {
  const { method, target, fields, body, upgrade, expectsContinue } = request;
  if (!namePattern.test(method) || !targetPattern.test(target)) throw notCarried();
  let host = authority;
  let others = '';
  let length: number | undefined;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    const lower = name.toLowerCase();
    if (framingFields.has(lower)) throw notCarried();
    if (lower === 'content-length') length = lengthOf(value, length);
    else if (lower !== 'host') others += fieldLine(name, value);
    else if (!valuePattern.test(value)) throw notCarried();
    else host = value;
  }
  if (Buffer.isBuffer(body)) {
    length = body.length > 0 || expectsContent.has(method) ? body.length : undefined;
  } else if (body === undefined) {
    if (length === undefined && expectsContent.has(method)) length = 0;
    if (length !== undefined && length > 0) throw notCarried();
  } else if (length === undefined) others += 'transfer-encoding: chunked\r\n';
  if (length !== undefined) others += `content-length: ${length}\r\n`;
  if (expectsContinue === true) others += 'expect: 100-continue\r\n';
  let connection = 'keep-alive';
  if (upgrade !== undefined) {
    connection = 'upgrade';
    others += fieldLine('upgrade', upgrade);
  }
  const first = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${connection}\r\n`;
  return { text: `${first}${others}\r\n`, length, host };
}

/** Makes field lines, in latin1. Throws as requestHead. */
export function fieldText(fields: FieldList): string {
  let text = '';
  for (let at = 0; at + 1 < fields.length; at += 2) {
    text += fieldLine(fields[at] ?? '', fields[at + 1] ?? '');
  }
  return text;
}

function fieldLine(name: string, value: string): string {
  if (!namePattern.test(name) || !valuePattern.test(value)) throw notCarried();
  return `${name}: ${value}\r\n`;
}

function lengthOf(value: string, before: number | undefined): number {
  const length = Number(value);
  if (before !== undefined || !decimal.test(value) || !Number.isSafeInteger(length)) {
    throw notCarried();
  }
  return length;
}

/** The head of a response. */
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

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?\r?\n/;
const fieldLines = new RegExp(`^(?:${tokenSource}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r?\\n)*$`);
const decimal = /^\d{1,100}$/;
const keepAliveTimeout = /(?:^|[\s,;])timeout=(\d{1,6})(?:[\s,;]|$)/i;

/** The fields that decide where content ends, and whether the connection stays open. */
interface FramingFields {
  contentLength: number | undefined;
  transferEncoding: 'chunked' | 'other' | undefined;
  /** Undefined if Connection names neither. */
  connection: 'close' | 'keep-alive' | undefined;
  keepAliveSeconds: number | undefined;
}

/**
 * Parses the head of a response to a request with a method, up to and including the line end of its
 * last field, from latin1 (RFC 9112 §4 to §6). A line may end with LF alone (§2.2). Undefined for
 * folded lines, two lengths, and a length next to a transfer coding; `coding` for a
 * Transfer-Encoding that is not `chunked` alone, as TE has requested no other (§7.4); `too_large`
 * for a header section that exceeds the limit.
 */
export function parseResponseHead(
  text: string,
  method: string,
): ResponseHead | 'coding' | 'too_large' | undefined {
  const [line = '', minor, digits] = statusLine.exec(text) ?? [];
  const status = Number(digits);
  if (line === '') return undefined;
  const block = text.slice(line.length);
  if (block.length > headerBlockBytesMax) return 'too_large';
  if (!fieldLines.test(block)) return undefined;
  const fields: string[] = [];
  const framing: FramingFields = {
    contentLength: undefined,
    transferEncoding: undefined,
    connection: undefined,
    keepAliveSeconds: undefined,
  };
  for (let start = 0; start < block.length;) {
    const colon = block.indexOf(':', start);
    const lineEnd = block.indexOf('\n', colon);
    const end = block[lineEnd - 1] === '\r' ? lineEnd - 1 : lineEnd;
    const name = block.slice(start, colon);
    const value = readFraming(framing, name, trimOws(block.slice(colon + 1, end)));
    if (value === undefined) return undefined;
    fields.push(name, value);
    start = lineEnd + 1;
  }
  if (framing.transferEncoding === 'other') return 'coding';
  const content = contentOf(status, method, framing);
  if (content === undefined) return undefined;
  const { connection, keepAliveSeconds } = framing;
  const closes =
    content.endsWithConnection ||
    connection === 'close' ||
    // HTTP/1.0 has no transfer codings: something on the way may have changed one (RFC 9112 §6.1).
    (minor === '0' && (framing.transferEncoding !== undefined || connection !== 'keep-alive'));
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
      const isFirst = framing.transferEncoding === undefined;
      const isChunked = isFirst && value.toLowerCase() === 'chunked';
      framing.transferEncoding = isChunked ? 'chunked' : 'other';
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

/** The content of a response (RFC 9112 §6.3); undefined if its length is ambiguous. */
function contentOf(
  status: number,
  method: string,
  { contentLength, transferEncoding }: FramingFields,
): ResponseContent | undefined {
  if (contentLength !== undefined && transferEncoding !== undefined) return undefined;
  // These have no content, whatever length they name.
  const isBare = method === 'HEAD' || status < 200 || status === 204 || status === 304;
  if (isBare) return new SizedContent(0);
  if (transferEncoding !== undefined) return new ChunkedContent();
  return contentLength === undefined
    ? new CloseDelimitedContent()
    : new SizedContent(contentLength);
}

const headBytesMax = requestLineBytesMax + headerBlockBytesMax;

/** A head up to the line end of its last field, in latin1, and the bytes that follow it. */
interface ReadHead {
  readonly text: string;
  readonly rest: Buffer;
}

/** Collects the head of a response, which may arrive in several chunks. */
export class HeadReader {
  #collected: Buffer | undefined;
  #bytes = 0;

  /** Whether a part of a head has arrived. */
  get hasBegun(): boolean {
    return this.#collected !== undefined;
  }

  /** Reads a chunk; `incomplete` if more has to come, `too_large` if it exceeds the limits. */
  read(chunk: Buffer): ReadHead | 'incomplete' | 'too_large' {
    if (this.#collected === undefined) {
      const end = endOfHead(chunk, 0);
      if (end !== undefined) {
        if (end.last > headBytesMax) return 'too_large';
        return withinLimits(headBefore(chunk, end, chunk.subarray(end.next)));
      }
    }
    const collected = (this.#collected ??= Buffer.allocUnsafe(headBytesMax));
    const before = this.#bytes;
    this.#bytes += chunk.copy(collected, before);
    // The end may begin in an earlier chunk.
    const end = endOfHead(collected.subarray(0, this.#bytes), Math.max(0, before - 2));
    if (end === undefined) return this.#bytes === headBytesMax ? 'too_large' : 'incomplete';
    this.#collected = undefined;
    this.#bytes = 0;
    return withinLimits(headBefore(collected, end, chunk.subarray(end.next - before)));
  }
}

function withinLimits(head: ReadHead): ReadHead | 'too_large' {
  const { text } = head;
  const fieldBytes = text.length - text.indexOf('\n') - 1;
  return fieldBytes > headerBlockBytesMax ? 'too_large' : head;
}

/** Where the last field line of a head ends, and where the bytes after the empty line begin. */
interface EndOfHead {
  readonly last: number;
  readonly next: number;
}

/** Finds the empty line at the end of a head; a line may end with LF alone (RFC 9112 §2.2). */
function endOfHead(bytes: Buffer, from: number): EndOfHead | undefined {
  const usual = bytes.indexOf('\n\r\n', from, 'latin1');
  const head = usual === -1 ? bytes : bytes.subarray(0, usual + 1);
  const bare = head.indexOf('\n\n', from, 'latin1');
  if (bare !== -1) return { last: bare + 1, next: bare + 2 };
  return usual === -1 ? undefined : { last: usual + 1, next: usual + 3 };
}

function headBefore(bytes: Buffer, { last }: EndOfHead, rest: Buffer): ReadHead {
  return { text: bytes.toString('latin1', 0, last), rest };
}
