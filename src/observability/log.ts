import { pino, type DestinationStream, type Logger } from 'pino';
import { loadPinoPretty } from '../model/lazy-packages.ts';
import { createAccessLog, type AccessEntry, type AccessFormat, type AccessLog } from './access.ts';
import { causesFollowedMax } from './limits.ts';
import { LogFile } from './log-file.ts';

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

/** The settings of `[log]` in the ini file. */
export interface LogSettings {
  readonly level: string;
  /** The format of both logs. With `combined`, the log itself is `pretty`. */
  readonly format: AccessFormat;
  /** Absolute path of the access log file; without it, both logs share a stream. */
  readonly file?: string | undefined;
}

/** Log and access log, whose settings a reload may change. */
export interface Logs {
  readonly log: Log;
  readonly access: AccessLog;
  configure(settings: LogSettings): void;
  /** Opens the access log file again; returns its path, or undefined if there is none. */
  reopen(): string | undefined;
}

/**
 * Makes both logs, in JSON or in lines for people. `now` gives milliseconds since 1970. The caller
 * flushes the access log at intervals.
 */
export function createLogs({
  settings,
  destination,
  colour,
  now,
}: {
  readonly settings: LogSettings;
  readonly destination: NodeJS.WritableStream;
  readonly colour: boolean;
  readonly now: () => number;
}): Logs {
  // Made once, because each one adds listeners to the destination that it never removes.
  let pretty: DestinationStream | undefined;
  const createLogger = ({ level, format }: LogSettings): Logger =>
    pino(
      { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
      format === 'json'
        ? (destination as unknown as DestinationStream)
        : (pretty ??= prettyStream(destination, colour)),
    );
  let logger = createLogger(settings);
  const failed = (error: Error): void => {
    logger.error({ reason: reasonOf(error) }, 'Cannot write the access log file.');
  };
  let file: LogFile | undefined;
  const createLines = ({ format, file: path }: LogSettings): AccessLog => {
    if (file?.path !== path) {
      file?.reopen();
      file = path === undefined ? undefined : new LogFile(path, { now, failed });
    }
    return createAccessLog({ format, sink: file ?? destination, now });
  };
  let lines = createLines(settings);
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
    access: {
      add: (entry: AccessEntry) => {
        lines.add(entry);
      },
      flush: () => {
        lines.flush();
      },
    },
    configure(next) {
      lines.flush();
      logger = createLogger(next);
      lines = createLines(next);
    },
    reopen() {
      lines.flush();
      file?.reopen();
      return file?.path;
    },
  };
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

function prettyStream(destination: NodeJS.WritableStream, colorize: boolean): DestinationStream {
  return loadPinoPretty().PinoPretty({
    colorize,
    singleLine: true,
    translateTime: 'UTC:HH:MM:ss.l',
    destination: destination as unknown as DestinationStream,
  });
}
