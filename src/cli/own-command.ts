import { isSea } from 'node:sea';

/** A command line that runs this program with other arguments. */
interface OwnCommand {
  readonly file: string;
  readonly nodeFlags: readonly string[];
  /** The script that Node.js runs; undefined in the single executable, which contains it. */
  readonly script: string | undefined;
  readonly words: readonly string[];
}

/** The command line of this program with other arguments. */
export function ownCommand(words: readonly string[]): OwnCommand {
  const [file, nodeFlags] = [process.execPath, process.execArgv];
  // A single executable gets its flags from itself; it takes others for words of the command line.
  if (isSea()) return { file, nodeFlags: [], script: undefined, words };
  return { file, nodeFlags, script: process.argv[1], words };
}
