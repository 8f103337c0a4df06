import { customHeadersMax } from '../../../core/config/limits.ts';
import { hookMethods, type Hook } from '../hook.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { RecordSchema } from '../../../core/operations/records/schema.ts';
import {
  hookBatchEventsMax,
  hookBatchTimesMax,
  hookEventsMax,
  hookNameCharactersMax,
  hookPlaceCharactersMax,
  hookRetriesMax,
  hookRetryWaitsMax,
  hookTableCharactersMax,
  hookTablesMax,
  hookUrlCharactersMax,
} from './limits.ts';

const text = { type: 'string' } as const;
const dateTime = { type: 'string', format: 'date-time' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

/** The fields of a hook that callers write (docs/design/webhooks.md#registration). */
const fields: Readonly<Record<keyof Omit<Hook, 'id' | '_unknowns_' | 'rotated_at'>, JsonObject>> = {
  name: {
    ...text,
    minLength: 1,
    maxLength: hookNameCharactersMax,
    description: 'A name for people.',
  },
  event: {
    description: 'Event types such as sale.completed, or one of them; * means all types.',
    oneOf: [{ type: 'array', minItems: 1, maxItems: hookEventsMax, items: text }, text],
  },
  url: { ...text, maxLength: hookUrlCharactersMax, description: 'Absolute, http or https.' },
  method: { ...text, enum: hookMethods, description: 'POST by default.' },
  headers: {
    type: 'object',
    maxProperties: customHeadersMax,
    additionalProperties: text,
    description: 'Header fields of each request, besides those of the delivery.',
  },
  where: {
    ...text,
    maxLength: hookPlaceCharactersMax,
    description: 'central, counters, or a node; by default the counter of the event, else central.',
  },
  frequency: {
    description: 'One request for each event, which is the default, or one for a batch of events.',
    oneOf: [
      {
        title: 'Each',
        type: 'object',
        required: ['mode'],
        properties: { mode: { const: 'each' } },
      },
      {
        title: 'Batch',
        type: 'object',
        required: ['mode'],
        properties: {
          mode: { const: 'batch' },
          every: {
            ...text,
            description: 'No event waits longer than this, 1s to 24h; 60s by default.',
          },
          at: {
            type: 'array',
            items: { ...text, pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' },
            minItems: 1,
            maxItems: hookBatchTimesMax,
            description: 'In place of every: the times of the day at which batches are sent.',
          },
          zone: {
            ...text,
            description: 'The time zone of at, such as Europe/Zurich; UTC by default.',
          },
          max_events: {
            type: 'integer',
            minimum: 1,
            maximum: hookBatchEventsMax,
            description: '500 by default.',
          },
          max_bytes: {
            description: 'No body is larger, unless one event is; 1MiB by default.',
            oneOf: [text, { type: 'integer' }],
          },
        },
      },
    ],
  },
  filter: {
    ...anyObject,
    description:
      'Members that the data of an event must have: a value is compared for equality, and an ' +
      'object of conditions is {"gt": 100}, gte, lt, lte, in, contains or not. All have to hold.',
  },
  table: {
    description:
      'The tables whose events it gets, of the events about records; userinterface, webhook and ' +
      'key are Waymark’s own. All tables by default.',
    oneOf: [
      {
        type: 'array',
        minItems: 1,
        maxItems: hookTablesMax,
        items: { ...text, minLength: 1, maxLength: hookTableCharactersMax },
      },
      text,
    ],
  },
  order: {
    type: 'boolean',
    description: 'Whether a delivery waits until the one before it has ended.',
  },
  retry_limit: {
    type: 'integer',
    minimum: 1,
    maximum: hookRetriesMax,
    description: 'Attempts before a delivery is given up; 10 by default.',
  },
  retry: {
    description:
      'The waits before the second attempt, the third and so on, such as 5s, 5m and 2h; the last ' +
      'one repeats. 1s to 30d each; by default, retry of [webhook] in the ini file.',
    oneOf: [{ type: 'array', minItems: 1, maxItems: hookRetryWaitsMax, items: text }, text],
  },
  active: {
    type: 'boolean',
    description: 'Whether the hook delivers events; false pauses it. True by default.',
  },
};

/** A secret in an answer. */
export const secretSchema = {
  ...text,
  description: 'The key that signs deliveries, whsec_ and base64. Only this answer shows it.',
} as const;

/** The schemas of hooks. */
export const hookSchema: RecordSchema = {
  title: 'Hook',
  fields,
  required: ['event', 'url'],
  lasting: ['event', 'url'],
  always: [
    ...['event', 'url', 'method', 'headers', 'frequency', 'filter', 'order', 'retry_limit'],
    'active',
  ],
  server: {
    rotated_at: { ...dateTime, description: 'When its secret was replaced last.' },
    next_batch: {
      ...dateTime,
      description:
        'When its next batch leaves, if the hook has batches: the batch of the events that wait, ' +
        'or the next time of the day in at.',
    },
    waits: {
      type: 'array',
      items: text,
      description: 'Fields in _unknowns_ that pause the hook until they are corrected.',
    },
  },
  inserted: { secret: secretSchema },
};
