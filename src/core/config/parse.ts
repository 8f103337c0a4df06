import { dirname } from 'node:path';
import { lineNumber, lineWords, placeOf, type IncludedFile } from './include.ts';
import {
  parseEntry,
  parseHeaders,
  parseVariables,
  duplicateMessage,
  type ParsedHeaders,
} from './entry.ts';
import {
  defaultValue,
  type HeldFile,
  type IniKey,
  type Keys,
  type ParsedKeys,
  type ValuesOf,
  resolvedPath,
} from './ini-key.ts';
import { atOnce, type Steps } from '../fair/turns.ts';
import { isUrl } from './addresses.ts';
import { nearestName } from '../values/nearest.ts';
import { quoted, type LineProblem } from './problem.ts';
import { scanSteps, type Entry, type ScannedIni, type ScannedSection } from './scan.ts';
import {
  parseRequestHeaders,
  parseResponseHeaders,
  type ParsedTemplates,
} from '../../modules/headers/header-lines.ts';
import { foreignKey } from './foreign-words.ts';
import { headersKeys, type ParsedHeaderRule } from '../../modules/headers/section.ts';
import { isModuleSection } from './module-sections.ts';
import { sections, type SectionKind, type Sections } from './schema.ts';
import { identifySection, type SectionIdentity } from './section.ts';
import type { Environment, Variables } from './variables.ts';

/** A section of one kind. */
export type ParsedSection<K extends SectionKind> = ParsedKeys<Sections[K]>;

/** An ini text with typed values, and the problems of its lines. */
export interface ParsedIni {
  /** The names of `[variables]` with their values. */
  readonly variables: Variables;
  readonly server: ParsedSection<'server'>;
  readonly tls: ParsedSection<'tls'>;
  readonly hosts: readonly ParsedSection<'tls.<host>'>[];
  readonly disk: readonly ParsedSection<'disk.<name>'>[];
  readonly headers: readonly ParsedHeaders[];
  readonly proxies: readonly ParsedSection<'proxy.<name>'>[];
  /** `[proxy.<name>.request_headers]` */
  readonly proxyRequestHeaders: readonly ParsedTemplates[];
  /** `[proxy.<name>.headers]` */
  readonly proxyHeaders: readonly ParsedTemplates[];
  readonly headerRules: readonly ParsedHeaderRule[];
  readonly redirects: readonly ParsedSection<'redirect.<name>'>[];
  readonly rewrites: readonly ParsedSection<'rewrite.<name>'>[];
  readonly access: readonly ParsedSection<'access.<name>'>[];
  readonly rates: readonly ParsedSection<'rate.<name>'>[];
  readonly login: ParsedSection<'login'>;
  readonly logins: readonly ParsedSection<'login.<name>'>[];
  readonly fetch: ParsedSection<'fetch'>;
  readonly auth: ParsedSection<'auth'>;
  readonly engines: readonly ParsedSection<'engine.<name>'>[];
  readonly tables: readonly ParsedSection<'table.<name>'>[];
  readonly eventTypes: readonly ParsedSection<'event.<name>'>[];
  readonly webhook: ParsedSection<'webhook'>;
  readonly node: ParsedSection<'node'>;
  readonly cluster: ParsedSection<'cluster'>;
  readonly asset: ParsedSection<'asset'>;
  readonly geo: ParsedSection<'geo'>;
  readonly review: ParsedSection<'review'>;
  readonly mcp: ParsedSection<'mcp'>;
  readonly stats: ParsedSection<'stats'>;
  readonly log: ParsedSection<'log'>;
  readonly pathLogs: readonly ParsedSection<'log.<name>'>[];
  readonly telemetry: ParsedSection<'telemetry'>;
  /** The included files, as problems name them. */
  readonly includedFiles: readonly string[];
  /** All problems, in the order of the lines. */
  readonly problems: readonly LineProblem[];
}

interface IdentifiedSection extends SectionIdentity {
  /** As lineNumber makes it; so are the lines of the entries. */
  readonly line: number;
  /** The folder of the included file that has the section. */
  readonly folder?: string | undefined;
  readonly entries: readonly Entry[];
}

interface ParseContext {
  readonly env: Environment;
  readonly problems: LineProblem[];
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
  readonly included?: readonly IncludedFile[];
}

/** The steps of parseIni: one for each section, since there may be many thousands. */
export function* parseSteps(text: string, { env, included = [] }: ParseInput): Steps<ParsedIni> {
  const scanned = yield* scanFiles(text, included);
  const problems: LineProblem[] = [...scanned.problems, ...scanned.outside.map(outsideProblem)];
  const identified = yield* identifyAll(scanned.sections, { included, problems });
  const byKind = Map.groupBy(identified, ({ kind }) => kind);
  const named = (byKind.get('variables') ?? []).flatMap(({ entries }) => entries);
  const variables = parseVariables(named, { env, problems });
  const within = { env: { ...variables, ...env }, problems };
  function* each<T>(
    kind: SectionIdentity['kind'],
    parse: (section: IdentifiedSection) => T,
  ): Steps<readonly T[]> {
    const parsed: T[] = [];
    for (const section of byKind.get(kind) ?? []) {
      yield;
      parsed.push(parse(section));
    }
    return parsed;
  }
  const all = <K extends SectionKind>(kind: K): Steps<readonly ParsedSection<K>[]> =>
    each(kind, (section) => parseSection(kind, section, within));
  const one = <K extends SectionKind>(kind: K): ParsedSection<K> => {
    const [section = { kind, name: '', line: 0, entries: [] }] = byKind.get(kind) ?? [];
    return parseSection(kind, section, within);
  };
  const ini = {
    variables,
    includedFiles: included.map(({ name }) => name),
    server: one('server'),
    tls: one('tls'),
    hosts: yield* all('tls.<host>'),
    disk: yield* all('disk.<name>'),
    headers: yield* each('disk.<name>.headers', (section) => parseHeaders(section, within)),
    proxies: yield* all('proxy.<name>'),
    proxyRequestHeaders: yield* each('proxy.<name>.request_headers', (section) =>
      parseRequestHeaders(section, within),
    ),
    proxyHeaders: yield* each('proxy.<name>.headers', (section) =>
      parseResponseHeaders(section, { ...within, title: `[proxy.${section.name}.headers]` }),
    ),
    headerRules: yield* each('headers.<name>', (section) => parseHeaderRule(section, within)),
    redirects: yield* all('redirect.<name>'),
    rewrites: yield* all('rewrite.<name>'),
    access: yield* all('access.<name>'),
    rates: yield* all('rate.<name>'),
    login: one('login'),
    logins: yield* all('login.<name>'),
    fetch: one('fetch'),
    auth: one('auth'),
    engines: yield* all('engine.<name>'),
    tables: yield* all('table.<name>'),
    eventTypes: yield* all('event.<name>'),
    webhook: one('webhook'),
    node: one('node'),
    cluster: one('cluster'),
    asset: one('asset'),
    geo: one('geo'),
    review: one('review'),
    mcp: one('mcp'),
    stats: one('stats'),
    log: one('log'),
    pathLogs: yield* all('log.<name>'),
    telemetry: one('telemetry'),
  };
  return { ...ini, problems: problems.toSorted((first, next) => first.line - next.line) };
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

/**
 * The known sections, each once: lines below a repeated header belong to the first one. An included
 * file may have the sections that have a name, since the others are those of the whole server.
 */
function* identifyAll(
  scanned: readonly ScannedSection[],
  { included, problems }: { included: readonly IncludedFile[]; problems: LineProblem[] },
): Steps<readonly IdentifiedSection[]> {
  const identified = new Map<string, IdentifiedSection & { readonly entries: Entry[] }>();
  for (const { name, line, entries } of scanned) {
    yield;
    // The module itself says which keys it has.
    if (isModuleSection(name)) continue;
    const identity = identifySection(name);
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
    const address = `${identity.kind} ${identity.name}`;
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
  return [...identified.values()];
}

/** Parses a `[headers.<name>]`, whose lines are keys or header fields. */
function parseHeaderRule(section: IdentifiedSection, context: ParseContext): ParsedHeaderRule {
  const isKey = ({ key }: Entry): boolean => Object.hasOwn(headersKeys, key);
  const keys = { ...section, entries: section.entries.filter(isKey) };
  const fields = { ...section, entries: section.entries.filter((entry) => !isKey(entry)) };
  return {
    keys: parseSection('headers.<name>', keys, context),
    fields: parseResponseHeaders(fields, { ...context, title: `[headers.${section.name}]` }),
  };
}

function parseSection<K extends SectionKind>(
  kind: K,
  section: IdentifiedSection,
  { env, problems }: ParseContext,
): ParsedSection<K> {
  const keys: Keys = sections[kind];
  const title = `[${kind.replace(/<[^<>]+>/, () => section.name)}]`;
  const values = new Map<string, unknown[]>();
  const lines = new Map<string, number[]>();
  const seen = new Map<string, number>();
  let isValid = true;
  for (const entry of section.entries) {
    const key = Object.hasOwn(keys, entry.key) ? keys[entry.key] : undefined;
    const misplaced =
      key === undefined
        ? unknownKey(entry.key, keys, title)
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
  const heldFiles = all.flatMap(([name, path]): readonly HeldFile[] => {
    const { holds, isOpen } = (typeof name === 'string' ? keys[name] : undefined) ?? {};
    if (holds === undefined || typeof path !== 'string' || isUrl(path)) return [];
    return [{ path, holds, ...(isOpen && { isOpen }) }];
  });
  return {
    name: section.name,
    line: section.line,
    heldFiles,
    // The names come from the schema, and each value from the parser of its key.
    values: Object.fromEntries(all) as ValuesOf<Sections[K]>,
    lines,
    isValid,
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

function unknownKey(name: string, keys: Keys, title: string): string {
  const foreign = foreignKey(name);
  if (foreign !== undefined) return `unknown key ${quoted(name)} in ${title}; write ${foreign}`;
  const nearest = nearestName(name, Object.keys(keys));
  const hint = nearest === undefined ? ownerHint(name) : `; did you mean ${quoted(nearest)}?`;
  return `unknown key ${quoted(name)} in ${title}${hint}`;
}

function outsideProblem({ key, line }: Entry): LineProblem {
  return { line, message: `${quoted(key)} comes before the first [section]${ownerHint(key)}` };
}

/** Names the sections that a key may belong to, if there are only a few. */
function ownerHint(key: string): string {
  const owners = Object.entries(sections).filter(([, keys]) => Object.hasOwn(keys, key));
  if (owners.length === 0 || owners.length > ownersNamedMax) return '';
  return `; it belongs to ${owners.map(([kind]) => `[${kind}]`).join(' or ')}`;
}

const ownersNamedMax = 3;
