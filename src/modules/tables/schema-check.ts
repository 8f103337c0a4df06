import { isExactNumber } from '../../core/values/json/exact-number.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { nearestName } from '../../core/values/nearest.ts';

/** Objects and lists in a schema; compiling takes time in proportion. */
const schemaNodesMax = 5_000;

/** Parts of a schema that check one row, each as often as a `$ref` leads to it. */
const schemaChecksMax = 20_000;

/** Names that compiled code compares with each other: the sum of the squares of their numbers. */
const schemaPairsMax = 500_000;

/** Schemas that a `$ref` leads through one after another. */
const schemaDepthMax = 256;

/** A mistake in a schema: a JSON pointer (RFC 6901) below the schema, and a sentence about it. */
interface SchemaMistake {
  readonly at: string;
  readonly message: string;
}

/** Keywords of JSON Schema 2020-12 whose value is a schema. */
export const oneSchema: readonly string[] = [
  ...['additionalProperties', 'contains', 'contentSchema', 'else', 'if', 'items', 'not'],
  ...['propertyNames', 'then', 'unevaluatedItems', 'unevaluatedProperties'],
];
/** Keywords whose value has schemas by name. */
export const schemasByName: readonly string[] = [
  '$defs',
  'definitions',
  'dependentSchemas',
  'patternProperties',
  'properties',
];
const choices = ['allOf', 'anyOf', 'oneOf'];
/** Keywords whose value is a list of schemas. */
export const schemaLists: readonly string[] = [...choices, 'prefixItems'];
const plainKeywords = [
  ...['$comment', '$ref', '$schema', 'const', 'contentEncoding', 'contentMediaType', 'default'],
  ...['dependentRequired', 'deprecated', 'description', 'enum', 'examples', 'exclusiveMaximum'],
  ...['exclusiveMinimum', 'format', 'maxContains', 'maxItems', 'maxLength', 'maxProperties'],
  ...['maximum', 'minContains', 'minItems', 'minLength', 'minProperties', 'minimum', 'multipleOf'],
  ...['pattern', 'readOnly', 'required', 'title', 'type', 'uniqueItems', 'writeOnly'],
];
const keywords = [...oneSchema, ...schemasByName, ...schemaLists, ...plainKeywords];
/** They make references that lead to other places than the reader sees. */
const refusedKeywords = ['$anchor', '$dynamicAnchor', '$dynamicRef', '$id', '$vocabulary'];

const dialect = 'https://json-schema.org/draft/2020-12/schema';

/**
 * Finds what the standard permits in a schema and a table does not: unknown keywords that do not
 * begin with `x-`, references to other documents, and references in a circle.
 */
export function schemaMistakes(schema: JsonObject): readonly SchemaMistake[] {
  const { $schema: named } = schema;
  if (named !== undefined && named !== dialect && named !== `${dialect}#`) {
    return [{ at: '/$schema', message: `$schema can only be ${dialect}.` }];
  }
  const nodes = subschemas(schema);
  if (nodes.length > schemaNodesMax) {
    return [{ at: '', message: `The schema has more than ${schemaNodesMax} parts.` }];
  }
  const mistakes = nodes.flatMap(({ at, node }) => keywordMistakes(at, node, schema));
  if (mistakes.length > 0) return mistakes;
  const circle = circles(schema);
  if (circle.length > 0) return circle;
  return [...tooManyChecks(schema), ...tooManyComparisons(nodes)];
}

/**
 * Finds keywords whose names ajv compares, in a chain as long as their list: compiling takes time
 * with the square of that.
 */
function tooManyComparisons(nodes: readonly SchemaNode[]): readonly SchemaMistake[] {
  const namesOf = (value: Json | undefined): number =>
    isJsonObject(value) ? Object.keys(value).length : 0;
  const allNames = nodes.reduce((sum, { node }) => sum + namesOf(node.properties), 0);
  const chains = nodes.flatMap(({ at, node }) => {
    const { patternProperties, dependentRequired, unevaluatedProperties: rest } = node;
    const lists = Object.values(isJsonObject(dependentRequired) ? dependentRequired : {});
    return [
      { at: `${at}/patternProperties`, names: namesOf(patternProperties) },
      { at: `${at}/unevaluatedProperties`, names: rest === undefined ? 0 : allNames },
      ...lists.map((list) => {
        return { at: `${at}/dependentRequired`, names: Array.isArray(list) ? list.length : 0 };
      }),
    ];
  });
  const pairs = chains.reduce((sum, { names }) => sum + names ** 2, 0);
  const [longest] = chains.toSorted((one, other) => other.names - one.names);
  if (pairs <= schemaPairsMax || longest === undefined) return [];
  const message =
    `${longest.names} names are compared here; the squares of such numbers may sum to ` +
    `${schemaPairsMax} in a schema. Use fewer names.`;
  return [{ at: longest.at, message }];
}

/** Finds references that multiply: each can double how often a row is checked. */
function tooManyChecks(schema: JsonObject): readonly SchemaMistake[] {
  const known = new Map<JsonObject, { readonly checks: number; readonly depth: number }>();
  const sizeOf = (one: SchemaNode): { readonly checks: number; readonly depth: number } => {
    const counted = known.get(one.node);
    if (counted !== undefined) return counted;
    const inner = edges(one, schema).map(({ target }) => sizeOf(target));
    const checks = inner.reduce((sum, each) => sum + each.checks, 1);
    const depth = 1 + Math.max(0, ...inner.map((each) => each.depth));
    known.set(one.node, { checks, depth });
    return { checks, depth };
  };
  const { checks, depth } = sizeOf({ at: '', node: schema });
  if (depth > schemaDepthMax) return [{ at: '', message: tooDeep }];
  if (checks <= schemaChecksMax) return [];
  const message =
    `A row would be checked by more than ${schemaChecksMax} parts of the schema, because its ` +
    '$ref repeat each other. Refer to each definition fewer times.';
  return [{ at: '', message }];
}

const tooDeep = `Its $ref lead through more than ${schemaDepthMax} schemas. Shorten the chain.`;

/** A schema inside a schema. */
interface SchemaNode {
  readonly at: string;
  readonly node: JsonObject;
}

function subschemas(schema: JsonObject): readonly SchemaNode[] {
  const found: SchemaNode[] = [{ at: '', node: schema }];
  for (let next = 0; next < found.length && found.length <= schemaNodesMax; next += 1) {
    const one = found[next];
    if (one !== undefined) found.push(...innerSchemas(one));
  }
  return found;
}

function innerSchemas({ at, node }: SchemaNode): readonly SchemaNode[] {
  return Object.entries(node).flatMap(([keyword, value]): readonly SchemaNode[] => {
    const place = `${at}/${keyword}`;
    if (oneSchema.includes(keyword)) return isJsonObject(value) ? [{ at: place, node: value }] : [];
    const inner = schemasByName.includes(keyword)
      ? Object.entries(isJsonObject(value) ? value : {})
      : schemaLists.includes(keyword) && Array.isArray(value)
        ? (value as readonly Json[]).map((one, index) => [String(index), one] as const)
        : [];
    return inner.flatMap(([name, one]) =>
      isJsonObject(one) ? [{ at: `${place}/${pointerPart(name)}`, node: one }] : [],
    );
  });
}

function keywordMistakes(
  at: string,
  node: JsonObject,
  schema: JsonObject,
): readonly SchemaMistake[] {
  return Object.entries(node).flatMap(([keyword, value]): readonly SchemaMistake[] => {
    const place = `${at}/${pointerPart(keyword)}`;
    if (refusedKeywords.includes(keyword)) {
      return [{ at: place, message: `${keyword} is not supported: use $ref with #/$defs/….` }];
    }
    if (keyword === '$ref') return referenceMistakes(place, value, schema);
    if (keyword.startsWith('x-') || keywords.includes(keyword)) return [];
    const nearest = nearestName(keyword, keywords);
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    const own = 'Names of your own begin with x-.';
    return [{ at: place, message: `${keyword} is no keyword of JSON Schema.${hint} ${own}` }];
  });
}

function referenceMistakes(at: string, value: Json, schema: JsonObject): readonly SchemaMistake[] {
  if (typeof value !== 'string' || !/^#(?:\/|$)/.test(value)) {
    return [{ at, message: '$ref can only lead to a part of the same schema: #/$defs/name.' }];
  }
  if (isJsonObject(referenced(schema, value))) return [];
  return [{ at, message: `There is no schema at ${value}.` }];
}

/** The part of a schema that a `$ref` names; undefined if there is none. */
export function referenced(schema: JsonObject, reference: string): Json | undefined {
  let found: Json | undefined = schema;
  for (const part of reference.split('/').slice(1)) {
    const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(found)) found = (found as readonly Json[])[Number(name)];
    else if (isJsonObject(found) && Object.hasOwn(found, name)) found = found[name];
    else return undefined;
  }
  return found;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Finds the first `$ref` that leads back to a schema around it. */
function circles(schema: JsonObject): readonly SchemaMistake[] {
  const done = new Set<JsonObject>();
  const open = new Set<JsonObject>();
  const visit = (one: SchemaNode): SchemaMistake | undefined => {
    if (done.has(one.node)) return undefined;
    if (open.size > schemaDepthMax) return { at: one.at, message: tooDeep };
    open.add(one.node);
    for (const { via, target } of edges(one, schema)) {
      const message = 'It leads back to a schema around it, but rows cannot nest in a circle.';
      const found = open.has(target.node) ? { at: via.at, message } : visit(target);
      if (found !== undefined) return found;
    }
    open.delete(one.node);
    done.add(one.node);
    return undefined;
  };
  const found = visit({ at: '', node: schema });
  return found === undefined ? [] : [found];
}

/** The schemas that a value at one schema has to be valid for, too. */
function edges(
  one: SchemaNode,
  schema: JsonObject,
): readonly { readonly via: SchemaNode; readonly target: SchemaNode }[] {
  const { $ref: reference } = one.node;
  const inner = innerSchemas(one)
    .filter(({ at }) => !/^\/(?:\$defs|definitions)\//.test(at.slice(one.at.length)))
    .map((target) => ({ via: target, target }));
  if (typeof reference !== 'string') return inner;
  const node = referenced(schema, reference);
  if (!isJsonObject(node)) return inner;
  const at = `${one.at}/$ref`;
  return [...inner, { via: { at, node }, target: { at, node } }];
}

/**
 * The names of the properties of a schema that are writeOnly, or have a part that is: also those
 * that a schema for the same row says so about, in `allOf` or behind a `$ref`.
 */
export function writeOnlyFields(schema: JsonObject): readonly string[] {
  const found = new Set<string>();
  const ofRow = new Set([schema]);
  // A set also iterates over what is added meanwhile.
  for (const node of ofRow) {
    for (const one of schemasOfSameValue(schema, node)) ofRow.add(one);
    for (const [name, part] of Object.entries(isJsonObject(node.properties) ? node.properties : {}))
      if (isJsonObject(part) && reachable(schema, part).some((one) => one.writeOnly === true))
        found.add(name);
  }
  return [...found];
}

/** The schemas inside one that describe the same value. */
function schemasOfSameValue(schema: JsonObject, node: JsonObject): readonly JsonObject[] {
  const { $ref: reference, dependentSchemas } = node;
  const inner: readonly (Json | undefined)[] = [
    ...choices.flatMap((name) => (node[name] ?? []) as readonly Json[]),
    ...['if', 'then', 'else', 'not'].map((name) => node[name]),
    ...Object.values(isJsonObject(dependentSchemas) ? dependentSchemas : {}),
    typeof reference === 'string' ? referenced(schema, reference) : undefined,
  ];
  return inner.filter(isJsonObject);
}

/** A schema without circles, with all schemas inside it and those that it refers to. */
function reachable(schema: JsonObject, part: JsonObject): readonly JsonObject[] {
  const found = new Set([part]);
  // A set also iterates over what is added meanwhile.
  for (const node of found) {
    for (const { target } of edges({ at: '', node }, schema)) found.add(target.node);
  }
  return [...found];
}

/** The types that a value of a schema can have; undefined if the schema does not say. */
export function typesOf(
  schema: JsonObject,
  part: Json | undefined,
  known = new Map<JsonObject, ReadonlySet<string> | undefined>(),
): ReadonlySet<string> | undefined {
  if (!isJsonObject(part)) return undefined;
  if (!known.has(part)) {
    const inner = (one: Json | undefined) => typesOf(schema, one, known);
    known.set(part, statedTypes(schema, part, inner));
  }
  return known.get(part);
}

function statedTypes(
  schema: JsonObject,
  { type, $ref: reference, const: only, enum: values, anyOf, oneOf, allOf }: JsonObject,
  inner: (part: Json | undefined) => ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  if (typeof type === 'string') return new Set([type]);
  if (Array.isArray(type)) return new Set(type as readonly string[]);
  if (only !== undefined) return new Set([typeOf(only)]);
  if (Array.isArray(values)) return new Set((values as readonly Json[]).map(typeOf));
  if (typeof reference === 'string') return inner(referenced(schema, reference));
  const among = [anyOf, oneOf].find((one) => Array.isArray(one)) as readonly Json[] | undefined;
  if (among !== undefined) {
    const all = among.map(inner);
    return all.includes(undefined) ? undefined : new Set(all.flatMap((one) => [...(one ?? [])]));
  }
  const parts = (Array.isArray(allOf) ? allOf : []) as readonly Json[];
  return parts.map(inner).find((one) => one !== undefined);
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  if (isExactNumber(value)) return 'number';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** A name as a part of a JSON pointer. */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
