import type { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { ConfigResult } from '../core/config/config.ts';
import type { FolderSettings } from '../core/config/read.ts';
import { linesWithoutControls } from '../core/report/escape.ts';

/** A stream that a command writes to; a terminal has `isTTY`. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** The process that a command runs in: its streams, its environment, its exit code. */
export interface Terminal {
  /** Standard output: results, which scripts read. */
  readonly out: Output;
  /** Standard error: notes and failures, for people. */
  readonly err: Output;
  /** Standard input. */
  readonly input: () => AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads an ini file, or the settings of a folder; see readConfig in config/read.ts. */
  readonly readConfig: (
    file: string,
    options?: { readonly isReload?: boolean; readonly folder?: FolderSettings },
  ) => Promise<ConfigResult>;
  /** The exit code of the command, unless it throws; by default 0. */
  exitCode?: number;
}

/**
 * Adds description, arguments, options, subcommands and actions to a command. An action throws
 * UsageError for a wrong command line, and a Failure for any other error that becomes one line on
 * standard error.
 */
export type DefineCommand = (command: Command, terminal: Terminal) => void;

/** A wrong command line: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Writes a line, or several, in which nothing of what visitors have sent controls the terminal. */
export function writeLine(stream: Output, line: string): void {
  stream.write(`${linesWithoutControls(line)}\n`);
}
