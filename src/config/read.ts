import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { assembleConfig } from './assemble.ts';
import type { ConfigResult } from './config.ts';
import { findInconsistencies } from './consistency.ts';
import { readText } from './files.ts';
import { configFileBytesMax } from './limits.ts';
import { parseIni, type ParsedIni } from './parse.ts';
import type { LineProblem } from './problem.ts';
import { findExposed, readReferenced } from './references.ts';
import type { Environment } from './variables.ts';

/** What reading an ini file needs. */
interface ConfigSource {
  /** The ini file; problems name it as it is given here. */
  readonly file: string;
  /** Where `file` may also be a folder: its settings. */
  readonly folder?: FolderSettings;
  /** What `${NAME}` in a value stands for. */
  readonly env: Environment;
  /** What `workers = auto` comes to. */
  readonly cores: number;
  /** The default of `[node] name`. */
  readonly hostName: string;
  /**
   * Whether a configuration is in force already. Then an ini file without `[server]` is refused: an
   * emptied or truncated one would open a closed site with the defaults.
   */
  readonly isReload?: boolean;
}

/**
 * Reads an ini file (docs/design/configuration.md#the-ini-file) and every file it names; resolves
 * to the frozen configuration, or to all that is wrong in the order of the lines. Never rejects
 * because of what the operator wrote.
 */
export async function readConfig(source: ConfigSource): Promise<ConfigResult> {
  const { file, env, isReload = false } = source;
  const absolute = resolve(file);
  if (source.folder !== undefined && (await isFolder(absolute))) {
    return readFolder(source, source.folder);
  }
  const read = await readText(absolute, { bytesMax: configFileBytesMax });
  if ('refused' in read) {
    const { line = 0, refused } = read;
    return failed(file, [{ line, message: `the ini file ${refused}` }]);
  }
  const ini = parseIni(read.text, { env });
  if (isReload && ini.server.line === 0) return failed(file, [incomplete(read.text)]);
  return configOf(ini, source);
}

/** The configuration of a folder that is served without an ini file. */
async function readFolder(source: ConfigSource, settings: FolderSettings): Promise<ConfigResult> {
  const { text, env } = folderIni(await realpath(source.file), settings, source.env);
  const result = await configOf(parseIni(text, { env }), source);
  if (result.ok) return result;
  // Its lines are in no file.
  return { ok: false, problems: result.problems.map((problem) => ({ ...problem, line: 0 })) };
}

async function configOf(ini: ParsedIni, source: ConfigSource): Promise<ConfigResult> {
  const { file, cores, hostName } = source;
  const absolute = resolve(file);
  const folder = dirname(absolute);
  const { schemas, problems } = await readReferenced(ini, { folder });
  const exposed = await findExposed(ini, { folder });
  const all = [...ini.problems, ...findInconsistencies(ini), ...exposed, ...problems];
  if (all.length > 0) return failed(file, all);
  const config = assembleConfig(ini, { file: absolute, folder, cores, hostName, schemas });
  return { ok: true, config };
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true;
}

/** Why a running server does not take over an ini file without `[server]`. */
function incomplete(text: string): LineProblem {
  const what = text.trim() === '' ? 'is empty' : 'has no [server] section';
  const message = `the ini file ${what}: it may be half written. Add [server], even without keys`;
  return { line: 0, message };
}

function failed(file: string, problems: readonly LineProblem[]): ConfigResult {
  const inOrder = problems.toSorted((one, other) => one.line - other.line);
  return { ok: false, problems: inOrder.map(({ line, message }) => ({ file, line, message })) };
}

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
