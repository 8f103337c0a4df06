/**
 * The sources of content in the order in which they are asked (docs/design/requests.md#precedence).
 */
export const sourceNames = ['disk', 'stored', 'content.fetch', 'fallback'] as const;

/** The name of a source of content. */
export type SourceName = (typeof sourceNames)[number];

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
  'language',
  'lower_rve',
  'older_design',
  'older_insert',
] as const;

/**
 * The criteria of matching (docs/design/page-rules.md#matching) by which a page rule comes after
 * another one.
 */
export type RuleLoss = (typeof ruleLosses)[number];

/** Codes of what a candidate lost by: scripts may count on them. */
export const lossCodes = [
  'earlier_source',
  'earlier_mount',
  ...mountLosses,
  ...ruleLosses,
  'waits',
] as const;

/** One of the codes. */
export type LossCode = (typeof lossCodes)[number];

/** The first reason why a candidate does not answer: a stable code, and a sentence for a person. */
export interface Loss {
  readonly code: LossCode;
  readonly says: string;
}

/** Why a branch of a breadcrumb was not taken. */
export interface BranchLoss {
  /** `invalid`, `earlier_branch`, or the name of the condition that does not hold. */
  readonly code: string;
  readonly says: string;
}

/** A branch of a breadcrumb that could have been taken. */
export interface TriedBranch {
  /** `when[0]`, `when[1]` …, or `default`. */
  readonly branch: string;
  /** The first of its conditions that does not hold; absent for the branch that is taken. */
  readonly lost?: BranchLoss;
}

/** A mount or page rule that could have answered. */
export interface TriedCandidate {
  readonly mount?: string;
  readonly id?: string;
  readonly kind?: string;
  readonly origin: string;
  readonly path: string;
  /** Absent for the candidate that answers, or that leads on to the key of the next entry. */
  readonly lost?: Loss;
  /** Of a breadcrumb that was followed, its branches in order. */
  readonly branches?: readonly TriedBranch[];
}

/** One look into a source. */
export interface Tried {
  readonly source: SourceName;
  /** The breadcrumb's key that was looked up, where it was not the path. */
  readonly key?: string;
  /** In the order in which they win; mounts in the order in which they are asked. */
  readonly candidates: readonly TriedCandidate[];
  /** How many more candidates there are than are named; absent for none. */
  readonly omitted?: number;
}

/** Who answers. */
export interface Winner {
  readonly source: SourceName;
  readonly mount?: string;
  readonly id?: string;
  /** HTTP status of the answer; null where only another server knows it. */
  readonly status: number | null;
}

/**
 * How a request would be answered, and why so (docs/design/operations.md#explain,
 * userinterface.explain).
 */
export interface Explanation {
  readonly winner: Winner | null;
  /** HTTP status of the answer; null where only another server knows it. */
  readonly status: number | null;
  readonly tried: readonly Tried[];
  /** What else is worth knowing, a sentence each. */
  readonly notes: readonly string[];
}

/** What answers, as Server-Timing and the access log name it: `disk:<name>` or `rule:<id>`. */
export function winnerName({ mount, id }: Pick<Winner, 'mount' | 'id'>): string {
  return mount === undefined ? `rule:${id ?? ''}` : `disk:${mount}`;
}
