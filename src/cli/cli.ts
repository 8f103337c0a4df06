import { availableParallelism, hostname } from 'node:os';
import { readConfig } from '../config/read.ts';
import { version } from '../main.ts';
import { Failure } from '../model/failure.ts';
import { backup } from './backup.ts';
import { cache } from './cache.ts';
import { check } from './check.ts';
import { say, UsageError, type Command, type Terminal } from './command.ts';
import { event } from './event.ts';
import { explain } from './explain.ts';
import { exportCommand } from './export.ts';
import { hook } from './hook.ts';
import { importCommand } from './import.ts';
import { key } from './key.ts';
import { rule } from './rule.ts';
import { serve } from './serve.ts';

const commands: Readonly<Record<string, Command>> = {
  serve,
  check,
  key,
  explain,
  rule,
  hook,
  event,
  cache,
  export: exportCommand,
  import: importCommand,
  backup,
};

/** Runs a command line, without its `node waymark`; resolves to the exit code (contract §1). */
export async function run(words: readonly string[]): Promise<number> {
  const { env, stdout: out, stderr: err } = process;
  const terminal: Terminal = {
    out,
    err,
    input: () => process.stdin,
    env,
    readConfig: (file) =>
      readConfig({ file, env, cores: availableParallelism(), hostName: hostname() }),
  };
  const [name = 'help', ...rest] = words;
  if (name === 'help' || words.includes('--help') || words.includes('-h')) {
    out.write(usage(Object.hasOwn(commands, name) ? commands[name] : undefined));
    return 0;
  }
  if (name === '--version' || name === 'version') {
    say(out, version);
    return 0;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  try {
    if (command === undefined) throw new UsageError(`There is no command ${JSON.stringify(name)}.`);
    return await command.run(rest, terminal);
  } catch (error) {
    if (error instanceof UsageError) {
      err.write(`waymark: ${error.message}\n\n${usage(command)}`);
      return 2;
    }
    if (!(error instanceof Failure) || error.code === 'internal') throw error;
    say(err, `waymark: ${error.message}`);
    return 1;
  }
}

function usage(command: Command | undefined): string {
  if (command !== undefined) return `waymark ${command.usage}\n    ${command.summary}\n`;
  const lines = Object.values(commands).map(
    (one) => `  waymark ${one.usage}\n      ${one.summary}`,
  );
  return `Waymark ${version}, a web server with page rules.\n\n${lines.join('\n')}\n`;
}
