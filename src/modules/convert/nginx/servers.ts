import type { Conversion } from '../conversion.ts';
import { type Directive, allOf, errorsNearest, lastOf } from '../directive.ts';
import { addFields, addRedirect } from '../sections.ts';
import {
  accessDirectives,
  convertAccess,
  convertRates,
  isAuthLocation,
  rateDirectives,
} from './access.ts';
import { clientCertificateDirectives, refusesOthers } from './client-certificates.ts';
import {
  type Locations,
  convertLocation,
  convertReturn,
  convertRewrite,
  errorFolder,
} from './locations.ts';
import { type NginxSite, fieldsOf, leaveOthers } from './site.ts';
import { redirectTarget } from './variables.ts';

/** A `server` of nginx: where it listens, and its names. */
export interface NginxServer {
  readonly directive: Directive;
  readonly block: readonly Directive[];
  readonly addresses: readonly Address[];
  /** Names without a wildcard. */
  readonly names: readonly string[];
  /** Whether it answers for names that no server has. */
  readonly isDefault: boolean;
}

interface Address {
  /** In the words of `listen` of Waymark. */
  readonly text: string;
  readonly scheme: 'http' | 'https';
  readonly port: string;
}

/** Reads `listen` and `server_name` of a server. */
export function readServer(conversion: Conversion, directive: Directive): NginxServer {
  const block = directive.block ?? [];
  const listens = allOf(block, 'listen');
  const hasCertificate = lastOf(block, 'ssl_certificate') !== undefined;
  const addresses = listens.flatMap((listen) => addressOf(conversion, listen));
  const words = allOf(block, 'server_name').flatMap((one) =>
    one.words.map((name) => ({ name, one })),
  );
  const isCatchAll = (name: string): boolean => ['_', '', 'localhost', '""'].includes(name);
  const names: string[] = [];
  for (const { name, one } of words) {
    if (isCatchAll(name)) continue;
    if (/^[\w-]+(?:\.[\w-]+)*$/.test(name)) names.push(name.toLowerCase());
    else conversion.leave(one, `\`origin\` of one name each, in place of ${name}`);
  }
  const isMarked = listens.some((one) => one.words.includes('default_server'));
  const scheme = hasCertificate && listens.length === 0 ? 'https' : 'http';
  const standard: Address = { text: ':80', scheme, port: '80' };
  return {
    directive,
    block,
    addresses: listens.length === 0 ? [standard] : addresses,
    names,
    isDefault: isMarked || names.length === 0,
  };
}

function addressOf(conversion: Conversion, listen: Directive): readonly Address[] {
  const [where = '', ...flags] = listen.words;
  if (where.startsWith('unix:')) return [{ text: where, scheme: 'http', port: '' }];
  if (flags.includes('quic')) {
    conversion.leave(listen, 'HTTP/2, which Waymark speaks over TLS');
    return [];
  }
  if (flags.includes('proxy_protocol')) {
    conversion.leave(
      listen,
      '`listen` and `trust_proxy` of [server], for a proxy that sends X-Forwarded-For',
    );
  }
  const isPort = /^\d+$/.test(where);
  const [, host = isPort ? '' : where, port = '80'] = /^(?:(.*?):)?(\d+)$/.exec(where) ?? [];
  const scheme = flags.includes('ssl') ? 'https' : 'http';
  const isAll = ['', '*', '0.0.0.0', '[::]'].includes(host);
  const text = `${scheme === 'https' ? 'https://' : ''}${isAll ? '' : host}:${port}`;
  return [{ text, scheme, port }];
}

/** The origins of a server, one for each name and address. */
export function originsOf({ addresses, names }: NginxServer): readonly string[] {
  const defaults = { http: '80', https: '443' };
  const all = addresses.flatMap(({ scheme, port }) =>
    names.map(
      (name) => `${scheme}://${name}${port === defaults[scheme] || port === '' ? '' : `:${port}`}`,
    ),
  );
  return [...new Set(all)];
}

/** Whether a location answers the challenges of an ACME client (RFC 8555 §8.3). */
export function isChallenge({ words }: Directive): boolean {
  return words.at(-1)?.includes('/.well-known/acme-challenge') === true;
}

/** Whether a server only redirects: its `return`, or that of its one location. */
export function redirectOf({ block }: NginxServer): Directive | undefined {
  const own = lastOf(block, 'return');
  const locations = allOf(block, 'location').filter((one) => !isChallenge(one));
  const [only] = locations;
  const inner = only?.words.join(' ') === '/' ? lastOf(only.block ?? [], 'return') : undefined;
  const found = own ?? (locations.length === 1 ? inner : undefined);
  const last = lastOf(block, 'root') === undefined ? lastOf(block, 'rewrite') : undefined;
  const isWhole = /^\^?\/?(?:\(?\.\*\)?)?\$?$/.test(last?.words[0] ?? '-');
  const rewrite = locations.length === 0 && isWhole ? last : undefined;
  const isRedirect = found !== undefined && /^(?:30[12378]$|https?:)/.test(found.words[0] ?? '');
  return isRedirect ? found : found === undefined ? rewrite : undefined;
}

const httpsToSame = /^https:\/\/\$(?:host|http_host|server_name)(?:\$request_uri|\$uri)?$/;

/** Whether a directive leads to the same URL over https, as `http_redirect` of [tls] does. */
export function leadsToHttps({ words }: Directive, names: readonly string[]): boolean {
  const target = words.find((word) => word.startsWith('https://')) ?? '';
  const [, host = ''] = /^https:\/\/([\w.-]+)\$request_uri$/.exec(target) ?? [];
  return (
    httpsToSame.test(target.replace(/\/?\$1$/, '$request_uri')) ||
    (names.length === 1 && names[0] === host)
  );
}

/** Directives of a server that are read here, or for its locations. */
const handled: ReadonlySet<string> = new Set([
  ...['listen', 'server_name', 'location', 'root', 'index', 'try_files', 'autoindex', 'alias'],
  ...['ssl_certificate', 'ssl_certificate_key', 'return', 'rewrite', 'add_header', 'expires'],
  ...['access_log', 'client_max_body_size', 'error_page', 'proxy_set_header', 'if', 'proxy_cache'],
  ...['proxy_read_timeout', 'proxy_connect_timeout', 'proxy_hide_header', 'set_real_ip_from'],
  ...['autoindex_exact_size', 'autoindex_localtime', 'real_ip_header', 'real_ip_recursive'],
  ...accessDirectives,
  ...clientCertificateDirectives,
  ...rateDirectives,
]);

/** Converts a server that has content, as a site. */
export function convertServer(site: NginxSite, { block, names }: NginxServer): void {
  const { conversion } = site;
  leaveOthers(conversion, block, handled);
  const outerFields = site.outer.flatMap((one) => fieldsOf(conversion, one));
  const own = fieldsOf(conversion, block);
  // nginx uses the fields of the outer block only if the inner one has none.
  addFields(site, ['/*'], own.length > 0 ? own : outerFields);
  for (const one of allOf(block, 'if')) {
    if (!refusesOthers(one)) convertIf(site, one, names);
  }
  const locations = allOf(block, 'location').filter((one) => !isAuthLocation(block, one));
  const root = locations.find(({ words }) => /^(?:\^~ )?\/$/.test(words.join(' ')));
  const within: NginxSite = { ...site, outer: [block, ...site.outer] };
  const shared = sharedOf(conversion, block, root);
  const redirect = lastOf(block, 'return');
  const pattern = { kind: 'below', path: '/', isCaptured: false } as const;
  if (redirect !== undefined) convertReturn(site, redirect, { block, pattern, shared });
  for (const one of allOf(block, 'rewrite')) convertRewrite(site, one, true);
  const hasRoot =
    lastOf(block, 'root') !== undefined || site.outer.some((one) => lastOf(one, 'root'));
  if (root === undefined && hasRoot && redirect === undefined) {
    const { line } = lastOf(block, 'root') ?? { line: 0 };
    const implied = { name: 'location', words: ['/'], line, text: 'location /', block: [] };
    convertLocation(within, implied, shared);
  }
  for (const location of locations) convertLocation(within, location, shared);
  convertAccess(site, block);
  convertRates(site, block);
}

function sharedOf(
  conversion: Conversion,
  block: readonly Directive[],
  root: Directive | undefined,
): Locations {
  const rootBlock = root?.block ?? [];
  const answersItself = ['proxy_pass', 'return'].some((name) => lastOf(rootBlock, name));
  const pages = [block, ...allOf(block, 'location').map((one) => one.block ?? [])].flatMap((one) =>
    allOf(one, 'error_page'),
  );
  for (const page of pages) {
    const isFallback = page.words[0] === '404' && page.words[1] === '=200';
    if (errorFolder(page.words) !== undefined || isFallback) continue;
    const isOfFailures = page.words.slice(0, -1).every((word) => /^5\d\d$/.test(word));
    if (isOfFailures && !passesOn(block)) {
      conversion.note(page, 'not needed: files alone do not fail so');
      continue;
    }
    conversion.leave(page, page.words[0] === '401' ? signInNearest : errorsNearest);
  }
  const named = allOf(block, 'location').filter(({ words }) => words[0]?.startsWith('@'));
  return {
    named: new Map(named.map((one) => [one.words[0] ?? '', one])),
    errorPaths: new Set(pages.map(({ words }) => words.at(-1) ?? '')),
    hasRootFiles: !answersItself,
  };
}

/** Whether a server passes requests on, so that it may answer that an application has failed. */
function passesOn(block: readonly Directive[]): boolean {
  return block.some(({ name, block: inner = [] }) => name.endsWith('_pass') || passesOn(inner));
}

const signInNearest =
  '`login` for users and passwords of Waymark; with `forward`, the answer of that server, which ' +
  'may lead to its page to sign in';

/** Converts an `if` that redirects the requests of a host; leaves others. */
function convertIf(site: NginxSite, directive: Directive, names: readonly string[]): void {
  const { conversion, scheme, server } = site;
  const condition = directive.words.join(' ').replace(/^\(/, '').replace(/\)$/, '').trim();
  const redirect =
    lastOf(directive.block ?? [], 'return') ?? lastOf(directive.block ?? [], 'rewrite');
  const [, host] = /^\$(?:host|http_host) = "?([\w.-]+)"?$/.exec(condition) ?? [];
  const isHttps =
    redirect !== undefined && leadsToHttps(redirect, host === undefined ? names : [host]);
  const isScheme =
    /^\$(?:scheme|https|http_x_forwarded_proto) (?:!?=|!=) ?"?(?:http|https|on|)"?$/.test(
      condition,
    );
  if (isHttps && (isScheme || host !== undefined)) return;
  const url = redirect?.words.find((word) => /^(?:\$scheme|https?):/.test(word));
  const text = url?.replace(/\/?\$1$/, '$request_uri');
  const target = text === undefined ? undefined : redirectTarget(text, { scheme, server });
  if (host === undefined || redirect === undefined || target === undefined) {
    conversion.leave(
      directive,
      'a [redirect.<name>] for an origin, or a page rule with conditions',
    );
    return;
  }
  const schemes = scheme === undefined ? ['http', 'https'] : [scheme];
  const isPermanent = redirect.words[0] === '301' || redirect.words.includes('permanent');
  const origins = schemes.map((one) => `${one}://${host}`);
  const wish = { path: '/*', ...target, status: isPermanent ? 301 : 302 };
  addRedirect({ ...site, origins, name: host }, wish, redirect);
}
