import { accessHeldBackCharactersMax } from './limits.ts';

/** One answered request, as the access log tells of it. */
export interface AccessEntry {
  readonly address: string;
  readonly method: string;
  /** The request target as it was sent: what the door made of it may not exist. */
  readonly target: string;
  readonly host: string;
  /** As the request line has it, such as `1.1`; empty where none could be read. */
  readonly httpVersion: string;
  readonly userAgent: string;
  readonly referer: string;
  readonly status: number;
  /** Bytes of content handed to the socket. */
  readonly bytes: number;
  readonly durationMs: number;
  /** `disk:<name>`, `rule:<id>`, `svc1` or `none` (docs/design/requests.md#precedence). */
  readonly source: string;
  /** What the cache did for it: `hit`, `miss` …; undefined where none was in its way. */
  readonly cache?: string | undefined;
  /** Id of the failure that was answered, as the answer shows it. */
  readonly failureId?: string | undefined;
  /** Id of the caller's key. */
  readonly keyId: string | undefined;
  /** Whether the client, or what it was sent, went away before it had everything. */
  readonly cut: boolean;
}

/** Where lines go, many at a time. */
export interface LineSink {
  write(text: string): unknown;
  /** Whether so much waits to be taken that more would only pile up. */
  readonly writableNeedDrain?: boolean;
}

/** The forms of a line: for a person, for a program, and as Apache and nginx call it, combined. */
export type AccessFormat = 'pretty' | 'json' | 'combined';

/** Writes a line for every request. */
export interface AccessLog {
  add(entry: AccessEntry): void;
  /** Hands over the lines held back so far. */
  flush(): void;
}

/**
 * Makes an access log that hands its lines over in bunches, so that a request costs no system call
 * of its own; the caller flushes at intervals. `now` gives milliseconds since 1970.
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
  let heldBack = '';
  let linesHeldBack = 0;
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
    if (heldBack === '') return;
    const [text, lines] = [heldBack, linesHeldBack];
    [heldBack, linesHeldBack] = ['', 0];
    // Whoever reads the log has stopped: the site goes on, in the memory it has.
    if (sink.writableNeedDrain === true) linesLost += lines;
    else {
      const told = linesLost > 0 ? lostLine(format, linesLost, timestamp()) : '';
      linesLost = 0;
      sink.write(told + text);
    }
  }

  return {
    add(entry) {
      heldBack += lineOf(withoutKeys(entry), timestamp());
      linesHeldBack += 1;
      if (heldBack.length > accessHeldBackCharactersMax) flush();
    },
    flush,
  };
}

/** A key in a URL is a mistake that a log must not spread. */
function withoutKeys(entry: AccessEntry): AccessEntry {
  const { target, referer } = entry;
  if (!target.includes('wmk_') && !referer.includes('wmk_')) return entry;
  const masked = (text: string): string => text.replace(keyText, 'wmk_…');
  return { ...entry, target: masked(target), referer: masked(referer) };
}

const keyText = /wmk_[A-Za-z0-9_-]+/g;

function lostLine(format: AccessFormat, lines: number, time: string): string {
  // A line that is no request would be malformed for those who read the combined format.
  if (format === 'combined') return '';
  const text = `${lines} requests are not in this log: it was not being read fast enough`;
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
  const asked = `${printable(host)}${gap}${printable(target)}`;
  return (
    `${time.slice(11, 23)} ${status} ${printable(method)} ${asked} ` +
    `${bytes} B ${durationMs.toFixed(1)} ms ${source}${cache === undefined ? '' : ` (${cache})`} ` +
    `${address}${entry.failureId === undefined ? '' : ` ${entry.failureId}`}` +
    `${entry.cut ? ' (cut off)' : ''}\n`
  );
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/**
 * The combined log format of Apache and nginx; the id of a key stands where they have the user.
 * What could not be read as a request line stands in its place as it came.
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

/** An ISO date-time without its zone, which is UTC, as the combined format has it. */
function combinedDate(time: string): string {
  const [year = '', month = '', day = ''] = time.slice(0, 10).split('-');
  return `${day}/${months[Number(month) - 1] ?? ''}/${year}:${time.slice(11, 19)} +0000`;
}

/** A text within quotes as nginx has it: `"`, `\` and all but printable ASCII are `\xHH`. */
function escapedText(text: string): string {
  return plain.test(text) ? text : text.replace(notPrintable, octets);
}

const notPrintable = /[^\x20\x21\x23-\x5b\x5d-\x7e]/gu;

/** Text of a client is latin1, a character an octet; any other character is UTF-8. */
function octets(character: string): string {
  const bytes = Buffer.from(character, character > '\xff' ? 'utf8' : 'latin1');
  return bytes.reduce((text, byte) => `${text}\\x${hex(byte)}`, '');
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0');
}

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Text of a client as JSON, without what could start another line or command a terminal. */
function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text).replace(furtherControls, escaped);
}

function printable(text: string): string {
  return plain.test(text) ? text : quoted(text).slice(1, -1);
}

/** Control characters and line ends that JSON leaves as they are: DEL, C1, U+2028, U+2029. */
const furtherControls = /[\x7f-\x9f\u2028\u2029]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
