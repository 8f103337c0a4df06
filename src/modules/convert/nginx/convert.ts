import { Conversion, type Converted } from '../conversion.ts';
import { type Directive, allOf, lastOf, syntaxFailure } from '../directive.ts';
import { readNone, withIncluded } from '../include.ts';
import { blockDepthMax } from '../limits.ts';
import { addRedirect } from '../sections.ts';
import { rateDirectives } from './access.ts';
import { clientCertificateDirectives } from './client-certificates.ts';
import { leaveBalance, leaveServerWords } from './proxies.ts';
import {
  type NginxServer,
  convertServer,
  isChallenge,
  leadsToHttps,
  originsOf,
  readServer,
  redirectOf,
} from './servers.ts';
import { type NginxSite, isKnownInclude, leaveOthers } from './site.ts';
import { redirectTarget } from './variables.ts';

const double = '"((?:[^"\\\\]|\\\\[\\s\\S])*)"';
const single = "'((?:[^'\\\\]|\\\\[\\s\\S])*)'";
const escaped = '\\\\[\\s\\S]|\\$\\{\\w{1,64}\\}';
const plain = `((?:${escaped}|[^\\s;{}\\\\"'])(?:${escaped}|[^\\s;{}\\\\])*)`;

/** Space, a comment, a mark, a quoted word, or a plain one, with `${name}` and escapes in it. */
const token = new RegExp(`\\s+|#[^\\n]*|([;{}])|${double}|${single}|${plain}|[\\s\\S]`, 'g');
const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/** Directives of an `upstream` that are read in proxies.ts. */
const choices: ReadonlySet<string> = new Set(['server', 'ip_hash', 'hash', 'sticky']);

/** Directives of `http` that are read here, or that servers inherit. */
const handled: ReadonlySet<string> = new Set([
  ...['http', 'server', 'upstream', 'access_log', 'log_format', 'add_header', 'expires', 'root'],
  ...[
    'index',
    'client_max_body_size',
    'proxy_set_header',
    'proxy_read_timeout',
    'set_real_ip_from',
  ],
  ...[
    'proxy_connect_timeout',
    'proxy_hide_header',
    'proxy_cache',
    'map',
    'error_page',
    'autoindex',
  ],
  ...['real_ip_header', 'real_ip_recursive', 'try_files', 'ssl_certificate', 'ssl_certificate_key'],
  ...clientCertificateDirectives,
  ...rateDirectives,
]);

/**
 * Converts a configuration of nginx, or a part of one with `server` blocks. Throws `invalid` with a
 * line if it cannot be parsed. `read` reads the files that it includes.
 */
export function convertNginx(text: string, _file = '', read = readNone): Converted {
  const conversion = new Conversion();
  const format = { patternOf: includedBy, parse: parseNginx, read };
  const top = withIncluded(parseNginx(text), format);
  const http = [...top.filter(({ name }) => name !== 'http'), ...inside(top, 'http')];
  leaveOthers(conversion, http, handled);
  for (const map of allOf(http, 'map')) leaveMap(conversion, map);
  const upstreams = new Map(allOf(http, 'upstream').map((one) => [one.words[0] ?? '', one]));
  for (const upstream of upstreams.values()) {
    leaveServerWords({ conversion }, upstream);
    leaveBalance({ conversion }, upstream);
    leaveOthers(conversion, upstream.block ?? [], choices);
  }
  const servers = allOf(http, 'server').map((one) => readServer(conversion, one));
  convertShared(conversion, http, servers);
  const outer = [http.filter(({ name }) => name !== 'server' && name !== 'upstream')];
  const contents = servers.filter((server) => redirectOf(server) === undefined);
  const sites = contents.map((server) =>
    siteOf(server, { conversion, upstreams, outer, contents }),
  );
  for (const [at, site] of sites.entries()) {
    const server = contents[at];
    if (server === undefined || isRefusal(server) || isHttpsRedirect(server)) continue;
    if (site.origins.length === 0) {
      conversion.leave(server.directive, 'a site with names: one `origin` for each');
    } else {
      noteDefault(site, server);
      convertServer(site, server);
    }
  }
  for (const server of servers)
    convertRedirectServer(server, { conversion, outer, upstreams, contents });
  return conversion.finish();
}

/** Tells that the requests for unknown names no longer reach the server that is marked for them. */
function noteDefault({ conversion, origins }: NginxSite, { block }: NginxServer): void {
  const marked = allOf(block, 'listen').find(({ words }) => words.includes('default_server'));
  if (marked === undefined || origins.includes('*')) return;
  conversion.note(
    marked,
    'names that no server has get 404; `origin` names one more for a section',
  );
}

/** The files that an `include` names, unless they are known. */
function includedBy(directive: Directive): string | undefined {
  return directive.name === 'include' && !isKnownInclude(directive)
    ? directive.words[0]
    : undefined;
}

function inside(block: readonly Directive[], name: string): readonly Directive[] {
  return allOf(block, name).flatMap((one) => one.block ?? []);
}

/** A map for websockets needs no counterpart. */
function leaveMap(conversion: Conversion, map: Directive): void {
  if (map.words[0] === '$http_upgrade') return;
  conversion.leave(map, 'one [redirect.<name>] for each line, or a page rule with conditions');
}

/** Whether a server refuses all requests, as Waymark does for origins that nothing names. */
function isRefusal({ block, names }: NginxServer): boolean {
  const [status = ''] = lastOf(block, 'return')?.words ?? [];
  return names.length === 0 && /^4\d\d$/.test(status) && allOf(block, 'location').length === 0;
}

/** Whether certbot has made the server for its redirect to https. */
function isHttpsRedirect({ block, names }: NginxServer): boolean {
  const conditions = allOf(block, 'if').flatMap((one) => lastOf(one.block ?? [], 'return') ?? []);
  const isAll = conditions.length > 0 && conditions.every((one) => leadsToHttps(one, names));
  return isAll && lastOf(block, 'return')?.words[0] === '404';
}

interface Context {
  readonly conversion: Conversion;
  readonly upstreams: NginxSite['upstreams'];
  readonly outer: NginxSite['outer'];
  readonly contents: readonly NginxServer[];
}

function siteOf(server: NginxServer, { contents, ...context }: Context): NginxSite {
  const { addresses, names } = server;
  const schemes = new Set(addresses.map(({ scheme }) => scheme));
  const real = contents.filter((one) => !isRefusal(one) && !isHttpsRedirect(one));
  return {
    ...context,
    // nginx gives the requests for unknown names to its only server, too.
    origins: real.length === 1 ? ['*'] : originsOf(server),
    name: real.length === 1 ? 'site' : (names[0] ?? 'site'),
    scheme: schemes.size === 1 ? [...schemes][0] : undefined,
    server: names[0],
  };
}

/** Converts a server that only redirects. */
function convertRedirectServer(server: NginxServer, context: Context): void {
  const redirect = redirectOf(server);
  if (redirect === undefined) return;
  const { conversion, contents } = context;
  for (const challenge of allOf(server.block, 'location').filter(isChallenge)) {
    conversion.note(challenge, 'not needed with `acme = yes` of a [tls.<host>]');
  }
  const isPlain = server.addresses.every(({ scheme }) => scheme === 'http');
  if (isPlain && leadsToHttps(redirect, server.names)) return;
  const site = siteOf(server, context);
  const origins = server.names.length > 0 ? originsOf(server) : contents.length === 1 ? ['*'] : [];
  const url = redirect.words.find((word) => /^(?:\$scheme|https?):/.test(word));
  const text = url?.replace(/\/?\$1$/, '$request_uri');
  const target = text === undefined ? undefined : redirectTarget(text, site);
  if (target === undefined || origins.length === 0) {
    conversion.leave(redirect, 'a [redirect.<name>] for each origin');
    return;
  }
  const isRewrite = redirect.name === 'rewrite';
  const first = Number(redirect.words[0]);
  const isPermanent = redirect.words.includes('permanent');
  const status = isRewrite ? (isPermanent ? 301 : 302) : Number.isNaN(first) ? 302 : first;
  const name = server.names[0] ?? 'others';
  addRedirect({ ...site, origins, name }, { path: '/*', ...target, status }, redirect);
  const more = new Set([
    'return',
    'rewrite',
    'listen',
    'server_name',
    'location',
    'root',
    'index',
    'access_log',
  ]);
  leaveOthers(
    conversion,
    server.block,
    new Set([...more, 'ssl_certificate', 'ssl_certificate_key']),
  );
}

/** What belongs to the whole server: addresses, certificates, trusted proxies, the log. */
function convertShared(
  conversion: Conversion,
  http: readonly Directive[],
  servers: readonly NginxServer[],
): void {
  const [first] = servers;
  if (first === undefined) return;
  const server = conversion.only('server', first.directive);
  const texts = servers.flatMap(({ addresses }) => addresses.map(({ text }) => text));
  server.setAll('listen', [...new Set(texts)]);
  const trusted = [http, ...servers.map(({ block }) => block)].flatMap((one) =>
    allOf(one, 'set_real_ip_from'),
  );
  const [trust] = trusted;
  if (trust !== undefined) {
    const networks = [...new Set(trusted.map(({ words }) => words[0] ?? ''))];
    server.set('trust_proxy', networks.join(', '), trust);
  }
  const certified = servers.filter(({ block }) => lastOf(block, 'ssl_certificate'));
  for (const { block, names } of certified) {
    const certificate = lastOf(block, 'ssl_certificate');
    const key = lastOf(block, 'ssl_certificate_key');
    if (certificate === undefined || key === undefined) continue;
    const isOnly = certified.length === 1;
    const sections =
      isOnly || names.length === 0
        ? [conversion.only('tls', certificate)]
        : names.map((name) => conversion.certificate(name, certificate));
    for (const section of sections) {
      section.set('cert', certificate.words[0] ?? '', certificate);
      section.set('key', key.words[0] ?? '', key);
    }
  }
  convertLog(conversion, [http, ...servers.map(({ block }) => block)]);
}

function convertLog(conversion: Conversion, blocks: readonly (readonly Directive[])[]): void {
  const logs = blocks.flatMap((one) => allOf(one, 'access_log'));
  const formats = blocks.flatMap((one) => allOf(one, 'log_format'));
  for (const format of formats) {
    if (format.words[0] === 'main' || format.words[0] === 'combined') continue;
    conversion.leave(format, '`format` of [log]: `combined` or `json`');
  }
  const file = logs.find(
    ({ words }) => words[0] !== 'off' && !/^(?:\/dev\/|syslog:)/.test(words[0] ?? ''),
  );
  const [path = ''] = file?.words ?? [];
  if (file === undefined || path.includes('$')) return;
  const log = conversion.only('log', file);
  log.set('format', 'combined', file);
  log.set('file', path, file);
  for (const other of logs) {
    const [where = ''] = other.words;
    if (where === 'off' || where === path || /^(?:\/dev\/|syslog:)/.test(where)) continue;
    conversion.note(other, `one access log for all sites, ${path}`);
  }
}

interface Word {
  readonly kind: 'word' | ';' | '{' | '}';
  readonly text: string;
  readonly line: number;
}

function* wordsOf(configuration: string): Generator<Word> {
  let line = 1;
  for (const [whole, mark, doubled, singled, written] of configuration.matchAll(token)) {
    if (mark !== undefined) yield { kind: mark as ';' | '{' | '}', text: mark, line };
    else if (doubled !== undefined || singled !== undefined) {
      const quoted = doubled ?? singled ?? '';
      const text = quoted.replaceAll(/\\(["'\\ntr])/g, (_, one: string) => escapes[one] ?? one);
      yield { kind: 'word', text, line };
    } else if (written !== undefined) yield { kind: 'word', text: written, line };
    else if (!/^[\s#]/.test(whole)) throw syntaxFailure(line, `\`${whole}\` has no end`);
    line += whole.split('\n').length - 1;
  }
}

/**
 * Parses a configuration of nginx into its directives, each with its line. Throws `invalid` with a
 * line if a quote, a block or a directive has no end.
 */
function parseNginx(text: string): readonly Directive[] {
  const root: Directive[] = [];
  const open: { readonly block: Directive[]; readonly line: number }[] = [{ block: root, line: 1 }];
  let words: Word[] = [];
  let last = 1;
  for (const word of wordsOf(text)) {
    last = word.line;
    const inner = open.at(-1);
    if (word.kind === 'word') words.push(word);
    else if (word.kind === '}') {
      if (words.length > 0) throw syntaxFailure(word.line, '`}` before the `;` of a directive');
      if (open.length === 1) throw syntaxFailure(word.line, 'a `}` without its `{`');
      open.pop();
    } else {
      const [name] = words;
      if (name === undefined)
        throw syntaxFailure(word.line, `\`${word.kind}\` without a directive`);
      const block: Directive[] | undefined = word.kind === '{' ? [] : undefined;
      inner?.block.push(directiveOf(name, words.slice(1), block));
      if (block !== undefined) open.push({ block, line: word.line });
      if (open.length > blockDepthMax) throw syntaxFailure(word.line, 'the blocks nest too deep');
      words = [];
    }
  }
  const unclosed = open.at(-1);
  if (open.length > 1) throw syntaxFailure(unclosed?.line ?? last, 'this block has no `}`');
  if (words.length > 0) throw syntaxFailure(last, 'the last directive has no `;`');
  return root;
}

function directiveOf(
  name: Word,
  words: readonly Word[],
  block: Directive[] | undefined,
): Directive {
  const texts = words.map(({ text }) => text);
  return {
    ...{ name: name.text, words: texts, line: name.line, block },
    text: [name.text, ...texts].join(' '),
  };
}
