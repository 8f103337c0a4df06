import { methodBytesMax } from '../limits.ts';
import { isImplemented } from '../request.ts';
import { tokenSource, trimOws, valueSource } from '../syntax.ts';

const chunkLine = new RegExp(`^([0-9A-Fa-f]{1,16})(?:;${tokenSource}(?:=${valueSource})?)*\\r\\n$`);
const fieldName = new RegExp(`^(${tokenSource}):`);

/** How the content of a request is delimited (RFC 9112 §6.3). */
interface Framing {
  readonly isChunked: boolean;
  /** Bytes; 0 for a request without content, and for chunked content. */
  readonly length: number;
}

const requestLine = new RegExp(`^${tokenSource} [\\x21-\\x7e\\x80-\\xff]+ HTTP/[0-9]\\.[0-9]$`);
const methodStart = new RegExp(`^${tokenSource}`);
const isFramed = /\r\n(?:content-length|transfer-encoding)[ \t]*:/i;
const framing = /\r\n(content-length|transfer-encoding)[ \t]*:([^\r\n]*)/gi;
/** No sign, and no leading zero: some programs read a leading zero as octal. */
const decimal = /^(?:0|[1-9]\d{0,15})$/;

const none: Framing = { isChunked: false, length: 0 };

/** How far a scanner has read the method of a head, and with which result. */
type MethodState = 'unfinished' | 'malformed' | 'implemented' | 'not_implemented';

/** Reads the method at the beginning of a head (RFC 9112 §3.1): a token, then a space. */
export function methodState(head: string): MethodState {
  const length = methodStart.exec(head)?.[0].length ?? 0;
  if (length === head.length && length <= methodBytesMax) return 'unfinished';
  if (length === 0) return 'malformed';
  if (length <= methodBytesMax && head[length] !== ' ') return 'malformed';
  return isImplemented(head.slice(0, length)) ? 'implemented' : 'not_implemented';
}

/** Whether a line is exactly `method SP request-target SP HTTP-version` (RFC 9112 §3). */
export function isRequestLine(line: string): boolean {
  return requestLine.test(line);
}

/** The request line and the fields of a head. */
interface HeadParts {
  readonly method: string;
  readonly target: string;
  /** Flat list of name, value, name, value. */
  readonly rawFields: readonly string[];
}

/** Splits a head whose request line isRequestLine accepts; its fields are not checked. */
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
 * Returns the framing of the content after a head, or a sentence about why recipients could
 * disagree on it (RFC 9112 §6.1, §6.3). `head` is latin1 and ends with the CR LF of its last field.
 */
export function contentFraming(head: string): Framing | string {
  if (!isFramed.test(head)) return none;
  const [field, second] = head.matchAll(framing);
  if (field === undefined) return none;
  if (second !== undefined)
    return 'There is more than one Content-Length or Transfer-Encoding field.';
  const [, name = '', spelled = ''] = field;
  const value = trimOws(spelled);
  if (name.toLowerCase() === 'transfer-encoding') {
    return value.toLowerCase() === 'chunked'
      ? { isChunked: true, length: 0 }
      : 'Transfer-Encoding may only be chunked.';
  }
  return decimal.test(value) && Number.isSafeInteger(Number(value))
    ? { isChunked: false, length: Number(value) }
    : 'Content-Length is not a number of bytes.';
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
 * Returns the reason against a line of a trailer section, as a sentence; undefined if it is
 * allowed.
 */
export function trailerRefusal(line: string): string | undefined {
  if (line === '\r\n') return undefined;
  const [, name] = fieldName.exec(line) ?? [];
  if (name === undefined) return 'A trailer field is not a name, a colon and a value.';
  return refusedNames.has(name.toLowerCase())
    ? `The field ${name} is not allowed in a trailer section.`
    : undefined;
}
