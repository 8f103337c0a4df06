import { type Json, type JsonObject, isJsonObject } from './json.ts';

/** Examples of texts by their format (JSON Schema 2020-12 Validation §7.3). */
const texts: Readonly<Record<string, string>> = {
  'date-time': '2026-12-01T07:00:00Z',
  date: '2026-12-01',
  time: '07:00:00Z',
  email: 'ada@example.com',
  uri: 'https://www.example.com/',
  uuid: '0198f2a4-7c1b-7000-8000-000000000000',
};

/**
 * A value for a JSON Schema: its first example, default, constant or choice, or else one of its
 * type. It follows no `$ref` and no pattern, so it may not be valid.
 */
export function exampleOf(schema: Json | undefined): Json {
  if (!isJsonObject(schema)) return null;
  const stated = statedValue(schema);
  if (stated !== undefined) return stated;
  const [type] = [schema.type].flat() as readonly (Json | undefined)[];
  if (type === 'object' || schema.properties !== undefined) return exampleObject(schema);
  if (type === 'array') return schema.items === undefined ? [] : [exampleOf(schema.items)];
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  if (type === 'boolean') return true;
  if (type !== 'string') return null;
  return typeof schema.format === 'string' ? (texts[schema.format] ?? '…') : '…';
}

/** The value that a schema names itself. */
function statedValue(schema: JsonObject): Json | undefined {
  const { examples, default: standard, const: constant, enum: choices, oneOf, anyOf } = schema;
  for (const list of [examples, choices]) {
    if (Array.isArray(list) && list.length > 0) return (list as readonly Json[])[0];
  }
  if (standard !== undefined) return standard;
  if (constant !== undefined) return constant;
  const alternatives = oneOf ?? anyOf;
  return Array.isArray(alternatives) ? exampleOf((alternatives as readonly Json[])[0]) : undefined;
}

function exampleObject({ properties = {} }: JsonObject): JsonObject {
  const members = Object.entries(isJsonObject(properties) ? properties : {});
  return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(member)]));
}
