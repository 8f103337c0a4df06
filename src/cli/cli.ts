import { availableParallelism, hostname } from 'node:os';
import type { Command } from 'commander';
import type { CommandEntry } from '../core/module.ts';
import { Failure } from '../core/values/failure.ts';
import { missingIn } from '../core/values/lazy-packages.ts';
import { versionText } from '../core/values/version.ts';
import {
  writeLine,
  UsageError,
  type DefineCommand,
  type Output,
  type Terminal,
} from './command.ts';

/** The commands that the command line itself has; the others come with the modules. */
const own: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'run the server',
    load: async () => (await import('./serve/serve.ts')).defineServe,
  },
  {
    name: 'restart',
    summary: 'replace the running server without refusing a request',
    load: async () => (await import('./serve/restart.ts')).defineRestart,
  },
  {
    name: 'check',
    summary: 'validate the ini file, or the data',
    load: async () => (await import('./local/check.ts')).defineCheck,
  },
  {
    name: 'password',
    summary: 'print the line of a user for a password file',
    load: async () => (await import('./local/password.ts')).definePassword,
  },
  {
    name: 'link',
    summary: 'make links to protected pages that end',
    load: async () => (await import('./local/link.ts')).defineLink,
  },
  {
    name: 'explain',
    summary: 'say which source answers a URL, and why',
    load: async () => (await import('./remote/explain.ts')).defineExplain,
  },
  {
    name: 'module',
    summary: 'write modules that add to the server',
    load: async () => (await import('./local/module.ts')).defineModuleCommand,
  },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    load: async () => (await import('./completion.ts')).defineCompletion,
  },
  {
    name: 'manual',
    summary: 'print the manual page',
    load: async () => (await import('./manual.ts')).defineManual,
  },
];

/** The commands whose output describes all commands. */
const ofAll: ReadonlySet<string | undefined> = new Set(['completion', 'manual']);

/**
 * Runs a command line, without its `node waymark`; by default on the terminal of this process.
 * Resolves to the exit code (docs/design/configuration.md#commands).
 */
export async function run(
  words: readonly string[],
  terminal: Terminal = ownTerminal(),
): Promise<number> {
  const [first = '--help', ...rest] = words;
  if (first === '--version' || first === '-V' || first === 'version') {
    writeLine(terminal.out, versionText);
    return 0;
  }
  const { runProgram } = await import('./program.ts');
  const name = first === 'help' ? rest[0] : first;
  const isAlone = !ofAll.has(name) && own.some((entry) => entry.name === name);
  const known = isAlone ? own : await allEntries();
  const all = isCommand(name, known) ? known : [...known, ...(await entriesOfIni(words, terminal))];
  const line = first === 'help' ? helpWords(rest, all) : [first, ...rest];
  // These, and suggestions for an unknown command, need the subcommands of all commands.
  const needsAll = ofAll.has(line[0]) || !isCommand(line[0], all);
  try {
    terminal.exitCode = 0;
    const commands = await Promise.all(
      all.map(async (entry) => {
        const { name, summary } = entry;
        return {
          name,
          summary,
          define: needsAll || name === line[0] ? await loaded(entry) : undefined,
        };
      }),
    );
    await runProgram(line, commands, terminal);
    return terminal.exitCode;
  } catch (error) {
    if (error instanceof UsageError) {
      writeLine(terminal.err, `waymark: ${error.message}`);
      return 2;
    }
    if (!(error instanceof Failure) || error.code === 'internal') throw error;
    writeLine(terminal.err, `waymark: ${error.message}`);
    if (error.docs !== undefined) writeLine(terminal.err, `See ${error.docs}`);
    return 1;
  }
}

/** All commands with their subcommands, arguments and options, for documents about them. */
export async function allCommands(): Promise<Command> {
  const { createProgram } = await import('./program.ts');
  const all = (await allEntries()).map(async (entry) => ({
    ...entry,
    define: await loaded(entry),
  }));
  return createProgram(await Promise.all(all), ownTerminal());
}

/** `help rule insert` means `rule insert --help`; an unknown command is refused later. */
function helpWords(words: readonly string[], commands: readonly CommandEntry[]): readonly string[] {
  const [name] = words;
  return name === undefined || isCommand(name, commands) ? [...words, '--help'] : words;
}

function isCommand(word: string | undefined, commands: readonly CommandEntry[]): boolean {
  return word?.startsWith('-') === true || commands.some(({ name }) => name === word);
}

/** The commands of the command line and of all modules, by their names. */
async function allEntries(): Promise<readonly CommandEntry[]> {
  const { modules } = await import('../modules.ts');
  const ofModules = modules.flatMap(({ commands = [] }) => commands);
  return [...own, ...ofModules].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** The commands of the modules that the ini file names. */
async function entriesOfIni(
  words: readonly string[],
  terminal: Terminal,
): Promise<readonly CommandEntry[]> {
  const { moduleCommands } = await import('./remote/module-commands.ts');
  return moduleCommands(words, terminal);
}

/** Loads a command; the core, which has the contract of modules, does not know what defines one. */
async function loaded(entry: CommandEntry): Promise<DefineCommand> {
  try {
    return (await entry.load()) as DefineCommand;
  } catch (error) {
    const name = missingIn(error);
    if (name === undefined) throw error;
    throw new UsageError(`waymark ${entry.name} needs the package ${name}: npm install ${name}`);
  }
}

function ownTerminal(): Terminal {
  const { env, stdout: out, stderr: err } = process;
  out.on('error', (error: NodeJS.ErrnoException) => {
    // A command with its own listener reports the error itself.
    if (out.listenerCount('error') === 1) handleOutputError(error, err);
  });
  // If standard error is closed, nothing can be reported.
  err.on('error', () => undefined);
  return {
    out,
    err,
    input: () => process.stdin,
    env,
    readConfig: async (file, options = {}) => {
      const { readConfig } = await import('../core/config/read.ts');
      const { iniSections: sections } = await import('../sections.ts');
      const [cores, hostName] = [availableParallelism(), hostname()];
      const takenNames = async () => {
        const { namesOf } = await import('../core/loader.ts');
        return namesOf((await import('../modules.ts')).modules);
      };
      return readConfig({ file, sections, env, cores, hostName, takenNames, ...options });
    },
  };
}

/**
 * If a reader such as `head` closes the pipe early, the command still runs to its end. Any other
 * error of standard output ends the process.
 */
function handleOutputError({ code = '' }: NodeJS.ErrnoException, err: Output): void {
  if (code === 'EPIPE') return;
  writeLine(err, `waymark: cannot write to standard output (${code})`);
  process.exit(1);
}
