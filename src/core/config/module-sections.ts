import { nearestName } from '../values/nearest.ts';
import { parseEntry } from './entry.ts';
import type { IncludedFile } from './include.ts';
import { type IniKey, type Keys, configFieldName, defaultValue, resolvedPath } from './ini-key.ts';
import { type ImportedModule, importModule } from './module-import.ts';
import { type LineProblem, quoted } from './problem.ts';
import { type Entry, type ScannedSection, scanIni } from './scan.ts';
import { anyText } from './values.ts';
import type { Environment } from './variables.ts';

declare module './config.ts' {
  interface Config {
    readonly modules: readonly ModuleConfig[];
  }
}

/** `[module.<name>]`: a module that is not a part of Waymark. */
interface ModuleConfig {
  readonly name: string;
  /** The absolute path of its file, or the name of its package. */
  readonly from: string;
  /** The values of its own keys, by their names in camel case. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The texts of all of its keys; a secret one is masked. */
  readonly texts: Readonly<Record<string, string | readonly string[]>>;
}

/** The modules of an ini text, and the problems of their sections. */
interface ModuleSections {
  readonly modules: readonly ModuleConfig[];
  readonly problems: readonly LineProblem[];
}

const prefix = 'module.';
const fromKey = 'from';
const nameForm = /^[a-z][a-z0-9]{0,31}$/;
const mask = '…';

/** Whether a section is that of a module, whose keys only the module knows. */
export function isModuleSection(header: string): boolean {
  return header === 'module' || header.startsWith(prefix);
}

/**
 * Reads the sections of modules: loads each module, which names its keys, and parses the lines by
 * them. `takenNames` are the names that Waymark has itself. Only the ini file itself may name modules,
 * since their code runs with the rights of the server.
 */
export async function readModuleSections(
  text: string,
  {
    folder,
    env,
    takenNames,
    included,
  }: {
    readonly folder: string;
    readonly env: Environment;
    readonly takenNames: () => Promise<ReadonlySet<string>>;
    readonly included: readonly IncludedFile[];
  },
): Promise<ModuleSections> {
  // Most ini files have none.
  if (!/^\s*\[module\b/m.test(text) && !included.some((one) => one.text.includes('[module'))) {
    return { modules: [], problems: [] };
  }
  const taken = await takenNames();
  const modules: ModuleConfig[] = [];
  const problems: LineProblem[] = included.flatMap((one) => refusedIn(one));
  const seen = new Map<string, number>();
  for (const section of scanIni(text).sections.filter(({ name }) => isModuleSection(name))) {
    const { line } = section;
    const name = section.name.slice(prefix.length);
    const refused = nameProblem(section.name, name, { taken, earlier: seen.get(name) });
    seen.set(name, line);
    if (refused !== undefined) problems.push({ line, message: refused });
    else {
      const read = await readSection(section, name, { folder, env });
      if ('from' in read) modules.push(read);
      else problems.push(...read.problems);
    }
  }
  return { modules, problems };
}

/** The changes of modules that need a restart, since the code of a module cannot be unloaded. */
export function moduleRestarts(
  before: readonly ModuleConfig[],
  after: readonly ModuleConfig[],
): readonly string[] {
  const names = new Set([...before, ...after].map(({ name }) => name));
  const fromOf = (modules: readonly ModuleConfig[], name: string) =>
    modules.find((one) => one.name === name)?.from;
  return [...names]
    .filter((name) => fromOf(before, name) !== fromOf(after, name))
    .map((name) => `[${prefix}${name}] ${fromKey}`);
}

/** The modules in use after a reload: those before, with the new settings where the file is the same. */
export function modulesAfterReload(
  before: readonly ModuleConfig[],
  after: readonly ModuleConfig[],
): readonly ModuleConfig[] {
  return before.map(
    (one) => after.find(({ name, from }) => name === one.name && from === one.from) ?? one,
  );
}

function refusedIn({ text, name: file }: IncludedFile): readonly LineProblem[] {
  const found = scanIni(text).sections.find(({ name }) => isModuleSection(name));
  if (found === undefined) return [];
  const message = `${quoted(`[${found.name}]`)} of ${file} belongs to the ini file itself`;
  return [{ line: 0, message }];
}

function nameProblem(
  header: string,
  name: string,
  { taken, earlier }: { readonly taken: ReadonlySet<string>; readonly earlier: number | undefined },
): string | undefined {
  if (!header.startsWith(prefix)) return '[module] needs a name, such as [module.countdown]';
  if (!nameForm.test(name)) {
    return `a module cannot be called ${quoted(name)}: write letters from a to z, then digits`;
  }
  if (taken.has(name)) return `Waymark itself has ${quoted(name)}: give the module another name`;
  if (earlier === undefined) return undefined;
  return `line ${earlier} already begins ${quoted(`[${header}]`)}: put both together`;
}

async function readSection(
  { line, entries }: ScannedSection,
  name: string,
  { folder, env }: { readonly folder: string; readonly env: Environment },
): Promise<ModuleConfig | { readonly problems: readonly LineProblem[] }> {
  const title = `[${prefix}${name}]`;
  const given = entries.find(({ key }) => key === fromKey);
  if (given === undefined) {
    const message = `${title} needs \`from\`: the file of the module, such as ./${name}.js`;
    return { problems: [{ line, message }] };
  }
  const parsed = parseEntry(given, anyText, env);
  if ('refused' in parsed) return { problems: [{ line: given.line, message: parsed.refused }] };
  const from = /^\.{0,2}\//.test(parsed.value) ? resolvedPath(folder, parsed.value) : parsed.value;
  const imported = await importModule(from, folder);
  if ('refused' in imported) {
    const message = `cannot load the module ${quoted(parsed.value)}: ${imported.refused}`;
    return { problems: [{ line: given.line, message }] };
  }
  const others = entries.filter(({ key }) => key !== fromKey);
  const { problems, settings, texts } = parseKeys(others, imported, { title, folder, env });
  if (problems.length > 0) return { problems };
  return { name, from, settings, texts: { [fromKey]: from, ...texts } };
}

function parseKeys(
  entries: readonly Entry[],
  { keys }: ImportedModule,
  {
    title,
    folder,
    env,
  }: { readonly title: string; readonly folder: string; readonly env: Environment },
): Pick<ModuleConfig, 'settings' | 'texts'> & { readonly problems: readonly LineProblem[] } {
  const problems: LineProblem[] = [];
  const values = new Map<string, { value: unknown; texts: string[] }>();
  for (const entry of entries) {
    const { key: name, line } = entry;
    const key = Object.hasOwn(keys, name) ? keys[name] : undefined;
    const known = values.get(name);
    const refused =
      key === undefined
        ? unknownKey(name, keys, title)
        : (known !== undefined && !(key.isList && entry.repeated)) ||
            (entry.repeated && !key.isList)
          ? `${quoted(name)} is set twice: keep one of its lines`
          : undefined;
    const parsed =
      key === undefined || refused !== undefined
        ? { refused: refused ?? '' }
        : parseEntry(entry, key.parse, env);
    if ('refused' in parsed) problems.push({ line, message: parsed.refused });
    else if (known === undefined) {
      values.set(name, { value: parsed.value, texts: [entry.text] });
    } else {
      known.value = [known.value, parsed.value].flat();
      known.texts.push(entry.text);
    }
  }
  const settings = Object.entries(keys).map(([name, key]) => {
    const value = values.has(name) ? values.get(name)?.value : defaultValue(key);
    const isPath = key.isPath === true && typeof value === 'string';
    return [configFieldName(name, key), isPath ? resolvedPath(folder, value) : value] as const;
  });
  const texts = Object.entries(keys).map(([name, key]) =>
    textsOf(name, key, values.get(name)?.texts),
  );
  return {
    problems,
    settings: Object.fromEntries(settings),
    texts: Object.fromEntries(texts),
  };
}

function textsOf(
  name: string,
  { isSecret, defaultText = '' }: IniKey<unknown>,
  given: readonly string[] = [defaultText],
): readonly [string, string | readonly string[]] {
  if (isSecret === true && given.some((text) => text !== '')) return [name, mask];
  const [only = ''] = given;
  return [name, given.length === 1 ? only : given];
}

function unknownKey(name: string, keys: Keys, title: string): string {
  const nearest = nearestName(name, [fromKey, ...Object.keys(keys)]);
  const hint = nearest === undefined ? '' : `; did you mean ${quoted(nearest)}?`;
  return `unknown key ${quoted(name)} in ${title}${hint}`;
}
