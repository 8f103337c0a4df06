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
 * its patterns match any reading of it: what is behind Waymark may ignore case, accents and
 * characters that nobody sees, join slashes, decode once more, drop path parameters or look for
 * the name in the file system of Windows, and a mount may show a file at another path, or have its
 * content in another file beside it. An exception counts only for a path without such a second
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
    const texts = textsOf(path);
    const readings = [...new Set(texts.flatMap((text) => readingsOf(text, mounts)))];
    const shortName = texts.flatMap((text) => shortNameOf(text) ?? []).at(0);
    // Sources are often the same over http and https, and on every port.
    const host = new URL(origin).hostname;
    return prepared
      .filter(({ rule, patterns }) => {
        if (!coversHost(rule.origin, host)) return false;
        // One page to sign in must not lead to another one, and back.
        if (rule.login !== undefined && logins.has(path)) return false;
        if (isExcepted(rule, path)) return false;
        return patterns.some(
          (one) =>
            readings.some((reading) => covers(one, reading)) ||
            (shortName !== undefined && mayHaveShortName(one, shortName)),
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

/** A pattern of a rule as the least exact reader understands it. */
interface LoosePattern {
  /** `/a/` covers all below it, as in mounts, proxies and keys: nobody means its index only. */
  readonly text: string;
  /**
   * What lies below a file: `/a.php/b` is the same program for PHP and CGI, with path info.
   * Undefined for other names.
   */
  readonly pathInfo: string | undefined;
}

/** A name of a file, whose kind is a word. */
const fileName = /[^/]\.[a-z][a-z0-9]{0,7}$/;

function patternOf(path: string): LoosePattern {
  const text = looseText(path);
  if (text.endsWith('/')) return { text: `${text}*`, pathInfo: undefined };
  return { text, pathInfo: fileName.test(text) ? `${text}/*` : undefined };
}

/** `/a/*` also covers `/a`, and `/a` covers `/a/`: many applications make no difference. */
function covers({ text, pathInfo }: LoosePattern, reading: string): boolean {
  const bare = withoutSlash(reading);
  return (
    [reading, bare, `${bare}/`].some((one) => matchesPattern(text, one)) ||
    (pathInfo !== undefined && matchesPattern(pathInfo, reading))
  );
}

/** What makes a path one that has a second reading, besides the forms of Unicode. */
const secondReading = /%[0-9a-f]{2}|[;\\?#\p{Cc}]|\/\/|[. ](?:\/|$)|[\p{Cf}\u2044\u2215\u2216]/iu;

/** Whether a segment names a stream of NTFS: it has a colon, and a dollar sign behind it. */
function namesStream(segment: string): boolean {
  const colon = segment.indexOf(':');
  return colon !== -1 && segment.includes('$', colon);
}

function isExcepted({ except }: RulePaths, path: string): boolean {
  if (except.length === 0 || secondReading.test(path)) return false;
  if (path.includes(':') && path.split('/').some(namesStream)) return false;
  if (path.normalize('NFKC') !== path || shortNameOf(path) !== undefined) return false;
  return except.some((pattern) => matchesPattern(pattern, path));
}

/** The texts that a source may read in a canonical path, in lower case. */
function textsOf(path: string): readonly string[] {
  const whole = decoded(path);
  // Some sources end a path at a NUL that they find, or take what was encoded for a query.
  const texts = [whole, whole.replace(/[\0?#].*$/su, '')];
  // The character set of Windows has a hyphen in place of the soft one, which others leave out.
  if (whole.includes(softHyphen)) texts.push(whole.replaceAll(softHyphen, '-'));
  return [...new Set(texts.map(folded))];
}

const softHyphen = '\u00ad';

/** All paths at which a source may look for a text of textsOf. */
function readingsOf(text: string, mounts: readonly MountPaths[]): readonly string[] {
  const bare = withoutEnds(text);
  const readings = [text, withoutDots(text), withoutDots(bare), ...originalsOf(withoutSlash(text))];
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
const companion = /(?:\.(?:br|gz|zst|bak|old|orig|save|swp)|(?:\.~\d{1,4})?~)$/;

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

/**
 * A path whose segments have no dots and spaces at their ends, which Windows leaves out, and no
 * stream of NTFS that is the file or the folder itself (`::$DATA`, `:$I30:$INDEX_ALLOCATION`).
 */
function withoutEnds(path: string): string {
  if (!/[. ](?:\/|$)|:/.test(path)) return path;
  const bare = path.split('/').map((segment) => {
    const colon = segment.indexOf(':');
    const isStream = colon > 0 && namesStream(segment);
    let end = isStream ? colon : segment.length;
    while (end > 0 && '. '.includes(segment.charAt(end - 1))) end -= 1;
    return end === 0 ? segment.trimEnd() : segment.slice(0, end);
  });
  return bare.join('/');
}

/**
 * The beginning of a path up to a name in the 8.3 form of Windows, which stands for a longer name
 * that begins alike: `/REPORT~1.HTM`, or `/RE3F2A~1.HTM` with a hash.
 */
interface ShortName {
  /** The paths begin like one of these. */
  readonly starts: readonly string[];
  /** What the kind of the file begins with; undefined if more of the path follows, or for none. */
  readonly extension: string | undefined;
}

const shortSegment = /^(?<start>[^/~]{1,6})~\d{1,6}(?:\.(?<extension>[^/.]{0,3}))?$/;

/** The first short name of a text of textsOf. */
function shortNameOf(text: string): ShortName | undefined {
  if (!/~\d/.test(text)) return undefined;
  const segments = withoutDots(withoutEnds(text)).split('/');
  const at = segments.findIndex((segment) => shortSegment.test(segment));
  const { start, extension } = shortSegment.exec(segments[at] ?? '')?.groups ?? {};
  if (start === undefined) return undefined;
  const folder = segments.slice(0, at).join('/');
  const isHashed = /^..[0-9a-f]{4}$/.test(start);
  const starts = isHashed ? [start, start.slice(0, 2)] : [start];
  const isLast = at === segments.length - 1;
  return {
    starts: starts.map((one) => asInShortName(`${folder}/${one}`)),
    extension: isLast ? extension : undefined,
  };
}

/** Whether a pattern covers a path that a short name may stand for. */
function mayHaveShortName(
  { text: pattern }: LoosePattern,
  { starts, extension }: ShortName,
): boolean {
  const star = pattern.indexOf('*');
  const literal = asInShortName(star === -1 ? pattern : pattern.slice(0, star));
  const kind = /\.([^./*]+)$/.exec(pattern)?.[1];
  if (kind !== undefined && extension !== undefined && kind.slice(0, 3) !== extension) return false;
  return starts.some(
    (start) => literal.startsWith(start) || (star !== -1 && start.startsWith(literal)),
  );
}

/** A path without what no short name has, and with what it has instead of other characters. */
function asInShortName(path: string): string {
  return path.replaceAll(/[ .]/g, '').replaceAll(/[+,;=[\]]/g, '_');
}

/** The address of breadcrumbs, which may be written in two ways. */
const linkPath = /(\/svc1\/userinterface)[./]link\.htm$/;

/** A path without its last slash; slashes are joined already. */
function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** A path as the least exact reader understands it. */
function looseText(path: string): string {
  return folded(decoded(path));
}

/** A decoded path as looseText. */
function folded(path: string): string {
  const text = /[^\x20-\x7e]/.test(path) ? inAscii(path) : path;
  return text
    .replaceAll('\\', '/')
    .replaceAll(/;[^/]*/g, '')
    .replaceAll(/\/{2,}/g, '/')
    .toLowerCase();
}

/**
 * A text as file systems, collations of databases and character sets understand it that ignore
 * accents and what nobody sees (soft hyphens, zero-width and control characters), or have one
 * character for all dashes, slashes or compatible forms (full width, ligatures, the long s).
 */
function inAscii(text: string): string {
  const bare = text
    .normalize('NFKD')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\u0300-\u036f]/gu, '')
    .replaceAll(/[\p{Pd}\u2212]/gu, '-')
    .replaceAll(/[\u2044\u2215\u29f8\u2216\u29f5\u29f9]/g, '/');
  // In upper case, `ı` is an i and `ß` is two letters, but `ẞ` stays. A sigma at
  // the end of a word has a form of its own in lower case.
  const cased = bare.toLowerCase().toUpperCase().toLowerCase();
  return cased.replaceAll('ς', 'σ').normalize('NFKC');
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
