import { customModules } from '../../core/custom/custom-module.ts';
import type { CommandEntry } from '../../core/module.ts';
import type { Terminal } from '../command.ts';
import { findConfigFile } from '../options.ts';
import { clientCommand } from './client-command.ts';
import { operationSubcommands } from './operation-command.ts';

/**
 * The commands of the modules that the ini file names, each with the operations of its module. None
 * without an ini file that can be read.
 */
export async function moduleCommands(
  words: readonly string[],
  terminal: Terminal,
): Promise<readonly CommandEntry[]> {
  const file = findConfigFile(configOf(words), terminal);
  const result = file === undefined ? undefined : await terminal.readConfig(file);
  if (result?.ok !== true) return [];
  const modules = await customModules(result.config);
  return modules.map(({ name, operations = [] }) => ({
    name,
    summary: `call the operations of the module ${name}`,
    load: () =>
      Promise.resolve(
        clientCommand({
          description: `Call the operations of the module ${name} through the HTTP API.`,
          subcommands: operationSubcommands(name, {}, [], operations),
        }),
      ),
  }));
}

/** The ini file that a command line names. */
function configOf(words: readonly string[]): string | undefined {
  const at = words.indexOf('--config');
  const joined = words.find((word) => word.startsWith('--config='));
  return at === -1 ? joined?.slice('--config='.length) : words[at + 1];
}
