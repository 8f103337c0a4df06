import type { Command } from 'commander';
import { version } from '../core/values/version.ts';
import type { DefineCommand } from './command.ts';

/** `waymark manual`: prints the manual page of all commands (man(7)). */
export const defineManual: DefineCommand = (command, terminal) => {
  command
    .description('Print the manual page of all commands: waymark manual | man -l -')
    .action(() => {
      terminal.out.write(manualPage(command.parent ?? command));
    });
};

function manualPage(program: Command): string {
  const commands = program.commands.flatMap((one) => sectionOf(one, [one.name()]));
  return `.TH WAYMARK 1 "" "Waymark ${escaped(version)}" "User Commands"
.SH NAME
waymark \\- a web server with page rules
.SH SYNOPSIS
.B waymark
.I command
[options]
.SH COMMANDS
${commands.join('')}.SH EXIT STATUS
0 if the command is done, 1 if it was refused or failed, with one line on standard error, 2 for a
wrong command line.
.SH ENVIRONMENT
.TP
.B WAYMARK_CONFIG
The ini file, if
.B \\-\\-config
does not name one.
.TP
.BR WAYMARK_URL ", " WAYMARK_APIKEY
The server and the API key of the commands that call a server.
.SH FILES
.TP
.I /etc/waymark/server.ini
The ini file, if there is none in the working folder.
`;
}

/** A command that runs something, and its subcommands. */
function sectionOf(command: Command, words: readonly string[]): readonly string[] {
  const below = command.commands.flatMap((one) => sectionOf(one, [...words, one.name()]));
  if (below.length > 0) return below;
  const title = escaped(`waymark ${words.join(' ')} ${command.usage()}`);
  const options = command.options.map(
    ({ flags, description, argChoices }) =>
      `.TP\n.B ${escaped(flags)}\n${text(description, argChoices)}\n`,
  );
  return [`.SS "${title}"\n${text(command.description())}\n${options.join('')}`];
}

function text(description: string, choices: readonly string[] = []): string {
  const values = choices.length === 0 ? '' : `: ${choices.join(', ')}`;
  // A line that starts with a dot or an apostrophe would be a request.
  return escaped(`${description}${values}`).replaceAll(/^(?=[.'])/gm, '\\&');
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('"', '\\(dq');
}
