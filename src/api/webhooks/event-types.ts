import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { knownEventTypes } from '../../model/event-types.ts';
import type { JsonObject } from '../../model/json.ts';
import { defineOperation } from '../operation.ts';
import { ajvOptions } from '../ajv-options.ts';

const ajv = new Ajv2020({ ...ajvOptions, allErrors: true });
const validators = new Map<string, ValidateFunction | undefined>();

/**
 * The members of an event's data that do not fit the schema of its type, with missing ones; none
 * for a type that Waymark does not know. The event is delivered anyway.
 */
export function unfitMembers(type: string, data: JsonObject): readonly string[] {
  const validate = validatorOf(type);
  if (validate === undefined || validate(data)) return [];
  const names = (validate.errors ?? []).map(({ instancePath, params }) => {
    const path = instancePath.slice(1).replaceAll('/', '.');
    const missing: unknown = params.missingProperty;
    if (typeof missing !== 'string') return path;
    return path === '' ? missing : `${path}.${missing}`;
  });
  return [...new Set(names)];
}

/** event.types: the types that Waymark knows, each with the schema of its data. */
export const listEventTypes = defineOperation<unknown, object>({
  name: 'svc1.event.types',
  scope: 'verify',
  effect: 'reads',
  summary: 'The event types that Waymark knows, each with a JSON Schema of its data.',
  output: {
    title: 'EventTypes',
    type: 'object',
    required: ['rows'],
    properties: {
      rows: {
        type: 'array',
        items: {
          title: 'EventType',
          type: 'object',
          required: ['type', 'summary', 'own', 'schema'],
          properties: {
            type: { type: 'string' },
            summary: { type: 'string', description: 'When the event occurs.' },
            own: {
              type: 'boolean',
              description: 'Whether Waymark raises events of the type itself.',
            },
            schema: { type: 'object', additionalProperties: true },
          },
        },
      },
    },
  },
  input: { type: 'object' },
  run: () => () => ({ kind: 'data', data: { rows: knownEventTypes } }),
});

function validatorOf(type: string): ValidateFunction | undefined {
  const known = knownEventTypes.find((one) => one.type === type);
  if (known === undefined) return undefined;
  const validate = validators.get(type) ?? ajv.compile(known.schema);
  validators.set(type, validate);
  return validate;
}
