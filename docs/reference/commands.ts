import type { Command } from 'commander';
import { allCommands } from '../../src/cli/cli.ts';
import { markdownTable } from './schema-text.ts';

/** A command of the command line without subcommands. */
export interface DocumentedCommand {
  /** Its words without `waymark`: `rule list`. */
  readonly name: string;
  /** The words with their arguments: `rule read <id>`. */
  readonly usage: string;
  readonly description: string;
  readonly arguments: readonly (readonly [string, string])[];
  readonly options: readonly (readonly [string, string])[];
}

/** All commands, as the program itself defines them. */
export async function documentedCommands(): Promise<readonly DocumentedCommand[]> {
  return leaves(await allCommands(), []);
}

function leaves(command: Command, words: readonly string[]): readonly DocumentedCommand[] {
  const own = command.commands.flatMap((one) => leaves(one, [...words, one.name()]));
  const isGroup = command.commands.length > 0;
  return isGroup ? own : [documented(command, words)];
}

function documented(command: Command, words: readonly string[]): DocumentedCommand {
  const name = words.join(' ');
  const args = command.registeredArguments.map((one) => {
    const text = `${one.name()}${one.variadic ? '…' : ''}`;
    return [one.required ? `<${text}>` : `[${text}]`, one.description] as const;
  });
  const summary = command.summary();
  return {
    name,
    usage: [name, ...args.map(([text]) => text)].join(' '),
    description: command.description() === '' ? summary : command.description(),
    arguments: args,
    options: command.options.map(({ flags, description, argChoices, defaultValue }) => {
      const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`;
      const value = typeof defaultValue === 'string' ? ` (${defaultValue})` : '';
      return [flags, `${description}${choices}${value}`] as const;
    }),
  };
}

/** The reference of all commands and their options. */
export function commandsPage(commands: readonly DocumentedCommand[]): string {
  const parts = commands.map(({ name, usage, description, arguments: args, options }) => {
    const rows = [...args, ...options].map(([flags, text]) => [`\`${flags}\``, text]);
    const table = rows.length === 0 ? '' : `\n\n${markdownTable(['', 'meaning'], rows)}`;
    const sentence = /[.…]$/.test(description) ? description : `${description}.`;
    return `## waymark ${name}\n\n\`waymark ${usage}\`\n\n${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}${table}\n`;
  });
  return `# Commands

\`waymark --help\` lists the commands, and \`waymark rule list --help\` shows the options of one. Exit codes: 0 done, 1
refused or failed with one line on standard error, 2 wrong command line.

Every command uses the ini file that \`--config\` or \`WAYMARK_CONFIG\` names, or else the first one that exists of
\`./server.ini\`, \`./conf/server.ini\` and \`/etc/waymark/server.ini\`. Commands that call the HTTP API find the server by
\`--url\`, \`--config\`, \`WAYMARK_URL\`, or that ini file; \`--apikey\` or \`WAYMARK_APIKEY\` has the key.

${parts.join('\n')}`;
}
