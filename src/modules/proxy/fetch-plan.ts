import { hash } from 'node:crypto';
import { type FieldTemplate, parseTemplate } from '../../core/http/field-template.ts';
import { cgiName } from '../../core/http/reading/fields.ts';
import type { ProxyVersion } from '../../core/http/reading/proxy-protocol.ts';
import type { ContentRequest, RequestTarget } from '../../core/http/request.ts';
import { outboundUrl } from '../../core/outbound/address.ts';
import { socketOrigin } from '../../core/outbound/place.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { parseUnixUrl, unixScheme } from '../../core/values/network/unix-socket.ts';
import {
  type RequestPath,
  asQueryValue,
  encodePath,
  hasWildcard,
  isSegmentWildcard,
  readPath,
  sentAfter,
} from '../../core/values/path.ts';
import { durationMs } from '../../core/values/units.ts';
import { type Rule, ruleName } from '../rules/rule.ts';
import { type Balance, balances } from './balance.ts';

/** How many other sources get a request, by default, if one after the other fails. */
const sourceRetries = 2;

/** The default interval of checks. */
const checkIntervalMs = 10_000;

/** The parsed enginedata of a content.fetch rule (docs/design/fetching.md#sources). */
export interface FetchPlan {
  readonly id: string;
  /** `rule:<id>` or `proxy:<name>`. */
  readonly name: string;
  /** The rule's canonical path without its `*`. */
  readonly visiblePrefix: string;
  readonly visibleWildcard: boolean;
  /** What follows the `*` of a rule's path that stands for a segment; undefined without one. */
  readonly visibleSuffix?: string | undefined;
  /**
   * Whether the rule is responsible for all paths of the origin: it covers them, or the ini file
   * has it.
   */
  readonly isWholeOrigin: boolean;
  /** At least one; any of them can answer. */
  readonly sources: readonly PlannedSource[];
  readonly balance: Balance;
  /** Gets a copy of each request. */
  readonly mirror: PlannedSource | undefined;
  /** How many other sources get the request if one after the other fails. */
  readonly retries: number;
  /** Whether the sources speak HTTP/2: over TLS, or in the clear with prior knowledge (h2c). */
  readonly isHttp2: boolean;
  /** Whether each address of a name is a server of its own, see source-names.ts. */
  readonly isResolved: boolean;
  /** How the sources are checked; undefined if they are not. */
  readonly health: HealthCheck | undefined;
  readonly methods: FetchMethods;
  /** Whether requests for another protocol are forwarded, such as websockets. */
  readonly upgrades: boolean;
  /** The Host that the source gets: that of the client, that of the source, or a name. */
  readonly host: string;
  /** Request fields that the rule sets, by lower-case name; one with an empty value is removed. */
  readonly headers: ReadonlyMap<string, FieldTemplate>;
  /** Their names as CGI variables. */
  readonly headerCgiNames: ReadonlySet<string>;
  /** Lower-case names of fields that are forwarded in both directions against the defaults. */
  readonly pass: ReadonlySet<string>;
  readonly httpresponse: number | undefined;
  /** Whether the cache stores answers that set cookies, without their cookies. */
  readonly storesWithoutCookies: boolean;
  /** Replaces `[fetch] timeout`. */
  readonly timeoutMs: number | undefined;
  /** Whether its fields name the user, whom the visitor has to be prepared for. */
  readonly needsUser: boolean;
  /** The settings that only the ini file can make; undefined for a page rule. */
  readonly ini: IniSettings | undefined;
}

/** A source of a plan, and its share of the requests. */
export interface PlannedSource extends FetchSource {
  /** Whether the name is that of a service, whose servers are in its SRV records (RFC 2782). */
  readonly isService: boolean;
  /** Relative to the others; a source of 0 gets requests only if all others have failed. */
  readonly weight: number;
  /**
   * Eight hex digits of a hash: enough to tell the sources of a rule apart. Somebody who tries all
   * private addresses can find the one that they stand for, as with the sticky cookie of nginx.
   */
  readonly mark: string;
}

/** An active health check. */
interface HealthCheck {
  /** Path and query at each source, percent-encoded. */
  readonly path: string;
  readonly intervalMs: number;
}

/** Some methods, or all that can be forwarded. */
type FetchMethods = 'all' | readonly string[];

/** The settings of a `[proxy.<name>]` that no page rule can have. */
export interface IniSettings {
  /** Replaces `[fetch] connect_timeout`. */
  readonly connectTimeoutMs: number | undefined;
  /** Replaces `[fetch] max_body`. */
  readonly bodyBytesMax: number | undefined;
  readonly isCached: boolean;
  /** How each connection names its client. */
  readonly proxyProtocol: ProxyVersion | undefined;
  /** The URL of a server that gets a copy of each request. */
  readonly mirror: string | undefined;
}

/**
 * The property of a rule with its settings of the ini file. As a symbol, it cannot come from a
 * stored rule; sources of a rule with it may be in private networks.
 */
export const iniSettings = Symbol('settings of the ini file');

/** The parts of a source URL, percent-encoded. */
export interface FetchSource {
  /** That of a unix socket has the host localhost. */
  readonly origin: string;
  /** Where to connect to: `origin`, or `unix:/path`. */
  readonly server: string;
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
 * §9.3.6, §9.3.8). UPGRADE is not a method: a rule lists it to forward Upgrade.
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

function parsePlan(rule: FetchRule): FetchPlan {
  const { id, path, httpresponse, enginedata = {}, [iniSettings]: ini } = rule;
  const { timeout, host, balance, retries } = enginedata;
  const sources = plannedSources(rule);
  if (sources.length === 0) throw new Failure('bad_gateway', 'This page has no usable source.');
  const visibleWildcard = path.endsWith('*');
  const star = hasWildcard(path) ? path.indexOf('*') : path.length;
  const headers = requestTemplates(enginedata);
  const methods = methodsOf(enginedata);
  const usual = isApplication(enginedata) ? applicationHost : 'source';
  return {
    id,
    name: ruleName(id),
    visiblePrefix: path.slice(0, star),
    visibleWildcard,
    visibleSuffix: isSegmentWildcard(path) ? path.slice(star + 1) : undefined,
    isWholeOrigin: path === '/*' || ini !== undefined,
    sources,
    mirror: mirrorOf(rule),
    balance: balances.find((one) => one === balance) ?? 'least',
    retries: typeof retries === 'number' ? retries : sourceRetries,
    isHttp2: enginedata.http_version === '2',
    isResolved: enginedata.resolve === true || sources.some(({ isService }) => isService),
    health: healthCheckOf(enginedata),
    methods,
    upgrades: methods === 'all' || textsOf(enginedata.methods).includes('UPGRADE'),
    host: typeof host === 'string' ? host : usual,
    headers,
    headerCgiNames: new Set([...headers.keys()].map(cgiName)),
    pass: new Set([
      ...textsOf(enginedata.pass).map((name) => name.toLowerCase()),
      ...(isApplication(enginedata) ? applicationPass : []),
      ...(methods === 'all' ? methodOverrides : []),
    ]),
    httpresponse,
    storesWithoutCookies: enginedata.cache_cookies === true,
    timeoutMs: typeof timeout === 'string' ? durationMs(timeout) : undefined,
    needsUser: [...headers.values()].some(({ variables }) => variables.includes('user')),
    ini,
  };
}

/** Whether enginedata has the defaults that an application expects. */
function isApplication({ as }: JsonObject): boolean {
  return as === 'application';
}

/** The Host of an application: it makes links to itself of it. */
const applicationHost = 'client';
/** The fields that an application gets and sends, besides those of every source. */
const applicationPass = ['apikey', 'authorization', 'cookie', 'set-cookie'] as const;
/** Fields in place of a method, which are harmless if every method is allowed. */
const methodOverrides = ['x-http-method', 'x-http-method-override', 'x-method-override'] as const;

/** The mirror of a proxy, whose path is made like that of a source. */
function mirrorOf({ id, path, [iniSettings]: ini }: FetchRule): PlannedSource | undefined {
  if (ini?.mirror === undefined) return undefined;
  const enginedata = { as: 'application', source: ini.mirror };
  return plannedSources({ id, path, enginedata })[0];
}

/** The usable sources of a rule, with their weights. */
function plannedSources(rule: FetchRule): readonly PlannedSource[] {
  const { weights } = rule.enginedata ?? {};
  return sourceTexts(rule).flatMap((text, at) => {
    const source = parseSource(text);
    if (source === undefined) return [];
    const { server, path } = source;
    const isService = typeof text === 'string' && servicePrefix.test(text);
    const given: unknown = Array.isArray(weights) ? weights[at] : undefined;
    const weight = typeof given === 'number' ? given : 1;
    const mark = markOf(rule.id, server + path);
    return [{ ...source, isService, weight, mark }];
  });
}

/** The beginning of the URL of a service, as in `srv+http://_app._tcp.example.com`. */
const servicePrefix = /^srv\+/i;

function healthCheckOf({ health, health_interval: interval }: JsonObject): HealthCheck | undefined {
  if (typeof health !== 'string') return undefined;
  const intervalMs = typeof interval === 'string' ? durationMs(interval) : undefined;
  return { path: health, intervalMs: intervalMs ?? checkIntervalMs };
}

/** The mark of a source, see PlannedSource. */
export function markOf(ruleId: string, source: string): string {
  return hash('sha256', `${ruleId} ${source}`).slice(0, 8);
}

/** The sources of a rule, as parseSource reads them. */
function sourceTexts({ path, enginedata = {} }: FetchRule): readonly unknown[] {
  const texts = [enginedata.source].flat();
  return isApplication(enginedata) ? texts.map((text) => applicationSource(text, path)) : texts;
}

/**
 * A source of an application: without a path of its own, it gets the visible path; otherwise its
 * path replaces that of the rule.
 */
function applicationSource(text: unknown, path: string): unknown {
  if (typeof text !== 'string' || /[*?#]/.test(text)) return text;
  const isWildcard = path.endsWith('*');
  const prefix = encodePath(isWildcard ? path.slice(0, -1) : path);
  const isSocket = parseUnixUrl(text)?.target === '';
  const isBare = isSocket || /^(?:srv\+)?https?:\/\/[^/]+$/i.test(text);
  const whole = isSocket ? `${text}:` : text;
  if (isSegmentWildcard(path)) return isBare ? whole + encodePath(path) : text;
  if (!isWildcard) return isBare ? whole + prefix : text;
  if (isBare) return `${whole}${prefix}*`;
  return prefix.endsWith('/') ? `${text.replace(/\/?$/, '/')}*` : `${text}*`;
}

/** A source of a rule, with the path and query of the request to it. */
export interface SourceTarget {
  readonly source: PlannedSource;
  readonly target: string;
}

/** The fields of a rule that a fetch uses. */
export interface FetchRule extends Pick<Rule, 'id' | 'path' | 'httpresponse' | 'enginedata'> {
  readonly [iniSettings]?: IniSettings;
}

/** The parts of a request that its target at a source is made of. */
export type TargetRequest = RequestPath & Pick<RequestTarget, 'query' | 'hasEmptyQuery'>;

/**
 * The targets of a request, one for each source: the part of its sent path under the rule's `*`
 * replaces the source's `*` byte for byte, then its query is added. Leaves out a source whose path
 * the result would leave by a dot segment that the two parts form together. None if the rule's path
 * ends within an escape of the request's path.
 */
export function sourceTargets(
  plan: Pick<FetchPlan, 'visiblePrefix' | 'visibleWildcard' | 'visibleSuffix' | 'sources'>,
  request: TargetRequest,
): readonly SourceTarget[] {
  const { visiblePrefix, visibleWildcard, visibleSuffix } = plan;
  // A proxy answers its own path without the last slash, too.
  const isBare = visibleWildcard && request.path.length < visiblePrefix.length;
  const hasCapture = (visibleWildcard && !isBare) || visibleSuffix !== undefined;
  const rest = hasCapture ? sentAfter(request, visiblePrefix.length) : '';
  if (rest === undefined) return [];
  const [segment = ''] = rest.split('/', 1);
  const capture = visibleSuffix === undefined ? rest : segment;
  const targets: SourceTarget[] = [];
  for (const source of plan.sources) {
    const asked = isBare ? { ...source, path: source.path.replace(/(?<=.)\/$/, '') } : source;
    const target = targetOf(asked, capture, request);
    if (target !== undefined) targets.push({ source, target });
  }
  return targets;
}

function targetOf(
  source: FetchSource,
  capture: string,
  sent: Pick<TargetRequest, 'query' | 'hasEmptyQuery'>,
): string | undefined {
  const { wildcard, suffix } = source;
  const path = wildcard === 'path' ? source.path + capture + suffix : source.path;
  const own = wildcard === 'query' ? source.query + asQueryValue(capture) + suffix : source.query;
  if (!isUnambiguousPath(path)) return undefined;
  const asked = encodeQuery(sent.query);
  const query = own === '' || asked === '' ? own + asked : `${own}&${asked}`;
  return query === '' && sent.hasEmptyQuery !== true ? path : `${path}?${query}`;
}

/** Whether a path is valid as a whole, and no server can read a dot segment in it. */
function isUnambiguousPath(path: string): boolean {
  return plainPath.test(path) || typeof readPath(path) === 'string';
}

/** The common case: plain characters, and no segment begins with a dot. */
const plainPath = /^(?:\/[\w~-][\w.~-]*)+\/?$/;

/**
 * Parses a source (docs/design/fetching.md#sources): a URL that the dialler accepts, with at most
 * one `*`, in its path or query; undefined for anything else. `srv+` in front of it names a
 * service, whose records have the port; `unix:/run/app.sock:/path` is a server on a unix socket.
 */
export function parseSource(value: unknown): FetchSource | undefined {
  if (typeof value !== 'string' || value.includes('#')) return undefined;
  if (value.startsWith(unixScheme)) return socketSource(value);
  const url = value.replace(servicePrefix, '');
  if (url !== value && /^[^/]*\/\/[^/]*:/.test(url)) return undefined;
  const [before = '', after, ...others] = url.split('*');
  if (others.length > 0) return undefined;
  try {
    if (after === undefined) {
      const { origin, pathname, search } = outboundUrl(url);
      const query = search.slice(1);
      return { origin, server: origin, path: pathname, query, wildcard: undefined, suffix: '' };
    }
    return before.includes('?') ? queryWildcard(before, after) : pathWildcard(before, after);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** Parses the source of a server on a unix socket; the path behind it is that of a URL. */
function socketSource(text: string): FetchSource | undefined {
  const socket = parseUnixUrl(text);
  if (socket === undefined) return undefined;
  const source = parseSource(socketOrigin + socket.target);
  return source && { ...source, server: unixScheme + socket.socketPath };
}

function queryWildcard(before: string, after: string): FetchSource {
  const { origin, pathname, search } = outboundUrl(before);
  const whole = outboundUrl(before + placeholder + after).search;
  const suffix = whole.slice(search.length + placeholder.length);
  const query = search.slice(1);
  return { origin, server: origin, path: pathname, query, wildcard: 'query', suffix };
}

function pathWildcard(before: string, after: string): FetchSource | undefined {
  // A `*` directly after the host would let a visitor choose the end of the host.
  if (!/^https?:\/\/[^/]+\//i.test(before)) return undefined;
  // The placeholder keeps a prefix that ends with a dot from being parsed as a dot segment.
  const path = outboundUrl(before + placeholder).pathname.slice(0, -placeholder.length);
  const { origin, pathname, search } = outboundUrl(before + placeholder + after);
  if (!pathname.startsWith(path + placeholder)) return undefined;
  const suffix = pathname.slice(path.length + placeholder.length);
  return { origin, server: origin, path, query: search.slice(1), wildcard: 'path', suffix };
}

/** Replaces the `*` while a URL is parsed. */
const placeholder = 'x';

/** The methods of a rule for Allow, with OPTIONS, which this server answers itself. */
export function allowedMethods({
  enginedata = {},
}: Pick<FetchRule, 'enginedata'>): readonly string[] {
  const methods = methodsOf(enginedata);
  return methods === 'all' ? usualMethods : [...new Set([...methods, 'OPTIONS'])];
}

/** The methods for Allow if every method is allowed. */
const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Whether a rule forwards a method. */
export function forwardsMethod(
  { enginedata = {} }: Pick<FetchRule, 'enginedata'>,
  method: string,
): boolean {
  const methods = methodsOf(enginedata);
  return methods === 'all' ? !neverSent.has(method) : methods.includes(method);
}

/**
 * The protocols for the source, as in Upgrade, of a request for another protocol; undefined if the
 * rule does not forward it. A GET needs UPGRADE alone, any other method its own name, too: the
 * source may ignore the Upgrade and carry the method out.
 */
export function upgradeOf(
  rule: FetchRule,
  { method, fields }: Pick<ContentRequest, 'method' | 'fields'>,
): string | undefined {
  if (!fetchPlan(rule).upgrades) return undefined;
  if (method !== 'GET' && !forwardsMethod(rule, method)) return undefined;
  const protocols = (fields.upgrade ?? '').split(',').map((one) => one.trim());
  const passed = protocols.filter((one) => one !== '' && !ofHttp.test(one)).join(', ');
  return passed === '' ? undefined : passed;
}

/**
 * HTTP itself and TLS are no protocols to switch to: behind h2c, a client would send requests past
 * all rules of this server. A server may ignore an Upgrade (RFC 9110 §7.8).
 */
const ofHttp = /^(?:h2c?|h3|https?|tls)(?:\/|$)/i;

/** A rule that allows GET allows HEAD (RFC 9110 §9.1). */
function methodsOf(enginedata: JsonObject): FetchMethods {
  const { methods: value } = enginedata;
  if (value === undefined && isApplication(enginedata)) return 'all';
  const listed = Array.isArray(value) ? textsOf(value) : ['GET'];
  const methods = listed.includes('GET') ? ['GET', 'HEAD', ...listed] : listed;
  return [...new Set(methods)].filter((method) => !neverSent.has(method));
}

/** The fields of `headers`, which are plain texts, and of `request_headers`, with variables. */
function requestTemplates({
  headers,
  request_headers: templates,
}: JsonObject): ReadonlyMap<string, FieldTemplate> {
  const fields = new Map<string, FieldTemplate>();
  for (const [name, value] of textMembers(headers)) {
    fields.set(name.toLowerCase(), { variables: [], value: () => value });
  }
  for (const [name, text] of textMembers(templates)) {
    fields.set(name.toLowerCase(), parseTemplate(text));
  }
  return fields;
}

function textMembers(value: unknown): readonly (readonly [string, string])[] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, text]) =>
    typeof text === 'string' ? [[name, text] as const] : [],
  );
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
