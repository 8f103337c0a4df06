import type { JsonObject } from './json.ts';
import { breadcrumbKeyCharactersMax } from './limits.ts';

/** The kinds of page rule (docs/design/page-rules.md#fields). */
export const ruleKinds = [
  'content',
  'content.fetch',
  'resolve',
  'edit-record',
  'insert-record',
  'delete-record',
] as const;

/** What a page rule does with the path it defines. */
export type RuleKind = (typeof ruleKinds)[number];

/** The body of a stored page: text, or bytes in base64. */
export type RuleContent = string | { readonly base64: string };

/**
 * A page rule (docs/design/page-rules.md#fields, docs/design/page-rules.md#fields) as it is kept;
 * every field but the first four may be absent.
 */
export interface Rule {
  /** UUIDv7, given by the server. */
  readonly id: string;
  /** `scheme://host[:port]`, lower case, or `*`. */
  readonly origin: string;
  /** Canonical path, perhaps with one `*` at its end; for a breadcrumb any key. */
  readonly path: string;
  readonly kind: RuleKind;
  readonly table?: string;
  readonly designed_at?: string;
  readonly lang?: string;
  readonly content?: RuleContent;
  readonly contenttype?: string;
  readonly httpresponse?: number;
  readonly engine?: string;
  readonly enginedata?: JsonObject;
  readonly enginecomments?: string;
  readonly rve?: number;
  readonly _unknowns_?: JsonObject;
}

/**
 * The origin that a rule is found under. A rule whose origin waits in `_unknowns_` matches nothing
 * (docs/design/page-rules.md#invalid-values): it stands under an origin that no request has.
 */
export function matchingOrigin({ origin, _unknowns_: unknowns }: Omit<Rule, 'id'>): string {
  return unknowns?.origin === undefined ? origin : waitingOrigin;
}

/** Stands for the origin of rules whose own one waits. */
export const waitingOrigin = '';

/** A rule with its place in the log. */
export interface StoredRule {
  readonly rule: Rule;
  /** Seq of the record's newest change: its version, used by if_seq and as its validator. */
  readonly seq: number;
  /** Seq of its insert: the last tie-breaker of matching. */
  readonly insertedSeq: number;
}

/**
 * What matching needs to know of a rule, kept apart from its content so that a match reads little.
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
}

/**
 * The engines that Waymark brings along (docs/design/page-rules.md#fields); `[engine.*]` of the ini
 * file adds to them.
 */
export const builtInEngines = ['html', 'template', 'form'] as const;

/** The page rule that won a match, with what its wildcard covered. */
export interface FoundRule {
  readonly stored: StoredRule;
  /** The part of the path under the rule's `*`; undefined for an exact rule. */
  readonly capture: string | undefined;
  /** Whether another Accept-Language could have made another rule win. */
  readonly variesByLanguage: boolean;
}

/**
 * What a breadcrumb comes to (docs/design/rendering.md#breadcrumbs): a redirect to `target`, or
 * `content` to show, or a bare status.
 */
export interface Resolution {
  /** Id of the rule that decided, the last one of a `key:` chain. */
  readonly id: string;
  readonly status: number;
  /** Absolute URL, or path on the same site, ready for a Location field. */
  readonly target: string | undefined;
  readonly content: string | undefined;
  readonly contenttype: string | undefined;
  /** Which branch of it decided: `when[0]`, `when[1]` …, or `default`. */
  readonly matched: string;
}

/**
 * Whether a text can be the target of a breadcrumb (docs/design/rendering.md#breadcrumbs): an
 * http(s) URL without a user, a path on this site, or `key:` with another breadcrumb's key; never a
 * script. A `*` may stand at its end, behind the host.
 */
export function isTarget(text: string): boolean {
  if (text.length > targetCharactersMax) return false;
  if (text.startsWith('key:')) return isBreadcrumbKey(text.slice('key:'.length));
  if (/[\0-\x20\x7f\\]/.test(text)) return false;
  if (text.startsWith('/')) return !text.startsWith('//');
  if (!/^https?:\/\/[^/?#*]+(?:[/?#]|$)/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/**
 * Whether a text can be a breadcrumb's key: 1 to 512 characters, none of them a control character.
 */
export function isBreadcrumbKey(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text !== '' && text.length <= breadcrumbKeyCharactersMax && !/[\0-\x1f\x7f]/.test(text);
}

const targetCharactersMax = 4_096;
