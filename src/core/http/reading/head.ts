import { Failure } from '../../values/failure.ts';
import { headerBlockBytesMax, methodBytesMax, requestLineBytesMax } from '../limits.ts';
import { type HttpVersion, isImplemented } from '../request.ts';
import { tokenSource, trimOws, valueSource } from '../syntax.ts';
import {
  headerSectionTooLarge,
  malformedRequest,
  methodNotImplemented,
  requestLineTooLong,
  unencodedTarget,
} from './refusals.ts';

const requestLine = new RegExp(
  `^(${tokenSource}) ([\\x21-\\x7e\\x80-\\xff]+) HTTP/([0-9]\\.[0-9])\\r\\n`,
);
const fieldLine = new RegExp(`(${tokenSource}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n`, 'y');
const methodStart = new RegExp(`^${tokenSource}`);
const beyondAscii = /[\x80-\xff]/;
/** No sign, and no leading zero: some programs read a leading zero as octal. */
const decimal = /^(?:0|[1-9]\d{0,15})$/;
const chunkLine = new RegExp(`^([0-9A-Fa-f]{1,16})(?:;${tokenSource}(?:=${valueSource})?)*\\r\\n$`);

/** The head of a request, and what it says of its content and its connection. */
export interface ReadHead {
  readonly method: string;
  /** The request target (RFC 9112 §3.2), as it was sent. */
  readonly url: string;
  /** As it was sent, a later minor version of 1 as 1.1; validation refuses other versions. */
  readonly version: HttpVersion;
  /** Flat list of name, value, name, value, as they were sent; latin1. */
  readonly fields: readonly string[];
  /** Whether another request may follow on the connection (RFC 9112 §9.3). */
  readonly shouldKeepAlive: boolean;
  /** How the content ends (RFC 9112 §6.3): in chunks, or after so many bytes, 0 for none. */
  readonly framing: 'chunked' | number;
  /** The value of Expect; undefined without one. */
  readonly expect: string | undefined;
  /** The value of Upgrade, if Connection names it (RFC 9110 §7.8); undefined otherwise. */
  readonly upgrade: string | undefined;
}

/**
 * Reads a head (RFC 9112 §3, §5), latin1, which ends with the line end of its last field. Returns
 * the refusal of one that is malformed, too large, or that recipients could read differently.
 */
export function readHead(text: string): ReadHead | Failure {
  const line = requestLine.exec(text);
  const [{ length } = '', method = '', url = '', sent = ''] = line ?? [];
  if (line === null || !isImplemented(method)) return refusedLine(text);
  const tooLarge = sizeRefusal(length - 2, text.length - length + 2);
  if (tooLarge !== undefined) return tooLarge;
  if (beyondAscii.test(url)) return unencodedTarget();
  const fields: string[] = [];
  let [connection, expect, upgrade]: (string | undefined)[] = [];
  let framing: ReadHead['framing'] | undefined;
  for (let at = length; at < text.length; at = fieldLine.lastIndex) {
    fieldLine.lastIndex = at;
    const field = fieldLine.exec(text);
    if (field === null) return malformedRequest();
    const name = field[1] ?? '';
    const value = trimOws(field[2] ?? '');
    fields.push(name, value);
    switch (hopName(name)) {
      case 'connection':
        connection = connection === undefined ? value : `${connection},${value}`;
        break;
      case 'content-length':
      case 'transfer-encoding': {
        if (framing !== undefined) return new Failure('invalid', framedTwice);
        const read = framingOf(name, value);
        if (read instanceof Failure) return read;
        framing = read;
        break;
      }
      case 'expect':
        expect = expect === undefined ? value : `${expect}, ${value}`;
        break;
      case 'upgrade':
        upgrade = upgrade === undefined ? value : `${upgrade}, ${value}`;
        break;
    }
  }
  const version = versionOf(sent);
  const options = connection === undefined ? [] : connection.toLowerCase().split(',').map(trimOws);
  const isLast =
    options.includes('close') || (version === '1.0' && !options.includes('keep-alive'));
  return {
    ...{ method, url, version, fields, expect },
    shouldKeepAlive: !isLast,
    framing: framing ?? 0,
    upgrade: options.includes('upgrade') ? upgrade : undefined,
  };
}

const framedTwice = 'There is more than one Content-Length or Transfer-Encoding field.';

/** The lower-case name of a field about the connection or the content; others may be empty. */
function hopName(name: string): string {
  switch (name.length) {
    case 'expect'.length:
    case 'upgrade'.length:
    case 'connection'.length:
    case 'content-length'.length:
    case 'transfer-encoding'.length:
      return name.toLowerCase();
    default:
      return '';
  }
}

function framingOf(name: string, value: string): ReadHead['framing'] | Failure {
  if (name.length === 'transfer-encoding'.length) {
    return value.toLowerCase() === 'chunked'
      ? 'chunked'
      : new Failure('invalid', 'Transfer-Encoding may only be chunked.');
  }
  return decimal.test(value) && Number.isSafeInteger(Number(value))
    ? Number(value)
    : new Failure('invalid', 'Content-Length is not a number of bytes.');
}

function versionOf(sent: string): HttpVersion {
  // RFC 9110 §2.5: a recipient reads a later minor version as the highest that it knows.
  return sent.startsWith('1.') && sent !== '1.0' ? '1.1' : (sent as HttpVersion);
}

/** The refusal of a head by its size; undefined for one that is short enough. */
export function sizeRefusal(lineBytes: number, blockBytes: number): Failure | undefined {
  if (lineBytes > requestLineBytesMax) return requestLineTooLong();
  return blockBytes > headerBlockBytesMax ? headerSectionTooLarge() : undefined;
}

/**
 * The refusal of the method at the beginning of a head (RFC 9112 §3.1), which may be unfinished: it
 * is no token, or the server does not implement it.
 */
export function methodRefusal(head: string): Failure | undefined {
  const length = methodStart.exec(head)?.[0].length ?? 0;
  if (length === head.length && length <= methodBytesMax) return undefined;
  if (length === 0 || (length <= methodBytesMax && head[length] !== ' ')) {
    return new Failure('invalid', 'The request does not begin with a method.');
  }
  return isImplemented(head.slice(0, length)) ? undefined : methodNotImplemented();
}

/** The refusal of a head whose request line is not as RFC 9112 §3 has it. */
function refusedLine(text: string): Failure {
  const lineBytes = text.indexOf('\r\n');
  return (
    methodRefusal(text) ??
    sizeRefusal(lineBytes, text.length - lineBytes) ??
    new Failure('invalid', 'The request line is not: method, space, target, space, HTTP/1.1.')
  );
}

/** The request line and the fields of a head. */
interface HeadParts {
  readonly method: string;
  readonly target: string;
  /** Flat list of name, value, name, value. */
  readonly rawFields: readonly string[];
}

/** Splits a head whose request line is valid; its fields are not checked. */
export function splitHead(head: string): HeadParts {
  const [line = '', ...lines] = head.split('\r\n');
  const [method = '', target = ''] = line.split(' ');
  const rawFields = lines.flatMap((field) => {
    const colon = field.indexOf(':');
    return field === '' ? [] : [field.slice(0, colon), trimOws(field.slice(colon + 1))];
  });
  return { method, target, rawFields };
}

/**
 * Fields that a trailer section must not have (RFC 9110 §6.5.1): they change the framing, routing,
 * authentication or meaning of a request.
 */
const refusedNames: ReadonlySet<string> = new Set(
  (
    'apikey authorization cache-control connection content-encoding content-length ' +
    'content-location content-range content-type cookie expect forwarded host if-match ' +
    'if-modified-since if-none-match if-range if-unmodified-since keep-alive max-forwards ' +
    'proxy-authorization proxy-connection range set-cookie te trailer transfer-encoding upgrade ' +
    'via x-forwarded-for x-forwarded-host x-forwarded-proto'
  ).split(' '),
);

/**
 * Parses the line before a chunk, with its CR LF, and returns the size of the chunk in bytes;
 * undefined unless the line is a plain size with well-formed extensions (RFC 9112 §7.1).
 */
export function chunkSize(line: string): number | undefined {
  const [, digits] = chunkLine.exec(line) ?? [];
  if (digits === undefined) return undefined;
  const size = Number.parseInt(digits, 16);
  return Number.isSafeInteger(size) ? size : undefined;
}

/**
 * Reads a line of a trailer section, with its CR LF; returns its name and value, or the reason
 * against it as a sentence.
 */
export function readTrailer(line: string): readonly [name: string, value: string] | string {
  fieldLine.lastIndex = 0;
  const [whole, name = '', value = ''] = fieldLine.exec(line) ?? [];
  if (whole !== line) return 'A trailer field is not a name, a colon and a value.';
  return refusedNames.has(name.toLowerCase())
    ? `The field ${name} is not allowed in a trailer section.`
    : [name, trimOws(value)];
}
