import { Command, CommanderError, type Option } from 'commander';
import { version } from '../version.ts';
import { UsageError, type DefineCommand, type Terminal } from './command.ts';

/** A command of the program; without `define` it is only named in the help and in suggestions. */
interface ProgramCommand {
  readonly name: string;
  readonly summary: string;
  readonly define: DefineCommand | undefined;
}

const columnsMax = 100;

/**
 * Parses words with commander and runs the action that they name. Throws UsageError, with the usage
 * of the command, for words that do not fit, and whatever the action throws.
 */
export async function runProgram(
  words: readonly string[],
  commands: readonly ProgramCommand[],
  terminal: Terminal,
): Promise<void> {
  const program = new Command('waymark')
    .description(`Waymark ${version}, a web server with page rules.`)
    .usage('<command> [options]')
    .option('-V, --version', 'print the version')
    .helpCommand('help [command...]', 'show the options of a command')
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', '\n"waymark <command> --help" shows the options of a command.');
  program.configureHelp({ optionDescription });
  writeTo(program, terminal);
  for (const { name, summary, define } of commands) {
    const command = program.command(name).summary(summary).helpCommand(false);
    define?.(command, terminal);
  }
  eachCommand(program, (command) => command.exitOverride(endOf(command)));
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

/** Help goes to the terminal, at its width; errors are written by the caller. */
function writeTo(program: Command, { out }: Terminal): void {
  program.configureOutput({
    writeOut: (text) => out.write(text),
    // The caller writes errors; of a group without a subcommand they name the subcommands.
    writeErr: () => undefined,
    outputError: () => undefined,
    getOutHelpWidth: () => Math.min(out.columns ?? columnsMax, columnsMax),
    getOutHasColors: () => false,
  });
}

function optionDescription({ description, argChoices, defaultValue }: Option): string {
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`;
  const used: unknown = defaultValue;
  return `${description}${choices}${typeof used === 'string' ? ` (${used})` : ''}`;
}

function eachCommand(command: Command, visit: (one: Command) => void): void {
  visit(command);
  for (const one of command.commands) eachCommand(one, visit);
}

/** What commander calls in place of `process.exit`, for one command. */
function endOf(command: Command): (error: CommanderError) => never {
  return (error) => {
    if (error.exitCode === 0) throw error;
    throw new UsageError(withUsage(messageOf(error, command), command));
  };
}

function messageOf({ code, message }: CommanderError, command: Command): string {
  if (code === 'commander.help') return `say what to do: ${namesOf(command)}.`;
  const said = message.replace(/^error: /, '');
  const [what = '', hint] = said.split('\n(');
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
