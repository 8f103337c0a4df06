import { nearestName } from '../model/nearest.ts';
import type { JsonObject } from '../model/json.ts';
import { Failure, problemReasons, type Problem, type ProblemReason } from '../model/failure.ts';
import type { Call } from './operation.ts';

const text = { type: 'string' } as const;

/** JSON Schema of the member `problems` in the answer to a write. */
export const problemsMember: JsonObject = {
  type: 'array',
  description: 'What is wrong with the fields sent now, one entry for each mistake.',
  items: {
    title: 'Problem',
    type: 'object',
    required: ['field', 'reason', 'message'],
    properties: {
      field: { ...text, description: 'The path to the mistake, such as headers.Host.' },
      reason: { ...text, enum: problemReasons },
      message: text,
      suggestion: { ...text, description: 'The nearest known name.' },
    },
  },
};

/** The reasons for which `Prefer: handling=strict` refuses a write. */
const mistakes: ReadonlySet<ProblemReason> = new Set(
  problemReasons.slice(0, problemReasons.indexOf('unreachable_private')),
);

/**
 * In strict mode (RFC 7240 §4.4), throws `invalid` with all problems for a write with a mistake in
 * it.
 */
export function requireNoMistakes(
  { isStrict }: Pick<Call, 'isStrict'>,
  problems: readonly Problem[],
): void {
  const found = problems.filter(({ reason }) => mistakes.has(reason));
  const [first] = found;
  if (isStrict !== true || first === undefined) return;
  const others = found.length - 1;
  const more = others > 0 ? ` Further problems: ${others}.` : '';
  throw new Failure('invalid', `${first.message}${more} handling=strict refuses the write.`, {
    field: first.field,
    problems,
  });
}

/** The problem of an unknown name; `field` is the path to it, which ends with the name. */
export function unknownField(field: string, name: string, known: readonly string[]): Problem {
  const suggestion = nearestName(name, known);
  const hint = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  return {
    field,
    reason: 'unknown_field',
    message: `${field} is not a known field; it is kept in _unknowns_.${hint}`,
    ...(suggestion !== undefined && { suggestion }),
  };
}
