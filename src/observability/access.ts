import { accessBufferCharactersMax, accessFlushMs } from './limits.ts';

/** An answered request, with the values of its line in the access log. */
export interface AccessEntry {
  readonly address: string;
  readonly method: string;
  /** The request target as it was sent, because a malformed one has no canonical form. */
  readonly target: string;
  readonly host: string;
  /** The version in the request line, such as `1.1`; empty for a malformed request line. */
  readonly httpVersion: string;
  readonly userAgent: string;
  readonly referer: string;
  readonly status: number;
  /** Bytes of content that were written to the socket. */
  readonly bytes: number;
  readonly durationMs: number;
  /** `disk:<name>`, `rule:<id>`, `svc1` or `none` (docs/design/requests.md#precedence). */
  readonly source: string;
  /** The cache status: `hit`, `miss` …; undefined for a response without a cache. */
  readonly cache?: string | undefined;
  /** The id of the failure, which the response shows, too. */
  readonly failureId?: string | undefined;
  /** Id of the caller's key. */
  readonly keyId: string | undefined;
  /** Whether the connection or the content ended before the response was complete. */
  readonly cut: boolean;
}

/** The destination of lines, which arrive many at a time. */
export interface LineSink {
  write(text: string): unknown;
  /** Whether the buffer is full, as that of a stream. */
  readonly writableNeedDrain?: boolean;
}

/** The formats of a line; `combined` is that of Apache and nginx. */
export type AccessFormat = 'pretty' | 'json' | 'combined';

/** Writes a line for each request. */
export interface AccessLog {
  add(entry: AccessEntry): void;
  /** Writes the buffered lines. */
  flush(): void;
}

/**
 * Makes an access log that buffers its lines for a moment, so that a request costs no system call.
 * `now` gives milliseconds since 1970.
 */
export function createAccessLog({
  format,
  sink,
  now,
}: {
  readonly format: AccessFormat;
  readonly sink: LineSink;
  readonly now: () => number;
}): AccessLog {
  const lineOf = { json: jsonLine, pretty: prettyLine, combined: combinedLine }[format];
  let buffered = '';
  let timer: NodeJS.Timeout | undefined;
  let linesBuffered = 0;
  let linesLost = 0;
  let second = -1;
  let time = '';
  let combinedTime = '';

  function timestamp(): string {
    const nowMs = now();
    const nowSecond = Math.floor(nowMs / 1000);
    if (nowSecond !== second) {
      second = nowSecond;
      time = new Date(second * 1000).toISOString().slice(0, 19);
      combinedTime = combinedDate(time);
    }
    if (format === 'combined') return combinedTime;
    return `${time}.${String(Math.floor(nowMs) % 1000).padStart(3, '0')}Z`;
  }

  function flush(): void {
    if (buffered === '') return;
    const [text, lines] = [buffered, linesBuffered];
    [buffered, linesBuffered] = ['', 0];
    // The reader of the log has stopped. Its lines are dropped, so that they do not fill the
    // memory.
    if (sink.writableNeedDrain === true) linesLost += lines;
    else {
      const notice = linesLost > 0 ? lostLine(format, linesLost, timestamp()) : '';
      linesLost = 0;
      sink.write(notice + text);
    }
  }

  return {
    add(entry) {
      timer ??= setTimeout(() => {
        timer = undefined;
        flush();
      }, accessFlushMs).unref();
      buffered += lineOf(withoutKeys(entry), timestamp());
      linesBuffered += 1;
      if (buffered.length > accessBufferCharactersMax) flush();
    },
    flush,
  };
}

/** An entry whose URLs have no API keys, which a client should not have put there. */
export function withoutKeys(entry: AccessEntry): AccessEntry {
  const { target, referer } = entry;
  if (!target.includes('wmk_') && !referer.includes('wmk_')) return entry;
  const masked = (text: string): string => text.replace(keyText, 'wmk_…');
  return { ...entry, target: masked(target), referer: masked(referer) };
}

const keyText = /wmk_[A-Za-z0-9_-]+/g;

function lostLine(format: AccessFormat, lines: number, time: string): string {
  // Programs that parse the combined format accept only lines of requests.
  if (format === 'combined') return '';
  const text = `${lines} requests are missing in this log: its reader was too slow.`;
  return format === 'json'
    ? `{"level":40,"time":"${time}","msg":"${text}"}\n`
    : `${time.slice(11, 23)} ${text}\n`;
}

function jsonLine(entry: AccessEntry, time: string): string {
  const { method, status, bytes, durationMs, source, cache, failureId, keyId, cut } = entry;
  return (
    `{"level":30,"time":"${time}","msg":"request","address":${quoted(entry.address)},` +
    `"method":${quoted(method)},"host":${quoted(entry.host)},"target":${quoted(entry.target)},` +
    `"status":${status},"bytes":${bytes},"ms":${durationMs.toFixed(2)},"source":${quoted(source)}` +
    (entry.userAgent === '' ? '' : `,"user_agent":${quoted(entry.userAgent)}`) +
    (entry.referer === '' ? '' : `,"referer":${quoted(entry.referer)}`) +
    (cache === undefined ? '' : `,"cache":"${cache}"`) +
    (failureId === undefined ? '' : `,"id":${quoted(failureId)}`) +
    `${keyId === undefined ? '' : `,"key":${quoted(keyId)}`}${cut ? ',"cut":true' : ''}}\n`
  );
}

function prettyLine(entry: AccessEntry, time: string): string {
  const { method, target, host, status, bytes, durationMs, source, cache, address } = entry;
  const gap = target.startsWith('/') || host === '' ? '' : ' ';
  const url = `${printable(host)}${gap}${printable(target)}`;
  return (
    `${time.slice(11, 23)} ${status} ${printable(method)} ${url} ` +
    `${bytes} B ${durationMs.toFixed(1)} ms ${source}${cache === undefined ? '' : ` (${cache})`} ` +
    `${address}${entry.failureId === undefined ? '' : ` ${entry.failureId}`}` +
    `${entry.cut ? ' (cut off)' : ''}\n`
  );
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/**
 * The combined log format of Apache and nginx, with the id of the key as the user. A malformed
 * request line is logged as it was sent.
 */
function combinedLine(entry: AccessEntry, time: string): string {
  const { method, target, httpVersion, keyId = '-' } = entry;
  const sent = method === '-' ? target : `${method} ${target}`;
  const request = httpVersion === '' ? sent : `${sent} HTTP/${httpVersion}`;
  const referer = escapedText(entry.referer) || '-';
  const userAgent = escapedText(entry.userAgent) || '-';
  return (
    `${entry.address} - ${keyId} [${time}] "${escapedText(request)}" ${entry.status} ` +
    `${entry.bytes} "${referer}" "${userAgent}"\n`
  );
}

/** Formats an ISO date-time without a zone (UTC) for the combined format. */
function combinedDate(time: string): string {
  const [year = '', month = '', day = ''] = time.slice(0, 10).split('-');
  return `${day}/${months[Number(month) - 1] ?? ''}/${year}:${time.slice(11, 19)} +0000`;
}

/** Escapes a quoted text as nginx does: `"`, `\` and all but printable ASCII become `\xHH`. */
function escapedText(text: string): string {
  return plain.test(text) ? text : text.replace(notPrintable, octets);
}

const notPrintable = /[^\x20\x21\x23-\x5b\x5d-\x7e]/gu;

/** Header text has one character per octet (latin1); any other character is UTF-8. */
function octets(character: string): string {
  const bytes = Buffer.from(character, character > '\xff' ? 'utf8' : 'latin1');
  return bytes.reduce((text, byte) => `${text}\\x${hex(byte)}`, '');
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0');
}

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Text of a client as JSON, without line breaks and control sequences of terminals. */
function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text).replace(unescapedControls, escaped);
}

/** Text of a client without line breaks and control sequences of terminals. */
export function printable(text: string): string {
  return plain.test(text) ? text : quoted(text).slice(1, -1);
}

/** Control characters and line breaks that JSON does not escape: DEL, C1, U+2028, U+2029. */
const unescapedControls = /[\x7f-\x9f\u2028\u2029]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
