import { parseUnixUrl, unixScheme } from '../../core/values/network/unix-socket.ts';
import { sectionName, type Conversion, type WrittenSection, type Source } from './conversion.ts';

/** Where a section applies: its origins, `*` for all, and a word for the names of its sections. */
export interface SitePlace {
  readonly conversion: Conversion;
  readonly origins: readonly string[];
  readonly name: string;
}

/** A folder that is served. */
interface MountWish {
  readonly path: string;
  readonly root: string;
  readonly index?: readonly string[] | undefined;
  readonly listing?: boolean | undefined;
  readonly tries?: readonly string[] | undefined;
  readonly fallback?: string | undefined;
  readonly errors?: string | undefined;
}

/** Adds a `[disk.<name>]` for each origin. */
export function addMount(
  place: SitePlace,
  wish: MountWish,
  source: Source,
): readonly WrittenSection[] {
  return forOrigins(place, 'disk', wish.path, source, (section) => {
    if (wish.path !== '/') section.set('path', wish.path);
    section.set('root', wish.root);
    const { index = [], tries = [] } = wish;
    if (wish.index !== undefined && index.join() !== 'index.html') {
      section.set('index', index.join(', '));
    }
    if (wish.listing === true) section.set('listing', 'yes');
    if (tries.length > 0) section.set('try', tries.join(', '));
    if (wish.fallback !== undefined) section.set('fallback', wish.fallback);
    if (wish.errors !== undefined) section.set('errors', wish.errors);
  });
}

/** An application that requests are passed to. */
export interface ProxyWish {
  readonly path: string;
  readonly sources: readonly string[];
  readonly host?: string | undefined;
  readonly timeout?: string | undefined;
  readonly connectTimeout?: string | undefined;
  readonly maxBody?: string | undefined;
  /** Whether the answers may be cached, as nginx and Caddy do only when told. */
  readonly cache?: boolean | undefined;
  readonly balance?: string | undefined;
  /** A weight for each source. */
  readonly weights?: readonly string[] | undefined;
  /** The path that checks request from the application, and how often. */
  readonly health?: string | undefined;
  readonly healthInterval?: string | undefined;
}

/** Adds a `[proxy.<name>]` for each origin, which answers its path without the last slash, too. */
export function addProxy(
  place: SitePlace,
  wish: ProxyWish,
  source: Source,
): readonly WrittenSection[] {
  const { path, sources, host } = wish;
  return forOrigins(place, 'proxy', path, source, (section) => {
    if (path !== '/') section.set('path', path.endsWith('/') ? path : `${path}/`);
    section.setAll('source', sources);
    if (host !== undefined && host !== 'client') section.set('host', host);
    if (wish.connectTimeout !== undefined) section.set('connect_timeout', wish.connectTimeout);
    if (wish.timeout !== undefined) section.set('timeout', wish.timeout);
    if (wish.maxBody !== undefined) section.set('max_body', wish.maxBody);
    if (wish.cache !== true) section.set('cache', 'no');
    if (wish.balance !== undefined) section.set('balance', wish.balance);
    if (wish.weights !== undefined) section.set('weight', wish.weights.join(', '));
    if (wish.health !== undefined) section.set('health', wish.health);
    if (wish.healthInterval !== undefined) section.set('health_interval', wish.healthInterval);
  });
}

/** A redirect. */
interface RedirectWish {
  readonly path: string;
  /** A regular expression in place of the path. */
  readonly match?: string;
  readonly to: string;
  readonly status: number;
  readonly query: 'keep' | 'drop';
}

/** Adds a `[redirect.<name>]` for each origin. */
export function addRedirect(place: SitePlace, wish: RedirectWish, source: Source): void {
  forOrigins(place, 'redirect', wish.path, source, (section) => {
    if (wish.match !== undefined) section.set('match', wish.match);
    else if (wish.path !== '/*') section.set('path', wish.path);
    section.set('to', wish.to);
    if (wish.status !== movedPermanently) section.set('status', String(wish.status));
    if (wish.query === 'drop') section.set('query', 'drop');
  });
}

/** Adds a `[rewrite.<name>]` for each origin: the content of another path. */
export function addRewrite(
  place: SitePlace,
  { match, to }: { readonly match: string; readonly to: string },
  source: Source,
): void {
  forOrigins(place, 'rewrite', match, source, (section) => {
    section.set('match', match);
    section.set('to', to);
  });
}

const movedPermanently = 301;

/** Who may see some paths. */
export interface AccessWish {
  readonly paths: readonly string[];
  readonly except?: readonly string[];
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly passwordFile?: string | undefined;
  readonly forward?: string | undefined;
  readonly copy?: readonly string[];
  readonly clientCertificate?: string | undefined;
  /** Whether one of the conditions is enough. */
  readonly isAny?: boolean;
}

/** Adds an `[access.<name>]` for each origin. */
export function addAccess(place: SitePlace, wish: AccessWish, source: Source): void {
  const { paths, except = [], allow = [], deny = [], copy = [] } = wish;
  forOrigins(place, 'access', paths[0] ?? '/*', source, (section) => {
    if (paths.join() !== '/*') section.set('path', paths.join(', '));
    if (except.length > 0) section.set('except', except.join(', '));
    if (allow.length > 0) section.set('allow', allow.join(', '));
    if (deny.length > 0) section.set('deny', deny.join(', '));
    if (wish.passwordFile !== undefined) section.set('password_file', wish.passwordFile);
    if (wish.forward !== undefined) section.set('forward', wish.forward);
    if (copy.length > 0) section.set('copy', copy.join(', '));
    if (wish.clientCertificate !== undefined) {
      section.set('client_certificate', wish.clientCertificate);
    }
    if (wish.isAny === true) section.set('satisfy', 'any');
  });
}

/** All addresses of both versions of IP. */
export const everyAddress: readonly string[] = ['0.0.0.0/0', '::/0'];

/** Refuses everybody with 403, where files would answer before a page rule. */
export function addRefusal(
  place: SitePlace,
  {
    paths,
    except = [],
    status,
  }: {
    readonly paths: readonly string[];
    readonly except?: readonly string[];
    readonly status: number;
  },
  source: Source,
): void {
  addAccess(place, { paths, except, deny: everyAddress }, source);
  if (status !== forbidden) place.conversion.note(source, `the status is ${forbidden}`);
}

const forbidden = 403;

/** How often clients may ask for some paths. */
interface RateWish {
  readonly paths: readonly string[];
  readonly except: readonly string[];
  readonly rate: string;
  readonly burst: string;
  readonly by: string;
  readonly status: string;
}

/** Adds a `[rate.<name>]` for each origin. */
export function addRate(place: SitePlace, wish: RateWish, source: Source): void {
  const { paths, except, rate, burst, by, status } = wish;
  forOrigins(place, 'rate', paths[0] ?? '/*', source, (section) => {
    if (paths.join() !== '/*') section.set('path', paths.join(', '));
    if (except.length > 0) section.set('except', except.join(', '));
    section.set('rate', rate);
    section.set('burst', burst);
    if (by !== 'address') section.set('by', by);
    if (status !== '429') section.set('status', status);
  });
}

/** A header field of answers; without a text, it is removed. */
export interface FieldWish {
  readonly name: string;
  /** With the variables of `[headers.<name>]`. */
  readonly template: string;
  /** Whether it is added to those of its name. */
  readonly isAdded?: boolean;
  readonly source: Source;
}

/** Adds a `[headers.<name>]` for each origin. */
export function addFields(
  place: SitePlace,
  paths: readonly string[],
  fields: readonly FieldWish[],
): void {
  const [first] = fields;
  if (first === undefined) return;
  const name = paths[0] ?? '/*';
  forOrigins(place, 'headers', name, first.source, (section) => {
    if (paths.join() !== '/*') section.set('path', paths.join(', '));
    writeFields(section, fields);
  });
}

/** Writes fields to a section whose lines are fields; of two of one name, the second is added. */
export function writeFields(section: WrittenSection, fields: readonly FieldWish[]): void {
  for (const { name, template, isAdded, source } of fields) {
    if (isAdded !== true && section.setTemplate(name, template, source)) continue;
    section.addTemplate(name, template, source);
  }
}

/** A fixed answer: a page rule of the kind `content`, or `resolve` for a bare status. */
interface AnswerWish {
  readonly path: string;
  readonly status: number;
  readonly text: string;
  readonly type: string;
}

/** Adds a page rule for each origin. */
export function addAnswer({ conversion, origins }: SitePlace, wish: AnswerWish): void {
  for (const origin of origins) {
    const where = { ...(origin !== '*' && { origin }), path: wish.path };
    const isBare = wish.text === '' && wish.status >= clientError;
    if (isBare) {
      conversion.rule({ ...where, kind: 'resolve', enginedata: { status: wish.status } });
      continue;
    }
    const { status, text: content, type: contenttype } = wish;
    const answer = { content, contenttype, ...(status !== ok && { httpresponse: status }) };
    conversion.rule({ ...where, kind: 'content', ...answer });
  }
}

const ok = 200;
const clientError = 400;

/**
 * Adds a page rule that passes the requests of one path to an application; `[fetch]` permits its
 * address if it is this machine.
 */
export function addExactProxy(
  place: SitePlace,
  { path, sources, host }: Pick<ProxyWish, 'path' | 'sources' | 'host'>,
  source: Source,
): void {
  const { conversion, origins } = place;
  const places = sources.map(placeOf);
  const isLocal = places.every((one) => one !== undefined);
  const list = [...new Set(places)].join(', ');
  const isAllowed = isLocal && conversion.only('fetch', source).set('allow_private', list);
  const says = isAllowed
    ? `page rules may reach this machine by \`allow_private\` of [fetch], for ${path}`
    : `${path} is a page rule: if its source is private, add it to \`allow_private\` of [fetch]`;
  conversion.note(source, says);
  for (const origin of origins) {
    const enginedata = {
      source: sources.length === 1 ? (sources[0] ?? '') : [...sources],
      as: 'application',
      ...(host !== undefined && host !== 'client' && { host }),
    };
    conversion.rule({ ...(origin !== '*' && { origin }), path, kind: 'content.fetch', enginedata });
  }
}

/** The private place of a source on this machine; undefined for any other one. */
function placeOf(source: string): string | undefined {
  const { socketPath } = parseUnixUrl(source) ?? {};
  if (socketPath !== undefined) return unixScheme + socketPath;
  const isLocal = /^https?:\/\/(?:localhost|127\.[\d.]+|\[::1\])/.test(source);
  return isLocal ? '127.0.0.0/8, ::1/128' : undefined;
}

/** A source with a path, and a query, behind it. */
export function withUri(source: string, uri: string): string {
  return uri !== '' && source.startsWith(unixScheme) ? `${source}:${uri}` : source + uri;
}

function forOrigins(
  { conversion, origins, name }: SitePlace,
  kind: 'disk' | 'proxy' | 'redirect' | 'rewrite' | 'access' | 'rate' | 'headers',
  path: string,
  source: Source,
  fill: (section: WrittenSection) => void,
): readonly WrittenSection[] {
  const words = sectionName(path);
  const own = origins.length === 1 && origins[0] === '*' ? words || name : `${name}-${words}`;
  return origins.map((origin) => {
    const section = conversion.named(kind, own, source);
    if (origin !== '*') section.set('origin', origin);
    fill(section);
    return section;
  });
}
