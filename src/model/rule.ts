import type { JsonObject } from './json.ts';

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
