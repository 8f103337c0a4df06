import {
  type Directive,
  accessNearest,
  allOf,
  errorsNearest,
  extensionsOf,
  globOf,
  patternsOf,
  phpNearest,
} from '../directive.ts';
import type { FieldWish, SitePlace } from '../sections.ts';

/** Placeholders of Caddy that the values of header fields in Waymark know as well. */
const inFields: Readonly<Record<string, string>> = {
  remote_host: '${client.ip}',
  client_ip: '${client.ip}',
  tls_client_subject: '${client.certificate.subject}',
  tls_client_issuer: '${client.certificate.issuer}',
  tls_client_fingerprint: '${client.certificate.fingerprint}',
  'http.request.remote.host': '${client.ip}',
  host: '${host}',
  hostport: '${host}',
  scheme: '${scheme}',
  method: '${method}',
  path: '${path}',
  query: '${query}',
};
const placeholder = /\{([\w.-]+)\}/g;

/** Directives and options that need no counterpart. */
const unneeded: ReadonlySet<string> = new Set([
  ...['encode', 'admin', 'persist_config', 'auto_https', 'order', 'grace_period', 'local_certs'],
  ...[
    'servers',
    'bind_default',
    'debug',
    'ocsp_stapling',
    'storage_clean_interval',
    'precompressed',
  ],
]);

const all: CaddyMatch = { paths: ['/*'], hosts: [], isFile: false };

/** A site of a Caddyfile, on its way to sections of Waymark. */
export interface CaddySite extends SitePlace {
  readonly scheme: 'http' | 'https';
  /** All directives of the site, which define its matchers. */
  readonly block: readonly Directive[];
  /** The variables of the environment that it names, with their defaults. */
  readonly variables: Map<string, string>;
  /** The paths of the `handle` around; one that is not stripped ends with `*`. */
  readonly within: readonly string[];
  /** Whether the path before the `*` is removed (`handle_path`, `uri strip_prefix`). */
  readonly isStripped: boolean;
  /** The folder of `root` around. */
  readonly root: string | undefined;
  readonly errors: string | undefined;
  readonly hasFiles: boolean;
}

/** The place of a directive, its paths, and its words without the matcher. */
interface Placed {
  readonly place: CaddySite;
  readonly paths: readonly string[];
  readonly rest: readonly string[];
}

/** Applies the matcher of a directive; undefined, and left, if it cannot be expressed. */
export function placed(site: CaddySite, directive: Directive): Placed | undefined {
  const { match, rest } = takeMatcher(directive.words, site.block);
  if (match === undefined) {
    site.conversion.leave(directive, 'a page rule with conditions, or a section with `path`');
    return undefined;
  }
  const servesFiles = [directive, ...(directive.block ?? [])].some(
    ({ name }) => name === 'file_server',
  );
  if (match.isFile && !servesFiles) {
    site.conversion.leave(directive, 'a [disk.<name>]: files come before all other sources');
    return undefined;
  }
  const isNarrower = match.paths.join() !== '/*';
  if (isNarrower && site.isStripped) {
    site.conversion.leave(directive, 'a section with the whole path, as the client sends it');
    return undefined;
  }
  const paths = isNarrower ? match.paths : site.within;
  return { place: onHosts(site, match), paths, rest };
}

function onHosts(site: CaddySite, { hosts }: CaddyMatch): CaddySite {
  const [first] = hosts;
  if (first === undefined) return site;
  return { ...site, origins: hosts.map((host) => `${site.scheme}://${host}`), name: first };
}

/** A value with variables of the ini file in place of those of the environment. */
export function withVariables({ variables }: CaddySite, text: string): string {
  return iniVariables(text, variables);
}

/** Leaves a directive with what comes nearest, unless it needs no counterpart. */
export function leaveUnknown(
  { conversion }: Pick<CaddySite, 'conversion'>,
  directive: Directive,
): void {
  const { name } = directive;
  if (unneeded.has(name)) return;
  const known = Object.hasOwn(nearest, name) ? nearest[name] : undefined;
  conversion.leave(directive, known ?? 'nothing that this command knows');
}

/** One line of `header`, `header_up` or `header_down`; undefined if it cannot be expressed. */
export function fieldOf(
  site: CaddySite,
  directive: Directive,
  words: readonly string[],
): FieldWish | undefined {
  const [written = '', value, replacement] = words;
  const [, mark = '', name = ''] = /^([-+?>]?)(.*?):?$/.exec(written) ?? [];
  if (replacement !== undefined || name.includes('*')) {
    site.conversion.leave(
      directive,
      'a [headers.<name>], which sets, adds and removes whole fields',
    );
    return undefined;
  }
  if (mark === '-') return { name, template: '', source: directive };
  const template = fieldTemplate(withVariables(site, value ?? ''));
  if (template === undefined) {
    site.conversion.leave(directive, 'a [headers.<name>], which knows other variables');
    return undefined;
  }
  if (mark === '?')
    site.conversion.note(directive, 'Waymark sets the field always, not only if it is missing');
  return { name, template, isAdded: mark === '+', source: directive };
}

/** The requests that a matcher of Caddy matches, if paths and hosts decide. */
interface CaddyMatch {
  /** Each with a `*` at its start or end, or without one. */
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  /** Whether the file must exist, as it must for a mount. */
  readonly isFile: boolean;
}

/**
 * Takes the matcher from the words of a directive: `*`, `/path*`, `@name`, or none. `match` is
 * undefined for a named matcher that cannot be expressed.
 */
function takeMatcher(
  words: readonly string[],
  block: readonly Directive[],
): { readonly match: CaddyMatch | undefined; readonly rest: readonly string[] } {
  const [first = '', ...rest] = words;
  if (first === '*') return { match: all, rest };
  if (first.startsWith('/')) return { match: { ...all, paths: [first] }, rest };
  if (!first.startsWith('@')) return { match: all, rest: words };
  const definition = allOf(block, first)[0];
  return { match: definition && namedMatch(definition), rest };
}

function namedMatch({ words, block }: Directive): CaddyMatch | undefined {
  const [kind = '', ...values] = words;
  const lines = block ?? [{ name: kind, words: values }];
  let match: CaddyMatch = all;
  for (const { name, words: args } of lines) {
    if (name === 'path' && args.every(isGlob)) match = { ...match, paths: args };
    else if (name === 'host') match = { ...match, hosts: args };
    else if (name === 'file' && isPathItself(args)) match = { ...match, isFile: true };
    else if (name === 'path_regexp') {
      const paths = globsOf(args.at(-1) ?? '');
      if (paths === undefined) return undefined;
      match = { ...match, paths };
    } else return undefined;
  }
  return lines.length === 0 ? undefined : match;
}

/** Whether a `file` matcher tries the path of the request only. */
function isPathItself(words: readonly string[]): boolean {
  return words.every((word) => word === '{path}' || word === '{path}/index.html');
}

function isGlob(path: string): boolean {
  return /^(?:\*?[^*]*|[^*]*\*)$/.test(path);
}

function globsOf(regex: string): readonly string[] | undefined {
  const extensions = extensionsOf(regex);
  if (extensions !== undefined) return extensions.map((one) => `*.${one}`);
  return patternsOf(regex)?.map(globOf);
}

/** What comes nearest to a directive that cannot be expressed. */
const nearest: Readonly<Record<string, string>> = {
  php_fastcgi: phpNearest,
  basic_auth: `${accessNearest} with \`password_file\``,
  basicauth: `${accessNearest} with \`password_file\``,
  forward_auth: `${accessNearest} with \`forward\``,
  client_auth: `${accessNearest} with \`client_certificate\``,
  rate_limit: 'a `[rate.<name>]` section',
  templates: 'a page with the engine `template`',
  rewrite: 'a `[rewrite.<name>]` section with `match` and `to`',
  uri: 'a `[rewrite.<name>]` section with `match` and `to`',
  vars: 'the value itself',
  map: 'one [redirect.<name>] for each line, or a page rule with conditions',
  method: 'nothing: the method of the client is passed on',
  error: 'a page rule with a status, or an `[access.<name>]` section',
  handle_errors: errorsNearest,
  intercept: '`errors` of a [disk.<name>]',
  import: 'the lines of that file: convert it as well, or put them here',
  metrics: '/svc1/metrics',
  tracing: '`endpoint` of [telemetry]',
  abort: `${accessNearest} with \`deny\``,
  push: 'a Link field in a [headers.<name>]',
  acme_server: 'nothing: Waymark only orders certificates',
  on_demand_tls: '`acme_on_demand` of [tls]',
  acme_dns: 'a certificate from a file: ACME needs port 80 or 443',
  acme_ca: '`acme_directory` of [tls]',
  storage: '`data` of [server]',
  log_skip: 'nothing: all requests are in the access log',
  skip_log: 'nothing: all requests are in the access log',
  request_header: 'a [proxy.<name>.request_headers]',
  fs: 'a [disk.<name>] of a folder',
  invoke: 'the lines of that route',
};

/**
 * Replaces `{$NAME:default}` and `{env.…}` by variables of the ini file, and adds the names with
 * their defaults.
 */
function iniVariables(text: string, names: Map<string, string>): string {
  return text.replaceAll(
    /\{(?:\$(\w{1,64})(?::([^{}]*))?|env\.(\w{1,64}))\}/g,
    (_, parsed?: string, value?: string, run?: string) => {
      const name = parsed ?? run ?? '';
      if (!names.has(name) || value !== undefined) names.set(name, value ?? '');
      return `\${${name}}`;
    },
  );
}

/** A value of a header field as a template of Waymark; undefined for an unknown placeholder. */
function fieldTemplate(text: string): string | undefined {
  const unknown: string[] = [];
  const template = text.replaceAll(/(?<!\$)\{([\w.-]+)\}/g, (_, name: string) => {
    const header = /^(?:header|http\.request\.header)\.([\w-]+)$/.exec(name)?.[1];
    const known = Object.hasOwn(inFields, name) ? inFields[name] : undefined;
    if (known === undefined && header === undefined) unknown.push(name);
    return known ?? `\${request.header.${header ?? ''}}`;
  });
  return unknown.length === 0 ? template : undefined;
}

/** The target of a redirect in the words of `[redirect.<name>]`; undefined if it has others. */
export function redirectTarget(
  text: string,
  scheme: string,
): { readonly to: string; readonly query: 'keep' | 'drop' } | undefined {
  const keeps = /\{uri\}|\?\{query\}$/.test(text);
  const known: Readonly<Record<string, string>> = {
    uri: '{path}',
    path: '{path}',
    'http.request.uri': '{path}',
    'http.request.uri.path': '{path}',
    host: '{host}',
    hostport: '{host}',
    scheme,
  };
  const unknown: string[] = [];
  const to = text.replace(/\?\{query\}$/, '').replaceAll(placeholder, (_, name: string) => {
    if (!Object.hasOwn(known, name)) unknown.push(name);
    return known[name] ?? '';
  });
  return unknown.length === 0 ? { to, query: keeps ? 'keep' : 'drop' } : undefined;
}
