import { statusOf } from '../../core/http/reply.ts';
import type { OperationDescription } from '../../core/operations/operation.ts';
import type { FailureCode } from '../../core/values/failure.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import type { Scope } from '../../core/values/key.ts';
import {
  answerMembers,
  failure,
  failuresOf,
  familyOf,
  isOpen,
  meaningOf,
  scopeSentence,
  unknownMembersText,
} from './envelope.ts';
import type { ListedEventType } from '../webhooks/event-types.ts';
import { openApiWebhooks } from './event-deliveries.ts';
import {
  conditionParameters,
  parametersBesideLines,
  queryParameters,
  requestBody,
} from './request.ts';
import { type Components, published } from './schemas.ts';

/** The parts of a document. */
export interface DocumentParts {
  readonly operations: readonly OperationDescription[];
  readonly version: string;
  /** Prefix before `/svc1`. */
  readonly base: string;
  /** Scopes of a caller without a key. */
  readonly anonymous: readonly Scope[];
  /** The event types of Waymark and of the ini file. */
  readonly eventTypes: () => readonly ListedEventType[];
}

/**
 * The operations over HTTP as an OpenAPI 3.1 document, for a server at an origin. Operations that
 * stream over the websocket only are in the AsyncAPI document alone.
 */
export function openApi(parts: DocumentParts, origin: string): JsonObject {
  const components: Components = new Map();
  const spoken = parts.operations.filter(
    ({ effect, ndjson }) => effect !== 'streams' || ndjson !== undefined,
  );
  const paths = spoken.map((one) => [pathOf(one), pathItem(one, parts, components)] as const);
  const codes = new Set(spoken.filter(({ replies }) => replies === undefined).flatMap(failuresOf));
  const failureAnswer = published(failureEnvelope, components);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Waymark',
      version: parts.version,
      description:
        'Operations over HTTP. The same ones, and those that stream, go over the websocket at ' +
        `${parts.base}/svc1/ws: see ${parts.base}/svc1/asyncapi.json. ${unknownMembersText}`,
    },
    servers: [{ url: `${origin}${parts.base}` }],
    tags: [...new Set(spoken.map(familyOf))].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    webhooks: openApiWebhooks(parts.eventTypes(), components),
    components: {
      schemas: Object.fromEntries(components),
      responses: Object.fromEntries(
        [...codes].map((code) => [code, failureResponse(code, failureAnswer)]),
      ),
      securitySchemes: {
        apikey: { type: 'apiKey', in: 'header', name: 'apikey', description: 'An API key.' },
        bearer: { type: 'http', scheme: 'bearer', description: 'The same key as a bearer token.' },
      },
    },
  };
}

/** The path of an operation below the base; a dot after its family is part of its name. */
function pathOf({ name }: OperationDescription): string {
  const [, family = '', ...own] = name.split('.');
  if (own.length === 0) return `/svc1/${family}`;
  return `/svc1/${own.length === 1 ? `${family}/${own[0] ?? ''}` : [family, ...own].join('.')}`;
}

function pathItem(
  operation: OperationDescription,
  { anonymous }: DocumentParts,
  components: Components,
): JsonObject {
  const { name, summary, scope, effect, ndjson } = operation;
  const shared = {
    tags: [familyOf(operation)],
    summary,
    description: scopeSentence(operation),
    security: [
      ...(isOpen(operation, anonymous) ? [{}] : []),
      ...(scope === undefined ? [] : [{ apikey: [scope] }, { bearer: [scope] }]),
    ],
  };
  const hasGet = effect === 'reads' || ndjson !== undefined;
  const parameters = hasGet ? queryParameters(operation) : undefined;
  const conditions = [
    ...conditionParameters(operation, 'post'),
    ...parametersBesideLines(operation).map((one) => published(one, components)),
  ];
  return {
    ...(parameters !== undefined && {
      get: {
        operationId: `${name}.get`,
        ...shared,
        parameters: [...parameters, ...conditionParameters(operation, 'get')].map((one) =>
          published(one, components),
        ),
        responses: responses(operation, 'get', components),
      },
    }),
    post: {
      operationId: name,
      ...shared,
      ...(conditions.length > 0 && { parameters: conditions }),
      requestBody: requestBody(operation, components),
      responses: responses(operation, 'post', components),
    },
  };
}

function responses(
  operation: OperationDescription,
  method: 'get' | 'post',
  components: Components,
): JsonObject {
  const { replies, etag } = operation;
  if (replies !== undefined) return ownReplies(operation, replies, components);
  const schema = {
    title: `${operation.name}.answer`,
    type: 'object',
    ...answerMembers(operation),
  } as unknown as JsonObject;
  return {
    200: {
      description: 'The answer.',
      ...(etag && { headers: { ETag: header('The validator of the answer.') } }),
      content: { 'application/json': { schema: published(schema, components) } },
    },
    ...(method === 'get' &&
      etag && { 304: { description: 'The caller has this answer already.' } }),
    ...Object.fromEntries(
      failuresOf(operation).map((code) => [
        statusOf[code],
        { $ref: `#/components/responses/${code}` },
      ]),
    ),
  };
}

/** The replies of an operation that returns a page as content of any type. */
function ownReplies(
  operation: OperationDescription,
  replies: Readonly<Record<string, string>>,
  components: Components,
): JsonObject {
  const failures = failuresOf(operation).map((code) => `\`${code}\` (${statusOf[code]})`);
  return Object.fromEntries(
    Object.entries(replies).map(([status, description]) => [
      status,
      {
        description:
          status === 'default' ? `${description} Failures: ${failures.join(', ')}.` : description,
        ...(status.startsWith('3') && { headers: { Location: header('The target.') } }),
        content: {
          ...(status === 'default' && {
            'application/json': { schema: published(failureEnvelope, components) },
          }),
          '*/*': {},
        },
      },
    ]),
  );
}

const failureEnvelope: JsonObject = {
  title: 'FailureAnswer',
  type: 'object',
  required: ['r', 'error'],
  properties: { r: { type: 'string', description: 'The operation.' }, error: failure },
};

const failureFields: Readonly<Partial<Record<FailureCode, JsonObject>>> = {
  unauthenticated: { 'WWW-Authenticate': header('apikey, Bearer') },
  rate_limited: { 'Retry-After': header('Seconds.') },
  unavailable: { 'Retry-After': header('Seconds.') },
};

function failureResponse(code: FailureCode, schema: Json): JsonObject {
  const headers = failureFields[code];
  return {
    description: meaningOf(code),
    ...(headers && { headers }),
    content: { 'application/json': { schema } },
  };
}

function header(description: string): JsonObject {
  return { description, schema: { type: 'string' } };
}
