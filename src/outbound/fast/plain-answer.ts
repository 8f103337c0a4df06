import { headerBlockBytesMax, headerFieldsMax } from '../../http/limits.ts';
import { tokenSource, trimOws } from '../../http/syntax.ts';

/** The head of an answer in the most ordinary form. */
interface PlainAnswerHead {
  readonly status: number;
  /** Name, value, name, value, as they were sent, latin1. */
  readonly fields: readonly string[];
  /** Bytes of content behind the head, 0 for none; undefined where it comes in chunks. */
  readonly contentLength: number | undefined;
  /**
   * How long the other side says that it keeps an idle connection (RFC 2068 §19.7.1.1): 0 where it
   * is about to close it (RFC 9112 §9.6).
   */
  readonly idleSeconds: number | undefined;
}

const statusLine = /^HTTP\/1\.1 ([2-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/;
const fieldLine = new RegExp(`(${tokenSource}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n`, 'y');
/** No sign, and no leading zero, which some take for octal. */
const decimal = /^(?:0|[1-9]\d{0,14})$/;
const idleTimeout = /(?:^|[\s,;])timeout=(\d{1,6})(?:[\s,;]|$)/i;

/** What a head says of its message and its connection. */
interface Said {
  contentLength: number | undefined;
  isChunked: boolean;
  closes: boolean;
  idleSeconds: number | undefined;
}

/**
 * Reads a text of latin1 that is the whole head of an answer to a GET, up to the CR LF of its last
 * field: a final status (RFC 9110 §15) in HTTP/1.1, fields in the form of RFC 9112 §5, content
 * whose end is said once (§6.3), and of its connection no more than whether that stays. Undefined
 * for anything else, be it wrong, too much or only rare: that is for a parser to tell apart.
 */
export function readPlainAnswer(text: string): PlainAnswerHead | undefined {
  const line = statusLine.exec(text);
  if (line === null || text.length > headerBlockBytesMax) return undefined;
  const [{ length }, digits] = line;
  const fields: string[] = [];
  const said: Said = {
    contentLength: undefined,
    isChunked: false,
    closes: false,
    idleSeconds: undefined,
  };
  let at = length;
  while (at < text.length) {
    fieldLine.lastIndex = at;
    const field = fieldLine.exec(text);
    if (field === null) return undefined;
    at = fieldLine.lastIndex;
    const [, name = '', spaced = ''] = field;
    const value = trimOws(spaced);
    if (!listen(said, name, value)) return undefined;
    fields.push(name, value);
  }
  if (fields.length > 2 * headerFieldsMax) return undefined;
  const status = Number(digits);
  const contentLength = lengthOf(status, said);
  if (said.isChunked ? isFramedOtherwise(status, said) : contentLength === undefined)
    return undefined;
  return { status, fields, contentLength, idleSeconds: said.closes ? 0 : said.idleSeconds };
}

/** Takes in what a field says of message and connection; whether that is ordinary. */
function listen(said: Said, name: string, value: string): boolean {
  // Most names have another length than those that say anything here.
  switch (name.length) {
    case 'upgrade'.length:
      return !/^upgrade$/i.test(name);
    case 'connection'.length:
      if (/^connection$/i.test(name)) {
        const closes = /^close$/i.test(value);
        said.closes ||= closes;
        return closes || /^keep-alive$/i.test(value);
      }
      if (/^keep-alive$/i.test(name)) said.idleSeconds = secondsOf(value);
      return true;
    case 'content-length'.length: {
      if (!/^content-length$/i.test(name)) return true;
      const isFirst = said.contentLength === undefined;
      said.contentLength = Number(value);
      return isFirst && decimal.test(value);
    }
    case 'transfer-encoding'.length: {
      if (!/^transfer-encoding$/i.test(name)) return true;
      const isFirst = !said.isChunked;
      said.isChunked = true;
      return isFirst && /^chunked$/i.test(value);
    }
    default:
      return true;
  }
}

function secondsOf(value: string): number | undefined {
  const [, seconds] = idleTimeout.exec(value) ?? [];
  return seconds === undefined ? undefined : Number(seconds);
}

/** Undefined for content in chunks, and where nothing is said. */
function lengthOf(status: number, { contentLength, isChunked }: Said): number | undefined {
  if (isChunked) return undefined;
  // Whatever length they name, there is none (RFC 9112 §6.3).
  return isBare(status) ? 0 : contentLength;
}

/** Whether chunks are not all that is said of where content ends. */
function isFramedOtherwise(status: number, { contentLength }: Said): boolean {
  return isBare(status) || contentLength !== undefined;
}

/** Whether an answer of that status has no content. */
function isBare(status: number): boolean {
  return status === 204 || status === 304;
}
