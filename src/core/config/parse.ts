import { dirname } from 'node:path';
import { atOnce, type Steps } from '../fair/turns.ts';
import { nearestName } from '../values/nearest.ts';
import { duplicateMessage, parseEntry, parseVariables } from './entry.ts';
import { foreignKey } from './foreign-words.ts';
import { lineNumber, lineWords, placeOf, type IncludedFile } from './include.ts';
import { defaultValue, type IniKey, type Keys, resolvedPath } from './ini-key.ts';
import {
  type IniSection,
  type ParsedIni,
  type ParsedSection,
  sectionKinds,
  type SectionKind,
} from './ini-section.ts';
import { quoted, type LineProblem } from './problem.ts';
import { scanSteps, type Entry, type ScannedIni, type ScannedSection } from './scan.ts';
import { identifySection } from './section.ts';
import type { Environment } from './variables.ts';

interface IdentifiedSection {
  readonly name: string;
  /** As lineNumber makes it; so are the lines of the entries. */
  readonly line: number;
  /** The folder of the included file that has the section. */
  readonly folder?: string | undefined;
  readonly entries: readonly Entry[];
}

interface ParseContext {
  readonly env: Environment;
  readonly problems: LineProblem[];
  readonly kinds: readonly SectionKind[];
}

/**
 * Parses an ini text (docs/design/configuration.md#the-ini-file) with the files that it includes;
 * `env` has the values of `${NAME}`. It never throws, and finds all problems at once. Its lines are
 * those of lineNumber.
 */
export function parseIni(text: string, given: ParseInput): ParsedIni {
  return atOnce(parseSteps(text, given));
}

interface ParseInput {
  readonly env: Environment;
  /** The sections that the text may have. */
  readonly sections: readonly IniSection[];
  readonly included?: readonly IncludedFile[];
}

/** The steps of parseIni: one for each section, since there may be many thousands. */
export function* parseSteps(
  text: string,
  { env, sections, included = [] }: ParseInput,
): Steps<ParsedIni> {
  const scanned = yield* scanFiles(text, included);
  const kinds = sectionKinds(sections);
  const outside = scanned.outside.map((entry) => outsideProblem(entry, kinds));
  const problems: LineProblem[] = [...scanned.problems, ...outside];
  const identified = yield* identifyAll(scanned.sections, { kinds, included, problems });
  const named = (identified.get('variables') ?? []).flatMap(({ entries }) => entries);
  const variables = parseVariables(named, { env, problems });
  const context = { env: { ...variables, ...env }, problems, kinds };
  const parsed = new Map<string, readonly ParsedSection[]>();
  for (const kind of kinds) {
    const own: ParsedSection[] = [];
    const none = kind.isNamed ? [] : [{ name: '', line: 0, entries: [] }];
    for (const section of identified.get(kind.header) ?? none) {
      yield;
      own.push(parseSection(kind, section, context));
    }
    parsed.set(kind.header, own);
  }
  // Sections of one header are parsed with the keys of all of them.
  const all = <K extends Keys>({ header }: IniSection<K>) =>
    (parsed.get(header) ?? []) as readonly ParsedSection<K>[];
  return {
    sections,
    variables,
    includedFiles: included.map(({ name }) => name),
    problems: problems.toSorted((first, next) => first.line - next.line),
    all,
    one: (section) => {
      const [only] = all(section);
      if (only === undefined) throw new TypeError(`[${section.header}] is not in the list`);
      return only;
    },
  };
}

/** Scans an ini text and the included ones; the lines get the numbers of lineNumber. */
function* scanFiles(text: string, included: readonly IncludedFile[]): Steps<ScannedIni> {
  const first = yield* scanSteps(text);
  if (included.length === 0) return first;
  const outside = [...first.outside];
  const found = [...first.sections];
  const problems = [...first.problems];
  for (const [at, { text: more }] of included.entries()) {
    const scanned = yield* scanSteps(more);
    const number = <T extends { readonly line: number }>(one: T): T => ({
      ...one,
      line: lineNumber({ file: at + 1, line: one.line }),
    });
    outside.push(...scanned.outside.map(number));
    problems.push(...scanned.problems.map(number));
    for (const section of scanned.sections) {
      yield;
      found.push({ ...number(section), entries: section.entries.map(number) });
    }
  }
  return { outside, sections: found, problems };
}

interface Identified extends IdentifiedSection {
  readonly header: string;
  readonly entries: Entry[];
}

/**
 * The known sections by header, each once: lines below a repeated header belong to the first one.
 * An included file may have the sections that have a name, since the others are those of the whole
 * server.
 */
function* identifyAll(
  scanned: readonly ScannedSection[],
  {
    kinds,
    included,
    problems,
  }: {
    kinds: readonly SectionKind[];
    included: readonly IncludedFile[];
    problems: LineProblem[];
  },
): Steps<ReadonlyMap<string, readonly IdentifiedSection[]>> {
  const identified = new Map<string, Identified>();
  for (const { name, line, entries } of scanned) {
    yield;
    const identity = identifySection(name, kinds);
    if (typeof identity === 'string') {
      problems.push({ line, message: identity });
      continue;
    }
    const at = included[placeOf(line).file - 1];
    if (at !== undefined && identity.name === '') {
      const owner = 'belongs to the ini file itself, not to an included one';
      const message = `${quoted(`[${name}]`)} ${owner}`;
      problems.push({ line, message });
      continue;
    }
    const address = `${identity.header} ${identity.name}`;
    const first = identified.get(address);
    if (first === undefined) {
      const folder = at && dirname(at.path);
      identified.set(address, { ...identity, line, folder, entries: [...entries] });
    } else {
      const files = included.map((one) => one.name);
      const isOther = placeOf(first.line).file !== placeOf(line).file;
      const cure = isOther ? 'give one of them another name' : 'put both together';
      const begun = `${lineWords(first.line, line, files)} already begins ${quoted(`[${name}]`)}`;
      problems.push({ line, message: `${begun}: ${cure}` });
      if (isOther) continue;
      for (const entry of entries) first.entries.push(entry);
    }
  }
  return Map.groupBy(identified.values(), ({ header }) => header);
}

function parseSection(
  { header, owner, keys }: SectionKind,
  section: IdentifiedSection,
  { env, problems, kinds }: ParseContext,
): ParsedSection {
  const title = `[${header.replace(/<[^<>]+>/, () => section.name)}]`;
  const { lines: others } = owner;
  const isOwn = ({ key }: Entry): boolean => others === undefined || Object.hasOwn(keys, key);
  const further = section.entries.filter((entry) => !isOwn(entry));
  const values = new Map<string, unknown[]>();
  const lines = new Map<string, number[]>();
  const seen = new Map<string, number>();
  let isValid = true;
  for (const entry of section.entries.filter(isOwn)) {
    const key = Object.hasOwn(keys, entry.key) ? keys[entry.key] : undefined;
    const misplaced =
      key === undefined
        ? unknownKey(entry.key, keys, { title, kinds })
        : misplacedKey(entry, key, seen.get(entry.key));
    if (!seen.has(entry.key)) seen.set(entry.key, entry.line);
    const parsed =
      key === undefined || misplaced !== undefined
        ? { refused: misplaced ?? '' }
        : parseEntry(entry, key.parse, env);
    if ('refused' in parsed) {
      problems.push({ line: entry.line, message: parsed.refused });
      isValid = false;
    } else {
      append(values, entry.key, parsed.value);
      append(lines, entry.key, entry.line);
    }
  }
  const all = Object.entries(keys).map(([name, key]) => {
    const value = joined(key, values.get(name));
    const isBelow = section.folder !== undefined && key.isPath === true;
    return [
      name,
      isBelow && typeof value === 'string' ? resolvedPath(section.folder, value) : value,
    ];
  });
  const { name, line } = section;
  const fieldLines = { title, line, entries: further };
  return {
    name,
    line,
    keys,
    values: Object.fromEntries(all) as ParsedSection['values'],
    lines,
    isValid,
    fields: others?.parse(fieldLines, { env, problems }) ?? [],
    isEmpty: fieldLines.entries.length === 0,
  };
}

function joined(key: IniKey<unknown>, values: readonly unknown[] | undefined): unknown {
  if (values === undefined) return defaultValue(key);
  return key.isList ? values.flat() : values[0];
}

function append<T>(lists: Map<string, T[]>, name: string, value: T): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [value]);
  else list.push(value);
}

function misplacedKey(
  entry: Entry,
  { isList }: IniKey<unknown>,
  earlierLine: number | undefined,
): string | undefined {
  if (entry.repeated && !isList) return `${quoted(entry.key)} takes one value: write it without []`;
  if (earlierLine === undefined || entry.repeated) return undefined;
  return duplicateMessage(entry.key, { earlierLine, isList });
}

function unknownKey(
  name: string,
  keys: Keys,
  { title, kinds }: { readonly title: string; readonly kinds: readonly SectionKind[] },
): string {
  const foreign = foreignKey(name);
  if (foreign !== undefined) return `unknown key ${quoted(name)} in ${title}; write ${foreign}`;
  const nearest = nearestName(name, Object.keys(keys));
  const hint =
    nearest === undefined ? ownerHint(name, kinds) : `; did you mean ${quoted(nearest)}?`;
  return `unknown key ${quoted(name)} in ${title}${hint}`;
}

function outsideProblem({ key, line }: Entry, kinds: readonly SectionKind[]): LineProblem {
  const hint = ownerHint(key, kinds);
  return { line, message: `${quoted(key)} comes before the first [section]${hint}` };
}

/** Names the sections that a key may belong to, if there are only a few. */
function ownerHint(key: string, kinds: readonly SectionKind[]): string {
  const owners = kinds.filter(({ keys }) => Object.hasOwn(keys, key));
  if (owners.length === 0 || owners.length > ownersNamedMax) return '';
  return `; it belongs to ${owners.map(({ header }) => `[${header}]`).join(' or ')}`;
}

const ownersNamedMax = 3;
