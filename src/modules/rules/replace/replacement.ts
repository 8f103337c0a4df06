import { Script, createContext } from 'node:vm';
import { contentBytesMax } from '../operations/limits.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../core/values/json/json.ts';
import type { Rule } from '../rule.ts';
import { linearSearch } from '../../../core/values/linear-pattern.ts';
import {
  foundOnPageMax,
  foundShownMax,
  patternMs,
  searchedCharactersMax,
  snippetCharactersMax,
  snippetSideCharactersMax,
  untimedStepsMax,
} from './replace-limits.ts';

/** The parts of a page rule in which a text can be replaced (docs/how-to/drafts.md). */
export const replacedParts = ['content', 'title', 'data', 'targets', 'headers'] as const;

type Part = (typeof replacedParts)[number];

/** What to look for, and what takes its place. */
export interface Replacement {
  readonly find: string;
  readonly with: string;
  /** Whether `find` is a regular expression, and `with` may have $1, $<name>, $& and $$. */
  readonly regex?: boolean;
  readonly ignore_case?: boolean;
  readonly whole_words?: boolean;
  /** By default, all parts. */
  readonly parts?: readonly Part[];
}

/** A place where the text was found, with what is around it in its line. */
interface FoundText {
  /** The field, such as `content` or `enginedata.when[0].target`. */
  readonly field: string;
  readonly before: string;
  readonly found: string;
  readonly replaced: string;
  readonly after: string;
}

/** What a replacement does to a page rule. */
interface ReplacedRule {
  /** The fields that change, as an edit has them. */
  readonly fields: JsonObject;
  readonly count: number;
  /** The first places. */
  readonly found: readonly FoundText[];
}

/** Replaces in a page rule. Throws `too_large`, or `invalid` if a search takes too long. */
export type ReplaceIn = (rule: Rule) => ReplacedRule;

interface Match {
  readonly start: number;
  readonly found: string;
  readonly replaced: string;
}

/** What is looked for, and what takes the place of a match. */
interface Search {
  readonly pattern: RegExp;
  readonly replacedBy: (match: RegExpExecArray) => string;
}

/** What the search of one page rule has used up, over all of its fields. */
interface Used {
  matches: number;
  /** By which the fields have become longer. */
  characters: number;
  /** Comparisons of characters, at worst. */
  steps: number;
}

/**
 * Makes the function that replaces a text in page rules. It leaves alone what waits in `_unknowns_`
 * and, of a rule for fetched content, all but its sources: header fields for them may be secret.
 * Throws `invalid` for a pattern that cannot be matched in linear time.
 */
export function replacer(given: Replacement): ReplaceIn {
  const { find, regex } = given;
  const search = regex === true ? patternSearch(given) : textSearch(given);
  const parts = new Set<Part>(given.parts ?? replacedParts);
  const replaceWithin = (rule: Rule, stepsMax: number): ReplacedRule => {
    const used: Used = { matches: 0, characters: 0, steps: 0 };
    const found: FoundText[] = [];
    const replace = (text: string, field: string, part: Part): string => {
      // At worst, each character of the page is compared with each of the text.
      used.steps += (text.length + stepsOfField) * find.length;
      if (used.steps > stepsMax) throw untimed;
      const range = rangeOf(text, part, parts);
      const searched = text.slice(range.start, range.end);
      const matches =
        searched.length > searchedCharactersMax ? [] : allMatches(search, searched, used);
      if (matches.length === 0) return text;
      const shown = matches.slice(0, foundShownMax - found.length);
      found.push(...shown.map((one) => snippet(searched, one, field)));
      return text.slice(0, range.start) + spliced(searched, matches) + text.slice(range.end);
    };
    const fields = Object.fromEntries(
      Object.entries(replacedFields(rule, replace)).filter(([name, value]) => {
        return value !== undefined && value !== (rule as unknown as JsonObject)[name];
      }),
    ) as JsonObject;
    return { fields, count: used.matches, found };
  };
  const replaceInTime = inTime((rule) => replaceWithin(rule, Infinity));
  return (rule) => {
    if (regex === true) return replaceInTime(rule);
    try {
      return replaceWithin(rule, untimedStepsMax);
    } catch (thrown) {
      if (thrown !== untimed) throw thrown;
      return replaceInTime(rule);
    }
  };
}

/** A search that takes so many steps that its time is measured. */
const untimed = new Error('the search takes many steps');

/** What a field costs besides its text, in steps for each character that is looked for. */
const stepsOfField = 100;

type Replace = (text: string, field: string, part: Part) => string;

function replacedFields(rule: Rule, replace: Replace): Readonly<Record<string, Json | undefined>> {
  const { kind, content, enginedata, headers } = rule;
  const dataPart = (names: readonly string[]): Part | undefined => {
    if (names.includes('if')) return undefined;
    const name = names.findLast((one) => !/^\d+$/.test(one)) ?? '';
    if (kind === 'content.fetch') return name === 'source' ? 'targets' : undefined;
    if (name === 'target') return 'targets';
    return name === 'title' ? 'title' : 'data';
  };
  return {
    content: typeof content === 'string' ? replace(content, 'content', 'content') : undefined,
    enginedata: enginedata && mapTexts(enginedata, ['enginedata'], dataPart, replace),
    headers: headers && mapTexts(headers, ['headers'], () => 'headers', replace),
  };
}

/** A value with its texts replaced; the value itself if none changes. */
function mapTexts(
  value: Json,
  path: readonly string[],
  partOf: (path: readonly string[]) => Part | undefined,
  replace: Replace,
): Json {
  if (typeof value === 'string') {
    const part = partOf(path);
    return part === undefined ? value : replace(value, shownPath(path), part);
  }
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    const mapped = items.map((one, at) => mapTexts(one, [...path, String(at)], partOf, replace));
    return mapped.every((one, at) => one === items[at]) ? items : mapped;
  }
  if (!isJsonObject(value)) return value;
  const mapped = Object.entries(value).map(
    ([name, one]) => [name, mapTexts(one, [...path, name], partOf, replace)] as const,
  );
  return mapped.every(([name, one]) => one === value[name]) ? value : Object.fromEntries(mapped);
}

function shownPath([first = '', ...names]: readonly string[]): string {
  return first + names.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join('');
}

/** The part of a text that is searched. */
function rangeOf(
  text: string,
  part: Part,
  parts: ReadonlySet<Part>,
): { readonly start: number; readonly end: number } {
  if (parts.has(part)) return { start: 0, end: text.length };
  return part === 'content' && parts.has('title') ? titleRange(text) : { start: 0, end: 0 };
}

/** The text of the title element of a page; empty without one. */
function titleRange(html: string): { readonly start: number; readonly end: number } {
  const open = /<title(?:\s[^<>]{0,200})?>/i.exec(html);
  if (open === null) return { start: 0, end: 0 };
  const start = open.index + open[0].length;
  const end = html.indexOf('</', start);
  return end < 0 ? { start: 0, end: 0 } : { start, end };
}

/** Finds a text as it is written. */
function textSearch({
  find,
  with: by,
  ignore_case: ignoresCase,
  whole_words: words,
}: Replacement): Search {
  const literal = find.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
  const letter = String.raw`[\p{L}\p{N}\p{M}_]`;
  const source = words === true ? `(?<!${letter})${literal}(?!${letter})` : literal;
  const pattern = new RegExp(source, ignoresCase === true ? 'giu' : 'gu');
  return { pattern, replacedBy: () => by };
}

/** Finds a pattern in linear time. */
function patternSearch({
  find,
  with: by,
  ignore_case: ignoresCase,
  whole_words: words,
}: Replacement): Search {
  const source = ignoresCase === true ? bothCases(find) : find;
  const pattern = compiled(words === true ? String.raw`\b(?:${source})\b` : source);
  return { pattern, replacedBy: (match) => expanded(by, match) };
}

/**
 * Ends the search of a page rule that takes too long, with `invalid`: the steps for a character
 * grow with the text or pattern that is looked for.
 */
function inTime(replaceIn: ReplaceIn): ReplaceIn {
  const context = createContext({ replaced: (): unknown => undefined });
  return (rule) => {
    context.replaced = () => replaceIn(rule);
    try {
      return timed.runInContext(context, { timeout: patternMs }) as ReplacedRule;
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT')
        throw error;
      const message = 'It takes too long to search a page for this. Make it shorter or simpler.';
      throw new Failure('invalid', message, { field: 'find' });
    }
  };
}

const timed = new Script('replaced()');

function compiled(source: string): RegExp {
  try {
    return linearSearch(source);
  } catch (error) {
    const { message } = error instanceof SyntaxError ? error : failureFrom(error);
    throw new Failure('invalid', `The pattern is not valid: ${message}.`, { field: 'find' });
  }
}

/** A pattern that matches letters in upper and lower case: the linear engine has no such flag. */
function bothCases(pattern: string): string {
  const tokens =
    /\\(?:x[\da-f]{2}|u[\da-f]{4}|c[a-z]|k<\w+>|.)|\(\?<\w+>|[[\]]|\p{L}-\p{L}|\p{L}/giu;
  let isInClass = false;
  return pattern.replace(tokens, (token) => {
    if (token === '[' || token === ']') isInClass = token === '[';
    if (!/^\p{L}(?:-\p{L})?$/u.test(token)) return token;
    if (isInClass) return token.toLowerCase() + token.toUpperCase();
    return token.replaceAll(/\p{L}/gu, (one) => `[${one.toLowerCase()}${one.toUpperCase()}]`);
  });
}

/** All matches that are not empty. Throws `too_large` for too many of them on the page. */
function allMatches({ pattern, replacedBy }: Search, text: string, used: Used): readonly Match[] {
  const matches: Match[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [found] = match;
    if (found === '') {
      pattern.lastIndex += 1;
      continue;
    }
    const replaced = replacedBy(match);
    used.characters += Math.max(0, replaced.length - found.length);
    used.matches += 1;
    const isTooLong = text.length + used.characters > contentBytesMax;
    if (used.matches > foundOnPageMax || isTooLong) throw tooMany();
    matches.push({ start: match.index, found, replaced });
  }
  return matches;
}

function tooMany(): Failure {
  const message =
    `A page has the text more than ${foundOnPageMax} times, or would become too long. Look for ` +
    'a longer text.';
  return new Failure('too_large', message, { field: 'find' });
}

/** The replacement of a match: with the groups that it names, as in String.replace. */
function expanded(by: string, match: RegExpExecArray): string {
  let characters = 0;
  return by.replaceAll(/\$(?:\$|&|(\d{1,2})|<(\w+)>)/g, (sign, number?: string, name?: string) => {
    const text = signText(match, { sign, number, name });
    characters += text.length;
    if (characters > contentBytesMax) throw tooMany();
    return text;
  });
}

function signText(
  match: RegExpExecArray,
  {
    sign,
    number,
    name,
  }: {
    readonly sign: string;
    readonly number: string | undefined;
    readonly name: string | undefined;
  },
): string {
  if (sign === '$$') return '$';
  if (sign === '$&') return match[0];
  if (name !== undefined) return match.groups?.[name] ?? '';
  const group = Number(number);
  // A pattern without such a group has the sign as it is.
  return group >= 1 && group < match.length ? (match[group] ?? '') : sign;
}

function spliced(text: string, matches: readonly Match[]): string {
  const parts: string[] = [];
  let end = 0;
  for (const { start, found, replaced } of matches) {
    parts.push(text.slice(end, start), replaced);
    end = start + found.length;
  }
  return [...parts, text.slice(end)].join('');
}

function snippet(text: string, { start, found, replaced }: Match, field: string): FoundText {
  const end = start + found.length;
  const before = text.slice(Math.max(0, start - snippetSideCharactersMax), start);
  const after = text.slice(end, end + snippetSideCharactersMax);
  return {
    field,
    before: (before.split('\n').at(-1) ?? '').toWellFormed(),
    found: shortText(found),
    replaced: shortText(replaced),
    after: (after.split('\n')[0] ?? '').toWellFormed(),
  };
}

function shortText(text: string): string {
  if (text.length <= snippetCharactersMax) return text;
  return `${text.slice(0, snippetCharactersMax).toWellFormed()}…`;
}
