import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { type Steps, eventLoop, inTurns } from '../fair/turns.ts';
import { isServer } from './addresses.ts';
import { assembleSteps } from './assemble.ts';
import type { ConfigResult, ReadBesides } from './config.ts';
import { serverSection } from './core-sections.ts';
import { consistencySteps } from './consistency.ts';
import { readText } from './files.ts';
import { includePatterns, placeOf, readIncluded } from './include.ts';
import { configFileBytesMax } from './limits.ts';
import type { IniSection, ParsedIni } from './ini-section.ts';
import { readModules } from './module-sections.ts';
import { parseSteps } from './parse.ts';
import type { LineProblem } from './problem.ts';
import { checkReferences, exposureProblems, privateFiles } from './references.ts';
import type { Environment } from './variables.ts';

/** The inputs of readConfig. */
interface ConfigSource {
  /** The ini file; problems name it in the same way. */
  readonly file: string;
  /**
   * If present, `file` may also be a folder, which is served with these settings, or the URL of an
   * application.
   */
  readonly folder?: FolderSettings;
  /** The sections that the file may have. */
  readonly sections: readonly IniSection[];
  /** The values of `${NAME}`. */
  readonly env: Environment;
  /** The number of processes for `workers = auto`. */
  readonly cores: number;
  /** The default of `[node] name`. */
  readonly hostName: string;
  /**
   * Whether a configuration is in use already. Then an ini file without `[server]` is refused: the
   * file may be half written, and the defaults could publish a closed site.
   */
  readonly isReload?: boolean;
  /** The names that Waymark has itself: no `[module.<name>]` may have them. */
  readonly takenNames?: () => Promise<ReadonlySet<string>>;
}

/**
 * Reads an ini file (docs/design/configuration.md#the-ini-file) and checks every file that it
 * names. Resolves to the frozen configuration, or to all problems in the order of the lines;
 * mistakes in the file never reject.
 */
export async function readConfig(source: ConfigSource): Promise<ConfigResult> {
  const { file, env, isReload = false } = source;
  const absolute = resolve(file);
  if (source.folder !== undefined) {
    const { listen = [], proxy } = source.folder;
    if (isServer(file)) return readGenerated(source, proxyIni(file, { listen }, env));
    if (await isFolder(absolute)) {
      const served = await realpath(absolute);
      return readGenerated(source, folderIni(served, { listen, proxy }, env));
    }
  }
  const read = await readText(absolute, { bytesMax: configFileBytesMax });
  if ('refused' in read) {
    const { line = 0, refused } = read;
    return failed(file, [{ line, message: `the ini file ${refused}` }]);
  }
  const modules = await readModules(read.text, {
    folder: dirname(absolute),
    env,
    takenNames: source.takenNames ?? (() => Promise.resolve(new Set<string>())),
  });
  const sections = [...source.sections, ...modules.sections];
  const alone = withProblems(await steps(parseSteps(read.text, { env, sections })), modules);
  const { line, lines, values } = alone.one(serverSection);
  if (isReload && line === 0) return failed(file, [incomplete(read.text)]);
  if (values.include.length === 0) return configOf(alone, source);
  const at = lines.get('include')?.[0] ?? line;
  const included = await readIncluded(values.include, { file, line: at, isReload });
  const ini = await steps(parseSteps(read.text, { env, sections, included: included.files }));
  return configOf(
    withProblems(withProblems(ini, included), modules),
    source,
    included.files.map(({ path }) => path),
  );
}

function withProblems(
  ini: ParsedIni,
  { problems }: { readonly problems: readonly LineProblem[] },
): ParsedIni {
  return { ...ini, problems: [...ini.problems, ...problems] };
}

/** An ini text that no file has, and the variables of its values. */
interface GeneratedIni {
  readonly text: string;
  readonly env: Environment;
}

/** The configuration of a folder or application that is served without an ini file. */
async function readGenerated(
  source: ConfigSource,
  { text, env }: GeneratedIni,
): Promise<ConfigResult> {
  const ini = await steps(parseSteps(text, { env, sections: source.sections }));
  const result = await configOf(ini, source, [], true);
  if (result.ok) return result;
  // The lines belong to a generated text, not to a file.
  return { ok: false, problems: result.problems.map((problem) => ({ ...problem, line: 0 })) };
}

async function configOf(
  ini: ParsedIni,
  source: ConfigSource,
  includedFiles: readonly string[] = [],
  isGenerated = false,
): Promise<ConfigResult> {
  const { file, cores, hostName } = source;
  const absolute = resolve(file);
  const folder = dirname(absolute);
  const { problems, contents, files } = await checkReferences(ini, { folder });
  const iniFiles = [...(isGenerated ? [] : [absolute]), ...includedFiles];
  const held = await privateFiles(ini, { folder, iniFiles });
  const exposed = await exposureProblems(ini, held, { folder });
  const all = [...ini.problems, ...(await steps(consistencySteps(ini))), ...exposed, ...problems];
  const besides = {
    files: [...includedFiles, ...files],
    patterns: includePatterns(ini.one(serverSection).values.include, folder),
  };
  if (all.length > 0) return failed(file, all, { names: ini.includedFiles, besides });
  // The configuration names the ini files already, but not where symbolic links lead.
  const privatePaths = held.flatMap(({ path }) => (iniFiles.includes(path) ? [] : path));
  const inputs = { file: absolute, folder, cores, hostName, contents };
  const config = await steps(
    assembleSteps(ini, { ...inputs, includedFiles, privatePaths, besides }),
  );
  return { ok: true, config };
}

/** Does steps in turns with the requests of a server that reads its configuration again. */
function steps<T>(work: Steps<T>): Promise<T> {
  return inTurns(work, eventLoop.turns('configuration'));
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true;
}

/** Why a running server refuses an ini file without `[server]`. */
function incomplete(text: string): LineProblem {
  const what = text.trim() === '' ? 'is empty' : 'has no [server] section';
  const message = `the ini file ${what}: it may be half written. Add [server], even without keys`;
  return { line: 0, message };
}

/** `names` has the included files, as problems name them. */
function failed(
  file: string,
  problems: readonly LineProblem[],
  { names = [], besides }: { names?: readonly string[]; besides?: ReadBesides } = {},
): ConfigResult {
  const inOrder = problems.toSorted((one, other) => one.line - other.line);
  return {
    ok: false,
    problems: inOrder.map(({ line: number, message }) => {
      const place = placeOf(number);
      return { file: names[place.file - 1] ?? file, line: place.line, message };
    }),
    ...(besides && besides.files.length + besides.patterns.length > 0 && { besides }),
  };
}

/** The options of the command line for what is served without an ini file. */
export interface FolderSettings {
  /** As `[server] listen`. */
  readonly listen?: readonly string[] | undefined;
  /** The URL of an application that answers behind the files of a folder. */
  readonly proxy?: string | undefined;
}

/**
 * The ini text of a folder that is served without an ini file. The values are variables of the
 * returned environment, so that a folder's name needs no quotes.
 */
export function folderIni(
  folder: string,
  { listen = [], proxy }: FolderSettings,
  env: Environment,
): GeneratedIni {
  const lines = [
    '[disk.folder]',
    'root = ${FOLDER}',
    'cache_control = no-cache',
    'redirects = _redirects',
    'headers_file = _headers',
    'errors = /',
  ];
  if (proxy === undefined) lines.push('listing = yes');
  else lines.push(...applicationLines);
  const data = dataOf(folder, basename(folder) || 'root', env);
  return generated(lines, { listen, values: { DATA: data, FOLDER: folder, APPLICATION: proxy } });
}

/** The ini text of an application that is served without an ini file, as that of a folder. */
export function proxyIni(
  url: string,
  { listen = [] }: FolderSettings,
  env: Environment,
): GeneratedIni {
  const name = url.replace(/^https?:\/\//i, '').replaceAll(/[^\w.-]+/g, '-');
  const data = dataOf(url, name.slice(0, dataNameCharacters), env);
  return generated(applicationLines, { listen, values: { DATA: data, APPLICATION: url } });
}

const applicationLines = ['[proxy.application]', 'source = ${APPLICATION}'];
const dataNameCharacters = 64;

function generated(
  lines: readonly string[],
  {
    listen,
    values,
  }: { readonly listen: readonly string[]; readonly values: Environment & { DATA: string } },
): GeneratedIni {
  const addresses = listen.map((address, at) => [`LISTEN_${at}`, address] as const);
  const text = [
    '[server]',
    ...addresses.map(([name]) => `listen[] = \${${name}}`),
    'data = ${DATA}',
    ...lines,
  ].join('\n');
  return { text, env: { ...Object.fromEntries(addresses), ...values } };
}

const hashCharacters = 8;

/** The data folder of what is served, below the user's own (XDG Base Directory). */
function dataOf(served: string, name: string, env: Environment): string {
  const { XDG_DATA_HOME: given = '', HOME: home = homedir() } = env;
  const base = given.startsWith('/') ? given : join(home, '.local', 'share');
  const hash = createHash('sha256').update(served).digest('hex').slice(0, hashCharacters);
  return join(base, 'waymark', `${name}-${hash}`);
}
