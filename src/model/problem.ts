/**
 * Why a field that was sent is not in force, or has no effect (docs/design/page-rules.md#fields).
 * The first seven are mistakes: `Prefer: handling=strict` refuses a write that has one of them.
 */
export const problemReasons = [
  'unknown_field',
  'wrong_type',
  'not_for_kind',
  'bad_format',
  'out_of_range',
  'unknown_engine',
  'missing',
  'unreachable_private',
  'no_effect',
  'shadowed',
] as const;

/** One of problemReasons. */
export type ProblemReason = (typeof problemReasons)[number];

/** What is wrong with a field that was sent, as the answer to the write says it. */
export interface Problem {
  /** Where the mistake is: `enginedata.headers.X Y`. */
  readonly field: string;
  readonly reason: ProblemReason;
  /** A sentence for a person: what is wrong, and what a valid value is. */
  readonly message: string;
  /** The nearest known name, where the field or value has one. */
  readonly suggestion?: string;
}
