import { cgiName } from '../http/fields.ts';
import { asQueryValue, readPath, sentAfter, type RequestPath } from '../model/path.ts';
import { Failure } from '../model/failure.ts';
import { isJsonObject } from '../model/json.ts';
import type { Rule } from '../model/rule.ts';
import { outboundUrl } from '../outbound/url.ts';

/** The parsed enginedata of a content.fetch rule (docs/design/fetching.md#sources). */
export interface FetchPlan {
  readonly id: string;
  /** The rule's canonical path without its `*`. */
  readonly visiblePrefix: string;
  readonly visibleWildcard: boolean;
  /** Whether the rule covers all paths of the origin. */
  readonly isWholeOrigin: boolean;
  /** At least one; any of them can answer. */
  readonly sources: readonly FetchSource[];
  readonly methods: readonly string[];
  /** Whether websockets are forwarded. */
  readonly upgrades: boolean;
  /** Request fields that the rule sets, by lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** Their names as CGI variables. */
  readonly headerCgiNames: ReadonlySet<string>;
  /** Lower-case names of fields that are forwarded in both directions against the defaults. */
  readonly pass: ReadonlySet<string>;
  readonly httpresponse: number | undefined;
}

/** The parts of a source URL, percent-encoded. */
export interface FetchSource {
  readonly origin: string;
  /** The path up to the `*`, or all of it. */
  readonly path: string;
  /** The source's own query up to the `*`, without `?`; empty if it has none. */
  readonly query: string;
  /** Where the `*` stands, if there is one. */
  readonly wildcard: 'path' | 'query' | undefined;
  /** The rest of the path or query after the `*`. */
  readonly suffix: string;
}

/**
 * CONNECT would open a tunnel, TRACE would send the rule's own fields back to the client (RFC 9110
 * §9.3.6, §9.3.8). UPGRADE is not a method: a rule lists it to forward websockets.
 */
const neverSent = new Set(['CONNECT', 'TRACE', 'UPGRADE']);

/** The plan of each rule. An edit makes a new rule object. */
const plans = new WeakMap<FetchRule, FetchPlan>();

/**
 * Parses a rule's enginedata, once for each rule. Throws `bad_gateway` if it names no usable
 * source; the message keeps the source secret.
 */
export function fetchPlan(rule: FetchRule): FetchPlan {
  let plan = plans.get(rule);
  if (plan === undefined) {
    plan = parsePlan(rule);
    plans.set(rule, plan);
  }
  return plan;
}

function parsePlan({ id, path, httpresponse, enginedata }: FetchRule): FetchPlan {
  const sources = [enginedata?.source].flat().flatMap((item) => parseSource(item) ?? []);
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

/** A source of a rule, with the path and query of the request to it. */
export interface SourceTarget {
  readonly source: FetchSource;
  readonly target: string;
}

/** The fields of a rule that a fetch uses. */
export type FetchRule = Pick<Rule, 'id' | 'path' | 'httpresponse' | 'enginedata'>;

/** The parts of a request that its target at a source is made of. */
export type TargetRequest = RequestPath & { readonly query: string };

/**
 * The targets of a request, one for each source: the part of its sent path under the rule's `*`
 * replaces the source's `*` byte for byte, then its query is added. Leaves out a source whose path
 * the result would leave by a dot segment that the two parts form together. None if the rule's path
 * ends within an escape of the request's path.
 */
export function sourceTargets(plan: FetchPlan, request: TargetRequest): readonly SourceTarget[] {
  const { visiblePrefix, visibleWildcard } = plan;
  const capture = visibleWildcard ? sentAfter(request, visiblePrefix.length) : '';
  if (capture === undefined) return [];
  const targets: SourceTarget[] = [];
  for (const source of plan.sources) {
    const target = targetOf(source, capture, request.query);
    if (target !== undefined) targets.push({ source, target });
  }
  return targets;
}

function targetOf(source: FetchSource, capture: string, sentQuery: string): string | undefined {
  const { wildcard, suffix } = source;
  const path = wildcard === 'path' ? source.path + capture + suffix : source.path;
  const own = wildcard === 'query' ? source.query + asQueryValue(capture) + suffix : source.query;
  if (!isUnambiguousPath(path)) return undefined;
  const asked = encodeQuery(sentQuery);
  const query = own === '' || asked === '' ? own + asked : `${own}&${asked}`;
  return query === '' ? path : `${path}?${query}`;
}

/** Whether a path is valid as a whole, and no server can read a dot segment in it. */
function isUnambiguousPath(path: string): boolean {
  return plainPath.test(path) || typeof readPath(path) === 'string';
}

/** The common case: plain characters, and no segment begins with a dot. */
const plainPath = /^(?:\/[\w~-][\w.~-]*)+\/?$/;

/**
 * Parses a source (docs/design/fetching.md#sources): a URL that the dialler accepts, with at most
 * one `*`, in its path or query; undefined for anything else.
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
  // A `*` directly after the host would let a visitor choose the end of the host.
  if (!/^https?:\/\/[^/]+\//i.test(before)) return undefined;
  // The placeholder keeps a prefix that ends with a dot from being parsed as a dot segment.
  const path = outboundUrl(before + placeholder).pathname.slice(0, -placeholder.length);
  const { origin, pathname, search } = outboundUrl(before + placeholder + after);
  if (!pathname.startsWith(path + placeholder)) return undefined;
  const suffix = pathname.slice(path.length + placeholder.length);
  return { origin, path, query: search.slice(1), wildcard: 'path', suffix };
}

/** Replaces the `*` while a URL is parsed. */
const placeholder = 'x';

/** The methods of a rule for Allow, with OPTIONS, which this server answers itself. */
export function allowedMethods({ enginedata }: Pick<FetchRule, 'enginedata'>): readonly string[] {
  return [...new Set([...parseMethods(enginedata?.methods), 'OPTIONS'])];
}

/** A rule that allows GET allows HEAD (RFC 9110 §9.1). */
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
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** A query, with percent escapes for characters that a request line cannot contain. */
function encodeQuery(query: string): string {
  if (query === '') return query;
  return query.replace(/[^\x21\x22\x24-\x7e]/gu, (character) =>
    encodeURIComponent(character.toWellFormed()),
  );
}
