/** The sources of content in their order of precedence (docs/design/requests.md#precedence). */
export const sourceNames = [
  'redirect',
  'rewrite',
  'disk',
  'stored',
  'content.fetch',
  'fallback',
] as const;

/** The name of a source of content. */
export type SourceName = (typeof sourceNames)[number];

/** Candidates of one source that explain names, including the one that answers. */
export const explainCandidatesMax = 100;

const mountLosses = [
  'method',
  'other_origin',
  'other_path',
  'hidden_name',
  'no_file',
  'not_a_file',
  'not_a_folder',
  'no_index',
] as const;

/** Why a mount does not answer a request. */
export type MountLoss = (typeof mountLosses)[number];

const ruleLosses = [
  'language_excluded',
  'any_origin',
  'wildcard',
  'shorter_wildcard',
  'proxy',
  'language',
  'lower_rve',
  'older_design',
  'older_insert',
] as const;

/** Why another page rule takes precedence (docs/design/page-rules.md#matching). */
export type RuleLoss = (typeof ruleLosses)[number];

/** All codes for why a candidate does not answer; scripts may rely on them. */
export const lossCodes = [
  'earlier_source',
  'earlier_redirect',
  'earlier_rewrite',
  'other_country',
  'other_language',
  'earlier_mount',
  ...mountLosses,
  ...ruleLosses,
  'not_yet',
  'ended',
  'waits',
] as const;

/** One of the codes. */
export type LossCode = (typeof lossCodes)[number];

/** The first reason why a candidate does not answer: a stable code, and a sentence for a person. */
export interface LossReason {
  readonly code: LossCode;
  readonly says: string;
}

/** Why a branch of a breadcrumb was not taken. */
export interface BranchLossReason {
  /** `invalid`, `earlier_branch`, or the name of the condition that does not hold. */
  readonly code: string;
  readonly says: string;
}

/** A branch of a breadcrumb. */
export interface BranchExplanation {
  /** `when[0]`, `when[1]` …, or `default`. */
  readonly branch: string;
  /** The first of its conditions that does not hold; absent for the branch that is taken. */
  readonly lost?: BranchLossReason;
}

/** A mount, proxy or page rule that could answer. */
export interface CandidateExplanation {
  readonly mount?: string;
  /** The name of a redirect of the ini file. */
  readonly redirect?: string;
  /** The name of a rewrite of the ini file; `path` is its pattern. */
  readonly rewrite?: string;
  /** The name of a proxy of the ini file. */
  readonly proxy?: string;
  readonly id?: string;
  /** Of a page rule. */
  readonly kind?: string;
  readonly origin: string;
  readonly path: string;
  /** Absent for the candidate that answers, or that leads to the key of the next entry. */
  readonly lost?: LossReason;
  /** The branches of a breadcrumb that was resolved, in order. */
  readonly branches?: readonly BranchExplanation[];
}

/** The candidates of one source. */
export interface ExplainedSource {
  readonly source: SourceName;
  /** The key of a breadcrumb that was looked up, if it is not the path. */
  readonly key?: string;
  /** In their order of precedence. */
  readonly candidates: readonly CandidateExplanation[];
  /** The number of candidates that are left out; absent for none. */
  readonly omitted?: number;
}

/** The candidate that answers. */
export interface Winner {
  readonly source: SourceName;
  readonly redirect?: string;
  readonly mount?: string;
  readonly proxy?: string;
  readonly id?: string;
  /** HTTP status of the answer; null if another server decides it. */
  readonly status: number | null;
}

/** Whether an access rule of the ini file lets a visitor in. */
export interface AccessExplanation {
  /** Its name. */
  readonly rule: string;
  /** Null if the described visitor does not tell, as with a password or another server. */
  readonly passes: boolean | null;
  /** HTTP status of the refusal; absent unless `passes` is false. */
  readonly status?: number;
  readonly says: string;
}

/** Explains which source answers a request, and why (docs/design/operations.md#explain). */
export interface Explanation {
  readonly winner: Winner | null;
  /** HTTP status of the answer; null if another server decides it. */
  readonly status: number | null;
  /** The access rules of the place, all of which a visitor must satisfy; absent for none. */
  readonly access?: readonly AccessExplanation[];
  readonly tried: readonly ExplainedSource[];
  /** What changes the header fields of the answer, in order; absent for nothing. */
  readonly headers?: readonly string[];
  /** Further notes, a sentence each. */
  readonly notes: readonly string[];
}

/**
 * The name of the answering candidate in Server-Timing and the access log: `redirect:<name>`,
 * `disk:<name>`, `proxy:<name>` or `rule:<id>`.
 */
export function winnerName(winner: Omit<Winner, 'source' | 'status'>): string {
  const { redirect, mount, proxy, id = '' } = winner;
  if (redirect !== undefined) return `redirect:${redirect}`;
  if (mount !== undefined) return `disk:${mount}`;
  return proxy === undefined ? `rule:${id}` : `proxy:${proxy}`;
}
