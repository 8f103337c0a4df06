import { Command, CommanderError, type Option } from 'commander';
import { version } from '../core/values/version.ts';
import { UsageError, type DefineCommand, type Terminal } from './command.ts';

/** A command; without `define`, only the help and suggestions name it. */
interface ProgramCommand {
  readonly name: string;
  readonly summary: string;
  readonly define: DefineCommand | undefined;
}

const columnsMax = 100;

/**
 * Parses a command line with commander and runs its action. Throws UsageError with the usage of the
 * command for a wrong command line, and everything that the action throws.
 */
export async function runProgram(
  words: readonly string[],
  commands: readonly ProgramCommand[],
  terminal: Terminal,
): Promise<void> {
  const program = createProgram(commands, terminal);
  eachCommand(program, (command) => command.exitOverride(exitHandler(command)));
  let running = program;
  program.hook('preAction', (_program, command) => {
    running = command;
  });
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return;
    if (error instanceof UsageError && !error.message.includes('\n')) {
      throw new UsageError(withUsage(error.message, running));
    }
    throw error;
  }
}

/** Makes the program with its commands, which are not run. */
export function createProgram(commands: readonly ProgramCommand[], terminal: Terminal): Command {
  const program = new Command('waymark')
    .description(`Waymark ${version}, a web server with page rules.`)
    .usage('<command> [options]')
    .option('-V, --version', 'print the version')
    .helpCommand('help [command...]', 'show the options of a command')
    .helpOption('-h, --help', 'show this help')
    .addHelpText(
      'after',
      '\n"waymark <command> --help" shows the options of a command.\n' +
        'A running server has the documentation: http://localhost:8080/svc1/docs/',
    );
  program.configureHelp({ optionDescription });
  writeTo(program, terminal);
  for (const { name, summary, define } of commands) {
    const command = program.command(name).summary(summary).helpCommand(false);
    define?.(command, terminal);
  }
  return program;
}

/** Prints help at the width of the terminal; the caller prints errors. */
function writeTo(program: Command, { out }: Terminal): void {
  program.configureOutput({
    writeOut: (text) => out.write(text),
    // The caller prints errors; commander would print the help of a group without a subcommand.
    writeErr: () => undefined,
    outputError: () => undefined,
    getOutHelpWidth: () => Math.min(out.columns ?? columnsMax, columnsMax),
    getOutHasColors: () => false,
  });
}

function optionDescription({ description, argChoices, defaultValue }: Option): string {
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`;
  const value: unknown = defaultValue;
  return `${description}${choices}${typeof value === 'string' ? ` (${value})` : ''}`;
}

function eachCommand(command: Command, visit: (one: Command) => void): void {
  visit(command);
  for (const one of command.commands) eachCommand(one, visit);
}

/** The function that commander calls for a command instead of `process.exit`. */
function exitHandler(command: Command): (error: CommanderError) => never {
  return (error) => {
    if (error.exitCode === 0) throw error;
    throw new UsageError(withUsage(messageOf(error, command), command));
  };
}

function messageOf({ code, message }: CommanderError, command: Command): string {
  if (code === 'commander.help') return `name a subcommand: ${namesOf(command)}.`;
  const word = code === 'commander.unknownCommand' ? /'(.*)'/.exec(message)?.[1] : undefined;
  const owners = command.commands.filter(({ commands }) =>
    commands.some((one) => one.name() === word),
  );
  if (word !== undefined && owners.length > 0) {
    const lines = owners.map((owner) => `${owner.name()} ${word}`);
    return `unknown command '${word}'. Did you mean ${lines.join(', ')}?`;
  }
  const isRemote = code === 'commander.unknownOption' && /'--(?:apikey|url)'/.test(message);
  if (isRemote && command.options.some(({ long }) => long === '--config')) {
    const [unknown = ''] = /'--\w+'/.exec(message) ?? [];
    const why = 'this command works on the data folder of this machine, without a key';
    return `unknown option ${unknown}: ${why}. Name its ini file by --config.`;
  }
  const [what = '', hint] = message.replace(/^error: /, '').split('\n(');
  return hint === undefined ? what : `${what}. ${hint.replace(/\)$/, '')}`;
}

function namesOf(command: Command): string {
  return command.commands.map((one) => one.name()).join(', ');
}

function withUsage(message: string, command: Command): string {
  const words = [command.name()];
  for (let above = command.parent; above !== null; above = above.parent)
    words.unshift(above.name());
  const name = words.join(' ');
  return `${message}\n\nUsage: ${name} ${command.usage()}\n"${name} --help" shows all options.`;
}
