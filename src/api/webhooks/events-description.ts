import type { JsonObject } from '../../model/json.ts';
import { eventCounterCharactersMax } from './limits.ts';
import type { Description } from '../operation.ts';
import { problemsMember } from '../problems.ts';
import { vkMember } from '../rules/record-schema.ts';

const text = { type: 'string' } as const;
const dateTime = { type: 'string', format: 'date-time' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;
const seq = { type: 'integer', description: 'Position in the log.' } as const;

const taken: JsonObject = {
  title: 'TakenEvent',
  type: 'object',
  required: ['id', 'seq', 'hooks', 'unknowns', 'problems'],
  properties: {
    id: { ...text, description: 'What receivers know the event by.' },
    seq,
    hooks: { type: 'integer', description: 'How many hooks are to get it.' },
    unknowns: {
      type: 'array',
      items: text,
      description:
        'Members of data that are not as event.types has them; they are told as they are.',
    },
    problems: problemsMember,
  },
};

/** What the documents say of event.insert. */
export const eventInsertDescription: Description = {
  summary: 'Takes an event, for the hooks that ask for it; answered when it is durable.',
  fields: {
    title: 'NewEvent',
    type: 'object',
    required: ['type'],
    properties: {
      type: { ...text, description: 'Such as sale.completed: dotted, in lower case.' },
      data: { ...anyObject, description: 'What receivers are told.' },
      occurred_at: { ...dateTime, description: 'Now, by default.' },
      counter: {
        ...text,
        minLength: 1,
        maxLength: eventCounterCharactersMax,
        description: 'The trading counter where it happened.',
      },
    },
  },
  envelope: { vk: vkMember },
  output: taken,
  failures: ['conflict'],
};

/** What the documents say of webhook.test. */
export const testDescription: Description = {
  summary: 'Sends a hook an event of the type webhook.test, as any other is sent.',
  envelope: { vk: vkMember },
  output: taken,
  failures: ['not_found', 'conflict'],
};

const event: JsonObject = {
  title: 'Event',
  type: 'object',
  required: ['id', 'type', 'occurred_at', 'counter', 'data', 'seq'],
  properties: {
    id: text,
    type: text,
    occurred_at: dateTime,
    counter: { type: ['string', 'null'] },
    data: anyObject,
    seq,
  },
};

/** What the documents say of event.read. */
export const eventReadDescription: Description = {
  summary: 'An event by its id: what a delivery told, as Waymark has it.',
  output: event,
  failures: ['not_found'],
};

/** What event.list answers. */
export const listedEvents: JsonObject = {
  title: 'EventList',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: {
      type: 'array',
      items: event,
    },
    next: {
      type: ['integer', 'null'],
      description: 'Goes into before for the next page; null at the end.',
    },
  },
};
