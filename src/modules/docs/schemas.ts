import type { OperationDescription } from '../../core/operations/operation.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { shownInput } from './envelope.ts';

const knownInputs: Readonly<Record<string, JsonObject>> = {
  'svc1.userinterface.insert': { path: '/hello', kind: 'content', content: '<h1>Hello</h1>' },
  'svc1.userinterface.edit': { id: '0198…', content: '<h1>Hello again</h1>' },
  'svc1.userinterface.explain': { url: 'http://localhost:8080/hello' },
  'svc1.webhook.insert': { event: ['sale.completed'], url: 'https://books.example.com/hook' },
  'svc1.event.insert': { type: 'sale.completed', data: { id: 'S-1042' } },
  'svc1.cache.purge': { url: 'https://www.example.com/news' },
  'svc1.key.insert': { name: 'deploy', scopes: ['design', 'read'] },
  'svc1.breadcrumb.token': { k: 'summer', user: 'anna', until: '2999-12-31T18:00Z' },
  'svc1.webhook.edit': { id: '0198…', active: false },
};

/** Named schemas of a document, in the order of their first use. */
export type Components = Map<string, JsonObject>;

/**
 * A schema for a document, in keywords that JSON Schema 2020-12 (OpenAPI 3.1) and draft-07
 * (AsyncAPI 3) share: without `nullable`, which only ajv's types need, and without null in an
 * `enum`. A schema with a title becomes a component, and a reference takes its place.
 */
export function published(schema: JsonObject, components: Components): JsonObject {
  const { nullable, ...members } = schema;
  const shown = Object.fromEntries(
    Object.entries(members).map(([name, value]) => {
      if (name !== 'enum' || nullable !== true) {
        return [name, publishedValue(name, value, components)] as const;
      }
      return [name, (value as readonly Json[]).filter((one) => one !== null)] as const;
    }),
  );
  const { title } = shown;
  if (typeof title !== 'string') return shown;
  const known = components.get(title);
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(shown)) {
    throw new TypeError(`two schemas are called ${title}`);
  }
  components.set(title, shown);
  return { $ref: `#/components/schemas/${title}` };
}

/** Keywords whose values are instances, not schemas. */
const instances: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples']);

/** Keywords with members by name: a property may have the name `title`. */
const schemasByName: ReadonlySet<string> = new Set(['properties', 'patternProperties']);

/** Whether a keyword's value is an instance, or a list of them, and no schema. */
export function isInstance(keyword: string): boolean {
  return instances.has(keyword);
}

function publishedValue(keyword: string, value: Json, components: Components): Json {
  if (isInstance(keyword)) return value;
  if (Array.isArray(value)) {
    return (value as readonly Json[]).map((one) => publishedValue('', one, components));
  }
  if (!isJsonObject(value)) return value;
  if (!schemasByName.has(keyword)) return published(value, components);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, publishedValue('', one, components)]),
  );
}

/** A field of an input in a query string or a form. */
export interface TextField {
  /** Its name with `_v.` before it. */
  readonly name: string;
  readonly isRequired: boolean;
  /** Undefined for an object, whose members are named `<name>.<member>`. */
  readonly schema: JsonObject | undefined;
}

/**
 * The fields of an input that a query string or form can have; undefined if a required one, such as
 * a list, cannot be in it.
 */
export function textFields({
  properties = {},
  required = [],
}: JsonObject): readonly TextField[] | undefined {
  const fields: TextField[] = [];
  for (const [field, schema] of Object.entries(
    properties as Readonly<Record<string, JsonObject>>,
  )) {
    const isRequired = (required as readonly Json[]).includes(field);
    const form = textForm(schema);
    if (form !== undefined) fields.push({ name: `_v.${field}`, isRequired, ...form });
    else if (isRequired) return undefined;
  }
  return fields;
}

/** The first form of a value that is one text, or else an object of texts. */
function textForm(schema: JsonObject): Pick<TextField, 'schema'> | undefined {
  const forms = formsOf(schema);
  const scalar = forms.find(({ type }) => isScalar(type));
  if (scalar === undefined) {
    return forms.some(({ type }) => type === 'object') ? { schema: undefined } : undefined;
  }
  const description = schema.description ?? scalar.description;
  return { schema: { ...scalar, ...(description !== undefined && { description }) } };
}

function formsOf(schema: JsonObject): readonly JsonObject[] {
  const { oneOf, description } = schema;
  if (oneOf === undefined) return [schema];
  const common = description === undefined ? {} : { description };
  return (oneOf as readonly JsonObject[]).flatMap(formsOf).map((form) => ({ ...common, ...form }));
}

function isScalar(type: Json | undefined): boolean {
  return typeof type === 'string' && !['null', 'object', 'array'].includes(type);
}

/** An input with the required fields, and those that make it useful. */
export function exampleInput(operation: OperationDescription): JsonObject {
  const known = knownInputs[operation.name];
  if (known !== undefined) return known;
  const { required = [], properties = {} } = shownInput(operation);
  const names = required as readonly string[];
  return Object.fromEntries(
    names.map((name) => {
      const schema = (properties as Readonly<Record<string, Json>>)[name];
      return [name, exampleValue(name, isJsonObject(schema) ? schema : {})];
    }),
  );
}

function exampleValue(name: string, schema: JsonObject): Json {
  const known: Readonly<Record<string, Json>> = {
    id: '0198…',
    k: 'summer',
    path: '/hello',
    origin: 'http://localhost:8080',
    apikey: 'wmk_…',
  };
  const { examples, enum: values, type } = schema;
  if (Array.isArray(examples)) return (examples as readonly Json[])[0] ?? null;
  if (Array.isArray(values)) return (values as readonly Json[])[0] ?? null;
  if (known[name] !== undefined) return known[name];
  if (type === 'array') return [];
  if (type === 'integer' || type === 'number') return 1;
  return type === 'object' ? {} : '…';
}
