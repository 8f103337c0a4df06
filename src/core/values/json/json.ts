import canonicalize from 'canonicalize';

/** A JSON value as `JSON.parse` returns it. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [name: string]: Json;
}

/** Whether a value is a JSON object: not an array, not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The canonical text of a JSON value (RFC 8785): equal values have equal texts. */
export function canonicalJson(value: Json): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
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
  if (typeof value !== 'object' || value === null) return false;
  return levelsMax <= 0 || Object.values(value).some((one) => nestsDeeper(one, levelsMax - 1));
}
