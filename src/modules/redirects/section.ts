import { patternsOver, sampleOrigin } from '../../core/values/network/origin-pattern.ts';
import { sitePath } from '../../core/config/addresses.ts';
import { type FieldsOf, fileKey, optional, originKey, single } from '../../core/config/ini-key.ts';
import { iniSection, type ParsedSection, problemOf } from '../../core/config/ini-section.ts';
import { type LineProblem, quoted } from '../../core/config/problem.ts';
import { type ValueParser, choice, pathBelow } from '../../core/config/values.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import type { Steps } from '../../core/fair/turns.ts';
import { linearPattern, pathPattern } from '../../core/values/linear-pattern.ts';
import { canonicalPath, escapedPath, requestPathOf } from '../../core/values/path.ts';
import type { diskKeys } from '../files/section.ts';
import { type MountFiles, readMountFiles, readRedirectFile } from './mount-files.ts';
import { inOrder } from './redirect-table.ts';
import { locationFor } from './redirect-target.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    /** In the order of the file. */
    readonly redirects: readonly RedirectConfig[];
    /** In the order of the file. */
    readonly rewrites: readonly RewriteConfig[];
  }
  interface DiskMount extends FieldsOf<typeof mountFileKeys>, MountFiles {}
  /** `[redirect.<name>]`: it has one of `to`, `file` and `trailingSlash`. */
  interface RedirectConfig extends Omit<FieldsOf<typeof redirectKeys>, 'status'> {
    readonly name: string;
    readonly status: number;
    /** The text of `file`. */
    readonly fileText: string | undefined;
  }
  /** `[rewrite.<name>]`: a path whose content another path has. */
  interface RewriteConfig {
    readonly name: string;
    readonly origin: string;
    /** A regular expression; see linearPattern. */
    readonly match: string;
    /** A canonical path, with an optional query. */
    readonly to: string;
  }
}

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
const rewriteKeys = {
  origin: originKey('whose requests are rewritten'),
  match: optional(pathExpression, {
    about:
      'A regular expression for the canonical path. It is matched in linear time, so it has no ' +
      'lookaround and no back-references.',
    example: '^/blog/(\\d+)/(.*)$',
  }),
  to: optional(rewriteTarget, {
    about:
      'The path inside the server whose content answers, with an optional query; `$1` is the ' +
      'first group. The query of the request is added.',
    example: '/posts/$1-$2',
  }),
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
const redirectKeys = {
  origin: originKey('whose requests are redirected'),
  path: single(redirectPath, '/*', {
    write: (path: string) => writtenPath(path),
    about: 'The path that is redirected; a `*` at its end stands for all paths below.',
    example: '/blog/*',
  }),
  match: optional(pathExpression, {
    about:
      'In place of `path`: a regular expression for the canonical path, matched in linear time. ' +
      '`$1` in `to` is its first group.',
    example: '^/blog/(\\d+)$',
    beside: { path: '', to: '/posts/$1' },
  }),
  to: optional(redirectTarget, {
    about:
      'The target: a URL or a path. `{splat}` is what the `*` stands for, `{path}` the path, ' +
      '`{query}` the query, `{query.NAME}` the value of a parameter, `{host}` the host of the ' +
      'request, each as the client has sent it.',
    example: 'https://example.com/{splat}',
  }),
  file: fileKey({
    about:
      'A file with up to 100,000 redirects in place of `to`: `/from /to status` on each line, as ' +
      'in `_redirects` of Netlify.',
    example: '/etc/waymark/moved.txt',
    beside: { path: '', to: '' },
  }),
  trailing_slash: optional(choice('on', 'off'), {
    about:
      'In place of `to`: `off` redirects `/about/` to `/about`, and `on` redirects `/about` to ' +
      '`/about/`, if that page exists. Names with a dot, such as `a.css`, get no slash.',
    example: 'off',
    beside: { path: '', to: '' },
  }),
  status: single(choice('301', '302', '303', '307', '308'), '301', {
    about: 'The status: 308 and 307 keep the method.',
    example: '308',
  }),
  query: single(choice('keep', 'drop'), 'keep', {
    about: 'Whether the query of the request is added to the target.',
    example: 'drop',
  }),
};

function writtenPath(path: string): string {
  return path.endsWith('*') ? `${escapedPath(path.slice(0, -1))}*` : escapedPath(path);
}

/** `[redirect.<name>]`: it has one of `to`, `file` and `trailing_slash`. */
export const redirectSection = iniSection({
  header: 'redirect.<name>',
  keys: redirectKeys,
  place: 'redirects',
  since: '0.2',
  about:
    'A redirect, with one of `to`, `file` and `trailing_slash`. It comes before all other ' +
    'sources; the first one of the file that applies answers. A circle is refused.',
  example: { name: 'blog', lines: { path: '/blog/*', to: 'https://blog.example.com/{splat}' } },
  hidden: ['fileText'],
  check: redirectProblems,
  read: readRedirectFile,
  settings: (fields, { content: { fileText } }) => ({
    ...fields,
    status: Number(fields.status),
    fileText,
  }),
  names: ({ redirects }) => ({ origins: redirects.map(({ origin }) => origin) }),
});

/** `[rewrite.<name>]`: a path whose content another path has. */
export const rewriteSection = iniSection({
  header: 'rewrite.<name>',
  keys: rewriteKeys,
  place: 'rewrites',
  since: '0.2',
  about:
    'The content of another path answers, and the address stays. It comes after redirects and ' +
    'before all content; the first one of the file that matches decides, and a path without ' +
    'content gets 404.',
  example: { name: 'posts', lines: { match: String.raw`^/blog/(\d+)/(.*)$`, to: '/posts/$1-$2' } },
  check: (rewrites) => rewrites.flatMap((rewrite) => rewriteProblem(rewrite) ?? []),
  names: ({ rewrites }) => ({ origins: rewrites.map(({ origin }) => origin) }),
});

const mountFileKeys = {
  redirects: optional(pathBelow, {
    about:
      'A file below the root with redirects in the format of Netlify and Cloudflare Pages; it is ' +
      'not served.',
    example: '_redirects',
    since: '0.2',
  }),
  headers_file: optional(pathBelow, {
    about:
      'A file below the root with header fields in the format of Netlify and Cloudflare Pages; ' +
      'it is not served.',
    example: '_headers',
    since: '0.2',
  }),
};

/** The keys of `[disk.<name>]` for files of redirects and header fields below its root. */
export const mountFilesSection = iniSection({
  header: 'disk.<name>',
  keys: mountFileKeys,
  since: '0.2',
  hidden: ['redirectsText'],
  read: (mount: ParsedSection<typeof mountFileKeys & typeof diskKeys>, { folder }) =>
    readMountFiles(mount.values, folder),
  warnings: ({ disk }) => disk.flatMap(({ fileWarnings }) => fileWarnings),
});

type ParsedRedirect = ParsedSection<typeof redirectKeys>;

/** Finds redirects without a target or with several, and those that lead in a circle. */
function* redirectProblems(redirects: readonly ParsedRedirect[]): Steps<readonly LineProblem[]> {
  const valid = redirects.filter(({ isValid, values }) => isValid && values.to !== undefined);
  const index = indexRedirects(valid);
  const problems: LineProblem[] = [];
  for (const redirect of redirects) {
    yield;
    if (!redirect.isValid) continue;
    const found = contradictionOf(redirect) ?? (yield* circleProblem(redirect, index));
    if (found !== undefined) problems.push(found);
  }
  return problems;
}

/** Keys of a redirect that contradict each other, or lead nowhere. */
function contradictionOf(redirect: ParsedRedirect): LineProblem | undefined {
  const { name, line, values } = redirect;
  const title = `[redirect.${name}]`;
  const given = (['to', 'file', 'trailing_slash'] as const).filter((key) => values[key]);
  if (given.length === 0) {
    return { line, message: `${title} needs \`to\`, such as \`to = /new/{splat}\`` };
  }
  if (given.length > 1) {
    const message = `${title} has \`${given.join('` and `')}\`: it takes one of them`;
    return problemOf(redirect, given[1] ?? '', message);
  }
  const unused = values.status === '301' ? 'query' : 'status';
  if (values.file !== undefined && (unused === 'status' || values.query === 'drop')) {
    const message = `\`${unused}\` has no effect with \`file\`: its lines have their own`;
    return problemOf(redirect, unused, message);
  }
  if (values.match !== undefined && (values.to === undefined || values.path !== '/*')) {
    const cure = values.to === undefined ? 'needs `to`' : 'takes the place of `path`: remove one';
    return problemOf(redirect, 'match', `\`match\` ${cure}`);
  }
  if (values.to === undefined) return undefined;
  const group = values.match === undefined ? undefined : unknownGroup(values.match, values.to);
  if (group !== undefined) {
    return problemOf(redirect, 'to', `${title} has ${group}`);
  }
  if (!leadsToSelf(redirect)) return undefined;
  const message = `${title} leads to its own path, and so does nothing: change its \`to\``;
  return problemOf(redirect, 'to', message);
}

function* circleProblem(
  redirect: ParsedRedirect,
  index: RedirectIndex,
): Steps<LineProblem | undefined> {
  const { name, values } = redirect;
  const others = values.to === undefined ? undefined : yield* circleFrom(redirect, index);
  if (others === undefined) return undefined;
  const through = others.length === 0 ? '' : `, through ${others.join(' and ')}`;
  const message = `[redirect.${name}] leads to itself${through}: change its \`to\` or its \`path\``;
  return problemOf(redirect, 'to', message);
}

/**
 * Redirects that are compared with a place, of all searches for circles together: many thousands of
 * patterns, or of redirects in one long chain, are not searched to the end. A browser ends such a
 * circle.
 */
const comparedRedirectsMax = 1_000_000;

interface IndexedRedirect {
  readonly redirect: ParsedRedirect;
  /** Its `match`. */
  readonly pattern: Pick<RegExp, 'exec'> | undefined;
}

/** Finds redirects without examining all of them: there may be many thousands. */
interface RedirectIndex {
  /** The origins of all redirects. */
  readonly origins: ReadonlySet<string>;
  /** The places from which no circle begins, as far as that is known. */
  readonly ends: Set<string>;
  /** How many further redirects may be compared. */
  comparisonsLeft: number;
  readonly redirects: readonly IndexedRedirect[];
  /** The positions of the redirects that may apply to a place, in the order of the file. */
  at(place: RequestTarget): Iterable<number>;
}

function indexRedirects(redirects: readonly ParsedRedirect[]): RedirectIndex {
  const indexed = redirects.map((redirect): IndexedRedirect => {
    const { match } = redirect.values;
    return { redirect, pattern: match === undefined ? undefined : pathPattern(match) };
  });
  // The path of a redirect with a pattern is none.
  const pathOf = (at: number): string | undefined => {
    const { match, path } = redirects[at]?.values ?? {};
    return match === undefined ? path : undefined;
  };
  const byOrigin = Map.groupBy(redirects.keys(), (at) => redirects[at]?.values.origin);
  const byPath = new Map(
    [...byOrigin].map(([origin, members]) => [origin, Map.groupBy(members, pathOf)]),
  );
  return {
    redirects: indexed,
    origins: new Set(redirects.map(({ values }) => values.origin)),
    ends: new Set(),
    comparisonsLeft: comparedRedirectsMax,
    at({ origin, path }) {
      const lists: (readonly number[])[] = [];
      for (const paths of patternsOver(origin).map((one) => byPath.get(one))) {
        if (paths === undefined) continue;
        lists.push(paths.get(undefined) ?? [], paths.get(path) ?? []);
        for (let end = 0; end <= path.length; end += 1) {
          const found = paths.get(`${path.slice(0, end)}*`);
          if (found !== undefined) lists.push(found);
        }
      }
      return inOrder(lists);
    },
  };
}

/** The sections through which a redirect leads back to itself; undefined if it does not. */
function* circleFrom(
  start: ParsedRedirect,
  index: RedirectIndex,
): Steps<readonly string[] | undefined> {
  const passed: string[] = [];
  const places = new Set<string>();
  let place = firstPlace(start);
  for (let hop = 0; place !== undefined; hop += 1) {
    const name = `${place.origin} ${place.path}`;
    // It comes into a circle that other redirects make.
    if (places.has(name)) return undefined;
    const next = index.ends.has(name) ? undefined : yield* redirectAt(place, index);
    if (index.comparisonsLeft <= 0) return undefined;
    if (hop > 0) places.add(name);
    if (next === undefined) break;
    if (hop > 0 && next.redirect === start) return passed;
    if (hop > 0) passed.push(`[redirect.${next.redirect.name}]`);
    const url = URL.parse(next.location, place.origin);
    // Whether this server answers for another origin is only known if a redirect names it.
    const isOwn =
      url?.origin === place.origin ||
      (url !== null &&
        patternsOver(url.origin).some((one) => one !== '*' && index.origins.has(one)));
    place = url === null || !isOwn ? undefined : placeAt(url.origin, url.pathname);
  }
  for (const name of places) index.ends.add(name);
  return undefined;
}

/** A place at which a redirect applies. */
function firstPlace({ values }: ParsedRedirect): RequestTarget | undefined {
  const origin = sampleOrigin(values.origin);
  if (values.match === undefined) {
    return placeAt(origin, escapedPath(values.path.replace(/\*$/, 'x')));
  }
  // No path is known that a pattern matches; if its own target is one, it leads to itself.
  const sample = values.to?.replaceAll(/\{[^{}]*\}|\$\d{1,2}/g, 'x') ?? '';
  const target = URL.parse(sample, origin);
  return target === null
    ? placeAt(origin, escapedPath(values.path.replace(/\*$/, 'x')))
    : placeAt(target.origin, target.pathname);
}

/** The redirect that applies to a place, with the location that it leads to. */
function* redirectAt(
  place: RequestTarget,
  index: RedirectIndex,
): Steps<{ readonly redirect: ParsedRedirect; readonly location: string } | undefined> {
  for (const at of index.at(place)) {
    index.comparisonsLeft -= 1;
    const { redirect, pattern } = index.redirects[at] ?? {};
    if (index.comparisonsLeft <= 0 || redirect === undefined) return undefined;
    yield;
    const location = locationOf(redirect, place, pattern);
    if (location !== undefined) return { redirect, location };
  }
  return undefined;
}

/** Whether a redirect of one path has that path as its target, on every origin that it is for. */
function leadsToSelf(redirect: ParsedRedirect): boolean {
  const { path, match, origin: own } = redirect.values;
  if (match !== undefined || path.endsWith('*')) return false;
  const place = placeAt(sampleOrigin(own), escapedPath(path));
  return place !== undefined && locationOf(redirect, place) === undefined;
}

function locationOf(
  { values }: ParsedRedirect,
  place: RequestTarget,
  pattern?: Pick<RegExp, 'exec'>,
): string | undefined {
  return locationFor({ ...values, to: values.to ?? '/', pattern }, place);
}

function placeAt(origin: string, encoded: string): RequestTarget | undefined {
  const path = canonicalPath(encoded);
  return path && { origin, ...requestPathOf(path), query: '' };
}

/** Finds a key that a rewrite lacks, and a target with a group that the pattern does not have. */
function rewriteProblem(rewrite: ParsedSection<typeof rewriteKeys>): LineProblem | undefined {
  const { name, line, isValid, values } = rewrite;
  if (!isValid) return undefined;
  const { match, to } = values;
  const title = `[rewrite.${name}]`;
  if (match === undefined || to === undefined) {
    const [key, example] = match === undefined ? ['match', '^/blog/(.*)$'] : ['to', '/posts/$1'];
    return { line, message: `${title} needs \`${key}\`, such as \`${key} = ${example}\`` };
  }
  const problem = unknownGroup(match, to);
  return problem === undefined ? undefined : problemOf(rewrite, 'to', `${title} has ${problem}`);
}

/** Names a group of a target that the pattern does not have, as the end of a sentence. */
function unknownGroup(match: string, to: string): string | undefined {
  const groups = (linearPattern(`${match}|`).exec('')?.length ?? 1) - 1;
  const unknown = to.match(/\$\d{1,2}/g)?.find((one) => Number(one.slice(1)) > groups);
  if (unknown === undefined) return undefined;
  const count = groups === 1 ? 'one group' : `${groups} groups`;
  return `${quoted(unknown)} in \`to\`, but \`match\` has ${count}`;
}
