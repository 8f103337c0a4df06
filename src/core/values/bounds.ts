import { coversOrigin } from './network/origin-pattern.ts';
import { hasWildcard } from './path.ts';
import { matchingOrigin, originsOf, type Rule } from '../../modules/rules/rule.ts';

/**
 * The part of the site to which a key is bound (docs/design/failures.md#bound-keys): page rules and
 * breadcrumbs of one of these origins below one of these paths. A member that is left out allows
 * all, `*` among the origins.
 */
export interface Bounds {
  /** In canonical form; `https://*.example.com` stands for all subdomains. */
  readonly origins?: readonly string[];
  /**
   * Canonical paths: one that ends with `/` stands for all below it, another one for itself, too.
   */
  readonly paths?: readonly string[];
}

/** The origin of a request or rule, and its path or wildcard, or the key of a breadcrumb. */
export interface BoundedPlace {
  readonly origin: string;
  readonly path: string;
}

/** Whether all that a place covers is inside of bounds; without bounds, everything is. */
export function isInside(bounds: Bounds | undefined, { origin, path }: BoundedPlace): boolean {
  if (bounds === undefined) return true;
  const { paths } = bounds;
  if (!isOriginInside(bounds, origin)) return false;
  return paths === undefined || paths.some((one) => covers(one, path));
}

/** Whether all sites of an origin, or of several, are inside of bounds. */
export function isOriginInside({ origins }: Bounds, origin: string): boolean {
  if (origins === undefined) return true;
  return originsOf(origin).every((own) => origins.some((one) => coversOrigin(one, own)));
}

/** Whether a page rule is inside of bounds: one whose origin waits has no origin. */
export function isRuleInside(bounds: Bounds | undefined, rule: Omit<Rule, 'id'>): boolean {
  return isInside(bounds, { origin: matchingOrigin(rule), path: rule.path });
}

/** The start of everything below a path of bounds. */
export function folderOf(path: string): string {
  return path.endsWith('/') ? path : `${path}/`;
}

function covers(bound: string, path: string): boolean {
  const isWildcard = hasWildcard(path);
  const start = isWildcard ? path.slice(0, path.indexOf('*')) : path;
  return start.startsWith(folderOf(bound)) || (!isWildcard && path === bound);
}

/** Bounds as a person reads them: `https://one.example /blog/`. */
export function boundsText({ origins = ['*'], paths = ['*'] }: Bounds): string {
  return `${origins.join(' ')} ${paths.join(' ')}`;
}
