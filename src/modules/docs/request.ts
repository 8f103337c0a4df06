import { ndjsonType } from '../../core/http/representation/mediatype.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import type { OperationDescription } from '../../core/operations/operation.ts';
import { envelopeMembers, requestMembers, shownInput } from './envelope.ts';
import { published, textFields, type Components, type TextField } from './schemas.ts';

/**
 * The query parameters of a GET; undefined if a required field does not fit into a query string.
 */
export function queryParameters(
  operation: OperationDescription,
): readonly JsonObject[] | undefined {
  const { query } = operation;
  if (query !== undefined) {
    return Object.entries(query).map(([name, schema]) => queryParameter(name, schema, true));
  }
  return textFields(shownInput(operation))
    ?.map(({ name, schema, isRequired }) =>
      queryParameter(name, schema ?? membersOf(name), isRequired),
    )
    .concat(envelopeParameters(operation, ['qk', 'draft']));
}

/** The named members of the envelope, as far as the operation has them. */
function envelopeParameters(
  operation: OperationDescription,
  names: readonly string[],
): readonly JsonObject[] {
  return Object.entries(envelopeMembers(operation))
    .filter(([name]) => names.includes(name))
    .map(([name, schema]) => queryParameter(`_${name}`, schema as JsonObject, false));
}

function queryParameter(
  name: string,
  { description, ...schema }: JsonObject,
  required: boolean,
): JsonObject {
  return {
    name,
    in: 'query',
    ...(required && { required }),
    ...(description !== undefined && { description }),
    schema,
  };
}

/** The query parameters for the other fields, if the body is one field. */
export function parametersBesideLines(operation: OperationDescription): readonly JsonObject[] {
  const { linesField } = operation;
  const fields = linesField === undefined ? [] : (textFields(shownInput(operation)) ?? []);
  return fields
    .filter(({ name }) => name !== `_v.${linesField}`)
    .map(({ name, schema }) => queryParameter(name, schema ?? membersOf(name), false))
    .concat(linesField === undefined ? [] : envelopeParameters(operation, ['draft']));
}

/** An object in a query string or a form: each member is a parameter of its own. */
function membersOf(name: string): JsonObject {
  return {
    type: 'object',
    description: `An object, as ${name}.<member>=<value>.`,
    patternProperties: { [memberPattern(name)]: { type: 'string' } },
    additionalProperties: false,
  };
}

function memberPattern(name: string): string {
  return `^${name.replaceAll('.', '\\.')}\\.`;
}

/** The preconditions (RFC 9110 §13.1) and preferences of an operation, as parameters. */
export function conditionParameters(
  operation: OperationDescription,
  method: 'get' | 'post',
): readonly JsonObject[] {
  const header = (name: string, description: string): JsonObject => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  });
  const { properties = {} } = shownInput(operation);
  if (method === 'get') {
    const description = 'The ETag of the answer that the caller has already.';
    return operation.etag === undefined ? [] : [header('If-None-Match', description)];
  }
  const strict = 'handling=strict refuses a write with a field that is not valid (RFC 7240).';
  return [
    ...(Object.hasOwn(properties as JsonObject, 'if_seq')
      ? [header('If-Match', 'The write fails unless the record has this ETag, as with if_seq.')]
      : []),
    ...(operation.envelope?.prefer === undefined ? [] : [header('Prefer', strict)]),
  ];
}

/** The envelope of a request as JSON, and as a form if all required fields fit into one. */
export function requestBody(operation: OperationDescription, components: Components): JsonObject {
  const { required, properties } = requestMembers(operation);
  const json = {
    title: `${operation.name}.request`,
    type: 'object',
    ...(required.length > 0 && { required }),
    properties,
  };
  const form = formSchema(operation);
  return {
    required: required.length > 0,
    content: {
      'application/json': { schema: published(json, components) },
      ...(form !== undefined && {
        'application/x-www-form-urlencoded': { schema: published(form, components) },
      }),
      ...(operation.linesField !== undefined && {
        [ndjsonType]: {
          schema: { type: 'string', description: `The field ${operation.linesField}.` },
        },
      }),
    },
  };
}

function formSchema(operation: OperationDescription): JsonObject | undefined {
  const fields = textFields(shownInput(operation));
  if (fields === undefined) return undefined;
  const envelope = Object.entries(envelopeMembers(operation)).map(([name, schema]): TextField => ({
    name: `_${name}`,
    schema: schema as JsonObject,
    isRequired: false,
  }));
  const all = [...fields, ...envelope];
  const objects = all.filter(({ schema }) => schema === undefined);
  const required = all.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  return {
    type: 'object',
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(
      all.flatMap(({ name, schema }) => (schema === undefined ? [] : [[name, schema] as const])),
    ),
    ...(objects.length > 0 && {
      patternProperties: Object.fromEntries(
        objects.map(({ name }) => [memberPattern(name), { type: 'string' }] as const),
      ),
    }),
  };
}
