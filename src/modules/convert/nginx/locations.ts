import {
  type Directive,
  type PathPattern,
  allOf,
  extensionsOf,
  globOf,
  lastOf,
  patternsOf,
  phpNearest,
  redirectNearest,
} from '../directive.ts';
import {
  addAnswer,
  addFields,
  addMount,
  addRedirect,
  addRefusal,
  addRewrite,
} from '../sections.ts';
import { accessDirectives, hidesDotFiles, rateDirectives } from './access.ts';
import { refusesOthers } from './client-certificates.ts';
import { addProxyOf, proxyDirectives } from './proxies.ts';
import { type NginxSite, effective, fieldsOf, leaveOthers } from './site.ts';
import { redirectTarget } from './variables.ts';

/** Directives of a location that are read here. */
const handled: ReadonlySet<string> = new Set([
  ...proxyDirectives,
  ...['root', 'alias', 'index', 'try_files', 'autoindex', 'autoindex_exact_size', 'return'],
  ...['autoindex_localtime', 'add_header', 'expires', 'access_log', 'error_page', 'rewrite'],
  ...['location', 'autoindex_format'],
  ...accessDirectives,
  ...rateDirectives,
]);

const foreignHandlers = ['fastcgi_pass', 'uwsgi_pass', 'scgi_pass', 'grpc_pass', 'memcached_pass'];

/** A location: the paths that it answers, and its block. */
interface Location {
  readonly directive: Directive;
  readonly block: readonly Directive[];
  readonly path: string;
  readonly isExact: boolean;
}

/** What the locations of a server share. */
export interface Locations {
  /** `location @name`, by name. */
  readonly named: ReadonlyMap<string, Directive>;
  /** Paths of `error_page`, whose locations only find files. */
  readonly errorPaths: ReadonlySet<string>;
  /** Whether files of `root` are served below `/`. */
  readonly hasRootFiles: boolean;
}

/** Converts one location of a server. */
export function convertLocation(site: NginxSite, directive: Directive, shared: Locations): void {
  const { words, block = [] } = directive;
  const [modifier = '', written] = words.length > 1 ? words : ['', words[0]];
  const text = written ?? '';
  if (text.startsWith('@')) return;
  for (const inner of block.filter(({ name }) => name === 'location')) {
    convertLocation({ ...site, outer: [block, ...site.outer] }, inner, shared);
  }
  if (modifier.startsWith('~')) {
    convertRegex(site, { directive, block, text }, shared);
    return;
  }
  if (modifier === '=' && shared.errorPaths.has(text)) return;
  answer(site, { directive, block, path: text, isExact: modifier === '=' }, shared);
}

function answer(site: NginxSite, location: Location, shared: Locations): void {
  const { block, path, isExact } = location;
  const foreign = block.find(({ name }) => foreignHandlers.includes(name));
  const redirect = lastOf(block, 'return');
  const others = block.filter((one) => one.name !== 'if' || !refusesOthers(one));
  leaveOthers(site.conversion, others, handled);
  const pattern: PathPattern = isExact
    ? { kind: 'exact', path }
    : { kind: 'below', path, isCaptured: true };
  if (redirect !== undefined) convertReturn(site, redirect, { block, pattern, shared });
  for (const one of block.filter(({ name }) => name === 'rewrite')) convertRewrite(site, one);
  const isFinal = redirect !== undefined || foreign !== undefined;
  if (!isFinal && lastOf(block, 'proxy_pass') !== undefined)
    addProxyOf(site, block, { path, isExact });
  else if (!isFinal) serveFiles(site, location, shared);
  const fixed = redirect !== undefined && lastOf(block, 'rewrite') === undefined;
  if (!fixed || !isText(redirect))
    addFields(site, [globOf(pattern)], fieldsOf(site.conversion, block));
}

function isText({ words }: Directive): boolean {
  return words.length > 1 && Number(words[0]) < firstRedirect;
}

const firstRedirect = 300;

/** Serves the files of a location: its own ones, or those of the server. */
function serveFiles(site: NginxSite, location: Location, shared: Locations): void {
  const { block, path, isExact, directive } = location;
  const own = ['root', 'alias', 'index', 'try_files', 'autoindex'].some((name) =>
    lastOf(block, name),
  );
  const isRoot = path === '/' && !isExact;
  // The files of the server are there already.
  if (!isRoot && !own && shared.hasRootFiles) return;
  if (isExact) {
    if (own || !shared.hasRootFiles) leaveExact(site, directive);
    return;
  }
  const alias = lastOf(block, 'alias')?.words[0];
  const root = effective(site, block, 'root')?.words[0];
  if (alias === undefined && root === undefined) return;
  const folder = path.endsWith('/') ? path : `${path}/`;
  const tries = triesOf(site, block, { folder, isAlias: alias !== undefined });
  if (tries === undefined) return;
  const served = alias ?? (root ?? '').replace(/\/$/, '') + (folder === '/' ? '' : folder);
  const { words: index = ['index.html'] } = effective(site, block, 'index') ?? {};
  addMount(
    site,
    {
      path: folder,
      root: served.replace(/(.)\/$/, '$1'),
      index: tries.hasIndex ? index.filter((name) => !name.startsWith('/')) : [],
      listing: effective(site, block, 'autoindex')?.words[0] === 'on',
      tries: tries.tries,
      fallback: tries.fallback ?? fallbackOfErrors(site, block),
      errors: errorsOf(site, block),
    },
    lastOf(block, 'alias') ?? effective(site, block, 'root') ?? directive,
  );
  const named = tries.named === undefined ? undefined : shared.named.get(tries.named);
  if (named === undefined) return;
  leaveOthers(site.conversion, named.block ?? [], handled);
  addProxyOf(site, named.block ?? [], { path: folder, isExact: false });
}

function leaveExact({ conversion }: NginxSite, directive: Directive): void {
  conversion.leave(directive, 'a [disk.<name>] for the folder of that file');
}

interface Tries {
  readonly tries: readonly string[];
  readonly fallback: string | undefined;
  readonly named: string | undefined;
  readonly hasIndex: boolean;
}

/** The words of a `try_files`; undefined, and left, if it cannot be expressed. */
function triesOf(
  { conversion, outer }: NginxSite,
  block: readonly Directive[],
  { folder, isAlias }: { readonly folder: string; readonly isAlias: boolean },
): Tries | undefined {
  const directive = effective({ outer }, block, 'try_files');
  if (directive === undefined) {
    return { tries: [], fallback: undefined, named: undefined, hasIndex: true };
  }
  const words = directive.words.slice(0, -1);
  const last = directive.words.at(-1) ?? '';
  const tries: string[] = [];
  let hasIndex = false;
  for (const word of words) {
    if (word === '$uri') continue;
    if (word === '$uri/' || word === '$uri/index.html') hasIndex = true;
    else if (word.startsWith('$uri') && !word.includes('$', 1)) {
      tries.push(`{path}${word.slice('$uri'.length)}`);
    } else {
      conversion.leave(directive, '`try` of a [disk.<name>], which tries the path itself first');
      return undefined;
    }
  }
  const rest = { tries, hasIndex };
  if (last.startsWith('=')) {
    if (last !== '=404') conversion.leave(directive, 'the status 404');
    return { ...rest, fallback: undefined, named: undefined };
  }
  if (last.startsWith('@')) return { ...rest, fallback: undefined, named: last };
  const file = (last.split('?')[0] ?? '').replace(/^\$uri\b/, '');
  const below = isAlias && file.startsWith(folder) ? file.slice(folder.length) : file;
  if (/[$]/.test(file) || file.endsWith('.php') || file === '') {
    const cure = file.endsWith('.php')
      ? phpNearest
      : '`fallback` of a [disk.<name>], which is a file';
    conversion.leave(directive, cure);
    return { ...rest, hasIndex: true, fallback: undefined, named: undefined };
  }
  return { ...rest, fallback: below.replace(/^\//, ''), named: undefined };
}

/** `error_page 404 =200 /index.html` answers what is missing, as a fallback does. */
function fallbackOfErrors(site: NginxSite, block: readonly Directive[]): string | undefined {
  const page = effective(site, block, 'error_page');
  const isFallback = page?.words[0] === '404' && page.words[1] === '=200';
  return isFallback ? page.words[2]?.replace(/^\//, '') : undefined;
}

/** The folder of the error pages, if their names are those of Waymark. */
function errorsOf(site: NginxSite, block: readonly Directive[]): string | undefined {
  for (const each of [block, ...site.outer]) {
    for (const { words } of each.filter(({ name }) => name === 'error_page')) {
      const folder = errorFolder(words);
      if (folder !== undefined) return folder;
    }
  }
  return undefined;
}

/** The folder of `error_page 404 /errors/404.html`, `/` for the root; undefined for other forms. */
export function errorFolder(words: readonly string[]): string | undefined {
  const uri = words.at(-1) ?? '';
  const statuses = words.slice(0, -1);
  const [, folder, name] = /^\/(?:(.+)\/)?(\w+)\.html$/.exec(uri) ?? [];
  const isOne = statuses.length === 1 && statuses[0] === name;
  const isClass =
    /^[45]xx$/.test(name ?? '') && statuses.every((one) => one.startsWith(name?.charAt(0) ?? ' '));
  return isOne || isClass ? (folder ?? '/') : undefined;
}

/** Converts a `return` of a location or server. */
export function convertReturn(
  site: NginxSite,
  directive: Directive,
  {
    block,
    pattern,
    shared,
  }: {
    readonly block: readonly Directive[];
    readonly pattern: PathPattern;
    readonly shared: Pick<Locations, 'hasRootFiles'>;
  },
): void {
  const { conversion, scheme, server } = site;
  const [first = '', second] = directive.words;
  const isUrl = !/^\d+$/.test(first);
  const status = isUrl ? temporaryRedirect : Number(first);
  const text = isUrl ? first : (second ?? '');
  if ([301, 302, 303, 307, 308].includes(status)) {
    const target = redirectTarget(text, { scheme, server });
    if (target === undefined) conversion.leave(directive, redirectNearest);
    else addRedirect(site, { path: globOf(pattern), ...target, status }, directive);
    return;
  }
  // A status for the path of a file hides it; a page that is gone has no file.
  const isHidden = shared.hasRootFiles && status >= 400 && status !== 410;
  const isRefusal = status === 403 || status === 404;
  if (isHidden && isRefusal && !hasLocationBelow(site, pattern)) {
    addRefusal(site, { paths: [globOf(pattern)], status }, directive);
    return;
  }
  if (status === 444 || text.includes('$') || isHidden) {
    const cure = isHidden
      ? 'an `[access.<name>]` section: files of the folder come before page rules'
      : 'a page rule with a fixed text';
    conversion.leave(directive, cure);
    return;
  }
  const type = typeOf(block);
  addAnswer(site, { path: globOf(pattern), status, text, type });
}

/** Whether another location of the server answers a part of the paths of a pattern. */
function hasLocationBelow(
  { outer: [server = []] }: NginxSite,
  { kind, path }: PathPattern,
): boolean {
  if (kind === 'exact') return false;
  return allOf(server, 'location').some(({ words }) => {
    const text = words.at(-1) ?? '';
    const isRegex = words.length > 1 && words[0]?.startsWith('~') === true;
    // A regular expression for extensions has sections for them.
    return isRegex
      ? extensionsOf(text) === undefined
      : text.length > path.length && text.startsWith(path);
  });
}

/** The paths of locations that come before regular expressions: those with `=` and `^~`. */
function aheadOfRegex({ outer: [server = []] }: NginxSite): readonly string[] {
  return allOf(server, 'location').flatMap(({ words: [modifier, path = ''] }) => {
    return modifier === '=' ? [path] : modifier === '^~' ? [`${path}*`] : [];
  });
}

const temporaryRedirect = 302;

function typeOf(block: readonly Directive[]): string {
  const added = block.find(
    ({ name, words }) => name === 'add_header' && words[0]?.toLowerCase() === 'content-type',
  );
  return added?.words[1] ?? lastOf(block, 'default_type')?.words[0] ?? 'text/plain';
}

/** A text whose only variables are the groups of a regular expression. */
const groupsOnly = /^[^${}]*(?:\$\d[^${}]*)*$/;

/** Converts a `rewrite`; one that changes the path inside only at the level of its server. */
export function convertRewrite(site: NginxSite, directive: Directive, isOfServer = false): void {
  const { conversion, scheme, server } = site;
  const [match = '', replacement = '', flag = ''] = directive.words;
  const isRedirect = flag === 'permanent' || flag === 'redirect' || /^https?:/.test(replacement);
  if (!isRedirect) {
    const isExpressed = isOfServer && groupsOnly.test(replacement) && !replacement.endsWith('?');
    if (isExpressed) addRewrite(site, { match, to: replacement }, directive);
    else conversion.leave(directive, 'a `[rewrite.<name>]` section with `match` and `to`');
    return;
  }
  const dropsQuery = replacement.endsWith('?');
  const text = dropsQuery ? replacement.slice(0, -1) : replacement;
  const status = flag === 'permanent' ? 301 : temporaryRedirect;
  const wish = { status, query: dropsQuery ? 'drop' : 'keep' } as const;
  const patterns = patternsOf(match);
  if (patterns === undefined && groupsOnly.test(text)) {
    addRedirect(site, { ...wish, path: '/*', match, to: text }, directive);
    return;
  }
  const whole = match === '^(.*)$' || match === '^/(.*)$' || match === '^(.*)';
  for (const pattern of patterns ?? []) {
    const isCaptured = pattern.kind === 'exact' || pattern.isCaptured;
    const base = whole && pattern.path === '/' ? text.replace(/\/?\$1/, '$uri') : text;
    const target = redirectTarget(base, { scheme, server, isCaptured });
    if (target === undefined) {
      conversion.leave(directive, redirectNearest);
      return;
    }
    const to = pattern.kind === 'exact' ? target.to.replaceAll('{splat}', '') : target.to;
    addRedirect(site, { ...wish, path: globOf(pattern), to }, directive);
  }
  if (patterns === undefined) conversion.leave(directive, 'one [redirect.<name>] for each path');
}

/** Converts a location with a regular expression. */
function convertRegex(
  site: NginxSite,
  { directive, block, text }: Omit<Location, 'path' | 'isExact'> & { readonly text: string },
  shared: Locations,
): void {
  const { conversion } = site;
  // `dotfiles = deny` is the default, and .well-known is not hidden.
  if (hidesDotFiles(text, block)) return;
  const extensions = extensionsOf(text);
  const answers = ['proxy_pass', 'return', 'alias', 'root', 'rewrite', ...foreignHandlers];
  const answering = block.filter(({ name }) => answers.includes(name));
  if (extensions !== undefined && answering.length === 0) {
    if (!shared.hasRootFiles && effective(site, block, 'root') !== undefined) {
      conversion.leave(directive, 'a [disk.<name>], which serves a whole folder');
      return;
    }
    const rest = new Set([...handled, 'location']);
    leaveOthers(conversion, block, rest);
    // A path that ends with a slash is that of its index.
    const folders = extensions.includes('html') ? ['*/'] : [];
    const paths = [...extensions.map((one) => `*.${one}`), ...folders];
    addFields(site, paths, fieldsOf(conversion, block));
    return;
  }
  const patterns = patternsOf(text);
  const refusal = Number(answering.length === 1 ? lastOf(block, 'return')?.words[0] : undefined);
  if (extensions !== undefined && (refusal === 403 || refusal === 404)) {
    const paths = extensions.map((one) => `*.${one}`);
    addRefusal(site, { paths, except: aheadOfRegex(site), status: refusal }, directive);
    return;
  }
  if (patterns === undefined) {
    conversion.leave(directive, 'a location without a regular expression, or `[rewrite.<name>]`');
    for (const one of answering) leaveOthers(conversion, [one], new Set(['root', 'alias']));
    return;
  }
  for (const pattern of patterns) {
    const isExact = pattern.kind === 'exact';
    answer(site, { directive, block, path: pattern.path, isExact }, shared);
  }
}
