import { isJsonObject, type Json, type JsonObject } from '../model/json.ts';
import { documentNodesMax } from './limits.ts';
import { oneSchema, referenced, schemaLists, schemasByName } from './schema-check.ts';

/** A schema as documents that refer to each other. */
interface SchemaDocuments {
  /** The documents by name; a `$ref` in one is the name of another. */
  readonly documents: ReadonlyMap<string, Json>;
  /** The name of the document of the whole row. */
  readonly row: string;
  /** The names of the documents of its properties, by property. */
  readonly fields: ReadonlyMap<string, string>;
}

/**
 * Splits a schema that schemaMistakes has accepted into short documents. ajv makes one function of
 * a document, in a time that grows with the square of its length, and one of each document however
 * many references lead to it.
 */
export function schemaDocuments(schema: JsonObject): SchemaDocuments {
  const documents = new Map<string, Json>();
  const names = new Map<Json, string>();
  const add = (content: Json, name = `part-${documents.size}`): string => {
    documents.set(name, content);
    return name;
  };
  const documentOf = (node: Json): string => {
    const known = names.get(node);
    if (known !== undefined) return known;
    const name = add(true);
    if (isJsonObject(node)) names.set(node, name);
    return add(split(node).content, name);
  };

  function split(node: Json): SplitSchema {
    if (!isJsonObject(node)) return { content: node, size: 1 };
    let size = 1;
    const inner = (one: Json): Json => {
      const name = names.get(one);
      const part = name === undefined ? split(one) : { content: { $ref: name }, size: 1 };
      const isOwn = size + part.size > documentNodesMax && part.size > 1;
      size += isOwn ? 1 : part.size;
      return isOwn ? { $ref: add(part.content) } : part.content;
    };
    const members = Object.entries(node).flatMap(([keyword, value]) => {
      // References name their documents.
      if (keyword === '$defs' || keyword === 'definitions') return [];
      return [[keyword, splitValue(keyword, value, inner)] as const];
    });
    return { content: Object.fromEntries(members), size };
  }

  function splitValue(keyword: string, value: Json, inner: (one: Json) => Json): Json {
    if (keyword === '$ref' && typeof value === 'string') {
      return documentOf(referenced(schema, value) ?? true);
    }
    if (oneSchema.includes(keyword)) return inner(value);
    if (schemaLists.includes(keyword) && Array.isArray(value)) {
      return grouped(keyword, value as readonly Json[]).map(inner);
    }
    if (!schemasByName.includes(keyword) || !isJsonObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inner(one)]));
  }

  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const fields = Object.entries(properties).map(([name, one]) => [name, documentOf(one)] as const);
  return { documents, fields: new Map(fields), row: documentOf(schema) };
}

/** A schema with references in place of some schemas inside it, and the number of the others. */
interface SplitSchema {
  readonly content: Json;
  readonly size: number;
}

/** A long list of `allOf` or `anyOf` as a list of such lists, which means the same. */
function grouped(keyword: string, list: readonly Json[]): readonly Json[] {
  if (list.length <= documentNodesMax || (keyword !== 'allOf' && keyword !== 'anyOf')) return list;
  const groups: Json[] = [];
  for (let at = 0; at < list.length; at += documentNodesMax) {
    groups.push({ [keyword]: list.slice(at, at + documentNodesMax) });
  }
  return grouped(keyword, groups);
}
