import { accessHeldBackCharactersMax } from '../model/limits.ts';

/** One answered request, as the access log tells of it. */
export interface AccessEntry {
  readonly address: string;
  readonly method: string;
  /** The request target as it was sent: what the door made of it may not exist. */
  readonly target: string;
  readonly host: string;
  readonly status: number;
  /** Bytes of content handed to the socket. */
  readonly bytes: number;
  readonly durationMs: number;
  /** `disk:<name>`, `rule:<id>`, `svc1` or `none` (contract §3). */
  readonly source: string;
  /** What the cache did for it: `hit`, `miss` …; undefined where none was in its way. */
  readonly cache?: string | undefined;
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
  readonly format: 'pretty' | 'json';
  readonly sink: LineSink;
  readonly now: () => number;
}): AccessLog {
  const lineOf = format === 'json' ? jsonLine : prettyLine;
  let heldBack = '';
  let linesHeldBack = 0;
  let linesLost = 0;
  let second = -1;
  let time = '';

  function timestamp(): string {
    const nowMs = now();
    const nowSecond = Math.floor(nowMs / 1000);
    if (nowSecond !== second) {
      second = nowSecond;
      time = new Date(second * 1000).toISOString().slice(0, 19);
    }
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
  const { target } = entry;
  return target.includes('wmk_') ? { ...entry, target: target.replace(keyText, 'wmk_…') } : entry;
}

const keyText = /wmk_[A-Za-z0-9_-]+/g;

function lostLine(format: 'pretty' | 'json', lines: number, time: string): string {
  const text = `${lines} requests are not in this log: it was not being read fast enough`;
  return format === 'json'
    ? `{"level":40,"time":"${time}","msg":"${text}"}\n`
    : `${time.slice(11, 23)} ${text}\n`;
}

function jsonLine(entry: AccessEntry, time: string): string {
  const { method, status, bytes, durationMs, source, cache, keyId, cut } = entry;
  return (
    `{"level":30,"time":"${time}","msg":"request","address":${quoted(entry.address)},` +
    `"method":${quoted(method)},"host":${quoted(entry.host)},"target":${quoted(entry.target)},` +
    `"status":${status},"bytes":${bytes},"ms":${durationMs.toFixed(2)},"source":${quoted(source)}` +
    (cache === undefined ? '' : `,"cache":"${cache}"`) +
    `${keyId === undefined ? '' : `,"key":${quoted(keyId)}`}${cut ? ',"cut":true' : ''}}\n`
  );
}

function prettyLine(entry: AccessEntry, time: string): string {
  const { method, target, host, status, bytes, durationMs, source, cache, address, cut } = entry;
  const gap = target.startsWith('/') || host === '' ? '' : ' ';
  const asked = `${printable(host)}${gap}${printable(target)}`;
  return (
    `${time.slice(11, 23)} ${status} ${printable(method)} ${asked} ` +
    `${bytes} B ${durationMs.toFixed(1)} ms ${source}${cache === undefined ? '' : ` (${cache})`} ` +
    address +
    `${cut ? ' (cut off)' : ''}\n`
  );
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
