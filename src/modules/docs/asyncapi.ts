import type { Json, JsonObject } from '../../core/values/json/json.ts';
import {
  readBodyBytesMax,
  requestTimeoutMs,
  socketFrameBytesMax,
  socketPingMs,
  socketRequestsInFlightMax,
} from '../../core/operations/limits.ts';
import type { OperationDescription } from '../../core/operations/operation.ts';
import {
  answerMembers,
  failure,
  familyOf,
  isOpen,
  requestMembers,
  scopeSentence,
  unknownMembersText,
} from './envelope.ts';
import { asyncApiWebhooks } from './event-deliveries.ts';
import type { DocumentParts } from './openapi.ts';
import { published, type Components } from './schemas.ts';

/**
 * The operations over the websocket as an AsyncAPI 3 document, for a server at an origin. It takes
 * the server's view: the server receives requests, and sends answers and packets.
 */
export function asyncApi(
  { operations, version, base, anonymous, eventTypes }: DocumentParts,
  origin: string,
): JsonObject {
  const components: Components = new Map();
  const { host, protocol } = new URL(origin);
  const messages = new Map<string, JsonObject>();
  const add = ({ name, ...message }: Message): JsonObject => {
    messages.set(name, { name, ...message, payload: published(message.payload, components) });
    return { $ref: `#/channels/ws/messages/${name}` };
  };
  const failed = add(failureMessage);
  const all = operations.flatMap((one) => {
    const needsKey = !isOpen(one, anonymous);
    return operationEntries(one, { add, failed, needsKey });
  });
  const webhooks = asyncApiWebhooks(eventTypes(), components);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Waymark',
      version,
      description:
        'Operations over the websocket, and the packets of those that stream. ' +
        unknownMembersText,
    },
    defaultContentType: 'application/json',
    servers: {
      here: {
        host,
        protocol: protocol === 'https:' ? 'wss' : 'ws',
        ...(base !== '' && { pathname: base }),
      },
    },
    channels: {
      ws: { ...channel, messages: Object.fromEntries(messages) },
      webhooks: webhooks.channel,
    },
    operations: { ...Object.fromEntries(all), deliver: webhooks.operation },
    components: {
      schemas: Object.fromEntries(components),
      securitySchemes: {
        apikey: {
          type: 'httpApiKey',
          in: 'header',
          name: 'apikey',
          description:
            'An API key, in the header field of the upgrade (or as a bearer token there), ' +
            'or by svc1.session.authenticate.',
        },
      },
    },
  };
}

const channel: JsonObject = {
  address: '/svc1/ws',
  title: 'The websocket',
  description: [
    'Envelopes are JSON in text frames. Answers may overtake each other: the answer, the failure',
    'and the packets of a request have its id.',
    `The server runs up to ${socketRequestsInFlightMax} requests at a time, others wait. A message`,
    `has at most ${socketFrameBytesMax} bytes, ${readBodyBytesMax} from a caller that may not`,
    `write, and ${requestTimeoutMs / 1000} s to become whole. The server pings every`,
    `${socketPingMs / 1000} s.`,
    'It closes with 1001 when it stops, 1003 for a binary frame, 1008 if the caller may no longer',
    'read its changes or a message takes too long, 1009 for a message that is too large, 1011 if',
    'it cannot read the changes, and 1013 if the client does not read fast enough or a limit is',
    'reached.',
  ].join(' '),
  servers: [{ $ref: '#/servers/here' }],
  bindings: {
    ws: {
      method: 'GET',
      headers: {
        type: 'object',
        properties: { apikey: { type: 'string', description: 'An API key.' } },
      },
      bindingVersion: '0.1.0',
    },
  },
};

interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary?: string;
  readonly correlationId: JsonObject;
  readonly payload: JsonObject;
}

const correlationId: JsonObject = { location: '$message.payload#/id' };
const id: JsonObject = { description: 'Any JSON value; the answer has the same one.' };

const failureMessage: Message = {
  name: 'failure',
  title: 'A failure',
  summary: 'Comes in place of an answer, or in place of further packets of a request that streams.',
  correlationId,
  payload: {
    title: 'FailureAnswer',
    type: 'object',
    required: ['r', 'error'],
    properties: {
      r: { type: 'string', description: 'The operation, if the request named one.' },
      error: failure,
      id,
    },
  },
};

function operationEntries(
  operation: OperationDescription,
  {
    add,
    failed,
    needsKey,
  }: {
    readonly add: (message: Message) => JsonObject;
    readonly failed: JsonObject;
    readonly needsKey: boolean;
  },
): readonly (readonly [string, JsonObject])[] {
  const { name, summary, packets } = operation;
  const shared = {
    channel: { $ref: '#/channels/ws' },
    summary,
    tags: [{ name: familyOf(operation) }],
  };
  const asked: JsonObject = {
    action: 'receive',
    ...shared,
    description: scopeSentence(operation),
    ...(needsKey && { security: [{ $ref: '#/components/securitySchemes/apikey' }] }),
    messages: [add(requestMessage(operation))],
    reply: {
      channel: { $ref: '#/channels/ws' },
      messages: [add(answerMessage(operation)), failed],
    },
  };
  if (packets === undefined) return [[name, asked]];
  const sent: JsonObject = {
    action: 'send',
    ...shared,
    messages: [add(packetMessage(operation, packets)), failed],
  };
  return [
    [name, asked],
    [packets.r, sent],
  ];
}

function requestMessage(operation: OperationDescription): Message {
  const { required, properties } = requestMembers(operation);
  return message(operation.name, 'request', {
    required: ['a', ...required],
    properties: { a: { const: operation.name }, ...properties, id },
  });
}

function answerMessage(operation: OperationDescription): Message {
  const { required, properties } = answerMembers(operation);
  return message(operation.name, 'answer', { required, properties: { ...properties, id } });
}

function packetMessage(
  { name }: OperationDescription,
  { r, data }: NonNullable<OperationDescription['packets']>,
): Message {
  const of = message(r, 'packet', {
    required: ['r', 'data'],
    properties: { r: { const: r }, data, id },
  });
  return { ...of, summary: `Follows the answer to ${name}, one for each change that matches.` };
}

function message(
  name: string,
  role: 'request' | 'answer' | 'packet',
  members: { readonly required: readonly Json[]; readonly properties: JsonObject },
): Message {
  const title = `${name}.${role}`;
  return {
    name: title,
    title: `${name}: ${role}`,
    correlationId,
    payload: { title, type: 'object', ...members },
  };
}
