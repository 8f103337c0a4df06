import { consistencyProblems } from '../../core/config/consistency.ts';
import { iniLine, iniTemplateLine } from '../../core/config/describe.ts';
import { parseIni } from '../../core/config/parse.ts';
import { iniSections } from '../../sections.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';

/** How much of a line a remark repeats. */
const remarkCharactersMax = 100;

/** How often lines that `check` refuses are taken out of a converted file. */
const refusalRoundsMax = 20;

/** A line of the configuration that is converted, with a text about it. */
export interface Remark {
  /** The included file that has the line; undefined for the file that is converted. */
  readonly file?: string | undefined;
  /** From 1. */
  readonly line: number;
  /** The directive, shortened. */
  readonly text: string;
  /** For a line that cannot be expressed, what comes nearest; else what differs. */
  readonly says: string;
}

/** The result of a conversion. */
export interface Converted {
  /** The text of an ini file that `waymark check` accepts, if the files that it names exist. */
  readonly ini: string;
  /** Page rules for `[server] import`. */
  readonly rules: readonly JsonObject[];
  /** The lines that could not be expressed. */
  readonly left: readonly Remark[];
  /** Lines that mean something slightly different in Waymark. */
  readonly notes: readonly Remark[];
  /** Further files by their names, such as one with users and the hashes of their passwords. */
  readonly files: Readonly<Record<string, string>>;
}

/** The part of a file that is converted: what remarks say about it. */
export interface Source {
  readonly file?: string | undefined;
  readonly line: number;
  /** The directive as it is written, without its block. */
  readonly text: string;
}

type Kind =
  | 'variables'
  | 'server'
  | 'tls'
  | 'disk'
  | 'proxy'
  | 'redirect'
  | 'access'
  | 'rate'
  | 'rewrite'
  | 'headers'
  | 'fetch'
  | 'log'
  | 'auth';

interface WrittenLine {
  readonly text: string;
  readonly source: Source;
}

interface SectionFields {
  readonly kind: Kind;
  readonly title: string;
  readonly source: Source;
  readonly owner?: WrittenSection;
}

/** A section of the ini file that is written. */
export class WrittenSection {
  readonly kind: Kind;
  readonly title: string;
  readonly source: Source;
  /** The section whose fields it has. */
  readonly owner: WrittenSection | undefined;
  readonly lines: WrittenLine[] = [];
  readonly #keys = new Map<string, string>();

  constructor({ kind, title, source, owner }: SectionFields) {
    this.owner = owner;
    this.kind = kind;
    this.title = title;
    this.source = source;
  }

  /** Sets a key once; false if it has another value already. */
  set(key: string, value: string, source = this.source): boolean {
    if (this.#keys.has(key)) return this.#keys.get(key) === value;
    this.#keys.set(key, value);
    this.lines.push({ text: iniLine(key, value), source });
    return true;
  }

  /** Sets a key to a text whose `${NAME}` are variables. */
  setTemplate(key: string, text: string, source = this.source): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.set(key, text);
    this.lines.push({ text: iniTemplateLine(key, text), source });
    return true;
  }

  /** Adds a value to a key, as `key[]`. */
  addTemplate(key: string, text: string, source = this.source): void {
    this.lines.push({ text: iniTemplateLine(`${key}[]`, text), source });
  }

  /** Sets a key to a list, as `key[]` if there are several values. */
  setAll(key: string, values: readonly string[], source = this.source): void {
    const [only, ...others] = values;
    if (only === undefined || this.#keys.has(key)) return;
    this.#keys.set(key, only);
    const name = others.length === 0 ? key : `${key}[]`;
    for (const value of values) this.lines.push({ text: iniTemplateLine(name, value), source });
  }

  /** The origin to which the section is limited. */
  get origin(): string | undefined {
    return this.#keys.get('origin');
  }

  /** Whether it redirects everything. */
  get redirectsAll(): boolean {
    return this.kind === 'redirect' && !this.#keys.has('path') && !this.#keys.has('match');
  }

  /** Adds values to a list that needs a line for each, as `key[]`; each value once. */
  addAll(key: string, values: readonly string[], source = this.source): void {
    for (const value of values) {
      const text = iniTemplateLine(`${key}[]`, value);
      if (this.lines.some((line) => line.text === text)) continue;
      this.lines.push({ text, source });
    }
  }
}

const kinds: readonly Kind[] = [
  ...(['variables', 'server', 'tls', 'log', 'auth', 'fetch'] as const),
  ...(['disk', 'proxy', 'redirect', 'rewrite', 'access', 'rate', 'headers'] as const),
];

/**
 * Collects the sections and page rules that a configuration is converted to, and the lines that
 * could not be expressed.
 */
export class Conversion {
  readonly #sections: WrittenSection[] = [];
  readonly #rules: JsonObject[] = [];
  readonly #left: Remark[] = [];
  readonly #notes: Remark[] = [];
  readonly #names = new Set<string>();
  /** The next number of each name that several sections wish for. */
  readonly #numbers = new Map<string, number>();
  readonly #files = new Map<string, string>();
  /** The remarks that are made already. */
  readonly #told = new Set<string>();

  /** A line that cannot be expressed; `nearest` is what comes nearest, as a clause. */
  leave({ file, line, text }: Source, nearest: string): void {
    const isOpen = nearest.includes('[access.<name>]');
    const says = isOpen ? `${nearest}; until then, everybody may see this` : nearest;
    // Several places may inherit one line.
    const told = JSON.stringify([file, line, text, says]);
    if (this.#told.has(told)) return;
    this.#told.add(told);
    this.#left.push({ ...(file && { file }), line, text: shortened(text), says });
  }

  /** A line that means something slightly different in Waymark. */
  note({ file, line, text }: Source, says: string): void {
    const told = JSON.stringify([file, line, says]);
    if (this.#told.has(told)) return;
    this.#told.add(told);
    this.#notes.push({ ...(file && { file }), line, text: shortened(text), says });
  }

  /** A section without a name, or the one that exists already. */
  only(kind: Kind, source: Source): WrittenSection {
    const existing = this.#sections.find((one) => one.title === kind);
    return existing ?? this.#add({ kind, title: kind, source });
  }

  /** A new section with a name like `wish`, or the section of that kind and exact name. */
  named(kind: Kind, wish: string, source: Source): WrittenSection {
    const base = sectionName(wish) || 'site';
    const short = base.slice(0, nameCharactersMax);
    let name = short;
    let at = this.#numbers.get(`${kind}.${short}`) ?? 2;
    for (; this.#names.has(`${kind}.${name}`); at += 1) name = `${short}-${at}`;
    this.#numbers.set(`${kind}.${short}`, at);
    this.#names.add(`${kind}.${name}`);
    return this.#add({ kind, title: `${kind}.${name}`, source });
  }

  /** The section of a certificate, whose name is a host. */
  certificate(host: string, source: Source): WrittenSection {
    const title = `tls.${host}`;
    const existing = this.#sections.find((one) => one.title === title);
    return existing ?? this.#add({ kind: 'tls', title, source });
  }

  /** The section with fields that belongs to another section. */
  below(
    owner: WrittenSection,
    part: 'headers' | 'request_headers',
    source: Source,
  ): WrittenSection {
    const title = `${owner.title}.${part}`;
    const existing = this.#sections.find((one) => one.title === title);
    return existing ?? this.#add({ kind: owner.kind, title, source, owner });
  }

  /** A further file with a name like `wish`; returns its name. */
  file(wish: string, text: string): string {
    const [base = '', extension = ''] = wish.split('.');
    let name = wish;
    for (let at = 2; this.#files.has(name); at += 1) name = `${base}-${at}.${extension}`;
    this.#files.set(name, text);
    return name;
  }

  rule(rule: JsonObject): void {
    this.#rules.push(rule);
  }

  #add(fields: SectionFields): WrittenSection {
    const section = new WrittenSection(fields);
    this.#sections.push(section);
    return section;
  }

  /**
   * Writes the ini file. Lines that `check` would refuse become comments, and are left lines; `env`
   * has the variables that the values may name.
   */
  finish(env: readonly string[] = []): Converted {
    if (this.#rules.length > 0) {
      const server = this.only('server', { line: 0, text: '' });
      server.set('import', 'rules.ndjson');
    }
    const lines = this.#ordered().flatMap((section) => [
      { text: '', source: section.source },
      { text: `[${section.title}]\n`, source: section.source },
      ...section.lines,
    ]);
    const written = this.#accepted(lines, env);
    const redirected = this.#redirectedOrigins();
    return {
      ini: [...written.map(({ text }) => text.trimEnd()), ''].join('\n').replace(/^\n+/, ''),
      rules: this.#rules.filter(({ origin }) => !redirected.has(origin)),
      files: Object.fromEntries(this.#files),
      left: this.#left.toSorted(byPlace),
      notes: this.#notes.toSorted(byPlace),
    };
  }

  /** The sections in their order, without those of an origin that is redirected as a whole. */
  #ordered(): readonly WrittenSection[] {
    const byOwner = Map.groupBy(this.#sections, ({ owner }) => owner);
    const redirected = this.#redirectedOrigins();
    return (byOwner.get(undefined) ?? [])
      .filter(({ kind, origin, redirectsAll }) => {
        const isOfContent =
          kind === 'disk' || kind === 'proxy' || kind === 'redirect' || kind === 'rewrite';
        return redirectsAll || !isOfContent || !redirected.has(origin);
      })
      .toSorted((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind))
      .flatMap((one) => [one, ...(byOwner.get(one) ?? [])]);
  }

  /** The origins that are redirected as a whole. */
  #redirectedOrigins(): ReadonlySet<Json | undefined> {
    const origins = this.#sections.filter((one) => one.redirectsAll).map(({ origin }) => origin);
    return new Set(origins.filter((origin) => origin !== undefined));
  }

  /** The lines, with those in comments that the parser of ini files refuses. */
  #accepted(lines: readonly WrittenLine[], names: readonly string[]): readonly WrittenLine[] {
    const env = Object.fromEntries(names.map((name) => [name, '8080']));
    const accepted = [...lines];
    const remove = (at: number, message: string): void => {
      const refused = accepted[at];
      if (refused === undefined || refused.text.startsWith(';')) return;
      const end = refused.text.startsWith('[') ? endOfSection(accepted, at) : at + 1;
      // A section may be wrong because a line of it has been refused before.
      const isTold = accepted.slice(at, end).some(({ text }) => text.startsWith(';'));
      const why = `Waymark refuses \`${refused.text.trim()}\`: ${message}`;
      if (!isTold) this.leave(refused.source, why);
      for (const [index, one] of accepted.slice(at, end).entries()) {
        if (!one.text.startsWith(';')) accepted[at + index] = { ...one, text: `;${one.text}` };
      }
    };
    // Without a line, other lines of its section may have no effect.
    for (let round = 0, isDone = false; !isDone && round < refusalRoundsMax; round += 1) {
      const text = accepted.map((one) => one.text.trimEnd()).join('\n');
      const ini = parseIni(text, { env, sections: iniSections });
      const problems = ini.problems.length > 0 ? ini.problems : consistencyProblems(ini);
      for (const { line, message } of problems) remove(Math.max(0, line - 1), message);
      isDone = problems.length === 0;
    }
    return accepted;
  }
}

/** The empty line after a section, or the end. */
function endOfSection(lines: readonly WrittenLine[], at: number): number {
  let end = at + 1;
  while (end < lines.length && lines[end]?.text !== '') end += 1;
  return end;
}

/** The order of lines: those of the file itself, then those of each included one. */
function byPlace(one: Remark, other: Remark): number {
  const [first, second] = [one.file ?? '', other.file ?? ''];
  if (first === second) return one.line - other.line;
  return first < second ? -1 : 1;
}

/** The letters and digits of a text, with a `-` in place of all others between them. */
export function sectionName(text: string): string {
  return text
    .split(/[^A-Za-z0-9_]+/)
    .filter(Boolean)
    .join('-');
}

const nameCharactersMax = 40;

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > remarkCharactersMax ? `${line.slice(0, remarkCharactersMax)}…` : line;
}
