import { nearestName } from '../values/nearest.ts';
import type { JsonObject } from '../values/json/json.ts';
import { Failure, problemReasons, type Problem, type ProblemReason } from '../values/failure.ts';
import { shownNameCharactersMax } from './limits.ts';
import type { Call } from './operation.ts';

const text = { type: 'string' } as const;

/** JSON Schema of the member `problems` in the answer to a write. */
export const problemsMember: JsonObject = {
  type: 'array',
  description:
    'What is wrong with the fields sent now and those that wait, one entry for each mistake.',
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

/**
 * Throws `invalid` for an input with a field that an operation neither knows nor stores: the caller
 * would believe that it has an effect. null stands for an absent field.
 */
export function requireKnownFields(
  v: JsonObject,
  operation: string,
  known: readonly string[],
): void {
  const unknown = Object.keys(v).find((name) => v[name] !== null && !known.includes(name));
  if (unknown !== undefined) throw unknownInput(unknown, operation, { known });
}

/** The failure for a field, a parameter or a member of a request that would have no effect. */
export function unknownInput(
  name: string,
  operation: string,
  {
    known,
    suggestion = nearestName(name, known),
    noun = 'input field',
  }: {
    readonly known: readonly string[];
    readonly suggestion?: string | undefined;
    readonly noun?: 'input field' | 'parameter';
  },
): Failure {
  const field = name.slice(0, shownNameCharactersMax);
  const names = known.length === 0 ? 'It takes none.' : `It takes ${known.join(', ')}.`;
  const hint = suggestion === undefined ? names : `Did you mean ${suggestion}?`;
  const message = `${operation} has no ${noun} ${JSON.stringify(field)}. ${hint}`;
  const problem: Problem = {
    ...{ field, reason: 'unknown_field', message },
    ...(suggestion !== undefined && { suggestion }),
  };
  return new Failure('invalid', message, { field, problems: [problem] });
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
