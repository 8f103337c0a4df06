import { htpasswdNote } from '../nearest.ts';
import { allOf, type Directive } from '../directive.ts';
import { extensionsOf, globOf, patternsOf } from '../patterns.ts';
import { addAccess, everyAddress, type AccessWish } from '../sections.ts';
import { forwardOf, isAuthLocation } from './auth-request.ts';
import { convertClientCertificates } from './client-certificates.ts';
import { effective, type NginxSite } from './site.ts';
import { nearest } from './words.ts';

/** Directives about who may see something, which this file converts. */
export const accessDirectives: readonly string[] = [
  ...['allow', 'deny', 'auth_basic', 'auth_basic_user_file', 'satisfy'],
  ...['auth_request', 'auth_request_set'],
];

/** A location with the paths that it answers; undefined paths cannot be expressed. */
export interface NginxLocation {
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
export function placesIn(
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
export function isOutside(
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
