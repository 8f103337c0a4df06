import { availableParallelism, hostname } from 'node:os';
import { Failure } from '../model/failure.ts';
import { version } from '../version.ts';
import { say, UsageError, type Command, type Output, type Terminal } from './command.ts';

/** Each command, loaded when it is asked for: most need a small part of what there is. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  check: async () => (await import('./check.ts')).check,
  key: async () => (await import('./key.ts')).key,
  explain: async () => (await import('./explain.ts')).explain,
  rule: async () => (await import('./rule.ts')).rule,
  hook: async () => (await import('./hook.ts')).hook,
  event: async () => (await import('./event.ts')).event,
  cache: async () => (await import('./cache.ts')).cache,
  export: async () => (await import('./export.ts')).exportCommand,
  import: async () => (await import('./import.ts')).importCommand,
  backup: async () => (await import('./backup.ts')).backup,
};

/**
 * Runs a command line, without its `node waymark`, on a terminal: that of this process unless told
 * otherwise. Resolves to the exit code (contract §1).
 */
export async function run(
  words: readonly string[],
  terminal: Terminal = ownTerminal(),
): Promise<number> {
  const { out, err } = terminal;
  const [name = 'help', ...rest] = words;
  const command = Object.hasOwn(commands, name) ? await commands[name]?.() : undefined;
  if (name === 'help' || words.includes('--help') || words.includes('-h')) {
    out.write(await usage(command));
    return 0;
  }
  if (name === '--version' || name === 'version') {
    say(out, version);
    return 0;
  }
  try {
    if (command === undefined) throw new UsageError(`There is no command ${JSON.stringify(name)}.`);
    return await command.run(rest, terminal);
  } catch (error) {
    if (error instanceof UsageError) {
      err.write(`waymark: ${error.message}\n\n${await usage(command)}`);
      return 2;
    }
    if (!(error instanceof Failure) || error.code === 'internal') throw error;
    say(err, `waymark: ${error.message}`);
    return 1;
  }
}

function ownTerminal(): Terminal {
  const { env, stdout: out, stderr: err } = process;
  out.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever listens besides sees to it.
    if (out.listenerCount('error') === 1) outputLost(error, err);
  });
  // Of that, nobody could be told.
  err.on('error', () => undefined);
  return {
    out,
    err,
    input: () => process.stdin,
    env,
    readConfig: async (file, { isReload } = { isReload: false }) => {
      const { readConfig } = await import('../config/read.ts');
      const [cores, hostName] = [availableParallelism(), hostname()];
      return readConfig({ file, env, cores, hostName, isReload });
    },
  };
}

/**
 * Whoever reads may have enough, as `head` has: what was asked for is done all the same. Any other
 * failure to write an answer ends the process.
 */
function outputLost({ code = '' }: NodeJS.ErrnoException, err: Output): void {
  if (code === 'EPIPE') return;
  say(err, `waymark: standard output cannot be written (${code})`);
  process.exit(1);
}

async function usage(command: Command | undefined): Promise<string> {
  if (command !== undefined) return `waymark ${command.usage}\n    ${command.summary}\n`;
  const all = await Promise.all(Object.values(commands).map((load) => load()));
  const lines = all.map((one) => `  waymark ${one.usage}\n      ${one.summary}`);
  return `Waymark ${version}, a web server with page rules.\n\n${lines.join('\n')}\n`;
}
