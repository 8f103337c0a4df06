import { origin, sitePath } from '../../core/config/addresses.ts';
import { type KeyText, type ParsedKeys, optional, single } from '../../core/config/ini-key.ts';
import { type LineProblem, quoted } from '../../core/config/problem.ts';
import { type ValueParser, anyText, choice, wordOr } from '../../core/config/values.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import { linearPattern } from '../../core/values/linear-pattern.ts';
import { canonicalPath, escapedPath, requestPathOf } from '../../core/values/path.ts';
import { locationFor } from './redirect-target.ts';

/** A regular expression for a path, which is matched in linear time. */
const pathExpression: ValueParser<string> = (value) => {
  try {
    linearPattern(value);
    return { value };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { refused: error.message };
  }
};

/** A path with an optional query, in which `$1` to `$99` stand for groups. */
const rewriteTarget: ValueParser<string> = (text) => {
  const [written = '', ...queries] = text.split('?');
  const path = sitePath(written);
  if ('refused' in path) return path;
  const query = queries.join('?');
  return /^[\x21\x22\x24-\x3b\x3d\x3f-\x7e]*$/.test(query)
    ? { value: query === '' ? path.value : `${path.value}?${query}` }
    : { refused: 'the query has a character that must be percent-encoded' };
};

/** The keys of `[rewrite.<name>]`. */
export const rewriteKeys = {
  origin: single(wordOr('*', origin), '*'),
  match: optional(pathExpression),
  to: optional(rewriteTarget),
};

/** What the reference says about each key. */
export const rewriteTexts: Readonly<Record<keyof typeof rewriteKeys, KeyText>> = {
  origin: {
    about: 'The origin whose requests are rewritten; `*` for every origin.',
    example: 'https://www.example.com',
  },
  match: {
    about:
      'A regular expression for the canonical path. It is matched in linear time, so it has no ' +
      'lookaround and no back-references.',
    example: '^/blog/(\\d+)/(.*)$',
  },
  to: {
    about:
      'The path inside the server whose content answers, with an optional query; `$1` is the ' +
      'first group. The query of the request is added.',
    example: '/posts/$1-$2',
  },
};

/** A path, or all paths below a prefix that ends with `*`. */
const redirectPath: ValueParser<string> = (text) => {
  const parsed = sitePath(text.replace(/\*$/, ''));
  if ('refused' in parsed) return parsed;
  if (parsed.value.includes('*')) return { refused: 'a * may only be the end of the path' };
  return { value: text.endsWith('*') ? `${parsed.value}*` : parsed.value };
};

/** The target of a redirect: an absolute URL or a path, with variables. */
const redirectTarget: ValueParser<string> = (value) => {
  const unknown = [...value.matchAll(/\{([^{}]*)\}/g)].find(
    ([, name = '']) => !names.has(name) && !/^query\.[^.]/.test(name),
  );
  if (unknown !== undefined) {
    const known = '{splat}, {path}, {query}, {query.NAME} and {host}';
    return { refused: `${unknown[0]} is unknown: there are ${known}` };
  }
  const [authority = ''] = value.split(/[/?#]|\{path\}/).slice(2);
  if (!value.startsWith('/') && /\{(?:splat|query)|\$/.test(authority)) {
    return { refused: 'a visitor could choose the host: write a / behind it' };
  }
  // A path begins with a slash, so it may follow a port.
  const sample = value.replaceAll('{path}', '/x').replaceAll(/\{[^{}]*\}/g, 'x');
  return /^(?:https?:\/\/[^/\\@]|\/(?![/\\]))/.test(sample) && URL.canParse(sample, 'http://x')
    ? { value }
    : { refused: 'write a path that starts with /, or an http or https URL' };
};

const names: ReadonlySet<string> = new Set(['splat', 'path', 'query', 'host']);

/** The keys of `[redirect.<name>]`. */
export const redirectKeys = {
  origin: single(wordOr('*', origin), '*'),
  path: single(redirectPath, '/*', { write: (path: string) => writtenPath(path) }),
  /** A regular expression for the path, in place of `path`. */
  match: optional(pathExpression),
  to: optional(redirectTarget),
  /** A file of redirects in the format of `_redirects`. */
  file: optional(anyText, { isPath: true }),
  /** Whether the paths of pages end with a slash. */
  trailing_slash: optional(choice('on', 'off')),
  status: single(choice('301', '302', '303', '307', '308'), '301'),
  query: single(choice('keep', 'drop'), 'keep'),
};

function writtenPath(path: string): string {
  return path.endsWith('*') ? `${escapedPath(path.slice(0, -1))}*` : escapedPath(path);
}

/** What the reference says about each key. */
export const redirectTexts: Readonly<Record<keyof typeof redirectKeys, KeyText>> = {
  origin: {
    about: 'The origin whose requests are redirected; `*` for every origin.',
    example: 'https://www.example.com',
  },
  path: {
    about: 'The path that is redirected; a `*` at its end stands for all paths below.',
    example: '/blog/*',
  },
  match: {
    about:
      'In place of `path`: a regular expression for the canonical path, matched in linear time. ' +
      '`$1` in `to` is its first group.',
    example: '^/blog/(\\d+)$',
  },
  to: {
    about:
      'The target: a URL or a path. `{splat}` is what the `*` stands for, `{path}` the path, ' +
      '`{query}` the query, `{query.NAME}` the value of a parameter, `{host}` the host of the ' +
      'request, each as the client has sent it.',
    example: 'https://example.com/{splat}',
  },
  file: {
    about:
      'A file with up to 100,000 redirects in place of `to`: `/from /to status` on each line, as ' +
      'in `_redirects` of Netlify.',
    example: '/etc/waymark/moved.txt',
  },
  trailing_slash: {
    about:
      'In place of `to`: `off` redirects `/about/` to `/about`, and `on` redirects `/about` to ' +
      '`/about/`, if that page exists. Names with a dot, such as `a.css`, get no slash.',
    example: 'off',
  },
  status: { about: 'The status: 308 and 307 keep the method.', example: '308' },
  query: {
    about: 'Whether the query of the request is added to the target.',
    example: 'drop',
  },
};

type ParsedRedirect = ParsedKeys<typeof redirectKeys>;

/** Finds redirects without a target or with several, and those that lead in a circle. */
export function redirectProblems({
  redirects,
}: {
  readonly redirects: readonly ParsedRedirect[];
}): readonly LineProblem[] {
  const valid = redirects.filter(({ isValid, values }) => isValid && values.to !== undefined);
  const index = indexRedirects(valid);
  return redirects.flatMap((redirect) => {
    const { name, line, lines, isValid, values } = redirect;
    if (!isValid) return [];
    const title = `[redirect.${name}]`;
    const given = (['to', 'file', 'trailing_slash'] as const).filter((key) => values[key]);
    if (given.length === 0) {
      return [{ line, message: `${title} needs \`to\`, such as \`to = /new/{splat}\`` }];
    }
    if (given.length > 1) {
      const message = `${title} has \`${given.join('` and `')}\`: it takes one of them`;
      return [{ line: lines.get(given[1] ?? '')?.[0] ?? line, message }];
    }
    const unused = values.status === '301' ? 'query' : 'status';
    if (values.file !== undefined && (unused === 'status' || values.query === 'drop')) {
      const message = `\`${unused}\` has no effect with \`file\`: its lines have their own`;
      return [{ line: lines.get(unused)?.[0] ?? line, message }];
    }
    if (values.match !== undefined && (values.to === undefined || values.path !== '/*')) {
      const cure = values.to === undefined ? 'needs `to`' : 'takes the place of `path`: remove one';
      return [{ line: lines.get('match')?.[0] ?? line, message: `\`match\` ${cure}` }];
    }
    if (values.to === undefined) return [];
    const group = values.match === undefined ? undefined : unknownGroup(values.match, values.to);
    if (group !== undefined) {
      return [{ line: lines.get('to')?.[0] ?? line, message: `${title} has ${group}` }];
    }
    if (leadsToSelf(redirect)) {
      const message = `${title} leads to its own path, and so does nothing: change its \`to\``;
      return [{ line: lines.get('to')?.[0] ?? line, message }];
    }
    const others = circleFrom(redirect, index);
    if (others === undefined) return [];
    const through = others.length === 0 ? '' : `, through ${others.join(' and ')}`;
    const message = `${title} leads to itself${through}: change its \`to\` or its \`path\``;
    return [{ line: lines.get('to')?.[0] ?? line, message }];
  });
}

/** Finds redirects without examining all of them: there may be many thousands. */
interface RedirectIndex {
  readonly count: number;
  /** The origins of all redirects. */
  readonly origins: ReadonlySet<string>;
  /** The redirects that may apply to a place, in the order of the file. */
  at(place: RequestTarget): readonly ParsedRedirect[];
}

function indexRedirects(redirects: readonly ParsedRedirect[]): RedirectIndex {
  const numbers = new Map(redirects.map((one, at) => [one, at]));
  const byPath = Map.groupBy(redirects, ({ values }) =>
    values.match === undefined ? values.path : undefined,
  );
  const patterns = byPath.get(undefined) ?? [];
  return {
    count: redirects.length,
    origins: new Set(redirects.map(({ values }) => values.origin)),
    at({ path }) {
      const found = [...patterns, ...(byPath.get(path) ?? [])];
      for (let end = 0; end <= path.length; end += 1) {
        found.push(...(byPath.get(`${path.slice(0, end)}*`) ?? []));
      }
      return found.toSorted((one, other) => (numbers.get(one) ?? 0) - (numbers.get(other) ?? 0));
    },
  };
}

/** The sections through which a redirect leads back to itself; undefined if it does not. */
function circleFrom(start: ParsedRedirect, index: RedirectIndex): readonly string[] | undefined {
  const { values } = start;
  const origin = values.origin === '*' ? 'http://any.invalid' : values.origin;
  // No path is known that a pattern matches; if its own target is one, it leads to itself.
  const sample = values.to?.replaceAll(/\{[^{}]*\}|\$\d{1,2}/g, 'x') ?? '';
  const target = values.match === undefined ? undefined : URL.parse(sample, origin);
  let place =
    target == null
      ? placeAt(origin, escapedPath(values.path.replace(/\*$/, 'x')))
      : placeAt(target.origin, target.pathname);
  const passed: string[] = [];
  for (let hop = 0; hop <= index.count && place !== undefined; hop += 1) {
    const here = place;
    const next = index.at(here).find((one) => locationOf(one, here) !== undefined);
    if (next === undefined) return undefined;
    if (hop > 0 && next === start) return passed;
    if (hop > 0) passed.push(`[redirect.${next.name}]`);
    const url = URL.parse(locationOf(next, here) ?? '', here.origin);
    // Whether this server answers for another origin is only known if a redirect names it.
    const isOwn = url?.origin === here.origin || (url !== null && index.origins.has(url.origin));
    place = url === null || !isOwn ? undefined : placeAt(url.origin, url.pathname);
  }
  return undefined;
}

/** Whether a redirect of one path has that path as its target, on every origin that it is for. */
function leadsToSelf(redirect: ParsedRedirect): boolean {
  const { path, match, origin: own } = redirect.values;
  if (match !== undefined || path.endsWith('*')) return false;
  const place = placeAt(own === '*' ? 'http://any.invalid' : own, escapedPath(path));
  return place !== undefined && locationOf(redirect, place) === undefined;
}

function locationOf({ values }: ParsedRedirect, place: RequestTarget): string | undefined {
  const pattern = values.match === undefined ? undefined : linearPattern(values.match);
  return locationFor({ ...values, to: values.to ?? '/', pattern }, place);
}

function placeAt(origin: string, encoded: string): RequestTarget | undefined {
  const path = canonicalPath(encoded);
  return path && { origin, ...requestPathOf(path), query: '' };
}

/** Finds rewrites that lack a key, and targets with a group that the pattern does not have. */
export function rewriteProblems({
  rewrites,
}: {
  readonly rewrites: readonly ParsedKeys<typeof rewriteKeys>[];
}): readonly LineProblem[] {
  return rewrites.flatMap(({ name, line, lines, isValid, values: { match, to } }) => {
    if (!isValid) return [];
    const title = `[rewrite.${name}]`;
    if (match === undefined || to === undefined) {
      const [key, example] = match === undefined ? ['match', '^/blog/(.*)$'] : ['to', '/posts/$1'];
      return [{ line, message: `${title} needs \`${key}\`, such as \`${key} = ${example}\`` }];
    }
    const problem = unknownGroup(match, to);
    if (problem === undefined) return [];
    return [{ line: lines.get('to')?.[0] ?? line, message: `${title} has ${problem}` }];
  });
}

/** Names a group of a target that the pattern does not have, as the end of a sentence. */
function unknownGroup(match: string, to: string): string | undefined {
  const groups = (linearPattern(`${match}|`).exec('')?.length ?? 1) - 1;
  const unknown = to.match(/\$\d{1,2}/g)?.find((one) => Number(one.slice(1)) > groups);
  if (unknown === undefined) return undefined;
  const count = groups === 1 ? 'one group' : `${groups} groups`;
  return `${quoted(unknown)} in \`to\`, but \`match\` has ${count}`;
}
