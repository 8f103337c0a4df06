import type { DestinationStream } from 'pino';
import type { AccessFormat, LineSink } from '../../modules/logs/access-log.ts';

const cyan = 36;
const grey = 90;

/** The names and ANSI colours of pino's levels. */
const levels: ReadonlyMap<number, readonly [name: string, colour: number]> = new Map([
  [10, ['TRACE', grey]],
  [20, ['DEBUG', 34]],
  [30, ['INFO', 32]],
  [40, ['WARN', 33]],
  [50, ['ERROR', 31]],
  [60, ['FATAL', 41]],
]);
const controls = /(?!\n)\p{Cc}/gu;

/** A line of a log with its severity, as RFC 5424 §6.2.1 numbers it: 3 error … 7 debug. */
export interface LeveledLine {
  readonly severity: number;
  /** Without a line end. */
  readonly text: string;
  /** Whether it is the line of a request. */
  readonly isRequest: boolean;
}

/** A destination that treats lines by their severity. */
export interface LeveledSink {
  write(lines: readonly LeveledLine[]): void;
  /** The longest line that it takes whole; without a limit by default. */
  readonly lineBytesMax?: number;
  /** Whether it would drop further lines. */
  readonly writableNeedDrain: boolean;
  /** Resolves when all lines are written, or cannot be. */
  end(): Promise<void>;
}

const info = 6;

/** The severity of a level of pino. */
function severityOf(level: number): number {
  if (level >= 60) return 2;
  if (level >= 50) return 3;
  if (level >= 40) return 4;
  return level >= 30 ? info : 7;
}

/** The access log's side of a sink. */
export function requestLines(sink: LeveledSink): LineSink {
  return {
    lineBytesMax: sink.lineBytesMax,
    write(text) {
      sink.write(linesOf(text, { severity: info, isRequest: true }));
    },
    get writableNeedDrain() {
      return sink.writableNeedDrain;
    },
  };
}

/** The side of a sink for messages, which pino writes. */
export function messageLines(sink: LeveledSink, format: AccessFormat): DestinationStream {
  const readable = format === 'json' ? undefined : readableLines({ colour: false, hasTime: false });
  const stream = {
    // Asks pino for `lastLevel` before each line.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 30,
    write(text: string) {
      const shown = readable?.(text) ?? text;
      sink.write(linesOf(shown, { severity: severityOf(stream.lastLevel), isRequest: false }));
    },
  };
  return stream;
}

function linesOf(text: string, more: Omit<LeveledLine, 'text'>): readonly LeveledLine[] {
  return text.split('\n').flatMap((line) => (line === '' ? [] : [{ ...more, text: line }]));
}

/** The lines for a stream that journald reads, with the priorities of sd-daemon(3). */
export function journalSink(stream: NodeJS.WritableStream): LeveledSink {
  return {
    write(lines) {
      stream.write(lines.map(({ severity, text }) => `<${severity}>${text}\n`).join(''));
    },
    get writableNeedDrain() {
      return (stream as { readonly writableNeedDrain?: boolean }).writableNeedDrain === true;
    },
    end: () => Promise.resolve(),
  };
}

/** How a line is shown. */
interface LineStyle {
  readonly colour: boolean;
  /** Whether the line begins with its time in UTC. */
  readonly hasTime: boolean;
}

/** A line of pino: an object with these fields and those of the message. */
interface PinoLine {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
  readonly pid?: number;
  readonly err?: unknown;
}

/**
 * Returns the function that shows a line of pino to people, with its line end: the time, the level,
 * the message, its fields as JSON, and below these the stack of `err`.
 */
export function readableLines({ colour, hasTime }: LineStyle): (line: string) => string {
  const paint = (code: number, text: string): string => {
    return colour && text !== '' ? `\x1b[${code}m${text}\x1b[39;49m` : text;
  };
  return (line) => {
    const { level, time, msg, pid, err, ...fields } = JSON.parse(line) as PinoLine;
    const [name, code] = levels.get(level) ?? [`LEVEL ${level}`, grey];
    const begin = hasTime ? `[${time.slice(11, 23)}] ` : '';
    const process = pid === undefined ? '' : ` (${pid})`;
    const message = paint(cyan, withoutControls(msg));
    const { stack, details } = errorParts(err);
    const more = Object.keys(fields).length === 0 ? '' : ` ${paint(grey, shownAs(fields))}`;
    const below = stack + (details === undefined ? '' : `    ${paint(grey, shownAs(details))}\n`);
    return `${begin}${paint(code, name)}${process}: ${message}${more}\n${below}`;
  };
}

/** The indented stack of an error as pino writes it, with those of its causes; its other fields. */
function errorParts(err: unknown): { readonly stack: string; readonly details?: unknown } {
  if (err === undefined) return { stack: '' };
  if (typeof err !== 'object' || err === null) return { stack: '', details: err };
  const { stack, ...others } = err as { readonly stack?: unknown };
  if (typeof stack !== 'string') return { stack: '', details: err };
  // The stack begins with both.
  const { type: _type, message: _message, ...details } = others as Record<string, unknown>;
  const indented = withoutControls(stack).replaceAll(/^/gm, '    ');
  return { stack: `${indented}\n`, ...(Object.keys(details).length > 0 && { details }) };
}

function shownAs(value: unknown): string {
  return withoutControls(JSON.stringify(value));
}

/** Text whose only control characters are line breaks: others would reach the terminal. */
function withoutControls(text: string): string {
  return text.replaceAll(controls, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
