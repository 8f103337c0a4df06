import type { Steps } from '../fair/turns.ts';
import type { Config } from './config.ts';
import type { ExampleLines, FieldsOf, Keys, ValuesOf } from './ini-key.ts';
import type { LineProblem } from './problem.ts';
import type { Entry } from './scan.ts';
import type { ValueParser } from './values.ts';
import type { Environment, Variables } from './variables.ts';

declare module './config.ts' {
  interface Config {
    /** The sections by which the ini file was read. */
    readonly sections: readonly IniSection[];
  }
}

/**
 * A kind of section of the ini file, with everything that the server derives from it: parsing,
 * checks, the configuration, `waymark check`, secrets, private files, the reference. It stands in
 * the module that reads its settings. A section with the header of an earlier one adds its keys to
 * that one.
 */
export interface IniSection<K extends Keys = Keys> {
  /** The text in its brackets: `log`, `access.<name>`, `disk.<name>.headers`. */
  readonly header: string;
  readonly keys: K;
  /** Parses the part of its header that the operator chooses; a plain name if absent. */
  readonly parseName?: ValueParser<string>;
  /** Its lines that are no keys. */
  readonly lines?: FieldLines;
  /**
   * Where the configuration has it, such as `proxies` or `tls.acme`: a list for a section with a
   * name. A section that only adds keys to another one needs no place: its values are there.
   */
  readonly place?: string;
  /** The first version that has it. */
  readonly since: string;
  /** What the reference says about it. */
  readonly about?: string;
  /** The name in its examples, and the lines that each of them needs. */
  readonly example?: { readonly name?: string; readonly lines?: ExampleLines };
  /** Members of its settings that `check --json` does not show: the content of files. */
  readonly hidden?: readonly string[];

  /** Finds keys that contradict each other or those of other sections; it reads no files. */
  check?(
    own: readonly ParsedSection<K>[],
    ini: ParsedIni,
  ): readonly LineProblem[] | Steps<readonly LineProblem[]>;
  /** Reads and checks the files that it names, besides `checkPath` of its keys. */
  read?(section: ParsedSection<K>, around: { readonly folder: string }): Promise<ReadFiles>;
  /** Makes its settings of the values by name; undefined for a section that has none. */
  settings?(fields: FieldsOf<K>, around: SettingsInputs): object | undefined;
  /** The order of its settings; that of the ini file if absent. */
  order?(one: object, other: object): number;

  /** The settings of each such section that a configuration stands for, for `check`. */
  written?(config: Config): readonly object[];
  /** The origins and hosts that it names as those of this server. */
  names?(config: Config): {
    readonly origins?: readonly string[];
    readonly hosts?: readonly string[];
  };
  /** Warnings about settings that have no effect, or less than it seems; a sentence each. */
  warnings?(config: Config): readonly string[];
  /** Whether keys with `restart` need one; by default, they do. */
  isFixed?(before: Config, after: Config): boolean;
  /** The changes that need a restart, if its keys do not say so, as `[section] key`. */
  restartNeeded?(before: Config, after: Config): readonly string[];
  /** What is in use at its place after a reload, if its keys do not decide it. */
  afterReload?(before: Config, after: Config): object;
}

/** Lines of a section that set header fields. */
export interface FieldLines {
  /** The member of the settings that has them: name, value, name, value … */
  readonly member: string;
  /** Parses the lines; adds problems to those of the context. */
  parse(section: FieldSection, context: FieldContext): readonly string[];
  /** The lines of an ini file that say the same. */
  write(fields: readonly string[]): string;
}

/** The lines of a section, with its title for messages. */
export interface FieldSection {
  readonly title: string;
  readonly line: number;
  readonly entries: readonly Entry[];
}

/** What lines are parsed with. */
export interface FieldContext {
  readonly env: Environment;
  readonly problems: LineProblem[];
}

/** What a section makes its settings of, besides its own values. */
interface SettingsInputs {
  readonly ini: ParsedIni;
  /** Absolute path of the folder where relative paths start. */
  readonly folder: string;
  /** The number of processes for `workers = auto`. */
  readonly cores: number;
  /** The name of this machine. */
  readonly hostName: string;
  /** What `read` has found. */
  readonly content: Readonly<Record<string, unknown>>;
}

/** What the files of a section say. */
export interface ReadFiles {
  readonly problems?: readonly LineProblem[];
  /** Members of its settings. */
  readonly content?: object;
  /** The absolute paths of the files with that content: a change of one is a change of it. */
  readonly files?: readonly string[];
}

/** A section with typed values. An absent key has its default, and so has an invalid one. */
export interface ParsedSection<K extends Keys = Keys> {
  readonly name: string;
  /** Line of the header; 0 if the ini text does not have the section. */
  readonly line: number;
  /** All keys of sections with its header. */
  readonly keys: Keys;
  readonly values: ValuesOf<K>;
  /** Lines of the valid keys, several for a repeated `key[]`. */
  readonly lines: ReadonlyMap<string, readonly number[]>;
  /** Whether all of its lines are valid. */
  readonly isValid: boolean;
  /** Its lines that are no keys, as pairs of name and value. */
  readonly fields: readonly string[];
  /** Whether it has no such lines, also no wrong ones. */
  readonly isEmpty: boolean;
}

/** An ini text with typed values, and the problems of its lines. */
export interface ParsedIni {
  /** The sections that it may have. */
  readonly sections: readonly IniSection[];
  /** The names of `[variables]` with their values. */
  readonly variables: Variables;
  /** The included files, as problems name them. */
  readonly includedFiles: readonly string[];
  /** All problems, in the order of the lines. */
  readonly problems: readonly LineProblem[];
  /** The section of a header without a name; one without lines if the text does not have it. */
  one<K extends Keys>(section: IniSection<K>): ParsedSection<K>;
  /** The sections of a header, in the order of the file. */
  all<K extends Keys>(section: IniSection<K>): readonly ParsedSection<K>[];
}

/** Defines a section, with the types of its keys. */
export function iniSection<K extends Keys>(section: IniSection<K>): IniSection<K> {
  return section;
}

/** The sections with one header: the first one, and those that add keys to it. */
export interface SectionKind {
  readonly header: string;
  readonly owner: IniSection;
  readonly parts: readonly IniSection[];
  /** The keys of all of them. */
  readonly keys: Keys;
  /** Whether the operator chooses a part of its header. */
  readonly isNamed: boolean;
  /** The text of its header before a dot. */
  readonly prefix: string;
  /** The last part of a header such as `disk.<name>.headers`, whose lines another section gets. */
  readonly tail: string | undefined;
}

/** The keys of several sections. */
export function keysOf(parts: readonly IniSection[]): Keys {
  return Object.fromEntries(parts.flatMap(({ keys }) => Object.entries(keys)));
}

/** The kinds of section in their order. Throws if two sections have one key of one header. */
export function sectionKinds(sections: readonly IniSection[]): readonly SectionKind[] {
  const byHeader = Map.groupBy(sections, ({ header }) => header);
  return [...byHeader].flatMap(([header, parts]) => {
    const [owner] = parts;
    if (owner === undefined) return [];
    const keys = keysOf(parts);
    const all = parts.flatMap((part) => Object.keys(part.keys));
    const twice = all.find((name, at) => all.indexOf(name) !== at);
    if (twice !== undefined)
      throw new TypeError(`two sections have the key ${twice} of [${header}]`);
    const [, prefix = header, tail] = /^([^.]+)\.<\w+>(?:\.(.*))?$/.exec(header) ?? [];
    return [{ header, owner, parts, keys, isNamed: header.includes('<'), prefix, tail }];
  });
}

/**
 * The line that a problem of a key names: the line of the key, or of its section if the key is
 * absent. Undefined if the key is absent and its section has other problems, since the problem may
 * be a consequence of those.
 */
export function lineOf(
  { line, lines, isValid }: Pick<ParsedSection, 'line' | 'lines' | 'isValid'>,
  key: string,
): number | undefined {
  return lines.get(key)?.[0] ?? (isValid ? line : undefined);
}

/** A problem of a key, or of its section if the key is absent. */
export function problemOf(
  section: Pick<ParsedSection, 'line' | 'lines'>,
  key: string,
  message: string,
): LineProblem {
  return { line: section.lines.get(key)?.[0] ?? section.line, message };
}
