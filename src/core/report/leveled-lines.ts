import type { DestinationStream } from 'pino';
import type { AccessFormat, LineSink } from '../../modules/logs/access-log.ts';
import { readableLines } from './readable-lines.ts';

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
