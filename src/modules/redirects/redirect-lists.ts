import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import type { DiskMount, RedirectConfig } from '../../core/config/config.ts';
import { parseRedirectLines, type RedirectLine } from './redirect-lines.ts';
import { createRedirectTable } from './redirect-table.ts';
import { locationFor } from './redirect-target.ts';
import { isRead, type RequestTarget } from '../../core/http/request.ts';
import { sentUrlOf, withFinalSlash, withoutFinalSlash } from '../../core/values/path.ts';
import { pathPattern } from '../../core/values/linear-pattern.ts';
import type { PageRequest } from '../../core/pipeline/source.ts';
import { mountMismatch } from '../files/mount-path.ts';

/** A redirect that applies to a request, unless it is for other visitors. */
export interface RedirectCandidate {
  /** The section of the ini file, or the mount whose file has the line. */
  readonly named: { readonly redirect: string } | { readonly mount: string };
  /** Of the line in its file; undefined for a section. */
  readonly line: number | undefined;
  readonly origin: string;
  readonly path: string;
  /** 3xx for a redirect; 200, 404 or 410 for the content at `location` with that status. */
  readonly status: number;
  /** A path with its query, or a URL. */
  readonly location: string;
  /** As in `RedirectLine`. */
  readonly countries: readonly string[];
  readonly languages: readonly string[];
}

/** Finds the redirects of one section or file that apply to a request, in their order. */
export type RedirectList = (request: PageRequest) => Iterable<RedirectCandidate>;

const everyone = { line: undefined, countries: [], languages: [] } as const;

/**
 * Makes a list of redirects for a site; `hasPage` tells whether the site answers another path of a
 * request, and does not lead back to the request.
 */
export type RedirectsOfSite = (
  hasPage: (other: PageRequest, request: PageRequest) => boolean,
) => RedirectList;

/** Prepares the redirects of a section of the ini file. */
export function configuredRedirects(config: RedirectConfig): RedirectsOfSite {
  const { name, origin, path, status, to, fileText, trailingSlash } = config;
  const named = { redirect: name };
  const shown = config.match ?? path;
  const place = { ...everyone, named, origin, path: shown, status };
  const applies = (target: RequestTarget): boolean =>
    coversOrigin(origin, target.origin) &&
    (path.endsWith('*') ? target.path.startsWith(path.slice(0, -1)) : target.path === path);
  if (to !== undefined) {
    const pattern = config.match === undefined ? undefined : pathPattern(config.match);
    const rule = { ...config, to, pattern };
    return () => (request) => {
      const location = locationFor(rule, request);
      return location === undefined ? [] : [{ ...place, location }];
    };
  }
  if (fileText !== undefined) {
    const find = listOf(parseRedirectLines(fileText).lines, named);
    return () => (request) => (applies(request) ? find(request) : []);
  }
  return (hasPage) => (request) => {
    const other = trailingSlash === 'on' ? withFinalSlash(request) : withoutFinalSlash(request);
    if (other === undefined || !applies(request) || !isRead(request.method)) return [];
    const target = { ...request, ...other };
    if (!hasPage(target, request)) return [];
    // A reference that begins with two slashes would name a host (RFC 3986 §4.2).
    const base = other.sentPath.startsWith('//') ? request.origin : '';
    return [{ ...place, location: sentUrlOf({ ...target, origin: base }) }];
  };
}

/** The lines of the file of a mount. */
export interface MountRedirects {
  /** Those that come before content; undefined without any. */
  readonly forced: RedirectList | undefined;
  readonly others: RedirectList | undefined;
}

/** Prepares the lines of the file of a mount. */
export function mountRedirects(mount: DiskMount): MountRedirects {
  const { lines } = parseRedirectLines(mount.redirectsText ?? '');
  const part = (isForced: boolean): RedirectList | undefined => {
    const some = lines.filter((line) => line.isForced === isForced);
    if (some.length === 0) return undefined;
    const find = listOf(some, { mount: mount.name });
    return (request) => (mountMismatch(mount, request) === undefined ? find(request) : []);
  };
  return { forced: part(true), others: part(false) };
}

function listOf(lines: readonly RedirectLine[], named: RedirectCandidate['named']): RedirectList {
  const table = createRedirectTable(lines);
  return function* find(request) {
    for (const { line: found, location } of table.matches(request)) {
      const { line, origin, path, status, countries, languages } = found;
      yield { named, line, origin, path, status, location, countries, languages };
    }
  };
}
