import { pino, type DestinationStream, type Logger } from 'pino';
import { PinoPretty } from 'pino-pretty';
import { createAccessLog, type AccessEntry, type AccessLog } from './access.ts';

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
  readonly format: 'pretty' | 'json';
}

/** Log and access log, on one stream and under settings that a reload may change. */
export interface Logs {
  readonly log: Log;
  readonly access: AccessLog;
  configure(settings: LogSettings): void;
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
  let lines = createAccessLog({ format: settings.format, sink: destination, now });
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
      lines = createAccessLog({ format: next.format, sink: destination, now });
    },
  };
}

function prettyStream(destination: NodeJS.WritableStream, colorize: boolean): DestinationStream {
  return PinoPretty({
    colorize,
    singleLine: true,
    translateTime: 'UTC:HH:MM:ss.l',
    destination: destination as unknown as DestinationStream,
  });
}
