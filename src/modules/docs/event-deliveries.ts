import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { schemasByName } from '../tables/schema-check.ts';
import type { ListedEventType } from '../webhooks/event-types.ts';
import { type Components, isInstance, published } from './schemas.ts';

/**
 * The deliveries of event types as webhooks of an OpenAPI document
 * (docs/design/webhooks.md#deliveries), by event type.
 */
export function openApiWebhooks(
  types: readonly ListedEventType[],
  components: Components,
): JsonObject {
  const webhooks = types.map((known) => {
    const delivery = {
      summary: known.summary,
      tags: ['event'],
      parameters: signatureHeaders,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: eventSchema(known, components) } },
      },
      responses,
    };
    return [known.type, { post: delivery }] as const;
  });
  return Object.fromEntries(webhooks);
}

/** The same deliveries as a channel and an operation of an AsyncAPI document. */
export function asyncApiWebhooks(
  types: readonly ListedEventType[],
  components: Components,
): {
  readonly channel: JsonObject;
  readonly operation: JsonObject;
} {
  const messages = types.map((known) => {
    const payload = eventSchema(known, components);
    return [known.type, { name: known.type, summary: known.summary, payload }] as const;
  });
  return {
    channel: {
      address: null,
      title: 'Webhooks',
      description: 'The URL of a webhook. One request delivers one event, or a batch of them.',
      messages: Object.fromEntries(messages),
    },
    operation: {
      action: 'send',
      channel: { $ref: '#/channels/webhooks' },
      summary: 'Delivers an event to a webhook.',
      tags: [{ name: 'event' }],
      messages: messages.map(([type]) => ({ $ref: `#/channels/webhooks/messages/${type}` })),
    },
  };
}

/** The JSON Schema of a delivery of one event. */
function eventSchema(known: ListedEventType, components: Components): JsonObject {
  const { type, summary } = known;
  const schema = {
    title: `${type}.event`,
    type: 'object',
    description: summary,
    required: ['id', 'type', 'occurred_at', 'seq', 'counter', 'data'],
    properties: {
      id: { type: 'string', description: 'The same for each webhook and at each attempt.' },
      type: { const: type },
      occurred_at: { type: 'string', format: 'date-time' },
      seq: { type: 'integer', description: 'The number of the event for this webhook.' },
      counter: { type: ['string', 'null'], description: 'The trading counter.' },
      data: dataSchema(known, components),
    },
  };
  return published(schema, components);
}

/**
 * The schema of an event's data. One of the ini file is a component of its own, as it is: its
 * titles may be those of others, and its references begin at its root.
 */
function dataSchema({ type, schema, source }: ListedEventType, components: Components): JsonObject {
  if (source !== 'server.ini') return schema;
  const name = `${type}.data`;
  const root = `#/components/schemas/${name}`;
  components.set(name, withRoot(schema, root) as JsonObject);
  return { $ref: root };
}

/** A schema whose local references begin at another root. */
function withRoot(node: Json, root: string): Json {
  if (Array.isArray(node)) return (node as readonly Json[]).map((one) => withRoot(one, root));
  if (!isJsonObject(node)) return node;
  const members = Object.entries(node).map(([name, value]): readonly [string, Json] => {
    if (isInstance(name)) return [name, value];
    if (schemasByName.includes(name) && isJsonObject(value)) {
      const inner = Object.entries(value).map(([key, one]) => [key, withRoot(one, root)] as const);
      return [name, Object.fromEntries(inner)];
    }
    const isReference = name === '$ref' && typeof value === 'string';
    return [name, isReference ? value.replace(/^#/, root) : withRoot(value, root)];
  });
  return Object.fromEntries(members);
}

const signatureHeaders: readonly JsonObject[] = [
  ['webhook-id', 'The id of the event, or of the batch.'],
  ['webhook-timestamp', 'The time of the attempt, in seconds since 1970.'],
  ['webhook-signature', 'The signatures of Standard Webhooks.'],
  ['X-Service-HMAC', 'The HMAC-SHA256 of the content with the secret, in hexadecimal digits.'],
].map(([name = '', description = '']) => ({
  name,
  in: 'header',
  description,
  schema: { type: 'string' },
}));

const responses: JsonObject = {
  '2XX': { description: 'The delivery is complete.' },
  404: { description: 'The delivery is complete.' },
  410: { description: 'The delivery is complete, and the webhook is paused.' },
  413: { description: 'A batch is sent again in two halves.' },
  default: { description: 'The delivery is retried later.' },
};
