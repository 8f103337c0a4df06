import { isJsonObject, type Json, type JsonObject } from './json.ts';

/** What a caller sees in place of a header value that only those who write rules may see. */
export const maskedValue = '***';
/** What stands in the log in place of a header value, or of a hook's secret, that was purged. */
export const purgedValue = '[purged]';

/**
 * The fields of a record, or of a row about it, with `mark` in place of each header value that the
 * record does not have now: in every object under the name `headers`, also in `_unknowns_`, where
 * headers that are a text or a list count as one value. Such a value was a credential of a source
 * or a receiver, and may still be one. Fields without any come back as they are.
 */
export function replaceFormerHeaders(
  fields: JsonObject,
  current: object | undefined,
  mark: string,
): JsonObject {
  const values = new Set<string>();
  if (current !== undefined) collectValues(current as JsonObject, values);
  return replaced(fields, (value) => (values.has(JSON.stringify(value)) ? value : mark));
}

const headersName = 'headers';
const unknownsName = '_unknowns_';

function collectValues(json: Json, values: Set<string>): void {
  if (Array.isArray(json)) for (const one of json as Json[]) collectValues(one, values);
  if (!isJsonObject(json)) return;
  for (const [name, member] of Object.entries(json)) {
    if (name !== headersName) collectValues(member, values);
    else if (!isJsonObject(member)) values.add(JSON.stringify(member));
    else for (const value of Object.values(member)) values.add(JSON.stringify(value));
  }
}

type Replace = (value: Json) => Json;

function replaced(object: JsonObject, replace: Replace, areUnknowns = false): JsonObject {
  return mapMembers(object, (name, member) => {
    if (name === headersName && isJsonObject(member)) {
      return mapMembers(member, (_name, value) => replace(value));
    }
    // What an engine knows as `headers` may be the headings of a table.
    if (name === headersName && areUnknowns && member !== null) return replace(member);
    return replacedIn(member, replace, areUnknowns || name === unknownsName);
  });
}

function replacedIn(json: Json, replace: Replace, areUnknowns: boolean): Json {
  if (isJsonObject(json)) return replaced(json, replace, areUnknowns);
  if (!Array.isArray(json)) return json;
  const before = json as readonly Json[];
  const members = before.map((one) => replacedIn(one, replace, areUnknowns));
  return members.some((member, at) => member !== before[at]) ? members : before;
}

/** The same object where no member becomes another. */
function mapMembers(object: JsonObject, map: (name: string, member: Json) => Json): JsonObject {
  const entries = Object.entries(object);
  const mapped = entries.map(([name, member]) => [name, map(name, member)] as const);
  const isSame = mapped.every(([, member], at) => member === entries[at]?.[1]);
  return isSame ? object : Object.fromEntries(mapped);
}
