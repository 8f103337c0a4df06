import { pino, type DestinationStream, type Logger } from 'pino';
import { loadPinoPretty } from '../model/lazy-packages.ts';
import { createAccessLog, type AccessLineSettings, type AccessLog } from './access.ts';
import type { AccessEntry } from './access-entry.ts';
import { causesFollowedMax } from './limits.ts';
import { LogFile } from './log-file.ts';
import type { RotationSettings } from './log-rotation.ts';

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
}

/** Log and access log, whose settings a reload may change. */
export interface Logs {
  readonly log: Log;
  readonly access: AccessLog;
  configure(settings: LogSettings): void;
  /** Resolves when the lines of the access log are in their file. */
  end(): Promise<void>;
  /** The settings in use. */
  settings(): LogSettings;
  /** Opens the access log file again; returns its path, or undefined if there is none. */
  reopen(): string | undefined;
}

/**
 * Makes both logs, in JSON or in lines for people. `now` gives milliseconds since 1970. The caller
 * flushes the access log at intervals.
 */
export function createLogs({
  settings: first,
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
  let settings = first;
  let logger = createLogger(settings);
  const failed = (error: Error): void => {
    logger.error({ reason: reasonOf(error) }, 'Cannot write the access log file.');
  };
  const access = new AccessOutput(first, { destination, now, failed });
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
      logger = createLogger(next);
      access.configure(next);
    },
    reopen: () => access.reopen(),
    end: () => access.end(),
  };
}

interface AccessParts {
  /** Where lines go without a file. */
  readonly destination: NodeJS.WritableStream;
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

  #open({ format, fields, line, file: path }: LogSettings): AccessLog {
    const { destination, now, failed } = this.#parts;
    if (this.#file?.path !== path) {
      this.#file?.reopen();
      this.#file = path === undefined ? undefined : new LogFile(path, { now, failed });
    }
    return createAccessLog({ format, fields, line, sink: this.#file ?? destination, now });
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

function prettyStream(destination: NodeJS.WritableStream, colorize: boolean): DestinationStream {
  return loadPinoPretty().PinoPretty({
    colorize,
    singleLine: true,
    translateTime: 'UTC:HH:MM:ss.l',
    destination: destination as unknown as DestinationStream,
  });
}
