import type { Writable } from 'node:stream';
import type { ConfigResult } from '../config/config.ts';

/** Where a command writes; a terminal says that it is one. */
export type Output = Writable & { readonly isTTY?: boolean };

/** What a command works with: where it writes, and what it knows of its surroundings. */
export interface Terminal {
  /** What a script wants. */
  readonly out: Output;
  /** What a person wants to know besides. */
  readonly err: Output;
  /** What is written to the command. */
  readonly input: () => AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads the ini file that `--config` names; `isReload` as readConfig of config/ has it. */
  readonly readConfig: (
    file: string,
    given?: { readonly isReload: boolean },
  ) => Promise<ConfigResult>;
}

/** A command of the command line. */
export interface Command {
  /** Its words and options after `waymark`, as the usage shows them. */
  readonly usage: string;
  readonly summary: string;
  /**
   * Resolves to the exit code: 0 done, 1 refused or failed. Throws UsageError for wrong words; a
   * Failure becomes one line on standard error.
   */
  readonly run: (words: readonly string[], terminal: Terminal) => Promise<number>;
}

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
