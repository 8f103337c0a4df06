import { hookMethods, type Hook } from '../../model/hook.ts';
import type { JsonObject } from '../../model/json.ts';
import {
  hookBatchEventsMax,
  hookEventsMax,
  hookNameCharactersMax,
  hookPlaceCharactersMax,
  hookRetriesMax,
  hookUrlCharactersMax,
} from './limits.ts';
import { customHeadersMax } from '../../config/limits.ts';
import { hookBatchTimesMax } from './limits.ts';
import { historyQuery, historyRows } from '../records/schema.ts';
import type { Description } from '../operation.ts';
import { problemsMember } from '../problems.ts';
import { preferMember, vkMember } from '../rules/record-schema.ts';

const text = { type: 'string' } as const;
const dateTime = { type: 'string', format: 'date-time' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

/** The fields of a hook that a caller writes (docs/design/webhooks.md#registration). */
const writable: Readonly<Record<keyof Omit<Hook, 'id' | '_unknowns_' | 'rotated_at'>, JsonObject>> =
  {
    name: { ...text, minLength: 1, maxLength: hookNameCharactersMax },
    event: {
      description: 'Event types such as sale.completed, or one of them; * stands for all.',
      oneOf: [{ type: 'array', minItems: 1, maxItems: hookEventsMax, items: text }, text],
    },
    url: { ...text, maxLength: hookUrlCharactersMax, description: 'Absolute, http or https.' },
    method: { ...text, enum: hookMethods, description: 'POST by default.' },
    headers: {
      type: 'object',
      maxProperties: customHeadersMax,
      additionalProperties: text,
      description: 'Fields that each request has besides those of the delivery.',
    },
    where: {
      ...text,
      maxLength: hookPlaceCharactersMax,
      description:
        'central, counters, or a node; by default the counter of the event, else central.',
    },
    frequency: {
      description: 'One request an event, which is the default, or one for many of them.',
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
      description: 'Members that the data of an event must have, each equal.',
    },
    order: {
      type: 'boolean',
      description: 'Whether a delivery waits for the end of the one before it.',
    },
    retry_limit: {
      type: 'integer',
      minimum: 1,
      maximum: hookRetriesMax,
      description: 'Attempts before a delivery is given up; 10 by default.',
    },
    active: {
      type: 'boolean',
      description: 'Whether it is delivered, and not paused; true by default.',
    },
  };

const unknowns = {
  ...anyObject,
  description: 'Fields that were sent and are not valid, kept until they become so.',
} as const;

const newHook: JsonObject = {
  title: 'NewHook',
  type: 'object',
  required: ['event', 'url'],
  properties: { ...writable, _unknowns_: unknowns },
};

const ifSeq: JsonObject = {
  type: 'integer',
  description: 'The seq at which the record still has to be.',
};

const hookEdit: JsonObject = {
  title: 'HookEdit',
  type: 'object',
  required: ['id'],
  properties: {
    id: text,
    if_seq: ifSeq,
    ...Object.fromEntries(
      Object.entries({ ...writable, _unknowns_: unknowns }).map(([name, schema]) => [
        name,
        name === 'event' || name === 'url' ? schema : { oneOf: [schema, { type: 'null' }] },
      ]),
    ),
  },
};

const always = ['method', 'headers', 'frequency', 'filter', 'order', 'retry_limit', 'active'];

const waits = {
  type: 'array',
  items: text,
  description:
    'Fields whose values in _unknowns_ have to be corrected before the hook is delivered.',
} as const;

function record(title: string, more: JsonObject = {}, required: readonly string[] = []) {
  return {
    title,
    type: 'object',
    required: ['id', 'seq', 'event', 'url', ...always, ...required],
    properties: {
      id: { ...text, description: 'UUIDv7, given by the server.' },
      ...writable,
      rotated_at: { ...dateTime, description: 'When its secret was changed last.' },
      _unknowns_: unknowns,
      waits,
      seq: { type: 'integer', description: 'Version of the record, for if_seq and If-Match.' },
      ...more,
    },
  } as const satisfies JsonObject;
}

const secret = {
  ...text,
  description: 'What deliveries are signed with, whsec_ and base64; nothing can show it again.',
} as const;
const told = {
  unknowns: {
    type: 'array',
    items: text,
    description: 'Names of fields sent now that are not valid, and were kept in _unknowns_.',
  },
  problems: problemsMember,
} as const;

/** What the documents say of webhook.insert. */
export const hookInsertDescription: Description = {
  summary: 'Registers a hook, and shows its secret this one time.',
  fields: newHook,
  envelope: { vk: vkMember, prefer: preferMember },
  output: record('NewHookAnswer', { ...told, secret }, ['unknowns', 'problems']),
  etag: true,
  failures: ['conflict'],
};

/** What the documents say of webhook.edit. */
export const hookEditDescription: Description = {
  summary:
    'Changes the fields of a hook that are sent; null puts back what stands there by itself.',
  fields: hookEdit,
  envelope: { vk: vkMember, prefer: preferMember },
  output: record('WrittenHook', told, ['unknowns', 'problems']),
  etag: true,
  failures: ['not_found', 'conflict', 'precondition_failed'],
};

/** What the documents say of webhook.pause and webhook.resume. */
export function hookSwitchDescription(active: boolean): Description {
  return {
    ...hookEditDescription,
    summary: active
      ? 'Takes the deliveries of a hook up again, with what came in the meantime.'
      : 'Stops the deliveries of a hook; its events are kept.',
    fields: {
      title: 'HookSwitch',
      type: 'object',
      required: ['id'],
      properties: { id: text, if_seq: ifSeq },
    },
  };
}

/** What the documents say of webhook.read. */
export const hookReadDescription: Description = {
  summary: 'A hook without its secret, or with the query kind history its rows, newest first.',
  envelope: { qk: historyQuery },
  output: { oneOf: [record('Hook'), historyRows] },
  etag: true,
  failures: ['not_found'],
};

/** What webhook.list answers. */
export const listedHooks: JsonObject = {
  title: 'HookList',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: { type: 'array', items: record('Hook') },
    next: {
      type: ['string', 'null'],
      description: 'Goes into after for the next page; null at the end.',
    },
  },
};

/** What the documents say of webhook.rotate. */
export const rotateDescription: Description = {
  summary: 'Gives a hook a new secret; for 24 hours the one before it signs too.',
  envelope: { vk: vkMember },
  output: {
    title: 'RotatedSecret',
    type: 'object',
    required: ['id', 'seq'],
    properties: {
      id: text,
      seq: { type: 'integer', description: 'Version of the hook.' },
      secret,
      previous_until: { ...dateTime, description: 'Until when the one before it signs too.' },
    },
  },
  failures: ['not_found', 'conflict'],
};

/** What the documents say of webhook.replay. */
export const replayDescription: Description = {
  summary: 'Has messages of a hook sent again: one, those of a time, or those that were given up.',
  envelope: { vk: vkMember },
  output: {
    title: 'Replay',
    type: 'object',
    required: ['seq', 'deliveries'],
    properties: {
      seq: { type: 'integer', description: 'Position of the request in the log.' },
      deliveries: { type: 'integer', description: 'How many messages are sent again.' },
    },
  },
  failures: ['not_found', 'conflict'],
};
