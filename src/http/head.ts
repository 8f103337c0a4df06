import { isImplemented } from '../model/method.ts';
import { methodBytesMax } from './limits.ts';
import { tokenSource, trimOws } from './syntax.ts';

/** How the content of a request is delimited (RFC 9112 §6.3). */
interface Framing {
  readonly isChunked: boolean;
  /** Bytes; 0 where there is none, or where it comes in chunks. */
  readonly length: number;
}

const requestLine = new RegExp(`^${tokenSource} [\\x21-\\x7e\\x80-\\xff]+ HTTP/[0-9]\\.[0-9]$`);
const methodStart = new RegExp(`^${tokenSource}`);
const isFramed = /\r\n(?:content-length|transfer-encoding)[ \t]*:/i;
const framing = /\r\n(content-length|transfer-encoding)[ \t]*:([^\r\n]*)/gi;
/** No sign, no leading zero, which some take for octal. */
const decimal = /^(?:0|[1-9]\d{0,15})$/;

const none: Framing = { isChunked: false, length: 0 };

/** What a head says of its method, as far as it has come. */
type MethodState = 'unfinished' | 'malformed' | 'implemented' | 'not_implemented';

/** Reads the method that a head begins with (RFC 9112 §3.1): a token, and a space behind it. */
export function methodState(head: string): MethodState {
  const length = methodStart.exec(head)?.[0].length ?? 0;
  if (length === head.length && length <= methodBytesMax) return 'unfinished';
  if (length === 0) return 'malformed';
  if (length <= methodBytesMax && head[length] !== ' ') return 'malformed';
  return isImplemented(head.slice(0, length)) ? 'implemented' : 'not_implemented';
}

/** Whether a line is `method SP request-target SP HTTP-version`, and nothing more (RFC 9112 §3). */
export function isRequestLine(line: string): boolean {
  return requestLine.test(line);
}

/**
 * How long the content behind a head is; a sentence where two readers could see it differently
 * (RFC 9112 §6.1, §6.3). `head` is latin1 and ends with its last field's CR LF.
 */
export function bodyOf(head: string): Framing | string {
  if (!isFramed.test(head)) return none;
  const [field, second] = head.matchAll(framing);
  if (field === undefined) return none;
  if (second !== undefined) return 'The length of the content is given more than once.';
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
