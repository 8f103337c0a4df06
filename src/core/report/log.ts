import type { AccessLog } from './access-entry.ts';
import { isDeepStrictEqual } from 'node:util';
import { type DestinationStream, type Logger, pino } from 'pino';
import {
  type AccessLineSettings,
  type LineSink,
  createAccessLog,
} from '../../modules/logs/access-log.ts';
import { LogFile } from '../../modules/logs/log-file.ts';
import type { RotationSettings } from '../../modules/logs/log-rotation.ts';
import type { SyslogAddress } from '../../modules/logs/syslog-message.ts';
import type { AccessEntry } from './access-entry.ts';
import {
  type LeveledSink,
  journalSink,
  messageLines,
  readableLines,
  requestLines,
} from './line-formats.ts';

/** How deep the causes of an error are followed for its reason. */
const causesFollowedMax = 5;

/** The server's log: a message for people, and fields for programs; `err` is an error. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A log that writes nothing. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/**
 * The settings of `[log]` in the ini file; `format` is that of both logs. Without `file`, both logs
 * share a stream.
 */
export interface LogSettings extends AccessLineSettings, RotationSettings {
  readonly level: string;
  /** Where both logs go in place of standard output, except for the access log with a file. */
  readonly syslog?: SyslogAddress | undefined;
}

/** Opens syslog; `failed` gets the first of several failures in a row. */
type OpenSyslog = (address: SyslogAddress, failed: (error: Error) => void) => LeveledSink;

/** Log and access log, whose settings a reload may change. */
export interface Logs {
  readonly log: Log;
  readonly access: AccessLog;
  configure(settings: LogSettings): void;
  /** Resolves when all lines are written, or cannot be. */
  end(): Promise<void>;
  /** The settings in use. */
  settings(): LogSettings;
  /** Opens the access log file again; returns its path, or undefined if there is none. */
  reopen(): string | undefined;
}

/** Where the lines go. */
interface LogOutput {
  readonly destination: NodeJS.WritableStream;
  readonly colour: boolean;
  /** Whether journald reads the destination, and with it the priority of each line. */
  readonly isJournal?: boolean;
  readonly openSyslog?: OpenSyslog;
}

/**
 * Makes both logs, in JSON or in lines for people. `now` gives milliseconds since 1970. The caller
 * flushes the access log at intervals.
 */
export function createLogs({
  settings: first,
  now,
  ...output
}: LogOutput & { readonly settings: LogSettings; readonly now: () => number }): Logs {
  const outputs = new Outputs(output);
  let settings = first;
  let logger = outputs.logger(first);
  const failed = (error: Error): void => {
    logger.error({ reason: reasonOf(error) }, 'Cannot write the access log file.');
  };
  const access = new AccessOutput(first, { outputs, now, failed });
  return {
    log: {
      debug: (fields, message) => {
        logger.debug(fields, message);
      },
      info: (fields, message) => {
        logger.info(fields, message);
      },
      warn: (fields, message) => {
        logger.warn(fields, message);
      },
      error: (fields, message) => {
        logger.error(fields, message);
      },
    },
    access,
    settings: () => settings,
    configure(next) {
      settings = next;
      logger = outputs.logger(next);
      access.configure(next);
    },
    reopen: () => access.reopen(),
    end: async () => {
      await access.end();
      await outputs.end();
    },
  };
}

/** The destinations of lines that have no file. */
class Outputs {
  readonly #output: LogOutput;
  readonly #journal: LeveledSink | undefined;
  #syslog: { readonly address: SyslogAddress; readonly sink: LeveledSink } | undefined;

  constructor(output: LogOutput) {
    this.#output = output;
    this.#journal = output.isJournal === true ? journalSink(output.destination) : undefined;
  }

  logger(settings: LogSettings): Logger {
    const sink = this.#sink(settings);
    const { level, format } = settings;
    return this.#logger(level, sink ? messageLines(sink, format) : this.#plain(settings));
  }

  requests(settings: LogSettings): LineSink {
    const sink = this.#sink(settings);
    return sink === undefined ? this.#output.destination : requestLines(sink);
  }

  async end(): Promise<void> {
    await this.#syslog?.sink.end();
  }

  #logger(level: string, destination: DestinationStream): Logger {
    return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  }

  #plain({ format }: LogSettings): DestinationStream {
    const { destination, colour } = this.#output;
    if (format === 'json') return destination;
    const readable = readableLines({ colour, hasTime: true });
    return { write: (line) => destination.write(readable(line)) };
  }

  /** The sink that treats lines by their severity; undefined for plain lines. */
  #sink(settings: LogSettings): LeveledSink | undefined {
    const { syslog: address, format } = settings;
    const { openSyslog } = this.#output;
    const isSame = isDeepStrictEqual(this.#syslog?.address, address);
    if (!isSame) {
      void this.#syslog?.sink.end();
      this.#syslog = undefined;
    }
    if (address === undefined || openSyslog === undefined) return this.#journal;
    const failed = (error: Error): void => {
      const stream = this.#journal ? messageLines(this.#journal, format) : this.#plain(settings);
      const fields = { reason: reasonOf(error) };
      this.#logger('error', stream).error(fields, 'Cannot send log lines to syslog.');
    };
    this.#syslog ??= { address, sink: openSyslog(address, failed) };
    return this.#syslog.sink;
  }
}

interface AccessParts {
  readonly outputs: Outputs;
  readonly now: () => number;
  readonly failed: (error: Error) => void;
}

/** The access log, whose settings may change. */
class AccessOutput implements AccessLog {
  readonly #parts: AccessParts;
  #file: LogFile | undefined;
  #lines: AccessLog;

  constructor(settings: LogSettings, parts: AccessParts) {
    this.#parts = parts;
    this.#lines = this.#open(settings);
  }

  add(entry: AccessEntry): void {
    this.#lines.add(entry);
  }

  flush(): void {
    this.#lines.flush();
  }

  configure(settings: LogSettings): void {
    this.flush();
    this.#lines = this.#open(settings);
  }

  reopen(): string | undefined {
    this.flush();
    this.#file?.reopen();
    return this.#file?.path;
  }

  async end(): Promise<void> {
    this.flush();
    await this.#file?.end();
  }

  #open(settings: LogSettings): AccessLog {
    const { format, fields, line, file: path } = settings;
    const { outputs, now, failed } = this.#parts;
    if (this.#file?.path !== path) {
      this.#file?.reopen();
      this.#file = path === undefined ? undefined : new LogFile(path, { now, failed });
    }
    return createAccessLog({
      format,
      fields,
      line,
      sink: this.#file ?? outputs.requests(settings),
      now,
    });
  }
}

/**
 * The messages of an error and its causes as one line, for expected failures that need no stack
 * trace, such as a server that refuses connections.
 */
export function reasonOf(error: unknown): string {
  const messages: string[] = [];
  let at: unknown = error;
  for (let depth = 0; depth < causesFollowedMax && at instanceof Error; depth += 1) {
    const text = at.message === '' ? ((at as NodeJS.ErrnoException).code ?? at.name) : at.message;
    if (messages.at(-1) !== text) messages.push(text);
    at = at instanceof AggregateError ? (at.errors as readonly unknown[])[0] : at.cause;
  }
  return messages.join(': ');
}
