import type { Reads } from '../../log/store.ts';
import { type Json, type JsonObject, isJsonObject, sameJson } from '../../values/json/json.ts';
import type { Caller } from '../../values/key.ts';

/** Characters of a value that such a report shows. */
const invalidateShownCharactersMax = 200;

/** What decides which values of a record a caller sees; a thread can get it. */
export type Reader = Pick<Caller, 'scopes'>;

/** Replaces what a reader may not see in fields that a record has or had, or that a row wrote. */
export type ShowFields = (id: string, fields: JsonObject) => JsonObject;

/** The part of a record family that decides what a reader sees. */
export interface ShownFamily {
  shown?(states: readonly Reads[], reader: Reader): ShowFields;
}

/**
 * Makes the function through which operations show the versions of records of a family that are not
 * the current one: of the past, of a draft, or that a change would make. `states` are those that
 * the answer shows as current. A report shows a version before it shortens a value of it: a secret
 * in the start of a text has no name any more.
 */
export function shownTo(family: ShownFamily, states: readonly Reads[], reader: Reader): ShowFields {
  return family.shown?.(states, reader) ?? allShown;
}

/** A reader that sees everything. */
export const allShown: ShowFields = (_id, fields) => fields;

/** The names of the fields in which two versions of a record differ. */
export function differingNames(one: JsonObject, other: JsonObject): readonly string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].filter((name) => !sameJson(one[name] ?? null, other[name] ?? null));
}

/** Fields in some versions of a record, by the names of the versions; long values shortened. */
export function fieldVersions(
  names: Iterable<string>,
  versions: Readonly<Record<string, JsonObject>>,
): JsonObject {
  const fields = [...new Set(names)].map((name) => {
    const values = Object.entries(versions).map(([version, values]) => {
      return [version, shortened(values[name] ?? null)] as const;
    });
    return [name, Object.fromEntries(values)] as const;
  });
  return Object.fromEntries(fields);
}

/** The start of a long value; `as_of` shows all of it. */
function shortened(value: Json): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= invalidateShownCharactersMax) return value;
  const start = text.slice(0, invalidateShownCharactersMax).toWellFormed();
  return `${start}… (${text.length} characters${isJsonObject(value) ? ' of JSON' : ''})`;
}
