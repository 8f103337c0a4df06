import { redirectLinesMax } from '../../core/http/limits.ts';
import { countryCode } from '../../core/http/visitor.ts';
import { parseOrigin } from '../../core/values/network/authority.ts';
import { encodeNonAscii, readPath } from '../../core/values/path.ts';
import { KIB } from '../../core/values/units.ts';

const redirectLineCharactersMax = 4 * KIB;

/** A parameter that the query of a request must have, with a value or the name of a placeholder. */
interface ParameterCondition {
  readonly name: string;
  /** As in a query, percent-encoded; undefined for any value. */
  readonly value: string | undefined;
  readonly placeholder: string | undefined;
}

/** One redirect of a file in the format that Netlify documents for `_redirects`. */
export interface RedirectLine {
  readonly line: number;
  /** `*` for every origin. */
  readonly origin: string;
  /**
   * A canonical path without a final slash; a segment such as `:year` stands for any segment, and a
   * last segment `*` for all paths below and the one above.
   */
  readonly path: string;
  readonly parameters: readonly ParameterCondition[];
  /** A path or an http(s) URL, with placeholders such as `:splat`. */
  readonly to: string;
  /** 3xx for a redirect; 200, 404 or 410 for the content of `to` with that status. */
  readonly status: number;
  /** Whether it comes before all content of the path. */
  readonly isForced: boolean;
  /** In upper case; empty for visitors of every country. */
  readonly countries: readonly string[];
  /** In lower case; empty for visitors of every language. */
  readonly languages: readonly string[];
}

/** Why a line cannot be used, as the end of a sentence. */
interface LineMistake {
  readonly line: number;
  readonly message: string;
}

/** The redirects of a file, and the lines that cannot be used. */
interface ParsedRedirectLines {
  readonly lines: readonly RedirectLine[];
  readonly mistakes: readonly LineMistake[];
  /** Whether the file has more redirects than redirectLinesMax; then `lines` has none. */
  readonly isTooLong: boolean;
}

/**
 * Parses a file of redirects, one on each line: `/from [parameter=value …] /to [status][!]
 * [Country=at,de] [Language=de]`. Empty lines and comments, which begin with `#`, are skipped; a
 * line with a mistake leaves the others as they are. Never throws.
 */
export function parseRedirectLines(text: string): ParsedRedirectLines {
  const lines: RedirectLine[] = [];
  const mistakes: LineMistake[] = [];
  let line = 0;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    const trimmed = text.slice(at, end === -1 ? undefined : end).trim();
    at = end === -1 ? text.length : end + 1;
    line += 1;
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    if (lines.length === redirectLinesMax) return { lines: [], mistakes, isTooLong: true };
    const parsed = parseLine(trimmed, line);
    if (typeof parsed === 'string') mistakes.push({ line, message: parsed });
    else lines.push(parsed);
  }
  return { lines, mistakes, isTooLong: false };
}

const statuses: ReadonlySet<string> = new Set([
  '200',
  '301',
  '302',
  '303',
  '307',
  '308',
  '404',
  '410',
]);
/** A placeholder in a target; a port and `://` are none. */
export const placeholderPattern = /:([A-Za-z_]\w*)/g;

/** Most lines of a long file; reading each part of them takes ten times as long. */
const plainLine =
  /^((?:\/[\w~-][\w.~-]*)+)\/?[ \t]+((?:\/[\w~-][\w.~-]*)+\/?)(?:[ \t]+(30[12378]))?$/;
const noConditions = { parameters: [], isForced: false, countries: [], languages: [] };

/** Parses a line; returns what is wrong with it. */
function parseLine(written: string, line: number): RedirectLine | string {
  const [, plainPath, plainTo, status = 301] = plainLine.exec(written) ?? [];
  if (
    plainPath !== undefined &&
    plainTo !== undefined &&
    written.length <= redirectLineCharactersMax
  ) {
    return {
      line,
      origin: '*',
      path: plainPath,
      to: plainTo,
      ...noConditions,
      status: Number(status),
    };
  }
  if (written.length > redirectLineCharactersMax) {
    return `has more than ${redirectLineCharactersMax} characters`;
  }
  const words = written.split(/\s+/);
  const comment = words.findIndex((word) => word.startsWith('#'));
  const [from = '', ...rest] = comment === -1 ? words : words.slice(0, comment);
  const at = rest.findIndex((word) => /^(?:\/|https?:\/\/)/i.test(word));
  if (at === -1) return 'has no target: write a path or an http or https URL after the path';
  const source = parseSource(from);
  if (typeof source === 'string') return source;
  const parameters = rest.slice(0, at).map(parseParameter);
  const noParameter = rest[parameters.indexOf(undefined)];
  if (noParameter !== undefined) return `has \`${noParameter}\`, which is no parameter=value`;
  const known = parameters.filter((one) => one !== undefined);
  const names = new Set([
    ...source.names,
    ...known.flatMap(({ placeholder }) => placeholder ?? []),
  ]);
  const options = parseOptions(rest.slice(at + 1));
  if (typeof options === 'string') return options;
  const to = parseTarget(rest[at] ?? '', { names, status: options.status });
  if ('refused' in to) return to.refused;
  const { origin, path } = source;
  return { line, origin, path, parameters: known, ...to, ...options };
}

interface Source {
  readonly origin: string;
  readonly path: string;
  readonly names: readonly string[];
}

function parseSource(from: string): Source | string {
  const { origin, rest } = splitOrigin(from);
  if (origin === undefined) return `has no valid origin in \`${from}\``;
  const path = readPath(encodeNonAscii(rest));
  if (typeof path !== 'string') return `has the path \`${from}\`: ${path.reason}`;
  if (path.includes('//')) return `has an empty segment in \`${from}\``;
  const segments = path.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  if (segments.some((one, at) => one.includes('*') && !(one === '*' && at === segments.length - 1)))
    return 'has a * inside the path: it may only be the last segment, as in /news/*';
  const placeholders = segments.filter(isPlaceholder).map((one) => one.slice(1));
  if (new Set(placeholders).size < placeholders.length) return 'has a placeholder twice';
  const names = segments.at(-1) === '*' ? [...placeholders, 'splat'] : placeholders;
  return { origin, path: `/${segments.join('/')}`, names };
}

/** The origin of a text that may begin with one, `*` without one, and the rest, a path. */
export function splitOrigin(text: string): {
  readonly origin: string | undefined;
  readonly rest: string;
} {
  if (!/^https?:\/\//i.test(text)) return { origin: '*', rest: text };
  const slash = text.indexOf('/', text.indexOf('//') + '//'.length);
  if (slash === -1) return { origin: parseOrigin(text), rest: '/' };
  return { origin: parseOrigin(text.slice(0, slash)), rest: text.slice(slash) };
}

/** Whether a segment of a path is a placeholder such as `:year`. */
export function isPlaceholder(segment: string): boolean {
  return /^:[A-Za-z_]\w*$/.test(segment);
}

function parseParameter(word: string): ParameterCondition | undefined {
  const [, name, value = ''] = /^([^=]+)=(.*)$/.exec(word) ?? [];
  if (name === undefined) return undefined;
  return isPlaceholder(value)
    ? { name, value: undefined, placeholder: value.slice(1) }
    : { name, value, placeholder: undefined };
}

function parseTarget(
  written: string,
  { names, status }: { readonly names: ReadonlySet<string>; readonly status: number },
): { readonly to: string } | { readonly refused: string } {
  const to = encodeNonAscii(written);
  const [unknown] =
    [...to.matchAll(/(?<=[/=]):([A-Za-z_]\w*)/g)].find(([, name = '']) => !names.has(name)) ?? [];
  if (unknown !== undefined)
    return { refused: `has ${unknown} in its target, but not in its path` };
  const [, authority = ''] = /^https?:\/\/([^/?#]*)/i.exec(to) ?? [];
  const isOwn = to.startsWith('/');
  if (/^\/[/\\]/.test(to) || !URL.canParse(to, 'http://any.invalid') || to.includes('\\')) {
    return { refused: `has the target \`${written}\`, which is no path and no URL` };
  }
  if (!isOwn && (authority === '' || /@|:[A-Za-z_]/.test(authority))) {
    return { refused: 'has a user or a placeholder in the host of its target' };
  }
  if (!isOwn && (status < 300 || status > 399)) {
    return { refused: `has the status ${status} for another server: write a [proxy.<name>]` };
  }
  return { to };
}

type LineOptions = Pick<RedirectLine, 'status' | 'isForced' | 'countries' | 'languages'>;

function parseOptions(words: readonly string[]): LineOptions | string {
  let status = '301';
  let isForced = false;
  let [countries, languages]: [readonly string[], readonly string[]] = [[], []];
  for (const [at, word] of words.entries()) {
    const [, digits, mark] = /^(\d+)(!?)$/.exec(word) ?? [];
    const [, name = '', value = ''] = /^([A-Za-z]+)=(.+)$/.exec(word) ?? [];
    const values = value.replaceAll('"', '').split(',');
    if (digits !== undefined && at === 0) {
      if (!statuses.has(digits)) return `has the status ${digits}; use ${[...statuses].join(', ')}`;
      [status, isForced] = [digits, mark === '!'];
    } else if (name.toLowerCase() === 'country') {
      countries = values.flatMap((one) => countryCode(one) ?? []);
      if (countries.length < values.length) return `has \`${word}\`: write codes such as at,de`;
    } else if (name.toLowerCase() === 'language') {
      languages = values.map((one) => one.toLowerCase());
      if (!languages.every((one) => /^[a-z]{2,8}(?:-[a-z0-9]{1,8})*$/.test(one)))
        return `has \`${word}\`: write tags such as de,en-GB`;
    } else return `has \`${word}\`, which Waymark does not know`;
  }
  return { status: Number(status), isForced, countries, languages };
}
