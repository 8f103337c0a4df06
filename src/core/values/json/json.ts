import {
  canonicalNumber,
  compareNumbers,
  isExactNumber,
  type ExactNumber,
} from './exact-number.ts';

/** A JSON value as `parseJson` returns it. */
export type Json = null | boolean | number | ExactNumber | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [name: string]: Json;
}

/** Whether a value is a JSON object: not an array, not null, not a number. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isNested(value) && !Array.isArray(value);
}

/** Whether a value is a number, whether a double holds it or not. */
export function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === 'number' || isExactNumber(value);
}

/** Whether a value is an array or an object. */
export function isNested(value: unknown): value is readonly Json[] | JsonObject {
  return typeof value === 'object' && value !== null && !isExactNumber(value);
}

/**
 * The canonical text of a JSON value (RFC 8785): equal values have equal texts, exact numbers too.
 * Throws a TypeError for text that is not Unicode, and for numbers that JSON cannot write.
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonicalJson).join()}]`;
  if (isJsonObject(value)) {
    const names = Object.keys(value).filter((name) => value[name] !== undefined);
    // The order of their UTF-16, which is that of JavaScript.
    const members = names.toSorted(byUnits).map((name) => {
      return `${canonicalText(name)}:${canonicalJson(value[name] as Json)}`;
    });
    return `{${members.join()}}`;
  }
  if (typeof value === 'string') return canonicalText(value);
  if (isExactNumber(value)) return canonicalNumber(value);
  const isFinite = typeof value === 'number' && Number.isFinite(value);
  if (isFinite || value === null || typeof value === 'boolean') return JSON.stringify(value);
  throw new TypeError('not a JSON value');
}

function byUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function canonicalText(text: string): string {
  if (text.isWellFormed()) return JSON.stringify(text);
  throw new TypeError('half a surrogate pair');
}

/** An object with these members. A plain assignment of `__proto__` would make no member. */
export function objectOf(members: ReadonlyMap<string, Json>): JsonObject {
  const object: Record<string, Json> = {};
  members.forEach((value, name) => {
    if (name === '__proto__') {
      const member = { value, configurable: true, enumerable: true, writable: true };
      Object.defineProperty(object, name, member);
    } else object[name] = value;
  });
  return object;
}

/** The members of an object, in their order. */
export function mapOf(object: JsonObject): Map<string, Json> {
  const members = new Map<string, Json>();
  for (const name of Object.keys(object)) members.set(name, object[name] as Json);
  return members;
}

/** Whether two JSON values are equal; the order of members does not matter. */
export function sameJson(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    const others = other as readonly Json[];
    return (one as readonly Json[]).every((item, at) => sameJson(item, others[at]));
  }
  if (isExactNumber(one) || isExactNumber(other)) {
    return isNumber(one) && isNumber(other) && compareNumbers(one, other) === 0;
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const names = Object.keys(one);
  // Compared before the number of members: most differing objects differ in a value.
  const isWithin = names.every(
    (name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]),
  );
  return isWithin && Object.keys(other).length === names.length;
}

/** Whether a value nests deeper than `levelsMax`; it does not recurse deeper than that. */
export function nestsDeeper(value: unknown, levelsMax: number): boolean {
  if (!isNested(value)) return false;
  return levelsMax <= 0 || Object.values(value).some((one) => nestsDeeper(one, levelsMax - 1));
}
