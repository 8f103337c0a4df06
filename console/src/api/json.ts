import {
  isExactNumber,
  numberOf,
  parseNumbers,
} from '../../../src/core/values/json/exact-number.ts';

/** A value of JSON. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
/** An object of JSON. */
export interface JsonObject {
  readonly [name: string]: Json;
}

/** Parses JSON, with all digits of its numbers. Throws a SyntaxError. */
export function parseJson(text: string): Json {
  return parseNumbers(text) as Json;
}

/** Whether a value is a JSON object: not a number with more digits than a double holds. */
export function isObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)
  );
}

/** The object of a JSON text; undefined for another one. */
export function parsedObject(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The number that a text is, with all its digits; undefined for another text. */
export function typedNumber(text: string): Json | undefined {
  const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);
  return isNumber ? (numberOf(text) as Json | undefined) : undefined;
}
