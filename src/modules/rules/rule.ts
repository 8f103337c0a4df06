import type { Change } from '../../core/log/change.ts';
import { recordAfter } from '../../core/log/write/fold.ts';
import { unknownSection } from '../../core/pipeline/place-access.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { breadcrumbKeyCharactersMax } from '../../core/values/limits.ts';
import { storedMomentMs } from '../../core/values/time.ts';

/** The kinds of page rule (docs/design/page-rules.md#fields). */
export const ruleKinds = [
  'content',
  'content.fetch',
  'resolve',
  'edit-record',
  'insert-record',
  'delete-record',
] as const;

/** The kind of a page rule. */
export type RuleKind = (typeof ruleKinds)[number];

/** The body of a stored page: text, or bytes in base64. */
export type RuleContent = string | { readonly base64: string };

/** The header fields of a page rule, with variables. */
export type RuleHeaders = Readonly<Record<string, string | readonly string[]>>;

/**
 * A page rule (docs/design/page-rules.md#fields); all fields except the first four are optional.
 */
export interface Rule {
  /** A UUIDv7 that the server assigns. */
  readonly id: string;
  /**
   * `scheme://host[:port]`, lower case; `https://*.example.com`; several of these with a space
   * between them; or `*`.
   */
  readonly origin: string;
  /** A canonical path, which may end with `*`; for a breadcrumb, any key. */
  readonly path: string;
  readonly kind: RuleKind;
  readonly table?: string;
  readonly designed_at?: string;
  readonly lang?: string;
  readonly content?: RuleContent;
  /** The name of an asset, whose file is the content of a rule without `content`. */
  readonly asset?: string;
  readonly contenttype?: string;
  readonly httpresponse?: number;
  /**
   * Header fields of its answers: each text, or list of texts, replaces the fields of its name; an
   * empty one removes them, and a name that ends with `[]` adds.
   */
  readonly headers?: RuleHeaders;
  readonly engine?: string;
  readonly enginedata?: JsonObject;
  readonly enginecomments?: string;
  readonly rve?: number;
  /** The section `[access.<name>]` of the ini file that decides who gets its answers. */
  readonly access?: string;
  /** It answers from this moment on: as storedMoment writes it. */
  readonly from?: string;
  /** It answers before this moment only: as storedMoment writes it. */
  readonly until?: string;
  readonly _unknowns_?: JsonObject;
}

/**
 * The origin by which a rule is indexed, or several of them: see originsOf. A rule with an invalid
 * origin in `_unknowns_` matches nothing (docs/design/page-rules.md#invalid-values), so it has an
 * origin that no request has.
 */
export function matchingOrigin({ origin, _unknowns_: unknowns }: Omit<Rule, 'id'>): string {
  return unknowns?.origin === undefined ? origin : unmatchableOrigin;
}

/** The origins of a rule, each once. */
export function originsOf(origin: string): readonly string[] {
  return origin.split(' ');
}

/** The index entry of rules with an invalid origin. */
export const unmatchableOrigin = '';

/**
 * The access section that protects the answers of a rule; undefined for none. A section that did
 * not exist at the write waits in `_unknowns_`, and protects the rule from when it exists. Another
 * value there stands for `unknownSection`: a mistake must not open a page.
 */
export function accessOf({
  access,
  _unknowns_: unknowns,
}: Pick<Rule, 'access' | '_unknowns_'>): string | undefined {
  const waiting = unknowns?.access;
  if (waiting === undefined) return access;
  return typeof waiting === 'string' && sectionName.test(waiting) ? waiting : unknownSection;
}

/** The names that a section of the ini file can have. */
const sectionName = /^[A-Za-z0-9_-]{1,64}$/;

/** The name of a page rule in logs: `rule:<id>`, or `proxy:<name>`, which is the id of a proxy. */
export function ruleName(id: string): string {
  return proxyName(id) === undefined ? `rule:${id}` : id;
}

/** The id of the rule of a `[proxy.<name>]`. Those of page rules are UUIDs. */
export function proxyId(name: string): string {
  return `${proxyPrefix}${name}`;
}

/** The name of the proxy that an id stands for; undefined for that of a page rule. */
export function proxyName(id: string): string | undefined {
  return id.startsWith(proxyPrefix) ? id.slice(proxyPrefix.length) : undefined;
}

const proxyPrefix = 'proxy:';

/** A rule with its place in the log. */
export interface StoredRule {
  readonly rule: Rule;
  /** Seq of the newest change: the version for if_seq and validators. */
  readonly seq: number;
  /** Seq of its insert: the last tie-breaker of matching. */
  readonly insertedSeq: number;
}

/**
 * The fields of a rule that matching needs, stored without its content, so that a match reads
 * little.
 */
export interface Candidate {
  readonly id: string;
  readonly seq: number;
  readonly insertedSeq: number;
  readonly origin: string;
  readonly path: string;
  readonly kind: RuleKind;
  readonly lang: string | undefined;
  readonly rve: number | undefined;
  /** Milliseconds since 1970. */
  readonly designedAtMs: number | undefined;
  /** When the rule answers; absent for always. */
  readonly validity?: Validity;
}

/**
 * The times at which a rule answers, in milliseconds since 1970: from `fromMs` on, and before
 * `untilMs`. `waits` for a rule whose `from` or `until` is not valid and waits in `_unknowns_`: it
 * never answers, because an invalid limit must not extend anything.
 */
export type Validity = { readonly fromMs?: number; readonly untilMs?: number } | 'waits';

/** The times at which a rule answers; undefined for always. */
export function validityOf({
  from,
  until,
  _unknowns_: unknowns,
}: Pick<Rule, 'from' | 'until' | '_unknowns_'>): Validity | undefined {
  if (unknowns !== undefined && ['from', 'until'].some((name) => Object.hasOwn(unknowns, name))) {
    return 'waits';
  }
  if (from === undefined && until === undefined) return undefined;
  return {
    ...(from !== undefined && { fromMs: storedMomentMs(from) }),
    ...(until !== undefined && { untilMs: storedMomentMs(until) }),
  };
}

/** Whether a rule answers at a time, in milliseconds since 1970. */
export function isValidAt({ validity }: Pick<Candidate, 'validity'>, nowMs: number): boolean {
  if (validity === undefined) return true;
  if (validity === 'waits') return false;
  const { fromMs = -Infinity, untilMs = Infinity } = validity;
  return nowMs >= fromMs && nowMs < untilMs;
}

/** The built-in engines (docs/design/page-rules.md#fields); `[engine.*]` adds others. */
export const builtInEngines = ['html', 'template', 'form'] as const;

/** The page rule that won a match, with the part of the path that its wildcard matched. */
export interface FoundRule {
  readonly stored: StoredRule;
  /** The part of the path under the rule's `*`; undefined for an exact rule. */
  readonly capture: string | undefined;
  /** Whether another rule could win for another Accept-Language. */
  readonly variesByLanguage: boolean;
}

/**
 * The result of a breadcrumb (docs/design/rendering.md#breadcrumbs): a redirect to `target`, or
 * `content`, or only a status.
 */
export interface Resolution {
  /** Id of the deciding rule: the last one of a `key:` chain. */
  readonly id: string;
  readonly status: number;
  /** An absolute URL, or a path on the same site, for the Location field. */
  readonly target: string | undefined;
  readonly content: string | undefined;
  readonly contenttype: string | undefined;
  /** The branch that decided: `when[0]`, `when[1]` …, or `default`. */
  readonly matched: string;
  /** The header fields of the rule and its branches that a visit gets; undefined for none. */
  readonly headers?: RuleHeaders | undefined;
}

/**
 * Whether a text can be the target of a breadcrumb (docs/design/rendering.md#breadcrumbs): an
 * http(s) URL without credentials, a path on this site, or `key:` with another breadcrumb's key,
 * but no script. It may end with `*`, and have variables, but the only one within the host is
 * `{host}`, the host that the visitor has asked.
 */
export function isTarget(text: string): boolean {
  if (text.length > targetCharactersMax) return false;
  if (text.startsWith('key:')) return isBreadcrumbKey(text.slice('key:'.length));
  if (/[\0-\x20\x7f\\]/.test(text)) return false;
  if (text.startsWith('/')) return !text.startsWith('//');
  const host = targetHost.exec(text)?.[0];
  const url = host === undefined ? null : URL.parse(host.replace('{host}', 'host.invalid'));
  if (url === null) return false;
  const { username, password } = url;
  return username === '' && password === '';
}

/** The beginning of a target up to its path. */
const targetHost = /^https?:\/\/(?:[^/?#*{}]+|(?:[^/?#*{}@:]+\.)?\{host\})(?=[/?#]|\{path\}|$)/i;

/**
 * Whether a text can be the key of a breadcrumb: 1 to 512 characters without control characters.
 */
export function isBreadcrumbKey(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text !== '' && text.length <= breadcrumbKeyCharactersMax && !/[\0-\x1f\x7f]/.test(text);
}

const targetCharactersMax = 4_096;

/**
 * Applies an insert or edit to a page rule: an insert holds all fields, an edit is merged into
 * them. Throws for a change that cannot follow, which is a bug.
 */
export function foldRule(before: StoredRule | undefined, change: Change): StoredRule {
  const rule = recordAfter(before?.rule, change, ['origin', 'path', 'kind']);
  const { seq } = change;
  return { rule: rule as unknown as Rule, seq, insertedSeq: before?.insertedSeq ?? seq };
}
