import {
  isWildcardOrigin,
  patternsOver,
  sampleOrigin,
} from '../../core/values/network/origin-pattern.ts';
import {
  asQueryValue,
  canonicalPath,
  escapedPath,
  requestPathOf,
  sentAfter,
  sentUrlOf,
} from '../../core/values/path.ts';
import { asPathValue, queryPairs } from '../../core/http/query.ts';
import { isPlaceholder, placeholderPattern, type RedirectLine } from './redirect-lines.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import { eventLoop } from '../../core/fair/turns.ts';

/** A line that applies to a request, besides its countries and languages. */
interface RedirectMatch {
  readonly line: RedirectLine;
  /** The target with the values of the request: a path with its query, or a URL. */
  readonly location: string;
}

/** The lines of a file of redirects, found in a time that does not depend on their number. */
interface RedirectTable {
  /** The lines that apply to a request, in their order. */
  matches(target: RequestTarget): Generator<RedirectMatch, void, undefined>;
}

/** The lines of patterns, by the segments of their paths. */
interface Node {
  readonly literals: Map<string, Node>;
  placeholder: Node | undefined;
  /** The lines whose path ends here. */
  readonly ends: PathLines;
  /** Those whose `*` is the next segment. */
  readonly splats: PathLines;
}

/** The positions of the lines of one path, in their order. */
interface PathLines {
  readonly plain: number[];
  /** Those with parameters, by the first one: `name=value`, or the name for any value. */
  readonly byParameter: Map<string, number[]>;
}

/** Indexes the lines of a file of redirects. */
export function createRedirectTable(lines: readonly RedirectLine[]): RedirectTable {
  const exact = new Map<string, PathLines>();
  const roots = new Map<string, Node>();
  for (const [at, line] of lines.entries()) {
    const { origin, path } = line;
    const segments = segmentsOf(path);
    const isExact = !segments.some((one) => one === '*' || isPlaceholder(one));
    const place = isExact
      ? exactLines(exact, exactKey(origin, path))
      : patternLines(rootOf(roots, origin), segments);
    append(place, line, at);
  }
  const hasWildcards = lines.some(({ origin }) => isWildcardOrigin(origin));
  const find = ({ origin, path, query }: RequestTarget): Iterable<number> => {
    const segments = segmentsOf(path);
    const whole = `/${segments.join('/')}`;
    const places: PathLines[] = [];
    for (const place of hasWildcards ? patternsOver(origin) : ['*', origin]) {
      const ofPath = exact.get(exactKey(place, whole));
      if (ofPath !== undefined) places.push(ofPath);
      const root = roots.get(place);
      if (root !== undefined) collect(root, segments, 0, places);
    }
    return places.length === 0 ? [] : inOrder(candidates(places, query));
  };
  return {
    *matches(target) {
      if (!target.path.startsWith('/')) return;
      for (const at of find(target)) {
        const line = lines[at];
        const location = line && locationOf(line, target);
        if (line !== undefined && location !== undefined) yield { line, location };
      }
    },
  };
}

/** The segments of a path; a slash at its end counts as none. */
function segmentsOf(path: string): readonly string[] {
  const segments = path.slice(1).split('/');
  return segments.at(-1) === '' ? segments.slice(0, -1) : segments;
}

function exactKey(origin: string, path: string): string {
  return `${origin}\n${path}`;
}

function noLines(): PathLines {
  return { plain: [], byParameter: new Map() };
}

function exactLines(exact: Map<string, PathLines>, key: string): PathLines {
  const place = exact.get(key) ?? noLines();
  exact.set(key, place);
  return place;
}

function append({ plain, byParameter }: PathLines, { parameters }: RedirectLine, at: number): void {
  const [first] = parameters;
  if (first === undefined) {
    plain.push(at);
    return;
  }
  const key = parameterKey(first.name, first.value);
  const list = byParameter.get(key);
  if (list === undefined) byParameter.set(key, [at]);
  else list.push(at);
}

function parameterKey(name: string, value: string | undefined): string {
  return JSON.stringify(value === undefined ? [name] : [name, value]);
}

/** The lists with the lines of some paths that may apply to a query. */
function candidates(places: readonly PathLines[], query: string): readonly (readonly number[])[] {
  const lists = new Set<readonly number[]>();
  const pairs = places.some(({ byParameter }) => byParameter.size > 0) ? queryPairs(query) : [];
  for (const { plain, byParameter } of places) {
    if (plain.length > 0) lists.add(plain);
    for (const { name, value } of pairs) {
      for (const key of [parameterKey(name, undefined), parameterKey(name, value)]) {
        const list = byParameter.get(key);
        if (list !== undefined) lists.add(list);
      }
    }
  }
  return [...lists];
}

/** The positions in sorted lists, in their order; it looks at no more than the caller takes. */
export function* inOrder(
  lists: readonly (readonly number[])[],
): Generator<number, void, undefined> {
  const heads = lists.map((list) => ({ list, at: 0, next: list[0] ?? Infinity }));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) if (head.next < (first?.next ?? Infinity)) first = head;
    if (first === undefined) return;
    yield first.next;
    first.at += 1;
    first.next = first.list[first.at] ?? Infinity;
  }
}

function newNode(): Node {
  return { literals: new Map(), placeholder: undefined, ends: noLines(), splats: noLines() };
}

function rootOf(roots: Map<string, Node>, origin: string): Node {
  const root = roots.get(origin) ?? newNode();
  roots.set(origin, root);
  return root;
}

function patternLines(root: Node, segments: readonly string[]): PathLines {
  let node = root;
  for (const segment of segments) {
    if (segment === '*') return node.splats;
    if (isPlaceholder(segment)) node = node.placeholder ??= newNode();
    else {
      const next: Node = node.literals.get(segment) ?? newNode();
      node.literals.set(segment, next);
      node = next;
    }
  }
  return node.ends;
}

/** Collects the lines below a node that a path matches; it visits no node twice. */
function collect(node: Node, segments: readonly string[], depth: number, found: PathLines[]): void {
  found.push(node.splats);
  const segment = segments[depth];
  if (segment === undefined) {
    found.push(node.ends);
    return;
  }
  const literal = node.literals.get(segment);
  if (literal !== undefined) collect(literal, segments, depth + 1, found);
  if (node.placeholder !== undefined && segment !== '') {
    collect(node.placeholder, segments, depth + 1, found);
  }
}

/**
 * Where a line leads whose path matches; undefined if the request lacks a parameter, or if the line
 * leads to the URL of the request itself. No value of the request changes the origin of the target:
 * a path never begins with two slashes (RFC 3986 §4.2).
 */
function locationOf(line: RedirectLine, target: RequestTarget): string | undefined {
  if (target.query === '' && plainPath.test(line.to)) {
    return line.to === target.sentPath ? undefined : line.to;
  }
  const values = valuesOf(line, target);
  if (values === undefined) return undefined;
  const { to, parameters } = line;
  const [beforeQuery = ''] = to.split(/[?#]/, 1);
  const filled = to.replace(placeholderPattern, (whole, name: string, at: number) => {
    const value = values.get(name);
    if (value === undefined) return whole;
    return at < beforeQuery.length ? value : asQueryValue(value);
  });
  const [withoutFragment = '', ...fragment] = filled.split('#');
  const taken = new Set(parameters.map(({ name }) => name));
  const rest = queryPairs(target.query).filter(({ name }) => !taken.has(name));
  const query = rest.map(({ pair }) => pair).join('&');
  const joined =
    query === '' ? withoutFragment : `${withoutFragment}${to.includes('?') ? '&' : '?'}${query}`;
  const location = [joined.replace(/^\/[/\\]+/, '/'), ...fragment].join('#');
  const isSame = URL.parse(location, target.origin)?.href === URL.parse(sentUrlOf(target))?.href;
  return isSame ? undefined : location;
}

/** A path without a placeholder, an escape or a dot segment, which most lines have. */
const plainPath = /^(?:\/[\w~-][\w.~-]*)+\/?$/;

/** The values of the placeholders, each as the client has sent it. */
function valuesOf(
  { path, parameters }: RedirectLine,
  target: RequestTarget,
): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>();
  const sent = target.sentPath.slice(1).split('/');
  let length = 0;
  const canonical = target.path.slice(1).split('/');
  for (const [at, segment] of segmentsOf(path).entries()) {
    if (segment === '*')
      values.set('splat', sentAfter(target, Math.min(length + 1, target.path.length)) ?? '');
    else if (isPlaceholder(segment)) values.set(segment.slice(1), sent[at] ?? '');
    length += 1 + (canonical[at]?.length ?? 0);
  }
  if (parameters.length === 0) return values;
  const pairs = queryPairs(target.query);
  for (const { name, value, placeholder } of parameters) {
    const found = pairs.find((one) => one.name === name && (value ?? one.value) === one.value);
    if (found === undefined) return undefined;
    if (placeholder !== undefined) values.set(placeholder, asPathValue(found.value));
  }
  return values;
}

/**
 * The circles of redirects, each as the lines that lead to one another. Lines with countries or
 * languages are left out: two visitors go different ways. It lets other work run in between, since
 * a long file takes half a second.
 */
export async function redirectCircles(
  lines: readonly RedirectLine[],
): Promise<readonly (readonly RedirectLine[])[]> {
  const always = lines.filter((one) => one.countries.length === 0 && one.languages.length === 0);
  const table = createRedirectTable(always);
  const origins = new Set(always.map(({ origin }) => origin));
  const isNamed = (origin: string): boolean =>
    patternsOver(origin).some((one) => one !== '*' && origins.has(one));
  const first = (target: RequestTarget) => table.matches(target).next().value ?? undefined;
  /** The line that answers for the target of another, and the request for it. */
  const next = ({ line, location }: RedirectMatch, { origin }: RequestTarget) => {
    if (line.status < 300 || line.status > 399) return undefined;
    if (plainPath.test(location)) return targetAt(origin, location);
    const url = URL.parse(location, origin);
    if (url === null || (url.origin !== origin && !isNamed(url.origin))) return undefined;
    return targetAt(url.origin, url.pathname, url.search.slice(1));
  };
  const done = new Set<RedirectLine>();
  const circles: (readonly RedirectLine[])[] = [];
  const turns = eventLoop.turns('redirects');
  for (const line of always) {
    if (turns.isOver()) await turns.next();
    const way: RedirectLine[] = [];
    let target = sampleOf(line);
    let match = target && first(target);
    while (target !== undefined && match !== undefined && !done.has(match.line)) {
      const before = way.indexOf(match.line);
      if (before !== -1) {
        circles.push(way.slice(before));
        break;
      }
      way.push(match.line);
      target = next(match, target);
      match = target && first(target);
    }
    for (const passed of way) done.add(passed);
  }
  return circles;
}

function targetAt(origin: string, encoded: string, query = ''): RequestTarget | undefined {
  const path = canonicalPath(encoded);
  return path && { origin, ...requestPathOf(path), query };
}

/** A request to which a line applies. */
function sampleOf({ origin, path, parameters }: RedirectLine): RequestTarget | undefined {
  const segments = segmentsOf(path).map((one) => (one === '*' || isPlaceholder(one) ? 'x' : one));
  const query = parameters.map(({ name, value = 'x' }) => `${name}=${value}`).join('&');
  return targetAt(sampleOrigin(origin), escapedPath(`/${segments.join('/')}`), query);
}
