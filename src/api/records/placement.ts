import { Failure } from '../../model/failure.ts';
import { isJsonObject, sameJson, type Json, type JsonObject } from '../../model/json.ts';
import { unknownsMax } from '../rules/limits.ts';

/** Values by name: a Map, for a field may have any name, `__proto__` and `constructor` too. */
export type Named = ReadonlyMap<string, Json>;

/**
 * The fields of a record, and what waits in its `_unknowns_`
 * (docs/design/page-rules.md#invalid-values).
 */
interface Fields {
  readonly fields: Named;
  readonly unknowns: Named;
}

/** A record taken apart; undefined stands for one that is not there yet. */
export function fieldsOf(record: object | undefined): Fields {
  if (record === undefined) return { fields: new Map(), unknowns: new Map() };
  const { id: _id, _unknowns_: unknowns = {}, ...fields } = record as JsonObject;
  return {
    fields: new Map(Object.entries(fields)),
    unknowns: new Map(Object.entries(isJsonObject(unknowns) ? unknowns : {})),
  };
}

/** The names of what a caller sent, a sent `_unknowns_` opened: what it may be told about. */
export function sentNames(sent: JsonObject): readonly string[] {
  return [...opened(sent).keys()];
}

/**
 * The sent fields with a sent `_unknowns_` object opened, less those that only repeat what the
 * caller was shown.
 */
export function flatten(sent: JsonObject, shown: Named): Named {
  const all = opened(sent);
  if (shown.size === 0) return all;
  return new Map([...all].filter(([name, value]) => !sameJson(shown.get(name), value)));
}

/**
 * What goes on waiting in a record's `_unknowns_`: nothing when null is sent for that, and no value
 * of a field that is sent as it stands in its place, but by who sends back the waiting one as well.
 */
export function stillWaiting(
  { fields, unknowns }: Fields,
  { _unknowns_: nested, ...named }: JsonObject,
): Named {
  if (nested === null) return new Map();
  const isSettled = (name: string): boolean =>
    Object.hasOwn(named, name) &&
    sameJson(fields.get(name), named[name]) &&
    !(isJsonObject(nested) && Object.hasOwn(nested, name));
  return new Map([...unknowns].filter(([name]) => !isSettled(name)));
}

function opened({ _unknowns_: nested, ...named }: JsonObject): Named {
  if (nested === undefined) return new Map(Object.entries(named));
  const inner = isJsonObject(nested) ? opened(nested) : [['_unknowns_', nested] as const];
  return new Map([...inner, ...Object.entries(named)]);
}

/** Refuses with `too_large` a record that waits for too many fields, or is too large altogether. */
export function requireRoom(what: string, { fields, unknowns }: Fields, bytesMax: number): void {
  const names = [...unknowns.keys()];
  if (names.length > unknownsMax) {
    throw new Failure('too_large', `More than ${unknownsMax} fields are not known to Waymark.`, {
      field: names[unknownsMax] ?? '_unknowns_',
    });
  }
  if (jsonBytesAtMost(fields) + jsonBytesAtMost(unknowns) <= bytesMax) return;
  const bytes = jsonBytes(fields) + (names.length === 0 ? 0 : jsonBytes(unknowns));
  if (bytes <= bytesMax) return;
  throw new Failure('too_large', `${what} is ${bytes} bytes; at most ${bytesMax} are kept.`);
}

function jsonBytes(named: Iterable<readonly [string, Json]>): number {
  return Buffer.byteLength(JSON.stringify(Object.fromEntries(named)));
}

/** A bound that is told without the text: most records are far below what is allowed. */
function jsonBytesAtMost(named: Named): number {
  let bytes = 2;
  for (const [name, value] of named) {
    bytes += stringBytesAtMost(name) + 2;
    if (typeof value === 'string') bytes += stringBytesAtMost(value);
    else bytes += typeof value === 'object' && value !== null ? Infinity : numberBytesMax;
  }
  return bytes;
}

/** As long as JSON writes a number: -1.2345678901234567e-308. */
const numberBytesMax = 24;

/** A control character and half a surrogate pair take six bytes (ECMA-262 §25.5.4.3). */
function stringBytesAtMost(text: string): number {
  return 6 * text.length + 2;
}

/** The edit that mergeFields turns `before` into `after` with. */
export function difference(before: Fields, after: Fields): JsonObject {
  const fields = flatDifference(before.fields, after.fields);
  const unknowns = flatDifference(before.unknowns, after.unknowns);
  return Object.keys(unknowns).length > 0 ? { ...fields, _unknowns_: unknowns } : fields;
}

function flatDifference(before: Named, after: Named): JsonObject {
  if (before.size === 0) return Object.fromEntries(after);
  const changed = new Map([...after].filter(([name, value]) => !sameJson(before.get(name), value)));
  for (const name of before.keys()) if (!after.has(name)) changed.set(name, null);
  return Object.fromEntries(changed);
}
