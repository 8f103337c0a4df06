import { Failure } from '../../values/failure.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  mapOf,
  objectOf,
  sameJson,
} from '../../values/json/json.ts';

/** Fields in the `_unknowns_` of one record. */
const unknownsMax = 256;

/** Members of one object of fields: more than a table can have, with those that may wait. */
const sentFieldsMax = 4_096;

/** Values by name: a Map, because a field may have any name, `__proto__` and `constructor` too. */
export type Named = ReadonlyMap<string, Json>;

/** The fields that a caller sends for a record. */
export interface FieldWrite<R> {
  /** The record before the write; undefined for an insert. */
  readonly current: R | undefined;
  readonly sent: JsonObject;
  /** Members of answers besides the fields: a caller that sends them back changes nothing. */
  readonly shown?: JsonObject;
}

/** The values of one field that a write has to choose from. */
export interface FieldValues {
  /** The value in the record. */
  readonly old: Json | undefined;
  /** The value that the caller sends; null removes the field. */
  readonly sent: Json | undefined;
  /** The value that waits in `_unknowns_`. */
  readonly waiting: Json | undefined;
}

/** Where the value of a field goes: into the record, into `_unknowns_`, or parts into both. */
export interface PlacedField {
  readonly field?: Json | undefined;
  readonly unknown?: Json | undefined;
}

/** How a family places the fields of one write. */
interface Placement {
  /** The fields that callers write, in the order in which they are placed: a Set, or a Map. */
  readonly names: { has(name: string): boolean; keys(): Iterable<string> };
  readonly placeField: (name: string, values: FieldValues) => PlacedField;
  /** Completes and checks the record. Throws a Failure if the write makes no record. */
  readonly complete?: (fields: Map<string, Json>, unknowns: Map<string, Json>) => void;
}

/**
 * Places the fields of a write (docs/design/page-rules.md#invalid-values): valid values become
 * fields, others wait in `_unknowns_`, values there that are valid by now become fields, and null
 * removes a field from both. Returns the data of the change. `placementOf` gets the fields of the
 * record before, and the values that are sent or wait.
 */
export function placeRecord(
  { current, sent, shown = {} }: FieldWrite<object>,
  placementOf: (before: Named, pending: Named) => Placement,
): JsonObject {
  const before = fieldsOf(current);
  const given = withoutRepeated(sent, [...Object.entries(shown), ...before.fields]);
  const waiting = stillWaiting(before, sent);
  const pending = waiting.size === 0 ? given : new Map([...waiting, ...given]);
  const { names: known, placeField, complete } = placementOf(before.fields, pending);

  const fields = new Map<string, Json>();
  // Fields that only the server writes stay.
  for (const [name, value] of before.fields) if (!known.has(name)) fields.set(name, value);
  const unknowns = new Map<string, Json>();
  for (const name of known.keys()) {
    const { field, unknown } = placeField(name, {
      old: before.fields.get(name),
      sent: given.get(name),
      waiting: waiting.get(name),
    });
    if (field !== undefined) fields.set(name, field);
    if (unknown !== undefined) unknowns.set(name, unknown);
  }
  for (const [name, value] of pending) {
    if (value !== null && !known.has(name)) unknowns.set(name, value);
  }
  complete?.(fields, unknowns);
  return difference(before, { fields, unknowns });
}

/** The fields of a record, and the values in its `_unknowns_`. */
interface Fields {
  readonly fields: Named;
  readonly unknowns: Named;
}

const noFields: Fields = { fields: new Map(), unknowns: new Map() };

/** The fields and the waiting values of a record; both are empty for undefined. */
export function fieldsOf(record: object | undefined): Fields {
  if (record === undefined) return noFields;
  const { id: _id, _unknowns_: unknowns = {}, ...fields } = record as JsonObject;
  return {
    fields: mapOf(fields),
    unknowns: mapOf(isJsonObject(unknowns) ? unknowns : {}),
  };
}

/** The names of the fields that a caller sends, with those inside a sent `_unknowns_`. */
export function sentNames(sent: JsonObject): readonly string[] {
  return sent._unknowns_ === undefined ? Object.keys(sent) : [...flattened(sent).keys()];
}

/** The sent fields, flattened, without values that only repeat what the caller was shown. */
function withoutRepeated(
  sent: JsonObject,
  repeatable: readonly (readonly [string, Json])[],
): Named {
  const all = flattened(sent);
  if (repeatable.length === 0) return all;
  const shown = new Map(repeatable);
  return new Map([...all].filter(([name, value]) => !sameJson(shown.get(name), value)));
}

/**
 * The values that stay in `_unknowns_`. A sent `_unknowns_: null` removes all of them. If the
 * caller sends a field with the value in the record, its value in `_unknowns_` is removed, unless
 * the caller sends that too.
 */
function stillWaiting(
  { fields, unknowns }: Fields,
  { _unknowns_: nested, ...named }: JsonObject,
): Named {
  if (nested === null || unknowns.size === 0) return noFields.unknowns;
  const isSettled = (name: string): boolean =>
    Object.hasOwn(named, name) &&
    sameJson(fields.get(name), named[name]) &&
    !(isJsonObject(nested) && Object.hasOwn(nested, name));
  return new Map([...unknowns].filter(([name]) => !isSettled(name)));
}

/** Fields, merged with the members of their `_unknowns_`, at any depth. */
function flattened(sent: JsonObject): Named {
  const names = Object.keys(sent);
  // Before anything is made of them.
  if (names.length > sentFieldsMax) throw tooManyUnknowns(names.at(-1) ?? '');
  const { _unknowns_: nested, ...named } = sent;
  if (nested === undefined) return mapOf(named);
  const inner = isJsonObject(nested) ? flattened(nested) : [['_unknowns_', nested] as const];
  return new Map([...inner, ...Object.entries(named)]);
}

function tooManyUnknowns(field: string): Failure {
  const message = `More than ${unknownsMax} fields are not known to Waymark.`;
  return new Failure('too_large', message, { field });
}

/** Throws `too_large` for a record with too many waiting fields, or with too many bytes. */
export function requireSize(what: string, { fields, unknowns }: Fields, bytesMax: number): void {
  const names = [...unknowns.keys()];
  if (names.length > unknownsMax) throw tooManyUnknowns(names[unknownsMax] ?? '_unknowns_');
  if (jsonBytesAtMost(fields) + jsonBytesAtMost(unknowns) <= bytesMax) return;
  const bytes = jsonBytes(fields) + (names.length === 0 ? 0 : jsonBytes(unknowns));
  if (bytes <= bytesMax) return;
  throw new Failure('too_large', `${what} has ${bytes} bytes; the limit is ${bytesMax}.`);
}

function jsonBytes(named: Iterable<readonly [string, Json]>): number {
  return Buffer.byteLength(JSON.stringify(Object.fromEntries(named)));
}

/** An upper bound that needs no JSON text: most records are far below the limit. */
function jsonBytesAtMost(named: Named): number {
  let bytes = 2;
  for (const [name, value] of named) {
    bytes += stringBytesAtMost(name) + 2;
    if (typeof value === 'string') bytes += stringBytesAtMost(value);
    else bytes += typeof value === 'object' && value !== null ? Infinity : numberBytesMax;
  }
  return bytes;
}

/** The length of the longest number in JSON: -1.2345678901234567e-308. */
const numberBytesMax = 24;

/** A control character and half a surrogate pair take six bytes (ECMA-262 §25.5.4.3). */
function stringBytesAtMost(text: string): number {
  return 6 * text.length + 2;
}

/** The edit by which mergeFields turns a record into another one; ids do not count. */
export function editBetween(before: object, after: object): JsonObject {
  return difference(fieldsOf(before), fieldsOf(after));
}

function difference(before: Fields, after: Fields): JsonObject {
  const fields = flatDifference(before.fields, after.fields);
  const unknowns = flatDifference(before.unknowns, after.unknowns);
  return Object.keys(unknowns).length > 0 ? { ...fields, _unknowns_: unknowns } : fields;
}

function flatDifference(before: Named, after: Named): JsonObject {
  if (before.size === 0) return objectOf(after);
  const changed = new Map([...after].filter(([name, value]) => !sameJson(before.get(name), value)));
  for (const name of before.keys()) if (!after.has(name)) changed.set(name, null);
  return Object.fromEntries(changed);
}
