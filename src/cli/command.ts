import type { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { ConfigResult } from '../config/config.ts';
import type { FolderSettings } from '../config/read.ts';

/** A stream that a command writes to; a terminal has `isTTY`. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** The process that a command runs in: its streams, its environment, its exit code. */
export interface Terminal {
  /** Standard output: what a script reads. */
  readonly out: Output;
  /** Standard error: notes and failures, for a person. */
  readonly err: Output;
  /** Standard input. */
  readonly input: () => AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads an ini file, or the settings of a folder, as readConfig of config/ does. */
  readonly readConfig: (
    file: string,
    given?: { readonly isReload?: boolean; readonly folder?: FolderSettings },
  ) => Promise<ConfigResult>;
  /**
   * What the command ends with, unless it throws: 0 where nobody sets it
   * (docs/design/configuration.md#commands).
   */
  exitCode?: number;
}

/**
 * Gives a command, which has its name and summary, its description, arguments, options, subcommands
 * and actions. An action throws UsageError for wrong words, and a Failure for anything else that
 * becomes one line on standard error.
 */
export type DefineCommand = (command: Command, terminal: Terminal) => void;

/** Words of a command line that do not fit together: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Writes a line. */
export function say(stream: Output, line: string): void {
  stream.write(`${line}\n`);
}
