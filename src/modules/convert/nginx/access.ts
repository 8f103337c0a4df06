import {
  type Directive,
  allOf,
  extensionsOf,
  globOf,
  htpasswdNote,
  lastOf,
  patternsOf,
} from '../directive.ts';
import { type AccessWish, addAccess, addRate, everyAddress, withUri } from '../sections.ts';
import { convertClientCertificates } from './client-certificates.ts';
import { targetOf } from './proxies.ts';
import { type NginxSite, copiesOfRequest, effective, effectiveAll, nearest } from './site.ts';

/** Directives about how often clients may ask, which this file converts. */
export const rateDirectives: readonly string[] = [
  ...['limit_req', 'limit_req_zone', 'limit_req_status', 'limit_req_log_level'],
];

/** Fields of the request that are like those that Waymark sends to a `forward`. */
const sentAnyway: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-proto'],
  ...['x-forwarded-host', 'x-forwarded-uri', 'x-forwarded-method', 'accept', 'cookie'],
]);

/** Directives about who may see something, which this file converts. */
export const accessDirectives: readonly string[] = [
  ...['allow', 'deny', 'auth_basic', 'auth_basic_user_file', 'satisfy'],
  ...['auth_request', 'auth_request_set'],
];

/** A location with the paths that it answers; undefined paths cannot be expressed. */
interface NginxLocation {
  readonly directive: Directive;
  readonly block: readonly Directive[];
  readonly outer: readonly (readonly Directive[])[];
  readonly paths: readonly string[] | undefined;
  /** The start of its paths; undefined for a regular expression. */
  readonly prefix: string | undefined;
}

/**
 * Converts who may see a server and its locations to `[access.<name>]` sections. Of the locations
 * of nginx one counts, and in Waymark all sections that match: so a section leaves out the paths of
 * the locations that have directives of their own, or do not inherit its ones.
 */
export function convertAccess(site: NginxSite, block: readonly Directive[]): void {
  const locations = allOf(block, 'location').filter((one) => !isAuthLocation(block, one));
  const places = placesIn(locations, [block, ...site.outer]);
  const own = places.filter((place) => hasAccess(place.block));
  convertClientCertificates(site, block, places);
  if (hasAccess(block)) {
    const except = own.flatMap(({ paths = [] }) => paths);
    protect(site, { paths: ['/*'], except }, { block, outer: site.outer });
  }
  for (const place of own) {
    if (place.paths === undefined) {
      leaveAccess(site, place.block);
      continue;
    }
    const except = places
      .filter((one) => isOutside(one, place, hasAccess))
      .flatMap((one) => one.paths ?? []);
    protect(site, { paths: place.paths, except }, place);
  }
}

function hasAccess(block: readonly Directive[]): boolean {
  return block.some(({ name }) => accessDirectives.includes(name));
}

/** The locations of a block, and those inside of them. */
function placesIn(
  locations: readonly Directive[],
  outer: NginxLocation['outer'],
): readonly NginxLocation[] {
  return locations.flatMap((directive) => {
    const { words, block = [] } = directive;
    const [modifier = '', written] = words.length > 1 ? words : ['', words[0]];
    const text = written ?? '';
    if (text.startsWith('@') || hidesDotFiles(text, block)) return [];
    const isRegex = modifier.startsWith('~');
    const paths = isRegex ? pathsOfRegex(text) : [modifier === '=' ? text : `${text}*`];
    const place: NginxLocation = {
      directive,
      block,
      outer,
      paths,
      prefix: isRegex ? undefined : text,
    };
    return [place, ...placesIn(allOf(block, 'location'), [block, ...outer])];
  });
}

function pathsOfRegex(text: string): readonly string[] | undefined {
  const extensions = extensionsOf(text);
  return extensions?.map((one) => `*.${one}`) ?? patternsOf(text)?.map(globOf);
}

/**
 * Whether a location is below the path of another one, and does not inherit its directives: it has
 * some of its own, as `isOwn` says, or is not inside.
 */
function isOutside(
  inner: NginxLocation,
  place: NginxLocation,
  isOwn: (block: readonly Directive[]) => boolean,
): boolean {
  const [short, long] = [place.prefix, inner.prefix];
  if (inner === place || short === undefined || long === undefined) return false;
  const isBelow = long.startsWith(short) && (long.length > short.length || isExact(inner));
  return isBelow && (isOwn(inner.block) || !inner.outer.includes(place.block));
}

function isExact({ directive: { words } }: NginxLocation): boolean {
  return words[0] === '=';
}

/** Whether a location refuses names that begin with a dot, as `dotfiles = deny` does by itself. */
export function hidesDotFiles(regex: string, block: readonly Directive[]): boolean {
  const denies = block.some(({ name, words }) => {
    const isReturn = name === 'return' && /^(?:403|404|444)$/.test(words[0] ?? '');
    return isReturn || (name === 'deny' && words[0] === 'all');
  });
  return denies && /^\^?(?:\.\*)?(?:\/|\(\^\|\/\))\\\./.test(regex);
}

/** Adds the section for some paths, if any condition counts there. */
function protect(
  site: NginxSite,
  where: Pick<AccessWish, 'paths' | 'except'>,
  { block, outer }: Pick<NginxLocation, 'block' | 'outer'>,
): void {
  const source = block.find(({ name }) => accessDirectives.includes(name));
  if (source === undefined) return;
  const password = passwordsOf(site, block, outer);
  const networks = networksOf(block, outer);
  if (networks === undefined) leaveAccess(site, block, ['allow', 'deny']);
  const { allow = [], deny = [] } = networks ?? {};
  const { forward, copy = [] } = forwardOf({ ...site, outer }, block) ?? {};
  const conditions = [password, forward, allow[0]].filter((one) => one !== undefined);
  if (conditions.length === 0 && deny.length === 0) return;
  const isAny = effective({ outer }, block, 'satisfy')?.words[0] === 'any';
  const isChoice = isAny && conditions.length > 1;
  const wish = { ...where, allow, deny, forward, copy, passwordFile: password, isAny: isChoice };
  addAccess(site, wish, source);
}

/** The password file that counts in a block; undefined for none. */
function passwordsOf(
  { conversion }: NginxSite,
  block: readonly Directive[],
  outer: NginxLocation['outer'],
): string | undefined {
  const basic = effective({ outer }, block, 'auth_basic');
  if (basic === undefined || basic.words[0] === 'off') return undefined;
  const file = effective({ outer }, block, 'auth_basic_user_file');
  if (file === undefined || file.words[0]?.includes('$') !== false) {
    conversion.leave(basic, nearest.auth_basic ?? '');
    return undefined;
  }
  conversion.note(file, htpasswdNote);
  return file.words[0];
}

interface Networks {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/**
 * The networks of `allow` and `deny`, of which the first that contains an address counts in nginx;
 * undefined if their order has a meaning that two lists do not have.
 */
function networksOf(
  block: readonly Directive[],
  outer: NginxLocation['outer'],
): Networks | undefined {
  const isRule = ({ name }: Directive): boolean => name === 'allow' || name === 'deny';
  const rules = ([block, ...outer].find((one) => one.some(isRule)) ?? []).filter(isRule);
  const end = rules.findIndex(({ words }) => words[0] === 'all');
  const counted = end === -1 ? rules : rules.slice(0, end);
  const isClosed = rules[end]?.name === 'deny';
  if (counted.some(({ words }) => words[0]?.startsWith('unix') !== false)) return undefined;
  const firstAllow = counted.findIndex(({ name }) => name === 'allow');
  const lastDeny = counted.findLastIndex(({ name }) => name === 'deny');
  if (firstAllow !== -1 && lastDeny > firstAllow) return undefined;
  const of = (verb: string): readonly string[] =>
    counted.filter(({ name }) => name === verb).flatMap(({ words }) => words.slice(0, 1));
  if (!isClosed) return { allow: [], deny: of('deny') };
  const allow = of('allow');
  return allow.length === 0 ? { allow, deny: everyAddress } : { allow, deny: of('deny') };
}

function leaveAccess(
  { conversion }: NginxSite,
  block: readonly Directive[],
  names: readonly string[] = accessDirectives,
): void {
  for (const one of block.filter(({ name }) => names.includes(name))) {
    conversion.leave(one, nearest[one.name] ?? '');
  }
}

/** Another server that decides, in the words of `[access.<name>]`. */
interface Forward {
  readonly forward: string;
  readonly copy: readonly string[];
}

/**
 * The `forward` and `copy` of the `auth_request` that counts in a block; undefined for none, and
 * for one that is left.
 */
function forwardOf(site: NginxSite, block: readonly Directive[]): Forward | undefined {
  const { conversion } = site;
  const asked = effective(site, block, 'auth_request');
  const [uri = 'off'] = asked?.words ?? [];
  if (asked === undefined || uri === 'off') return undefined;
  const servers = [block, ...site.outer];
  const locations = servers.flatMap((one) => allOf(one, 'location'));
  const location = locations.find(({ words }) => words.at(-1) === uri);
  const pass = lastOf(location?.block ?? [], 'proxy_pass');
  const target = pass && targetOf(site, pass);
  const [source, ...others] = target?.sources ?? [];
  if (location === undefined || source === undefined || others.length > 0) {
    conversion.leave(asked, nearest.auth_request ?? '');
    return undefined;
  }
  leaveSentFields(site, location.block ?? []);
  conversion.note(
    asked,
    `a visitor gets the answer of ${source} unless it is 2xx: nginx answers 401 and 403 itself`,
  );
  const copy = copiesOf(site, block);
  const path = target?.uri === '' ? uri : (target?.uri ?? '');
  return { forward: withUri(source, path), copy };
}

/** Whether a location answers `auth_request` alone, and no client. */
export function isAuthLocation(server: readonly Directive[], { words, block }: Directive): boolean {
  const isInternal = lastOf(block ?? [], 'internal') !== undefined;
  return isInternal && asksFor(server, words.at(-1) ?? '');
}

function asksFor(block: readonly Directive[], uri: string): boolean {
  return block.some(({ name, words, block: inner = [] }) => {
    return (name === 'auth_request' && words[0] === uri) || asksFor(inner, uri);
  });
}

/** Leaves the fields for the other server that Waymark does not send. */
function leaveSentFields({ conversion }: NginxSite, block: readonly Directive[]): void {
  for (const one of allOf(block, 'proxy_set_header')) {
    if (sentAnyway.has(one.words[0]?.toLowerCase() ?? '')) continue;
    conversion.leave(
      one,
      'X-Forwarded-Method, -Proto, -Host and -Uri, which `forward` sends: the address of that ' +
        'server for `forward_auth` of Caddy or Traefik reads them',
    );
  }
}

/**
 * The fields of the answer of the other server that an application gets under their own names.
 * Leaves the variables that become something else.
 */
function copiesOf(site: NginxSite, block: readonly Directive[]): readonly string[] {
  const copied = [...copiesOfRequest(site, block)];
  return effectiveAll(site, block, 'auth_request_set').flatMap((one) => {
    const name = copied.find(({ words }) => words[1] === one.words[0])?.words[0];
    if (name !== undefined) return [name];
    site.conversion.leave(one, '`copy`, which keeps the names of fields');
    return [];
  });
}

/** A `limit_req_zone`. */
interface Zone {
  readonly by: string;
  readonly rate: string;
}

/**
 * Converts `limit_req` of a server and its locations to `[rate.<name>]` sections. Of the blocks of
 * nginx the innermost one counts, and in Waymark all sections that match: so a section leaves out
 * the paths of the locations that have rates of their own.
 */
export function convertRates(site: NginxSite, block: readonly Directive[]): void {
  const places = placesIn(allOf(block, 'location'), [block, ...site.outer]);
  const own = places.filter((one) => hasRates(one.block));
  const outer = [block, ...site.outer].find(hasRates);
  if (outer !== undefined) {
    const except = own.flatMap(({ paths = [] }) => paths);
    limit(site, { paths: ['/*'], except }, { block: outer, outer: site.outer });
  }
  for (const place of own) {
    const inner = own.filter((one) => isOutside(one, place, hasRates));
    const except = inner.flatMap(({ paths = [] }) => paths);
    limit(site, { paths: place.paths, except }, place);
  }
}

function hasRates(block: readonly Directive[]): boolean {
  return lastOf(block, 'limit_req') !== undefined;
}

function limit(
  site: NginxSite,
  { paths, except }: { readonly paths: NginxLocation['paths']; readonly except: readonly string[] },
  { block, outer }: Pick<NginxLocation, 'block' | 'outer'>,
): void {
  const { conversion } = site;
  for (const directive of allOf(block, 'limit_req')) {
    const words = new Map(
      directive.words.map((word) => [word.split('=')[0] ?? '', word.split('=')[1] ?? '']),
    );
    const zone = zoneOf(words.get('zone') ?? '', [block, ...outer]);
    if (zone === undefined || paths === undefined) {
      conversion.leave(directive, nearest.limit_req ?? '');
      continue;
    }
    const more = words.get('burst');
    if (more !== undefined && !words.has('nodelay')) {
      conversion.note(directive, 'Waymark answers requests of the burst at once, without a delay');
    }
    // nginx lets one request pass, and the burst besides.
    const burst = String(Number(more ?? 0) + 1);
    const status = effective({ outer }, block, 'limit_req_status')?.words[0] ?? '503';
    addRate(site, { paths, except, ...zone, burst, status }, directive);
  }
}

/** The zone that has a name; undefined for one whose key or rate cannot be expressed. */
function zoneOf(name: string, blocks: readonly (readonly Directive[])[]): Zone | undefined {
  const zones = blocks.flatMap((one) => allOf(one, 'limit_req_zone'));
  const words = zones.find((one) =>
    one.words.some((word) => word.startsWith(`zone=${name}:`)),
  )?.words;
  const [key = '', ...others] = words ?? [];
  const [, count, unit] = /^rate=(\d+)r\/([sm])$/.exec(others.at(-1) ?? '') ?? [];
  const field = /^\$http_(\w+)$/.exec(key)?.[1]?.replaceAll('_', '-');
  const isAddress = key === '$binary_remote_addr' || key === '$remote_addr';
  const by = isAddress ? 'address' : field === undefined ? undefined : `field:${field}`;
  if (by === undefined || count === undefined || unit === undefined) return undefined;
  return { by, rate: `${count}/${unit}` };
}
