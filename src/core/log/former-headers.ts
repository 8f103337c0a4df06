import { mapUsersIn, usersIn } from '../values/url-user.ts';
import { isJsonObject, type Json, type JsonObject } from '../values/json/json.ts';

/** Replaces header values in answers to callers without the scope to write rules. */
export const maskedValue = '***';
/** Replaces purged header values and purged secrets of hooks in the log. */
export const purgedValue = '[purged]';
/** Replaces header values of a hook in the log of a node that does not deliver it. */
export const withheldValue = '[withheld]';

/**
 * Replaces each secret that no current version of a record has by `mark`, in the fields of the
 * record or of a row about it: as replaceFormerHeaders, and users with their passwords in URLs
 * (RFC 3986 §3.2.1), which no source may have, and which therefore wait. The content of a page is
 * no secret.
 */
export function replaceFormerSecrets(
  fields: JsonObject,
  current: readonly object[],
  mark: string,
): JsonObject {
  const values = new Set<string>();
  for (const record of current) collectUsers(record as JsonObject, values);
  const shown = mapUsers(fields, (user) => (values.has(user) ? user : mark));
  return replaceFormerHeaders(shown, current, mark);
}

/**
 * Replaces each header value that no current version of a record has by `mark`, in the fields of
 * the record or of a row about it. Header values are those in objects named `headers` or
 * `request_headers`, in upper or lower case. In `_unknowns_`, `headers` may also be a text or a
 * list, and `enginedata` a text: then it counts as one value. A former value may still be a valid
 * credential of a source or a receiver. Returns the same object if nothing is replaced.
 */
export function replaceFormerHeaders(
  fields: JsonObject,
  current: readonly object[],
  mark: string,
): JsonObject {
  const values = new Set<string>();
  for (const record of current) collectValues(record as JsonObject, values);
  return replaced(fields, (value) => (values.has(JSON.stringify(value)) ? value : mark));
}

function collectUsers(json: Json, users: Set<string>): void {
  if (typeof json === 'string') for (const user of usersIn(json)) users.add(user);
  else if (Array.isArray(json)) for (const one of json as Json[]) collectUsers(one, users);
  else if (isJsonObject(json)) for (const one of Object.values(json)) collectUsers(one, users);
}

const contentName = 'content';

function mapUsers(fields: JsonObject, map: (user: string) => string): JsonObject {
  const mapIn = (json: Json): Json => {
    if (typeof json === 'string') return mapUsersIn(json, map);
    if (isJsonObject(json)) return mapMembers(json, (_name, member) => mapIn(member));
    if (!Array.isArray(json)) return json;
    const before = json as readonly Json[];
    const members = before.map(mapIn);
    return members.some((member, at) => member !== before[at]) ? members : before;
  };
  return mapMembers(fields, (name, member) => (name === contentName ? member : mapIn(member)));
}

const unknownsName = '_unknowns_';

/** Whether a member holds header values. A name in upper case is a mistake, but was stored. */
function isHeaders(name: string): boolean {
  return /^(?:request_)?headers$/i.test(name);
}

/** Whether a member is a text that may have header values anywhere in it. */
function isEngineText(name: string, member: Json): boolean {
  return name === 'enginedata' && typeof member === 'string';
}

function collectValues(json: Json, values: Set<string>): void {
  if (Array.isArray(json)) for (const one of json as Json[]) collectValues(one, values);
  if (!isJsonObject(json)) return;
  for (const [name, member] of Object.entries(json)) {
    if (isEngineText(name, member)) values.add(JSON.stringify(member));
    else if (!isHeaders(name)) collectValues(member, values);
    else if (!isJsonObject(member)) values.add(JSON.stringify(member));
    else for (const value of Object.values(member)) values.add(JSON.stringify(value));
  }
}

type Replace = (value: Json) => Json;

function replaced(object: JsonObject, replace: Replace, areUnknowns = false): JsonObject {
  return mapMembers(object, (name, member) => {
    if (isHeaders(name) && isJsonObject(member)) {
      return mapMembers(member, (_name, value) => replace(value));
    }
    // In the data of an engine, a text or list `headers` may be the headings of a table.
    const isValue = (isHeaders(name) && member !== null) || isEngineText(name, member);
    if (isValue && areUnknowns) return replace(member);
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

/** Maps the members of an object; returns the same object if no member changes. */
function mapMembers(object: JsonObject, map: (name: string, member: Json) => Json): JsonObject {
  const entries = Object.entries(object);
  const mapped = entries.map(([name, member]) => [name, map(name, member)] as const);
  const isSame = mapped.every(([, member], at) => member === entries[at]?.[1]);
  return isSame ? object : Object.fromEntries(mapped);
}
