import assert from 'node:assert/strict';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
// oxlint-disable-next-line typescript/no-explicit-any -- a test reads any member
export type Document = any;

/** Fetches a document of a running site. */
export async function fetchDocument(url: string): Promise<Document> {
  const reply = await fetch(url);
  assert.equal(reply.status, 200);
  return reply.json();
}

/** Fails for a value that does not fit the schema in a place of a document. */
export type Check = (place: readonly string[], value: unknown) => void;

/** The checks of all documents so far, without the addresses of their servers: Ajv compiles slowly. */
const checksMade = new Map<string, Check>();

/**
 * Makes the check of values by the schemas of a document. It is stricter than a client has to be:
 * a member that a schema does not name is a mistake.
 */
export function checkAgainst(document: Document): Check {
  const key = JSON.stringify({ ...document, servers: undefined });
  const check = checksMade.get(key) ?? makeCheck(document);
  checksMade.set(key, check);
  return check;
}

function makeCheck(document: Document): Check {
  const { asyncapi } = document as { asyncapi?: string };
  const options = { strict: true, allowUnionTypes: true, allErrors: true };
  const ajv = asyncapi === undefined ? new Ajv2020(options) : new Ajv(options);
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/);
  // The members of the document around the schemas are no keywords of JSON Schema.
  ajv.addVocabulary(Object.keys(document as object));
  ajv.addSchema(closed(document) as object, 'document');
  const checks = new Map<string, ValidateFunction>();
  return (place, value) => {
    const pointer = place.map((one) => one.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
    const check = checks.get(pointer) ?? ajv.compile({ $ref: `document#/${pointer}` });
    checks.set(pointer, check);
    assert.ok(
      check(value),
      `${pointer}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(value)}`,
    );
  };
}

function closed(value: Document): Document {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(closed);
  const inner = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, closed(one)]));
  const { properties, additionalProperties } = value;
  const isObjectSchema = properties !== undefined && additionalProperties === undefined;
  return isObjectSchema ? { ...inner, additionalProperties: false } : inner;
}
