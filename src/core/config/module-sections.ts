import { dirname } from 'node:path';
import { parseEntry, parseVariables } from './entry.ts';
import type { Config } from './config.ts';
import { type Keys, optional, resolvedPath } from './ini-key.ts';
import { type FieldLines, type IniSection, iniSection } from './ini-section.ts';
import { importModule } from './module-import.ts';
import { type LineProblem, quoted } from './problem.ts';
import { type ScannedSection, scanIni } from './scan.ts';
import { type ValueParser, anyText } from './values.ts';
import type { Environment } from './variables.ts';

declare module './config.ts' {
  interface Config {
    /** The modules that are no part of Waymark, by their names; an empty list without one. */
    readonly modules: Readonly<Record<string, ModuleSettings>>;
  }
}

/** The settings of `[module.<name>]`: the values of its keys by their names in camel case. */
interface ModuleSettings {
  /** The absolute path of its file, or the name of its package. */
  readonly from: string;
  readonly [key: string]: unknown;
}

const prefix = 'module.';
const fromKey = 'from';

const moduleName: ValueParser<string> = (text) =>
  /^[a-z][a-z0-9]{0,31}$/.test(text)
    ? { value: text }
    : { refused: 'write letters from a to z, then digits' };

const from = {
  about:
    'The file of the module, or the name of a package that has one. Its code runs with the ' +
    'rights of the server. The other keys of the section are those of the module.',
  example: './countdown.js',
  restart: true,
} as const;

/**
 * `[module.<name>]` as the reference has it. Each section of the ini file has a kind of its own,
 * with the keys of its module: see readModules.
 */
export const moduleSection = iniSection({
  header: 'module.<name>',
  keys: { [fromKey]: optional(anyText, from) },
  parseName: moduleName,
  place: 'modules',
  since: '0.3',
  about: 'A module that is no part of Waymark. See [Write a module](../how-to/write-a-module.md).',
  example: { name: 'countdown' },
  // The ini file itself has kinds of its own for these.
  check: (included) =>
    included.map(({ name, line }) => {
      const owner = 'belongs to the ini file itself, not to an included one';
      return { line, message: `${quoted(`[${prefix}${name}]`)} ${owner}` };
    }),
  settings: () => undefined,
  written: () => [],
  restartNeeded: ({ modules: before }, { modules: after }) => {
    const names = Object.keys({ ...before, ...after });
    const changed = names.filter((name) => before[name]?.from !== after[name]?.from);
    return changed.map((name) => `[${prefix}${name}] ${fromKey}`);
  },
  // Code cannot be unloaded; a module that stays gets its new settings.
  afterReload: ({ modules: before }, { modules: after }) =>
    Object.fromEntries(
      Object.entries(before).map(([name, settings]) => {
        const next = after[name];
        return [name, next?.from === settings.from ? next : settings];
      }),
    ),
});

/** What the modules of an ini text add to the sections that it may have. */
interface ReadModules {
  readonly sections: readonly IniSection[];
  readonly problems: readonly LineProblem[];
}

/**
 * Loads the modules that an ini text names, which say which keys their sections have. `takenNames`
 * are those that Waymark has itself. Only the ini file itself may name modules, since their code
 * runs with the rights of the server.
 */
export async function readModules(
  text: string,
  {
    folder,
    env,
    takenNames,
  }: {
    readonly folder: string;
    readonly env: Environment;
    readonly takenNames: () => Promise<ReadonlySet<string>>;
  },
): Promise<ReadModules> {
  // Most ini files have none.
  if (!/^[ \t]*\[module\./m.test(text)) return { sections: [], problems: [] };
  const { sections: scanned } = scanIni(text);
  const named = scanned.flatMap(({ name, entries }) => (name === 'variables' ? entries : []));
  const variables = parseVariables(named, { env, problems: [] });
  const taken = await takenNames();
  const byHeader = Map.groupBy(scanned, ({ name }) => name);
  const sections: IniSection[] = [];
  const problems: LineProblem[] = [];
  for (const [header, [first]] of byHeader) {
    const name = header.slice(prefix.length);
    if (first === undefined || !header.startsWith(prefix) || !('value' in moduleName(name)))
      continue;
    const read = await readModule(first, name, { folder, taken, env: { ...variables, ...env } });
    sections.push(read.section);
    problems.push(...read.problems);
  }
  return { sections, problems };
}

/** Takes lines of a section whose keys are unknown, since its module cannot be loaded. */
const anyLines: FieldLines = { member: 'lines', parse: () => [], write: () => '' };

async function readModule(
  { line, entries }: ScannedSection,
  name: string,
  {
    folder,
    taken,
    env,
  }: {
    readonly folder: string;
    readonly taken: ReadonlySet<string>;
    readonly env: Environment;
  },
): Promise<{ readonly section: IniSection; readonly problems: readonly LineProblem[] }> {
  const refused = (at: number, message: string) => ({
    section: kindOf(name, { keys: {}, lines: anyLines }),
    problems: [{ line: at, message }],
  });
  if (taken.has(name)) {
    return refused(line, `Waymark itself has ${quoted(name)}: give the module another name`);
  }
  const given = entries.find(({ key }) => key === fromKey);
  if (given === undefined) {
    const example = `the file of the module, such as ./${name}.js`;
    return refused(line, `[${prefix}${name}] needs ${quoted(fromKey)}: ${example}`);
  }
  const parsed = parseEntry(given, anyText, env);
  if ('refused' in parsed) return refused(given.line, parsed.refused);
  const isFile = /^\.{0,2}\//.test(parsed.value);
  const place = isFile ? resolvedPath(folder, parsed.value) : parsed.value;
  const imported = await importModule(place, folder);
  if ('refused' in imported) {
    const why = `cannot load the module ${quoted(parsed.value)}: ${imported.refused}`;
    return refused(given.line, why);
  }
  const section = kindOf(name, { keys: imported.keys, isFile });
  return { section, problems: [] };
}

/** The kind of section of one module. */
function kindOf(
  name: string,
  {
    keys,
    isFile = false,
    lines,
  }: {
    readonly keys: Keys;
    readonly isFile?: boolean;
    readonly lines?: FieldLines;
  },
): IniSection {
  const held = { ...from, isPath: true, holds: 'the code of a module' } as const;
  return iniSection({
    header: `${prefix}${name}`,
    keys: { [fromKey]: optional(anyText, isFile ? held : from), ...keys },
    place: `modules.${name}`,
    since: '0.3',
    // moduleSection decides about all of them.
    isFixed: () => false,
    ...(lines !== undefined && { lines }),
  });
}

/**
 * The kinds of section of the modules of a configuration that another process has read: each
 * process loads them for itself.
 */
export async function sectionsOfModules({
  modules,
  file,
}: Pick<Config, 'modules' | 'file'>): Promise<readonly IniSection[]> {
  const loaded = Object.entries(modules).map(async ([name, { from: place }]) => {
    const imported = await importModule(place, dirname(file));
    return 'refused' in imported ? [] : [kindOf(name, { keys: imported.keys })];
  });
  return (await Promise.all(loaded)).flat();
}
