import { nearestName } from '../config/nearest.ts';
import type { JsonObject } from '../model/json.ts';
import { problemReasons, type Problem } from '../model/problem.ts';

const text = { type: 'string' } as const;

/** JSON Schema of the member `problems` in the answer to a write. */
export const problemsMember: JsonObject = {
  type: 'array',
  description: 'What is wrong with the fields sent now, one entry a mistake.',
  items: {
    title: 'Problem',
    type: 'object',
    required: ['field', 'reason', 'message'],
    properties: {
      field: { ...text, description: 'Where the mistake is, such as headers.Host.' },
      reason: { ...text, enum: problemReasons },
      message: text,
      suggestion: { ...text, description: 'The nearest known name.' },
    },
  },
};

/** The problem of a name that no field has; `field` is the path to it, which ends in the name. */
export function unknownField(field: string, name: string, known: readonly string[]): Problem {
  const suggestion = nearestName(name, known);
  const meant = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  return {
    field,
    reason: 'unknown_field',
    message: `There is no field of this name; it is kept in _unknowns_.${meant}`,
    ...(suggestion !== undefined && { suggestion }),
  };
}
