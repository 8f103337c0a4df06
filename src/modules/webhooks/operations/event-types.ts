import { knownEventTypes } from '../../../core/log/events/event-types.ts';
import { createValidators } from '../../../core/operations/ajv.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { withStandIns } from '../../../core/values/json/exact-number.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { type EventTypes, eventTypeSources } from '../event-types.ts';

const validatorOf = createValidators({ allErrors: true });

/**
 * The members of an event's data that do not fit the schema of a type of Waymark, with missing
 * ones; none for another type. The event is delivered anyway.
 */
export function unfitMembers(
  types: Pick<EventTypes, 'isDeclared'>,
  { type, data }: { readonly type: string; readonly data: JsonObject },
): readonly string[] {
  const known = knownEventTypes.find((one) => one.type === type);
  if (known === undefined || types.isDeclared(type)) return [];
  const validate = validatorOf(known.schema);
  if (validate(withStandIns(data))) return [];
  const names = (validate.errors ?? []).map(({ instancePath, params }) => {
    const path = instancePath.slice(1).replaceAll('/', '.');
    const missing: unknown = params.missingProperty;
    if (typeof missing !== 'string') return path;
    return path === '' ? missing : `${path}.${missing}`;
  });
  return [...new Set(names)];
}

/** event.types: the types of Waymark, of the ini file and of tables, each with its schema. */
export const listEventTypes = defineOperation({
  name: 'svc1.event.types',
  scope: 'verify',
  effect: 'reads',
  summary: 'The event types that are known, each with a JSON Schema of its data.',
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
          required: ['type', 'summary', 'own', 'source', 'schema'],
          properties: {
            type: { type: 'string' },
            summary: { type: 'string', description: 'When the event occurs.' },
            own: {
              type: 'boolean',
              description: 'Whether Waymark raises events of the type itself.',
            },
            source: {
              type: 'string',
              enum: eventTypeSources,
              description:
                'waymark; server.ini for [event.<name>], whose schema an event has to fit; or ' +
                'table for a type that a table raises.',
            },
            schema: { type: 'object', additionalProperties: true },
          },
        },
      },
    },
  },
  input: { type: 'object' },
  run:
    ({ eventTypes }: { readonly eventTypes: EventTypes }) =>
    () => ({ kind: 'data', data: { rows: eventTypes.list() } }),
});
