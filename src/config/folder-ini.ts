import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import type { Environment } from './substitute.ts';

/** What a command line says about a folder that is served without an ini file. */
export interface FolderSettings {
  /** As `[server] listen`. */
  readonly listen?: readonly string[];
}

/**
 * The ini text of a folder that is served without an ini file, and the environment for the
 * `${NAME}` in it: values need no quotes there, whatever is in the name of the folder.
 */
export function folderIni(
  folder: string,
  { listen = [] }: FolderSettings,
  env: Environment,
): { readonly text: string; readonly env: Environment } {
  const addresses = listen.map((address, at) => [`LISTEN_${at}`, address] as const);
  const text = [
    '[server]',
    ...addresses.map(([name]) => `listen[] = \${${name}}`),
    'data = ${DATA}',
    '[disk.folder]',
    'root = ${FOLDER}',
    'listing = yes',
    'cache_control = no-cache',
  ].join('\n');
  const data = folderData(folder, env);
  return { text, env: { ...Object.fromEntries(addresses), DATA: data, FOLDER: folder } };
}

const hashCharacters = 8;

/** Where the data of a folder is kept: below the user's data folder (XDG Base Directory). */
function folderData(folder: string, env: Environment): string {
  const { XDG_DATA_HOME: given = '', HOME: home = homedir() } = env;
  const base = given.startsWith('/') ? given : join(home, '.local', 'share');
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, hashCharacters);
  return join(base, 'waymark', `${basename(folder) || 'root'}-${hash}`);
}
