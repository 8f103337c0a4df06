import { atOnce, type Steps } from '../fair/turns.ts';
import type { Config, ReadBesides } from './config.ts';
import { configFieldName, resolvedPath, type Keys } from './ini-key.ts';
import {
  type IniSection,
  type ParsedIni,
  type ParsedSection,
  keysOf,
  sectionKinds,
  type SectionKind,
} from './ini-section.ts';

/** The input of a configuration besides the text of its ini file. */
interface Inputs {
  /** Absolute path of the ini file. */
  readonly file: string;
  /** Absolute path of its folder, where relative paths start. */
  readonly folder: string;
  /** Absolute paths of the included files. */
  readonly includedFiles?: readonly string[];
  /** See Config. */
  readonly privatePaths?: readonly string[];
  /** See Config. */
  readonly besides?: ReadBesides;
  /** The number of processes for `workers = auto`. */
  readonly cores: number;
  /** The default of `[node] name`. */
  readonly hostName: string;
  /** What `read` of its kind has found for a section. */
  readonly contents: ReadonlyMap<ParsedSection, object>;
}

type Members = Record<string, unknown>;

const nothing: ReadBesides = { files: [], patterns: [] };

/** Makes the frozen configuration of an ini text that has no problems. */
export function assembleConfig(ini: ParsedIni, inputs: Inputs): Config {
  return atOnce(assembleSteps(ini, inputs));
}

/** The steps of assembleConfig: one for each section. */
export function* assembleSteps(ini: ParsedIni, inputs: Inputs): Steps<Config> {
  const { file, includedFiles = [], privatePaths = [], besides = nothing } = inputs;
  let config: Members = { file, includedFiles, privatePaths, variables: ini.variables };
  const kinds = sectionKinds(ini.sections);
  for (const kind of kinds.filter(({ tail }) => tail === undefined)) {
    for (const part of kind.parts) {
      if (part.place === undefined) continue;
      const isOwner = part === kind.owner;
      const keys = isOwner ? keysBeside(kind) : part.keys;
      const members = isOwner ? lineMembers(kind, kinds, ini) : () => ({});
      const made: object[] = [];
      for (const section of ini.all(part)) {
        yield;
        const name = kind.isNamed ? { name: section.name } : {};
        const fields = { ...name, ...fieldsOf(keys, section, inputs.folder), ...members(section) };
        const settings = settingsOf(part, fields, { ini, section, inputs });
        if (settings !== undefined) made.push(settings);
      }
      const inOrder = made.toSorted((one, other) => part.order?.(one, other) ?? 0);
      config = withSettings(config, part.place, kind.isNamed ? inOrder : made[0]);
    }
  }
  config = { ...config, besides, sections: ini.sections };
  yield* freezeMembers(config);
  return Object.freeze(config) as unknown as Config;
}

/** The keys of the owner of a header, and those that have no place of their own. */
function keysBeside({ owner, parts }: SectionKind): Keys {
  const beside = parts.filter((part) => part === owner || part.place === undefined);
  return keysOf(beside);
}

/** The header fields of a section: those of its own lines, and of the sections for its fields. */
function lineMembers(
  { owner, prefix }: SectionKind,
  kinds: readonly SectionKind[],
  ini: ParsedIni,
): (section: ParsedSection) => Members {
  const own = owner.lines?.member;
  const others = kinds.flatMap(({ owner: part, prefix: whose, tail }) => {
    if (whose !== prefix || tail === undefined || part.lines === undefined) return [];
    const byName = new Map(ini.all(part).map(({ name, fields }) => [name, fields]));
    return [[part.lines.member, byName] as const];
  });
  return ({ name, fields }) => ({
    ...(own !== undefined && { [own]: fields }),
    ...Object.fromEntries(others.map(([member, byName]) => [member, byName.get(name) ?? []])),
  });
}

function settingsOf(
  part: IniSection,
  fields: Members,
  { ini, section, inputs }: { ini: ParsedIni; section: ParsedSection; inputs: Inputs },
): object | undefined {
  const { folder, cores, hostName, contents } = inputs;
  const content = { ...contents.get(section) };
  if (part.settings === undefined) return { ...fields, ...content };
  return part.settings(fields, { ini, folder, cores, hostName, content });
}

/** The values of keys by their names in the configuration, with absolute paths. */
function fieldsOf(keys: Keys, { values }: ParsedSection, folder: string): Members {
  const fields = Object.entries(keys).map(([name, key]) => {
    const value = values[name];
    const isPath = key.isPath === true && typeof value === 'string';
    return [configFieldName(name, key), isPath ? resolvedPath(folder, value) : value] as const;
  });
  return Object.fromEntries(fields);
}

/** What a configuration has at the place of a section, such as `tls.acme`. */
export function settingsAt(config: object, place: string): object {
  return place
    .split('.')
    .reduce((value, name) => Object(Reflect.get(value, name)) as object, config);
}

/** A configuration with another value at the place of a section. */
export function withSettings<T extends object>(config: T, place: string, value: unknown): T {
  const [first = '', ...rest] = place.split('.');
  if (rest.length === 0) return { ...config, [first]: value };
  return { ...config, [first]: withSettings(settingsAt(config, first), rest.join('.'), value) };
}

/** Freezes a configuration, one section after the other. */
function* freezeMembers(config: Members): Steps<void> {
  for (const member of Object.values(config)) {
    for (const section of Array.isArray(member) ? member : [member]) {
      yield;
      freeze(section);
    }
    freeze(member);
  }
}

/** Freezes a value and everything in it. The recursion is bounded: JSON has jsonDepthMax levels. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freeze(member);
}
