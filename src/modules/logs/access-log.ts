import type { AccessEntry, AccessLog } from '../../core/report/access-entry.ts';
import { escapedText, printable, quoted } from '../../core/report/escape.ts';
import { KIB } from '../../core/values/units.ts';
import {
  type AccessField,
  type LineTime,
  namedValues,
  requestLine,
  shown,
  templateLine,
} from './access-fields.ts';

/** Characters of each text of a client, in a line that is too long for its destination. */
const shortTextCharactersMax = 240;

/** Characters of lines that the access log buffers before it writes them. */
const accessBufferCharactersMax = 16 * KIB;

/** The longest time that a line of the access log is buffered. */
export const accessFlushMs = 200;

/** The destination of lines, which arrive many at a time. */
export interface LineSink {
  write(text: string): unknown;
  /** Whether the buffer is full, as that of a stream. */
  readonly writableNeedDrain?: boolean;
  /** The longest line that it takes whole. */
  readonly lineBytesMax?: number | undefined;
}

/** The formats of a line; `combined` is that of Apache and nginx. */
export type AccessFormat = 'pretty' | 'json' | 'combined';

/** How the lines look. Without `fields` and `line`, they have the fields of their format. */
export interface AccessLineSettings {
  readonly format: AccessFormat;
  /** The fields of a line as `json`; of the other formats, further ones at its end. */
  readonly fields?: readonly AccessField[] | undefined;
  /** A template (LineTemplate) in place of the format. */
  readonly line?: string | undefined;
}

/**
 * Makes an access log that buffers its lines for a moment, so that a request costs no system call.
 * `now` gives milliseconds since 1970.
 */
export function createAccessLog({
  sink,
  now,
  ...settings
}: AccessLineSettings & {
  readonly sink: LineSink;
  readonly now: () => number;
}): AccessLog {
  const format = settings.line === undefined ? settings.format : 'combined';
  const lineOf = lineWriter(settings);
  let buffered = '';
  let timer: NodeJS.Timeout | undefined;
  let linesBuffered = 0;
  let linesLost = 0;
  let second = -1;
  let secondIso = '';
  const times = { iso: '', combined: '' };

  function stamp(): LineTime {
    const nowMs = now();
    const nowSecond = Math.floor(nowMs / 1000);
    if (nowSecond !== second) {
      second = nowSecond;
      secondIso = new Date(second * 1000).toISOString().slice(0, 19);
      times.combined = combinedDate(secondIso);
    }
    times.iso = `${secondIso}.${String(Math.floor(nowMs) % 1000).padStart(3, '0')}Z`;
    return times;
  }

  /** A line that its destination takes whole: a client must not push the status out of it. */
  function fittingLine(entry: AccessEntry, time: LineTime): string {
    const line = lineOf(entry, time);
    const { lineBytesMax } = sink;
    if (lineBytesMax === undefined || Buffer.byteLength(line) <= lineBytesMax) return line;
    return lineOf(shortened(entry), time);
  }

  function flush(): void {
    if (buffered === '') return;
    const [text, lines] = [buffered, linesBuffered];
    [buffered, linesBuffered] = ['', 0];
    // The reader of the log has stopped. Its lines are dropped, so that they do not fill the
    // memory.
    if (sink.writableNeedDrain === true) linesLost += lines;
    else {
      const notice = linesLost > 0 ? lostLine(format, linesLost, stamp()) : '';
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
      buffered += fittingLine(withoutKeys(entry), stamp());
      linesBuffered += 1;
      if (buffered.length > accessBufferCharactersMax) flush();
    },
    flush,
  };
}

/**
 * An entry whose URLs have no API keys, which a client should not have put there, and no tokens of
 * breadcrumbs.
 */
export function withoutKeys(entry: AccessEntry): AccessEntry {
  const { target, referer } = entry;
  if (!mayHaveKey(target) && !mayHaveKey(referer)) return entry;
  return { ...entry, target: maskedKeys(target), referer: maskedKeys(referer) };
}

/** A text without the API keys and the tokens of breadcrumbs in it. */
export function maskedKeys(text: string): string {
  if (!mayHaveKey(text)) return text;
  return text.replace(keyText, (_, kind: string) => (/^k|6b$/i.test(kind) ? 'wmk_…' : 'wmb_…'));
}

/** Whether a text contains the prefix of a key; most have neither of its rarest characters. */
function mayHaveKey(text: string): boolean {
  return (text.includes('_') || text.includes('%')) && keyStart.test(text);
}

/** An entry whose texts of the client are cut, each with `…` at its end. */
function shortened(entry: AccessEntry): AccessEntry {
  const cut = (text: string): string =>
    text.length <= shortTextCharactersMax ? text : `${text.slice(0, shortTextCharactersMax)}…`;
  const { method, target, host, userAgent, referer, accept, acceptLanguage, purpose } = entry;
  return {
    ...entry,
    method: cut(method),
    target: cut(target),
    host: cut(host),
    userAgent: cut(userAgent),
    referer: cut(referer),
    accept: cut(accept),
    acceptLanguage: cut(acceptLanguage),
    purpose: cut(purpose),
  };
}

/**
 * The prefix of a key or of a breadcrumb's token, each character of which may be percent-encoded,
 * also several times.
 */
const prefix = '(?:w|%(?:25)*77)(?:m|%(?:25)*6d)(k|b|%(?:25)*6[b2])(?:_|%(?:25)*5f)';
const keyCharacter = '(?:[a-z0-9_-]|%(?:25)*(?:2d|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f))';
const keyStart = new RegExp(prefix, 'i');
const keyText = new RegExp(`${prefix}${keyCharacter}+`, 'gi');

/** The function that writes the line of an entry. */
function lineWriter({
  format,
  fields = [],
  line,
}: AccessLineSettings): (entry: AccessEntry, time: LineTime) => string {
  if (line !== undefined) return templateLine(line);
  const write = { json: jsonLine, pretty: prettyLine, combined: combinedLine }[format];
  if (fields.length === 0) return write;
  const values = namedValues(fields);
  if (format === 'json') {
    return (entry, time) => {
      const members = values(entry, time).map(
        ([name, value]) => `,"${name}":${typeof value === 'number' ? value : quoted(value)}`,
      );
      return `{"level":30,"msg":"request"${members.join('')}}\n`;
    };
  }
  if (format === 'pretty') {
    return (entry, time) => {
      const more = values(entry, time).map(([name, value]) => ` ${name}=${shown(value)}`);
      return `${write(entry, time).slice(0, -1)}${more.join('')}\n`;
    };
  }
  // Each field has its place, also one without a value: programs read this format by position.
  const more = templateLine(fields.map((name) => ` "{${name}}"`).join(''));
  return (entry, time) => write(entry, time).slice(0, -1) + more(entry, time);
}

function lostLine(format: AccessFormat, lines: number, { iso }: LineTime): string {
  // Programs that parse the combined format accept only lines of requests.
  if (format === 'combined') return '';
  const text = `${lines} requests are missing in this log: its reader was too slow.`;
  return format === 'json'
    ? `{"level":40,"time":"${iso}","msg":"${text}"}\n`
    : `${iso.slice(11, 23)} ${text}\n`;
}

function jsonLine(entry: AccessEntry, { iso }: LineTime): string {
  const { method, status, bytes, durationMs, source, cache, failureId, keyId, cut } = entry;
  return (
    `{"level":30,"time":"${iso}","msg":"request","address":${quoted(entry.address)},` +
    `"method":${quoted(method)},"host":${quoted(entry.host)},"target":${quoted(entry.target)},` +
    `"status":${status},"bytes":${bytes},"ms":${durationMs.toFixed(2)},"source":${quoted(source)}` +
    (entry.userAgent === '' ? '' : `,"user_agent":${quoted(entry.userAgent)}`) +
    (entry.referer === '' ? '' : `,"referer":${quoted(entry.referer)}`) +
    (cache === undefined ? '' : `,"cache":"${cache}"`) +
    (entry.traceId === undefined ? '' : `,"trace":"${entry.traceId}"`) +
    (failureId === undefined ? '' : `,"id":${quoted(failureId)}`) +
    `${keyId === undefined ? '' : `,"key":${quoted(keyId)}`}${cut ? ',"cut":true' : ''}}\n`
  );
}

function prettyLine(entry: AccessEntry, { iso }: LineTime): string {
  const { method, target, host, status, bytes, durationMs, source, cache, address } = entry;
  const gap = target.startsWith('/') || host === '' ? '' : ' ';
  const url = `${printable(host)}${gap}${printable(target)}`;
  return (
    `${iso.slice(11, 23)} ${status} ${printable(method)} ${url} ` +
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
function combinedLine(entry: AccessEntry, { combined }: LineTime): string {
  const { keyId, details } = entry;
  // Programs read the words before the date by position, so a name has no space.
  const user = keyId ?? shown(details?.user).replaceAll(' ', String.raw`\x20`);
  const referer = escapedText(entry.referer) || '-';
  const userAgent = escapedText(entry.userAgent) || '-';
  return (
    `${entry.address} - ${user} [${combined}] "${escapedText(requestLine(entry))}" ` +
    `${entry.status} ${entry.bytes} "${referer}" "${userAgent}"\n`
  );
}

/** Formats an ISO date-time without a zone (UTC) for the combined format. */
function combinedDate(time: string): string {
  const [year = '', month = '', day = ''] = time.slice(0, 10).split('-');
  return `${day}/${months[Number(month) - 1] ?? ''}/${year}:${time.slice(11, 19)} +0000`;
}
