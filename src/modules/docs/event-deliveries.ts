import { knownEventTypes, type KnownEventType } from '../../core/log/events/event-types.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { published, type Components } from './schemas.ts';

/**
 * The deliveries of the known event types as webhooks of an OpenAPI document
 * (docs/design/webhooks.md#deliveries), by event type.
 */
export function openApiWebhooks(components: Components): JsonObject {
  const webhooks = knownEventTypes.map((known) => {
    const delivery = {
      summary: known.summary,
      tags: ['event'],
      parameters: signatureHeaders,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: published(eventSchema(known), components) } },
      },
      responses,
    };
    return [known.type, { post: delivery }] as const;
  });
  return Object.fromEntries(webhooks);
}

/** The same deliveries as a channel and an operation of an AsyncAPI document. */
export function asyncApiWebhooks(components: Components): {
  readonly channel: JsonObject;
  readonly operation: JsonObject;
} {
  const messages = knownEventTypes.map((known) => {
    const payload = published(eventSchema(known), components);
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
function eventSchema({ type, summary, schema }: KnownEventType): JsonObject {
  return {
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
      data: schema,
    },
  };
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
