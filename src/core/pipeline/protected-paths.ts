import { coversHost } from '../values/network/origin-pattern.ts';
import { matchesPattern } from '../../modules/headers/response-headers.ts';
import type { AccessConfig, DiskMount } from '../config/config.ts';
import { createLruCache } from '../values/lru-cache.ts';

/** Paths whose rules are in memory. */
const pathsRememberedMax = 4_096;

/** The parts of a mount by which a file answers at several paths. */
type MountPaths = Pick<DiskMount, 'path' | 'index' | 'cleanUrls' | 'tryPaths'>;

/** The paths of an access rule. */
type RulePaths = Pick<AccessConfig, 'origin' | 'path' | 'except' | 'login'>;

/**
 * Creates the lookup of the rules that protect a path, in their order. A rule protects a path if
 * its patterns match any reading of it: what is behind Waymark may ignore case, join slashes,
 * decode once more or drop path parameters, and a mount may show a file at another path, or have
 * its content in another file beside it. An exception counts only for a path without such a second
 * reading.
 */
export function createProtectedPaths<T extends RulePaths>(
  rules: readonly T[],
  mounts: readonly MountPaths[],
): (place: { readonly origin: string; readonly path: string }) => readonly T[] {
  const logins = new Set(rules.flatMap(({ login }) => login ?? []));
  const prepared = rules.map((rule) => ({ rule, patterns: rule.path.map(patternOf) }));
  const known = createLruCache<readonly T[]>(pathsRememberedMax);
  const find = (origin: string, path: string): readonly T[] => {
    const readings = readingsOf(path, mounts);
    // Sources are often the same over http and https, and on every port.
    const host = new URL(origin).hostname;
    return prepared
      .filter(({ rule, patterns }) => {
        if (!coversHost(rule.origin, host)) return false;
        // One page to sign in must not lead to another one, and back.
        if (rule.login !== undefined && logins.has(path)) return false;
        return (
          !isExcepted(rule, path) && patterns.some((one) => readings.some((r) => covers(one, r)))
        );
      })
      .map(({ rule }) => rule);
  };
  return ({ origin, path }) => {
    const key = `${origin}\n${path}`;
    let found = known.get(key);
    if (found === undefined) {
      found = find(origin, path);
      known.set(key, found);
    }
    return found;
  };
}

/** `/a/` covers all below it, as in mounts, proxies and keys: nobody means its index only. */
function patternOf(path: string): string {
  const text = looseText(path);
  return text.endsWith('/') ? `${text}*` : text;
}

/** `/a/*` also covers `/a`, and `/a` covers `/a/`: many applications make no difference. */
function covers(pattern: string, reading: string): boolean {
  const bare = withoutSlash(reading);
  return [reading, bare, `${bare}/`].some((one) => matchesPattern(pattern, one));
}

function isExcepted({ except }: RulePaths, path: string): boolean {
  if (/%[0-9a-f]{2}|;|\/\/|\\/i.test(path)) return false;
  return except.some((pattern) => matchesPattern(pattern, path));
}

/** All texts under which a source may look for a canonical path, in lower case. */
function readingsOf(path: string, mounts: readonly MountPaths[]): readonly string[] {
  const text = looseText(path);
  const readings = [text, withoutDots(text), ...originalsOf(withoutSlash(text))];
  if (linkPath.test(text)) {
    readings.push(...['.', '/'].map((mark) => text.replace(linkPath, `$1${mark}link.htm`)));
  }
  for (const mount of mounts) {
    const start = looseText(mount.path);
    if (!`${text}/`.startsWith(start)) continue;
    const below = withoutSlash(text.slice(start.length));
    const folder = below === '' ? start : `${start}${below}/`;
    readings.push(...mount.index.map((name) => folder + looseText(name)));
    if (below === '') continue;
    const files = mount.cleanUrls ? [below, `${below}.html`] : [below];
    readings.push(...files.slice(1).map((file) => start + file));
    for (const name of mount.index.map(looseText)) {
      const found = files.find((file) => `/${file}`.endsWith(`/${name}`));
      if (found !== undefined) readings.push(start + found.slice(0, -name.length));
    }
    for (const tried of mount.tryPaths) {
      // A file for every path protects itself only.
      if (tried.includes('{path}'))
        readings.push(start + looseText(tried).replace('{path}', below));
    }
  }
  return readings;
}

/** The end of the name of a file with the content of another: of a compressor, or an editor. */
const companion = /(?:\.(?:br|gz|zst|bak|old|orig|save|swp)|~|::\$data)$/;

/** How many such ends a name has: `report.html.bak.gz`. */
const companionEndsMax = 3;

/** The paths whose content may be in the file at a path, which a compressor or editor has made. */
function originalsOf(text: string): readonly string[] {
  const originals: string[] = [];
  let name = text;
  for (let count = 0; count < companionEndsMax; count += 1) {
    const original = withoutEnds(name).replace(companion, '');
    if (original === name) break;
    originals.push(original);
    name = original;
  }
  return originals;
}

/** A path whose segments have no dots and spaces at their ends, which Windows leaves out. */
function withoutEnds(path: string): string {
  if (!/[. ](?:\/|$)/.test(path)) return path;
  const bare = path.split('/').map((segment) => {
    let end = segment.length;
    while (end > 0 && '. '.includes(segment.charAt(end - 1))) end -= 1;
    return end === 0 ? segment : segment.slice(0, end);
  });
  return bare.join('/');
}

/** The address of breadcrumbs, which may be written in two ways. */
const linkPath = /(\/svc1\/userinterface)[./]link\.htm$/;

/** A path without its last slash; slashes are joined already. */
function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** A path as the least exact reader understands it. */
function looseText(path: string): string {
  return decoded(path)
    .normalize('NFKC')
    .replaceAll('\\', '/')
    .replaceAll(/;[^/]*/g, '')
    .replaceAll(/\/{2,}/g, '/')
    .toLowerCase();
}

/** A path without the dot segments that a second decoding has found (RFC 3986 §5.2.4). */
function withoutDots(path: string): string {
  if (!/\/\.\.?(?:\/|$)/.test(path)) return path;
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** Some sources decode once more than they should, and read bytes that are not UTF-8. */
function decoded(path: string): string {
  let text = path;
  for (let time = 0; time < 3 && text.includes('%'); time += 1) {
    text = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
      Buffer.from(escapes.replaceAll('%', ''), 'hex').toString(),
    );
  }
  return text;
}
