import { pino, type DestinationStream, type Logger } from 'pino';
import { PinoPretty } from 'pino-pretty';
import { createAccessLog, type AccessEntry, type AccessFormat, type AccessLog } from './access.ts';
import { causesFollowedMax } from './limits.ts';
import { LogFile } from './log-file.ts';

/**
 * The server's log: a message for a person with fields for a machine; an error goes under `err`.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A log that nobody reads. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** `[log]` of the ini file, as far as it says how lines look. */
export interface LogSettings {
  readonly level: string;
  /** That of the access log; of the log itself `combined` is `pretty`. */
  readonly format: AccessFormat;
  /** Absolute path of a file for the access log, instead of the stream of both logs. */
  readonly file?: string | undefined;
}

/** Log and access log, on one stream and under settings that a reload may change. */
export interface Logs {
  readonly log: Log;
  readonly access: AccessLog;
  configure(settings: LogSettings): void;
  /** Opens the file of the access log again; returns its path, undefined where there is none. */
  reopen(): string | undefined;
}

/**
 * Makes both logs: JSON, one object a line, or with `pretty` one line for a person. `now` gives
 * milliseconds since 1970; the caller flushes the access log at intervals.
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
  // Made once: each one stays tied to the destination for good.
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
    logger.error({ reason: reasonOf(error) }, 'The access log cannot be written to its file.');
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
 * Why something failed, in one line: the messages of an error and its causes. For failures that are
 * expected, such as a server that refuses connections, whose stack would tell nothing.
 */
export function reasonOf(error: unknown): string {
  const said: string[] = [];
  let at: unknown = error;
  for (let depth = 0; depth < causesFollowedMax && at instanceof Error; depth += 1) {
    const text = at.message === '' ? ((at as NodeJS.ErrnoException).code ?? at.name) : at.message;
    if (said.at(-1) !== text) said.push(text);
    at = at instanceof AggregateError ? (at.errors as readonly unknown[])[0] : at.cause;
  }
  return said.join(': ');
}

function prettyStream(destination: NodeJS.WritableStream, colorize: boolean): DestinationStream {
  return PinoPretty({
    colorize,
    singleLine: true,
    translateTime: 'UTC:HH:MM:ss.l',
    destination: destination as unknown as DestinationStream,
  });
}
