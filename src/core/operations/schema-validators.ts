import type { Ajv2020, Options, ValidateFunction } from 'ajv/dist/2020.js';
import { hasExactNumber, mapExactNumbers, mapLeaves } from '../values/json/exact-number.ts';
import type { JsonObject } from '../values/json/json.ts';
import { loadAjv2020 } from '../values/lazy-packages.ts';

/**
 * Waymark's own schemas are compiled strictly, but without a check by the meta-schema, whose
 * compilation takes a fifth of a second. The tests check the schemas.
 */
const ownOptions: Options = { strict: true, meta: false, validateSchema: false };

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
