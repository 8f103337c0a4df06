import { extensions as extensionsByType } from 'mime-types';
import {
  type Directive,
  type PathPattern,
  accessNearest,
  globOf,
  patternsOf,
  phpNearest,
  redirectNearest,
} from '../directive.ts';
import { type FieldWish, addAnswer, addRedirect } from '../sections.ts';
import type { ApacheSite } from './site.ts';

const unitSeconds: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

/** Types that are no longer registered, or never were. */
const otherTypes: Readonly<Record<string, readonly string[]>> = {
  'text/javascript': ['js', 'mjs'],
  'application/javascript': ['js', 'mjs'],
  'application/x-javascript': ['js', 'mjs'],
  'image/jpg': ['jpg', 'jpeg'],
  'image/vnd.microsoft.icon': ['ico'],
  'font/ttf': ['ttf'],
  'application/x-font-woff': ['woff'],
  'application/x-font-ttf': ['ttf'],
};

const statuses: Readonly<Record<string, number>> = {
  permanent: 301,
  temp: 302,
  seeother: 303,
  gone: 410,
};

/** `Redirect [status] from to`, and the forms with the status in the name. */
export function convertRedirect(site: ApacheSite, directive: Directive): void {
  const { words, name } = directive;
  const first = words[0] ?? '';
  const hasStatus = /^\d{3}$/.test(first) || Object.hasOwn(statuses, first.toLowerCase());
  const named = name === 'redirectpermanent' ? 301 : 302;
  const status = hasStatus ? (statuses[first.toLowerCase()] ?? Number(first)) : named;
  const [from = '', to = ''] = hasStatus ? words.slice(1) : words;
  if (name === 'redirectmatch') {
    convertMatch(site, directive, { from, to, status });
    return;
  }
  if (status >= 400) {
    gone(site, directive, from, status);
    return;
  }
  if (!from.startsWith('/') || !/^(?:\/|https?:)/.test(to)) {
    site.conversion.leave(directive, redirectNearest);
    return;
  }
  const wish = { status, query: 'keep' } as const;
  if (from.endsWith('/')) {
    addRedirect(site, { ...wish, path: `${from}*`, to: `${to}{splat}` }, directive);
    return;
  }
  addRedirect(site, { ...wish, path: from, to }, directive);
  // Apache redirects what is below, too, which a file does not have.
  if (/\.\w+$/.test(from)) return;
  addRedirect(
    site,
    { ...wish, path: `${from}/*`, to: `${to.replace(/\/$/, '')}/{splat}` },
    directive,
  );
}

function gone(site: ApacheSite, directive: Directive, path: string, status: number): void {
  if (status !== 410 && site.hasFiles) {
    site.conversion.leave(directive, 'an `[access.<name>]` section: files come before page rules');
  } else addAnswer(site, { path, status, text: '', type: '' });
}

function convertMatch(
  site: ApacheSite,
  directive: Directive,
  { from, to, status }: { readonly from: string; readonly to: string; readonly status: number },
): void {
  const patterns = patternsOf(from);
  const isKnown = patterns !== undefined && !/[$%][02-9]|%\{/.test(to) && status < 400;
  if (!isKnown) site.conversion.leave(directive, 'one [redirect.<name>] for each path');
  else addPatterns(site, directive, { patterns, to, status, query: 'keep' });
}

function addPatterns(
  site: ApacheSite,
  directive: Directive,
  {
    patterns,
    to,
    ...wish
  }: {
    readonly patterns: readonly PathPattern[];
    readonly to: string;
    readonly status: number;
    readonly query: 'keep' | 'drop';
  },
): void {
  for (const pattern of patterns) {
    const splat = pattern.kind === 'below' && pattern.isCaptured ? '{splat}' : '';
    addRedirect(
      site,
      { ...wish, path: globOf(pattern), to: to.replaceAll('$1', splat) },
      directive,
    );
  }
}

/** What the rewriting of a site does to its files. */
export interface Rewritten {
  readonly fallback: string | undefined;
  readonly tries: readonly string[];
  /** Applications of rules with the flag P: the pattern and the URL. */
  readonly proxies: readonly {
    readonly directive: Directive;
    readonly path: string;
    readonly url: string;
  }[];
}

/** A rule with the conditions before it. */
interface RewriteRule {
  readonly directive: Directive;
  readonly conditions: readonly Directive[];
  readonly regex: string;
  readonly to: string;
  readonly flags: ReadonlyMap<string, string>;
}

/** Converts all `RewriteRule` of a block with their conditions. */
export function convertRewrites(site: ApacheSite, block: readonly Directive[]): Rewritten {
  let conditions: Directive[] = [];
  const tries: string[] = [];
  const proxies: Rewritten['proxies'][number][] = [];
  let fallback: string | undefined;
  for (const directive of block) {
    if (directive.name === 'rewritecond') conditions.push(directive);
    if (directive.name !== 'rewriterule') continue;
    const [regex = '', to = '', written = ''] = directive.words;
    const flags = new Map(
      written
        .replace(/^\[|\]$/g, '')
        .split(',')
        .map((flag) => [flag.split('=')[0]?.trim().toUpperCase() ?? '', flag.split('=')[1] ?? '']),
    );
    const rule = { directive, conditions, regex, to, flags };
    const found = convertRule(site, rule);
    if (found === 'left') leaveRule(site, rule);
    else if (found !== undefined && 'fallback' in found) fallback = found.fallback;
    else if (found !== undefined && 'tried' in found) tries.push(found.tried);
    else if (found !== undefined) proxies.push(found);
    conditions = [];
  }
  return { fallback, tries, proxies };
}

type RuleResult =
  | 'left'
  | undefined
  | { readonly fallback: string }
  | { readonly tried: string }
  | Rewritten['proxies'][number];

function leaveRule(
  { conversion }: ApacheSite,
  { directive, conditions, to, flags }: RewriteRule,
): void {
  const cure = to.endsWith('.php')
    ? phpNearest
    : flags.has('F')
      ? accessNearest
      : flags.has('R')
        ? 'a [redirect.<name>] for each origin or path'
        : 'a `[rewrite.<name>]` section with `match` and `to`';
  for (const one of [...conditions, directive]) conversion.leave(one, cure);
}

/** Conditions that a request is not over https. */
const plainConditions: readonly RegExp[] = [
  /^%\{HTTPS\} (?:!=on|!on|off|=off|\^off\$?)(?: \[[\w,]+\])?$/i,
  /^%\{SERVER_PORT\} (?:!\^?443\$?|\^?80\$?)(?: \[[\w,]+\])?$/,
  /^%\{HTTP:X-Forwarded-Proto\} (?:!https|=?http)(?: \[[\w,]+\])?$/i,
  /^%\{REQUEST_SCHEME\} =?http(?: \[[\w,]+\])?$/i,
];
const isPlain = (text: string): boolean => plainConditions.some((one) => one.test(text));
const isMissing = /^%\{(?:REQUEST_FILENAME|DOCUMENT_ROOT\}%\{REQUEST_URI)\} !-[fdl]$/;
const anyPath = /^(?:\^|\.|\.\*|\^\.\*\$?|\^\(\.\*\)\$|\(\.\*\)|\^\/?\(\.\*\)\$|\^\/\.\*\$)$/;

/** Recognizes the usual forms of a rule; `left` if it is none of them. */
function convertRule(site: ApacheSite, rule: RewriteRule): RuleResult {
  const { conditions, regex, to, flags, directive } = rule;
  const texts = conditions.map(({ words }) => words.join(' '));
  const isRedirect = flags.has('R') || /^https?:/.test(to);
  if (to === '-' && flags.has('L') && !flags.has('F') && conditions.length === 0) return undefined;
  if (
    to === '-' &&
    conditions.every(({ words }) => / -[fdl]$/.test(words.join(' '))) &&
    texts.length > 0 &&
    flags.has('L')
  ) {
    return undefined;
  }
  if (flags.has('P')) return proxyOf(site, rule);
  if (isRedirect && texts.length > 0 && texts.every((text) => isPlain(text))) {
    return /^https:\/\/(?:%\{(?:HTTP_HOST|SERVER_NAME)\}|[\w.-]+)(?:%\{REQUEST_URI\}|\/?\$1)$/.test(
      to,
    )
      ? undefined
      : 'left';
  }
  if (isRedirect) return redirectOf(site, rule, texts);
  if (flags.has('G') && texts.length === 0) {
    const [pattern, ...others] = rulePatterns(site, regex) ?? [];
    if (pattern === undefined || others.length > 0) return 'left';
    addAnswer(site, { path: globOf(pattern), status: 410, text: '', type: '' });
    return undefined;
  }
  const [, extension] = /^\/?\$1(\.\w+)$/.exec(to) ?? [];
  const isTried = texts.some((text) =>
    /^%\{(?:REQUEST_FILENAME|DOCUMENT_ROOT)\}.*\.\w+ -f$/.test(text),
  );
  const isOther = texts.every((text) => isMissing.test(text) || text.endsWith(' -f'));
  if (extension !== undefined && isOther && (isTried || texts.length > 0))
    return { tried: `{path}${extension}` };
  const isFallback =
    anyPath.test(regex) && texts.length > 0 && texts.every((text) => isMissing.test(text));
  const file = /^\/?([\w/-]+\.html?)$/.exec(to)?.[1];
  if (isFallback && file !== undefined) return { fallback: file };
  void directive;
  return 'left';
}

function rulePatterns({ folder }: ApacheSite, regex: string): readonly PathPattern[] | undefined {
  const isRooted = regex.startsWith('^/') && !regex.startsWith('^/?');
  if (isRooted) return patternsOf(regex);
  const rest = regex.replace(/^\^\/\?/, '^');
  return folder !== undefined || rest !== regex ? patternsOf(rest, '/') : patternsOf(regex);
}

function redirectOf(site: ApacheSite, rule: RewriteRule, texts: readonly string[]): RuleResult {
  const { regex, to, flags, directive } = rule;
  const given = flags.get('R') ?? '';
  const status = statuses[given.toLowerCase()] ?? (given === '' ? 302 : Number(given));
  const text = to
    .replaceAll('%{HTTP_HOST}', '{host}')
    .replaceAll('%{SERVER_NAME}', site.hosts[0] ?? '{host}')
    .replaceAll(/\/?%\{REQUEST_URI\}/g, '{path}')
    .replace(/\?$/, '');
  const place = texts.length === 0 ? site : onHosts(site, texts);
  const isWhole = anyPath.test(regex);
  const patterns: readonly PathPattern[] | undefined = isWhole
    ? [{ kind: 'below', path: '/', isCaptured: true }]
    : rulePatterns(site, regex);
  if (place === undefined || patterns === undefined || /%|\$[02-9]/.test(text)) return 'left';
  if (![301, 302, 303, 307, 308].includes(status)) return 'left';
  const query = flags.has('QSD') || to.endsWith('?') ? 'drop' : 'keep';
  const absolute = /^(?:https?:|\/)/.test(text) ? text : `/${text}`;
  addPatterns({ ...site, ...place }, directive, { patterns, to: absolute, status, query });
  return undefined;
}

/** The origins of a rule whose conditions name hosts; undefined for other conditions. */
function onHosts(
  site: ApacheSite,
  texts: readonly string[],
): { readonly origins: readonly string[]; readonly name: string } | undefined {
  const hosts: string[] = [];
  let isOther = false;
  for (const text of texts) {
    const [, not, optional, host] =
      /^%\{HTTP_HOST\} (!?)\^?(\(?www\\\.\)?\?)?=?((?:[\w-]|\\?\.)+)\$?(?: \[[\w,]+\])?$/i.exec(
        text,
      ) ?? [];
    if (host === undefined) return undefined;
    const name = host.replaceAll('\\', '');
    if (not === '!') isOther = true;
    else hosts.push(...(optional === undefined ? [name] : [name, `www.${name}`]));
  }
  if (isOther) return hosts.length === 0 ? { origins: ['*'], name: 'others' } : undefined;
  const schemes = site.scheme === undefined ? ['http', 'https'] : [site.scheme];
  const origins = hosts.flatMap((host) => schemes.map((scheme) => `${scheme}://${host}`));
  return { origins, name: hosts[0] ?? 'site' };
}

function proxyOf(site: ApacheSite, { directive, regex, to, conditions }: RewriteRule): RuleResult {
  const isSocket = conditions.some(({ words }) => /upgrade|connection/i.test(words[0] ?? ''));
  // Websockets pass through a proxy by themselves.
  if (isSocket) return undefined;
  const [pattern] = anyPath.test(regex)
    ? [{ kind: 'below', path: '/', isCaptured: true } as const]
    : (rulePatterns(site, regex) ?? []);
  const url = to.replace(/\$1$/, '').replace(/%\{REQUEST_URI\}$/, '');
  if (pattern?.kind !== 'below' || /[$%]/.test(url)) return 'left';
  return { directive, path: pattern.path, url };
}

/** `Header [always] set Name value`: a field of answers; undefined if it is left. */
export function headerField(
  { conversion }: Pick<ApacheSite, 'conversion'>,
  directive: Directive,
): FieldWish | undefined {
  const words = directive.words.filter((word) => !/^(?:always|onsuccess)$/i.test(word));
  const [written = '', name = '', value = '', ...rest] = words;
  const action = written.toLowerCase();
  const source = directive;
  if (action === 'unset' && value === '') return { name, template: '', source };
  const isSet = ['set', 'setifempty'].includes(action);
  const isAdded = ['add', 'append', 'merge'].includes(action);
  if ((!isSet && !isAdded) || rest.length > 0 || value.includes('%{')) {
    conversion.leave(directive, 'a [headers.<name>], which sets, adds and removes whole fields');
    return undefined;
  }
  return { name, template: value.replaceAll('${', () => '$${'), isAdded, source };
}

/** The `Cache-Control` of a time such as `access plus 1 year` or `A3600`. */
function maxAge(text: string): string | undefined {
  const [, base, short] = /^([AM])(\d{1,9})$/.exec(text) ?? [];
  if (short !== undefined) return base === 'A' ? `max-age=${short}` : undefined;
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== 'plus');
  const [from, ...parts] = words;
  if (from !== 'access' && from !== 'now') return undefined;
  let seconds = 0;
  for (let at = 0; at < parts.length; at += 2) {
    const unit = unitSeconds[(parts[at + 1] ?? '').replace(/s$/, '')];
    const count = Number(parts[at]);
    if (unit === undefined || !Number.isInteger(count)) return undefined;
    seconds += count * unit;
  }
  return `max-age=${seconds}`;
}

/** The paths and the field of `ExpiresByType` or `ExpiresDefault`; undefined if it is left. */
export function expiresField(
  { conversion }: Pick<ApacheSite, 'conversion'>,
  directive: Directive,
): { readonly paths: readonly string[]; readonly field: FieldWish } | undefined {
  const isDefault = directive.name === 'expiresdefault';
  const [type = '', ...rest] = isDefault ? ['', ...directive.words] : directive.words;
  const age = maxAge(rest.join(' '));
  const known = extensionsByType[type.toLowerCase()] ?? otherTypes[type.toLowerCase()];
  const paths = isDefault ? ['/*'] : known?.map((extension) => `*.${extension}`);
  if (age === undefined || paths === undefined) {
    conversion.leave(directive, 'a [headers.<name>] with the extensions of that type as `path`');
    return undefined;
  }
  const withFolders = type === 'text/html' ? [...paths, '*/'] : paths;
  return { paths: withFolders, field: { name: 'Cache-Control', template: age, source: directive } };
}
