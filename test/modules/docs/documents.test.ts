import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import asyncApiSpecs from '@asyncapi/specs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv, type AnySchema } from 'ajv';
import { statusOf } from '../../../src/core/http/reply.ts';
import { knownEventTypes } from '../../../src/core/log/events/event-types.ts';
import {
  type OperationDescription,
  defineOperation,
} from '../../../src/core/operations/operation.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { operations } from '../../../src/modules.ts';
import { asyncApi } from '../../../src/modules/docs/asyncapi.ts';
import { type DocumentParts, openApi } from '../../../src/modules/docs/openapi.ts';
import { createEventTypes } from '../../../src/modules/webhooks/event-types.ts';
import type { Document } from './documents.ts';

function documentOf(
  generate: typeof openApi,
  parts: Partial<DocumentParts> = {},
  origin = 'http://localhost:8080',
): Document {
  const all = {
    ...{ operations, version: '1.2.3', base: '', anonymous: ['render'] as const },
    eventTypes: () => types.list(),
    ...parts,
  };
  return JSON.parse(JSON.stringify(generate(all, origin)));
}

/** A type of the ini file, whose schema has a title of Waymark's own and references. */
const shipped = {
  name: 'order.shipped',
  summary: 'An order has left the house.',
  schema: {
    title: 'Rule',
    type: 'object',
    required: ['order'],
    properties: { order: { $ref: '#/$defs/number' }, examples: { $ref: '#/$defs/number' } },
    $defs: { number: { type: 'integer', minimum: 1000 } },
  },
};
const noTables = { of: () => ({ tablesAfter: () => [] }) as never };
const types = createEventTypes([shipped], noTables);

const asyncApiSchema = asyncApiSpecs.schemasWithoutId['3.0.0'] as AnySchema;

/** An operation that is not in the table: the documents name all operations that they get. */
const invented = defineOperation({
  name: 'svc1.hook.replay',
  scope: 'webhook',
  effect: 'reads',
  summary: 'Replays.',
  input: {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string' },
      page: { type: 'integer', nullable: true },
      filter: { type: 'object', nullable: true },
      tags: { type: 'array', items: { type: 'string' }, nullable: true },
    },
  },
  output: { title: 'Replayed', type: 'object', properties: { title: { type: 'string' } } },
  failures: ['not_found'],
  run: () => () => ({ kind: 'data', data: {} }),
});

const places: readonly (readonly [string, Partial<DocumentParts>, string])[] = [
  ['at the root of an origin', {}, 'http://localhost:8080'],
  ['below a base, with TLS', { base: '/shop' }, 'https://shop.example'],
  ['without anonymous callers', { anonymous: [] }, 'http://[::1]:8080'],
  ['with an operation more', { operations: [...operations, invented] }, 'http://localhost'],
];

test('the input of every operation is a JSON Schema', () => {
  const ajv = new Ajv({ strict: true });
  for (const { name, input } of operations) {
    assert.equal(ajv.validateSchema(input), true, `${name}: ${ajv.errorsText()}`);
  }
});

for (const [where, parts, origin] of places) {
  suite(`documents of a server ${where}`, () => {
    test('OpenAPI 3.1: it is valid by the official schema, and every reference leads to a component', async () => {
      const result = await new Validator().validate(documentOf(openApi, parts, origin));
      assert.deepEqual(result, { valid: true });
    });

    test('AsyncAPI 3: it is valid by the official schema, and every reference leads to a component', () => {
      const ajv = new Ajv({ strict: false, validateFormats: false });
      const document = documentOf(asyncApi, parts, origin);
      const isValid = ajv.validate(asyncApiSchema, document);
      assert.ok(isValid, ajv.errorsText());
      for (const pointer of referencesIn(document)) {
        assert.notEqual(lookUp(document, pointer), undefined, pointer);
      }
    });
  });
}

test('the official schemas find mistakes in a document', async () => {
  const http = documentOf(openApi);
  delete http.paths['/svc1/key/list'].get.responses['200'].description;
  assert.equal((await new Validator().validate(http)).valid, false);
  const websocket = documentOf(asyncApi);
  websocket.operations['svc1.key.list'].action = 'answers';
  const ajv = new Ajv({ strict: false, validateFormats: false });
  assert.equal(ajv.validate(asyncApiSchema, websocket), false);
});

suite('every operation of the table is documented', () => {
  const http = documentOf(openApi);
  const websocket = documentOf(asyncApi);

  test('the documents name all of them, and no others', () => {
    const names = operations.map(({ name }) => name);
    const isSpoken = ({ effect, ndjson }: OperationDescription) =>
      effect !== 'streams' || ndjson !== undefined;
    const ids = Object.values<Document>(http.paths).map(({ post }) => post.operationId);
    assert.deepEqual(
      ids,
      operations.filter(isSpoken).map(({ name }) => name),
    );
    const received = Object.entries<Document>(websocket.operations)
      .filter(([, { action }]) => action === 'receive')
      .map(([name]) => name);
    assert.deepEqual(received, names);
  });

  for (const one of operations) {
    const { name, scope, effect, summary, tableDecides } = one;
    test(`${name}: summary, scope, methods, failures`, () => {
      assert.match(summary, /^[A-Z].*[^.]\.$/, 'a summary is one sentence');
      const spoken = websocket.operations[name];
      assert.equal(spoken.summary, summary);
      const isOpen = scope === 'render' || tableDecides === true;
      assert.equal(spoken.security === undefined, scope === undefined || isOpen);
      if (effect === 'streams') {
        const [packet] = Object.values<Document>(websocket.operations).filter(
          ({ action, summary: said }) => action === 'send' && said === summary,
        );
        assert.equal(packet.messages.length, 2, 'packets, and the failure that ends them');
        return;
      }
      const item = Object.values<Document>(http.paths).find(
        ({ post }) => post.operationId === name,
      );
      assert.deepEqual(Object.keys(item), effect === 'reads' ? ['get', 'post'] : ['post']);
      for (const { summary: said, security, responses } of Object.values<Document>(item)) {
        assert.equal(said, summary);
        const anonymous = isOpen ? [{}] : [];
        const keys = [...anonymous, { apikey: [scope] }, { bearer: [scope] }];
        assert.deepEqual(security, scope === undefined ? [{}] : keys);
        assert.ok(responses[200] !== undefined);
        assert.ok(responses[500] !== undefined || responses.default !== undefined);
      }
    });
  }

  test('every code of failure is explained with its status', () => {
    for (const { components } of [http, websocket]) {
      const { code } = components.schemas.Failure.properties;
      assert.deepEqual(code.enum, Object.keys(statusOf));
      for (const [name, status] of Object.entries(statusOf)) {
        assert.match(code.description, new RegExp(`\`${name}\`: .*\\(${status}\\)`));
      }
    }
  });
});

test('both documents have the deliveries of every known event type', () => {
  const { webhooks, components: http } = documentOf(openApi);
  const { channels, components: websocket } = documentOf(asyncApi);
  const names = [...knownEventTypes.map(({ type }) => type), shipped.name];
  assert.deepEqual(Object.keys(webhooks), names);
  assert.deepEqual(Object.keys(channels.webhooks.messages), names);
  for (const { schemas } of [http, websocket]) {
    const root = '#/components/schemas/order.shipped.data';
    assert.deepEqual(schemas['order.shipped.event'].properties.data, { $ref: root });
    const { title, properties } = schemas['order.shipped.data'];
    const number = { $ref: `${root}/$defs/number` };
    assert.deepEqual([title, properties], ['Rule', { order: number, examples: number }]);
  }
  for (const { type, schema } of knownEventTypes) {
    assert.deepEqual(http.schemas[`${type}.event`].properties.data, schema);
    assert.deepEqual(websocket.schemas[`${type}.event`].properties.data, schema);
  }
});

test('a query string can have fields and members of objects, but no lists', () => {
  const { paths, components } = documentOf(openApi, { operations: [invented] });
  const { get, post } = paths['/svc1/hook/replay'];
  assert.deepEqual(get.parameters, [
    { name: '_v.id', in: 'query', required: true, schema: { type: 'string' } },
    { name: '_v.page', in: 'query', schema: { type: 'integer' } },
    {
      name: '_v.filter',
      in: 'query',
      description: 'An object, as _v.filter.<member>=<value>.',
      schema: {
        type: 'object',
        patternProperties: { '^_v\\.filter\\.': { type: 'string' } },
        additionalProperties: false,
      },
    },
  ]);
  assert.deepEqual(
    post.requestBody.content['application/x-www-form-urlencoded'].schema.properties,
    { '_v.id': { type: 'string' }, '_v.page': { type: 'integer' } },
  );
  const { v } = components.schemas['svc1.hook.replay.request'].properties;
  assert.deepEqual(Object.keys(v.properties), ['id', 'page', 'filter', 'tags']);
  assert.deepEqual(components.schemas.Replayed.properties, { title: { type: 'string' } });
});

test('an operation with a required list has no form', () => {
  const { post } = documentOf(openApi).paths['/svc1/key/insert'];
  assert.deepEqual(Object.keys(post.requestBody.content), ['application/json']);
});

test('two schemas with one title are a mistake', () => {
  const other = { ...invented, name: 'svc1.hook.other', output: { title: 'Replayed' } };
  assert.throws(() => documentOf(openApi, { operations: [invented, other] }), /Replayed/);
});

function referencesIn(value: Document): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries<Document>(value).flatMap(([name, one]) =>
    name === '$ref' ? [one as string] : referencesIn(one),
  );
}

function lookUp(document: JsonObject, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .reduce<Document>((at, name) => at?.[name], document);
}
