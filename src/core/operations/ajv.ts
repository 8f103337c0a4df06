import type { Ajv2020, Options, ValidateFunction } from 'ajv/dist/2020.js';
import {
  oneSchema,
  referenced,
  schemaLists,
  schemasByName,
} from '../../modules/tables/schema-check.ts';
import { hasExactNumber, mapExactNumbers, mapLeaves } from '../values/json/exact-number.ts';
import { type Json, type JsonObject, isJsonObject } from '../values/json/json.ts';
import { loadAjv2020 } from '../values/lazy-packages.ts';
import { parseDateTime } from '../values/time.ts';
import { KIB } from '../values/units.ts';

/**
 * Waymark's own schemas are compiled strictly, but without a check by the meta-schema, whose
 * compilation takes a fifth of a second. The tests check the schemas.
 */
const ownOptions: Options = { strict: true, meta: false, validateSchema: false };

/** Schemas that ajv compiles to one function, in a time that grows with their square. */
export const documentNodesMax = 40;

/** Characters of a text that a `format` is checked in; a longer one is not valid. */
const formatCharactersMax = 8 * KIB;

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

/**
 * The formats that values are checked for (JSON Schema 2020-12 Validation, §7.3); all others are
 * only annotations, as the standard permits.
 */
export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  date: bounded(isDate),
  time: bounded((text) => /^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?$/.test(text)),
  'date-time': bounded((text) => parseDateTime(text) !== undefined),
  email: bounded(isEmail),
  uri: bounded((text) => /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text)),
  uuid: bounded((text) => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)),
};

function bounded(check: (text: string) => boolean): (text: string) => boolean {
  return (text) => text.length <= formatCharactersMax && check(text);
}

/** A day that the calendar has (RFC 3339 §5.6, full-date). */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  // Without a Date, with which the check took 6 % of the time of an import.
  const [year, month, day] = [text.slice(0, 4), text.slice(5, 7), text.slice(8)].map(Number);
  return day !== undefined && day >= 1 && day <= daysOf(year ?? 0, month ?? 0);
}

/** The days of a month, 1 to 12; 0 for another number. */
function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  if (month < 1 || month > 12) return 0;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** As HTML checks the value of `<input type="email">`, but without its pattern. */
function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [local, host] = [text.slice(0, at), text.slice(at + 1)];
  const labels = host.split('.');
  return (
    at > 0 &&
    /^[\w.!#$%&'*+/=?^`{|}~-]+$/.test(local) &&
    labels.every((label) => /^[a-z\d-]{1,63}$/i.test(label) && !/^-|-$/.test(label))
  );
}

/** A message of ajv without the capitals with which it stresses NOT. */
export function wordsOfAjv(message: string | undefined): string | undefined {
  return message?.replace('must NOT', 'must not');
}

/** Makes a function that compiles Waymark's own schemas, each when it is first needed. */
export function createValidators(options: Options): (schema: JsonObject) => ValidateFunction {
  let ajv: Ajv2020 | undefined;
  const compiled = new Map<JsonObject, ValidateFunction>();
  return (schema) => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      ajv ??= new (loadAjv2020().Ajv2020)({ ...ownOptions, ...options });
      validate = ajv.compile(schema);
      compiled.set(schema, validate);
    }
    return validate;
  };
}

/**
 * The input that a function of a schema accepts, with the values that it converts; undefined if it
 * accepts none. A number that no double holds fits only where the schema names no type: for ajv, a
 * bigint stands in its place.
 */
export function validInput(validate: ValidateFunction, v: JsonObject): JsonObject | undefined {
  if (!hasExactNumber(v)) return validate(v) ? v : undefined;
  const numbers: unknown[] = [];
  const replaced = mapExactNumbers(v, (number) => BigInt(numbers.push(number) - 1));
  if (!validate(replaced)) return undefined;
  return mapLeaves(replaced, (value) => {
    return typeof value === 'bigint' ? numbers[Number(value)] : value;
  }) as JsonObject;
}
