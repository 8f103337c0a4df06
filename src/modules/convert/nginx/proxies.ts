import { unixSpelling } from '../../../core/values/network/unix-socket.ts';
import type { Source } from '../conversion.ts';
import { allOf, lastOf, type Directive } from '../directive.ts';
import {
  addExactProxy,
  addProxy,
  addRedirect,
  writeFields,
  type FieldWish,
  type ProxyWish,
  withUri,
} from '../sections.ts';
import { copiesOfRequest, effective, effectiveAll, type NginxSite } from './site.ts';
import { fieldTemplate, sizeWords, timeText } from './variables.ts';

/** The directives of a location that addProxyOf reads. */
export const proxyDirectives: readonly string[] = [
  ...['proxy_pass', 'proxy_set_header', 'proxy_hide_header', 'proxy_pass_header', 'proxy_cache'],
  ...['proxy_read_timeout', 'proxy_connect_timeout', 'client_max_body_size', 'health_check'],
];

/** Fields that Waymark sets itself on the way to an application. */
const setByWaymark: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'upgrade', 'x-forwarded-for', 'x-forwarded-proto'],
  ...['x-forwarded-host', 'forwarded', 'accept-encoding', 'x-forwarded-scheme'],
]);

/** Where the requests of a location go. */
interface Target {
  readonly sources: readonly string[];
  readonly balance?: string | undefined;
  readonly weights?: readonly string[] | undefined;
  /** The URI after the address, which replaces the path of the location. */
  readonly uri: string;
}

/** Adds the application of a `proxy_pass`; `exact` is that of a `location =`. */
export function addProxyOf(
  site: NginxSite,
  block: readonly Directive[],
  { path, isExact }: { readonly path: string; readonly isExact: boolean },
): void {
  const pass = lastOf(block, 'proxy_pass');
  const target = pass && targetOf(site, pass);
  if (pass === undefined || target === undefined) return;
  const { uri } = target;
  const hostField = effectiveAll(site, block, 'proxy_set_header').find(
    ({ words }) => words[0]?.toLowerCase() === 'host',
  );
  const host = hostOf(site, hostField);
  if (isExact) {
    const sources = target.sources.map((source) => withUri(source, uri));
    addExactProxy(site, { path, sources, host }, pass);
    return;
  }
  const isWhole = uri === '' || (uri === '/' && path === '/');
  const wish: ProxyWish = {
    path,
    sources: target.sources.map((source) => withUri(source, isWhole ? '' : uri)),
    host,
    timeout: valueOf(site, block, 'proxy_read_timeout', timeText),
    connectTimeout: valueOf(site, block, 'proxy_connect_timeout', timeText),
    maxBody: valueOf(site, block, 'client_max_body_size', sizeWords),
    cache: isCached(site, block),
    balance: target.balance,
    weights: target.weights,
    ...healthOf(block),
  };
  if (!isWhole) addSlash(site, path, pass);
  if (path.endsWith('/') && !isWhole && !uri.endsWith('/')) {
    site.conversion.note(pass, `what follows ${path} is put below ${uri}/`);
  }
  const sent = requestFields(site, block);
  const hidden = effectiveAll(site, block, 'proxy_hide_header').map((one): FieldWish => ({
    name: one.words[0] ?? '',
    template: '',
    source: one,
  }));
  for (const section of addProxy(site, wish, pass)) {
    if (sent.length > 0) {
      writeFields(site.conversion.below(section, 'request_headers', pass), sent);
    }
    if (hidden.length > 0) writeFields(site.conversion.below(section, 'headers', pass), hidden);
  }
}

/** Adds the redirect of `/app` to `/app/` that nginx makes, unless another location answers it. */
function addSlash(site: NginxSite, path: string, pass: Directive): void {
  const bare = path.slice(0, -1);
  if (!path.endsWith('/') || bare === '') return;
  const [server = []] = site.outer;
  const isTaken = allOf(server, 'location').some(({ words }) => words.at(-1) === bare);
  if (!isTaken) addRedirect(site, { path: bare, to: path, query: 'keep', status: 301 }, pass);
}

function isCached(site: NginxSite, block: readonly Directive[]): boolean {
  const { words = ['off'] } = effective(site, block, 'proxy_cache') ?? {};
  return words[0] !== 'off';
}

function valueOf(
  site: NginxSite,
  block: readonly Directive[],
  name: string,
  parse: (text: string) => string | undefined,
): string | undefined {
  const directive = effective(site, block, name);
  return directive && parse(directive.words[0] ?? '');
}

/** The `host` of the proxy: nginx sends that of `proxy_pass` unless it is told otherwise. */
function hostOf({ conversion }: NginxSite, directive: Directive | undefined): string {
  const value = directive?.words[1];
  if (directive === undefined || value === undefined || value === '$proxy_host') return 'source';
  if (/^\$(?:host|http_host|server_name)(?::\$(?:server_port|proxy_port))?$/.test(value)) {
    return 'client';
  }
  if (!value.includes('$')) return value;
  conversion.leave(directive, '`host` of the [proxy.<name>]: client, source or a name');
  return 'client';
}

function requestFields(site: NginxSite, block: readonly Directive[]): readonly FieldWish[] {
  const copies = copiesOfRequest(site, block);
  return effectiveAll(site, block, 'proxy_set_header').flatMap((directive): FieldWish[] => {
    const [name = '', value = ''] = directive.words;
    if (copies.has(directive)) return [];
    if (setByWaymark.has(name.toLowerCase())) return [];
    const template = value === '$proxy_add_x_forwarded_for' ? '${client.ip}' : fieldTemplate(value);
    if (template !== undefined) return [{ name, template, source: directive }];
    // Of inherited directives, each location would tell the same.
    const isOwn = block.includes(directive);
    const known = '`[proxy.<name>.request_headers]`, which knows other variables';
    if (isOwn) site.conversion.leave(directive, known);
    else site.conversion.note(directive, `not converted; nearest: ${known}`);
    return [];
  });
}

/** The servers and the URI of a `proxy_pass`; undefined if it cannot be expressed. */
export function targetOf(site: NginxSite, pass: Directive): Target | undefined {
  const { conversion, upstreams } = site;
  const [url = ''] = pass.words;
  const [, scheme, authority = '', uri = ''] =
    /^(https?):\/\/(unix:\/[^:]+(?=$|:)|[^/?#]+):?(\/.*)?$/i.exec(url) ?? [];
  if (scheme === undefined || url.includes('$') || isUnknown(`${scheme}://${authority}`)) {
    const why = url.includes('$')
      ? 'a [proxy.<name>] with a fixed `source`'
      : 'a [proxy.<name>] with the URL of an HTTP server';
    conversion.leave(pass, why);
    return undefined;
  }
  const upstream = upstreams.get(authority);
  if (upstream === undefined) return { sources: [sourceOf(`${scheme}://${authority}`)], uri };
  const servers = allOf(upstream.block ?? [], 'server').filter(
    ({ words: [address = '', ...others] }) =>
      !others.includes('down') && !isUnknown(`${scheme}://${address}`),
  );
  const sources = servers.map(({ words: [address = ''] }) => sourceOf(`${scheme}://${address}`));
  if (sources.length === 0) {
    conversion.leave(pass, 'a [proxy.<name>] with the URL of an HTTP server');
    return undefined;
  }
  const weights = servers.map(weightOf);
  const isEven = weights.every((one) => one === '1');
  const balance = balanceOf(upstream.block ?? []);
  return { sources, uri, balance, weights: isEven ? undefined : weights };
}

/** The `source` of a server as nginx names it. */
function sourceOf(url: string): string {
  return unixSpelling(url) ?? url;
}

/** Whether a server is on a unix socket that `source` does not express: over TLS, for example. */
function isUnknown(url: string): boolean {
  const isSocket = /^https?:\/\/unix:/i.test(url);
  return isSocket && (url.toLowerCase().startsWith('https:') || unixSpelling(url) === undefined);
}

/** The weight of a server; one of 0 gets requests only while all others fail. */
function weightOf({ words }: Directive): string {
  if (words.includes('backup')) return '0';
  return /^weight=(\d+)$/.exec(words.find((word) => word.startsWith('weight=')) ?? '')?.[1] ?? '1';
}

/** The `balance` of an upstream; undefined for the one with the fewest requests. */
function balanceOf(block: readonly Directive[]): string | undefined {
  return block.flatMap((one) => balanceIn(one) ?? [])[0];
}

function balanceIn({ name, words }: Directive): string | undefined {
  const isOfAddress = name === 'hash' && /^\$(?:binary_)?remote_addr$/.test(words[0] ?? '');
  if (name === 'ip_hash' || isOfAddress) return 'address';
  return name === 'sticky' && words[0] === 'cookie' ? 'cookie' : undefined;
}

/** The active checks of an application. */
function healthOf(block: readonly Directive[]): Pick<ProxyWish, 'health' | 'healthInterval'> {
  const check = lastOf(block, 'health_check');
  if (check === undefined) return {};
  const valueIn = (name: string): string | undefined =>
    check.words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const interval = timeText(valueIn('interval') ?? '5s');
  return { health: valueIn('uri') ?? '/', healthInterval: interval };
}

/** Leaves what an upstream says about the choice of a server that Waymark has not. */
export function leaveBalance(
  { conversion }: Pick<NginxSite, 'conversion'>,
  upstream: Directive,
): void {
  for (const one of upstream.block ?? []) {
    const isKnown = balanceIn(one) !== undefined;
    if ((one.name === 'hash' || one.name === 'sticky') && !isKnown) {
      conversion.leave(one, '`balance` of the [proxy.<name>]');
    }
  }
}

/** Leaves what the servers of an upstream say besides their addresses. */
export function leaveServerWords(site: Pick<NginxSite, 'conversion'>, upstream: Directive): void {
  for (const server of allOf(upstream.block ?? [], 'server')) {
    const others = server.words
      .slice(1)
      .filter((word) => !/^(?:down|backup|max_fails|fail_timeout|weight=\d+$)/.test(word));
    const source: Source = server;
    if (isUnknown(`http://${server.words[0] ?? ''}`)) {
      site.conversion.leave(source, 'the address of an HTTP server in `source`');
    } else if (others.length > 0) {
      site.conversion.leave(source, `its address alone, without ${others.join(' ')}`);
    }
  }
}
