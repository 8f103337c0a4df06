import { cgiName } from '../http/fields.ts';
import { encodePath } from '../model/path.ts';
import { Failure } from '../model/failure.ts';
import { isJsonObject } from '../model/json.ts';
import type { Rule } from '../model/rule.ts';
import { outboundUrl } from '../outbound/url.ts';

/** What a content.fetch rule says (docs/design/fetching.md#sources), ready for use. */
export interface FetchPlan {
  readonly id: string;
  /** The visible path that the rule covers, canonical, without its `*`. */
  readonly visiblePrefix: string;
  readonly visibleWildcard: boolean;
  /** Whether that is every path of the origin. */
  readonly isWholeOrigin: boolean;
  /** At least one; the rule can be answered by any of them. */
  readonly sources: readonly FetchSource[];
  readonly methods: readonly string[];
  /** Whether websockets are passed on. */
  readonly upgrades: boolean;
  /** Fields for the source, by lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** The names of those as CGI has them. */
  readonly headerCgiNames: ReadonlySet<string>;
  /** Names in lower case of fields that pass, either way, though they would not otherwise. */
  readonly pass: ReadonlySet<string>;
  readonly httpresponse: number | undefined;
}

/** A source URL in its parts, percent-encoded. */
export interface FetchSource {
  readonly origin: string;
  /** The path up to the `*`, or all of it. */
  readonly path: string;
  /** The source's own query up to the `*`, without its `?`; empty when it has none. */
  readonly query: string;
  /** Where the `*` stands, if there is one. */
  readonly wildcard: 'path' | 'query' | undefined;
  /** What follows the `*` in the path or the query that it stands in. */
  readonly suffix: string;
}

/**
 * They would switch protocols, or send the rule's own fields back to the client (RFC 9110 §9.3.6,
 * §9.3.8); UPGRADE is no method of a request, but lets websockets pass.
 */
const neverSent = new Set(['CONNECT', 'TRACE', 'UPGRADE']);

/** Some servers drop path parameters and see a dot segment then. */
const dotSegment = /\/\.\.?(?:[;/]|$)/;

/**
 * Reads a rule's enginedata. Throws `bad_gateway` when it names no usable source; the message does
 * not repeat it.
 */
export function fetchPlan({ id, path, httpresponse, enginedata }: FetchRule): FetchPlan {
  const sources = [enginedata?.source].flat().flatMap((one) => parseSource(one) ?? []);
  if (sources.length === 0) throw new Failure('bad_gateway', 'This page has no usable source.');
  const visibleWildcard = path.endsWith('*');
  const headers = parseHeaders(enginedata?.headers);
  return {
    id,
    visiblePrefix: visibleWildcard ? path.slice(0, -1) : path,
    visibleWildcard,
    isWholeOrigin: path === '/*',
    sources,
    methods: parseMethods(enginedata?.methods),
    upgrades: textsOf(enginedata?.methods).includes('UPGRADE'),
    headers,
    headerCgiNames: new Set([...headers.keys()].map(cgiName)),
    pass: new Set(textsOf(enginedata?.pass).map((name) => name.toLowerCase())),
    httpresponse,
  };
}

/** One of a rule's sources, with the path and query to ask it for. */
export interface SourceTarget {
  readonly source: FetchSource;
  readonly target: string;
}

/** What is needed of a rule to fetch. */
export type FetchRule = Pick<Rule, 'id' | 'path' | 'httpresponse' | 'enginedata'>;

/**
 * The ways to an answer, one for each source: the path and query to ask it for are the part of the
 * visible path under the rule's `*` in place of the source's, then the request's query. A source
 * that would be left so, by a dot segment that the two parts form together, is none.
 */
export function sourceTargets(
  plan: FetchPlan,
  request: { readonly path: string; readonly query: string },
): readonly SourceTarget[] {
  const ways: SourceTarget[] = [];
  for (const source of plan.sources) {
    const target = targetOf(plan, source, request);
    if (target !== undefined) ways.push({ source, target });
  }
  return ways;
}

function targetOf(
  { visiblePrefix, visibleWildcard }: FetchPlan,
  source: FetchSource,
  request: { readonly path: string; readonly query: string },
): string | undefined {
  const capture = visibleWildcard ? request.path.slice(visiblePrefix.length) : '';
  const { wildcard, suffix } = source;
  const path = wildcard === 'path' ? source.path + encodePath(capture) + suffix : source.path;
  const own =
    wildcard === 'query' ? source.query + encodeURIComponent(capture) + suffix : source.query;
  if (!isUnambiguousPath(path, source.origin)) return undefined;
  const asked = encodeQuery(request.query);
  const query = own === '' || asked === '' ? own + asked : `${own}&${asked}`;
  return query === '' ? path : `${path}?${query}`;
}

/** Whether a URL parser leaves a path alone, and no server behind it sees a dot segment in it. */
function isUnambiguousPath(path: string, ofOrigin: string): boolean {
  if (plainPath.test(path)) return true;
  const { origin, pathname } = new URL(ofOrigin + path);
  return origin === ofOrigin && pathname === path && !dotSegment.test(path);
}

/** Nothing in it means anything to a URL parser, and no segment begins with a dot. */
const plainPath = /^(?=\/)(?:\/[\w~-][\w.~-]*)*\/?$/;

/**
 * Reads a source (docs/design/fetching.md#sources): a URL that the dialler takes, with at most one
 * `*`, which stands behind the host; undefined for anything else.
 */
export function parseSource(value: unknown): FetchSource | undefined {
  if (typeof value !== 'string' || value.includes('#')) return undefined;
  const [before = '', after, ...others] = value.split('*');
  if (others.length > 0) return undefined;
  try {
    if (after === undefined) {
      const { origin, pathname, search } = outboundUrl(value);
      return { origin, path: pathname, query: search.slice(1), wildcard: undefined, suffix: '' };
    }
    return before.includes('?') ? queryWildcard(before, after) : pathWildcard(before, after);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function queryWildcard(before: string, after: string): FetchSource {
  const { origin, pathname, search } = outboundUrl(before);
  const whole = outboundUrl(before + placeholder + after).search;
  const suffix = whole.slice(search.length + placeholder.length);
  return { origin, path: pathname, query: search.slice(1), wildcard: 'query', suffix };
}

function pathWildcard(before: string, after: string): FetchSource | undefined {
  // A star right behind the host would let a visitor choose the host's end.
  if (!/^https?:\/\/[^/]+\//i.test(before)) return undefined;
  // With a letter behind it, a prefix that ends in a dot is no dot segment yet.
  const path = outboundUrl(before + placeholder).pathname.slice(0, -placeholder.length);
  const { origin, pathname, search } = outboundUrl(before + placeholder + after);
  if (!pathname.startsWith(path + placeholder)) return undefined;
  const suffix = pathname.slice(path.length + placeholder.length);
  return { origin, path, query: search.slice(1), wildcard: 'path', suffix };
}

/** Stands for what a `*` stands for, where a URL is parsed without it. */
const placeholder = 'x';

/** The methods that a rule takes, OPTIONS among them, which is answered for it if need be. */
export function allowedMethods({ enginedata }: Pick<FetchRule, 'enginedata'>): readonly string[] {
  return [...new Set([...parseMethods(enginedata?.methods), 'OPTIONS'])];
}

/** GET brings HEAD along (RFC 9110 §9.1). */
function parseMethods(value: unknown): readonly string[] {
  const listed = Array.isArray(value) ? textsOf(value) : ['GET'];
  const methods = listed.includes('GET') ? ['GET', 'HEAD', ...listed] : listed;
  return [...new Set(methods)].filter((method) => !neverSent.has(method));
}

function parseHeaders(value: unknown): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  if (!isJsonObject(value)) return headers;
  for (const [name, text] of Object.entries(value)) {
    if (typeof text === 'string') headers.set(name.toLowerCase(), text);
  }
  return headers;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** A query as it came, but for what cannot stand in a request line. */
function encodeQuery(query: string): string {
  if (query === '') return query;
  return query.replace(/[^\x21\x22\x24-\x7e]/gu, (character) =>
    encodeURIComponent(character.toWellFormed()),
  );
}
