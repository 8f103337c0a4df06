import { isJsonObject, type Json, type JsonObject } from '../../../core/values/json/json.ts';
import { waitingMembersMax } from '../../../core/operations/limits.ts';
import { enginedataProblems, type EnginedataPlacing } from './enginedata.ts';

/**
 * Splits an enginedata into members that are valid for its kind and engine, and others, which wait
 * one by one (docs/design/page-rules.md#invalid-values). In place of a waiting member, its value
 * before the write stays if it is still valid.
 */
export function splitEnginedata(
  value: JsonObject,
  before: JsonObject | undefined,
  placing: EnginedataPlacing,
): { readonly valid: JsonObject; readonly waiting: JsonObject | undefined } {
  let valid = value;
  let waiting: JsonObject | undefined;
  // Without one member, another one may become invalid.
  for (let round = 0; round < roundsMax; round += 1) {
    const paths = waitingPaths(valid, placing);
    if (paths.length === 0) return { valid, waiting };
    // Some members of the same object may wait already.
    waiting = mergeEnginedata(waiting ?? {}, withMembers({}, membersAt(valid, paths)));
    valid = withoutMembers(valid, paths);
    if (before === undefined) continue;
    const old = membersAt(before, paths);
    const wrong = waitingPaths(withMembers(valid, old), placing);
    const usable = old.filter(([path]) => !wrong.some((one) => isSamePath(one, path)));
    valid = withMembers(valid, usable);
  }
  return { valid: before ?? {}, waiting: value };
}

/** An enginedata with its waiting members in their places; they replace valid ones. */
export function mergeEnginedata(valid: JsonObject, waiting: JsonObject): JsonObject {
  const merged = new Map(Object.entries(valid));
  for (const [name, value] of Object.entries(waiting)) {
    const inner = merged.get(name);
    merged.set(
      name,
      isJsonObject(inner) && isJsonObject(value) ? mergeEnginedata(inner, value) : value,
    );
  }
  return Object.fromEntries(merged);
}

/** Rounds after which all of a value waits. */
const roundsMax = 8;

/** The paths to values that are not valid, none of them inside another one. */
function waitingPaths(
  value: JsonObject,
  placing: EnginedataPlacing,
): readonly (readonly string[])[] {
  const all = enginedataProblems(value, placing).flatMap(({ waits }) =>
    waits === undefined ? [] : [waits],
  );
  const whole = new Set(all.filter(({ length }) => length === 1).map(([name]) => name));
  // If very many are not valid, their outer members wait.
  if (all.length > waitingMembersMax) for (const [name] of all) whole.add(name);
  const inside = all.filter(([name]) => !whole.has(name));
  return [...Array.from(whole, (name = '') => [name]), ...inside];
}

function isSamePath(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}

function memberAt(value: JsonObject, [name = '', ...rest]: readonly string[]): Json | undefined {
  const member = Object.hasOwn(value, name) ? value[name] : undefined;
  if (rest.length === 0) return member;
  return isJsonObject(member) ? memberAt(member, rest) : undefined;
}

/** Members of an object by their paths. */
type Members = readonly (readonly [path: readonly string[], member: Json])[];

function membersAt(value: JsonObject, paths: readonly (readonly string[])[]): Members {
  return paths.flatMap((path) => {
    const member = memberAt(value, path);
    return member === undefined ? [] : [[path, member] as const];
  });
}

/** Adds members in one pass, because there may be thousands. */
function withMembers(value: JsonObject, members: Members): JsonObject {
  if (members.length === 0) return value;
  const result = new Map(Object.entries(value));
  for (const [[name = '', ...rest], member] of members) {
    if (rest.length === 0) result.set(name, member);
  }
  const inner = members.filter(([{ length }]) => length > 1);
  for (const [name, those] of Map.groupBy(inner, ([[first = '']]) => first)) {
    const at = result.get(name);
    const deeper = those.map(([[, ...rest], member]) => [rest, member] as const);
    result.set(name, withMembers(isJsonObject(at) ? at : {}, deeper));
  }
  return Object.fromEntries(result);
}

/** Removes members in one pass. */
function withoutMembers(value: JsonObject, paths: readonly (readonly string[])[]): JsonObject {
  const result = new Map(Object.entries(value));
  for (const [name = '', ...rest] of paths) if (rest.length === 0) result.delete(name);
  const inner = paths.filter(({ length }) => length > 1);
  for (const [name, those] of Map.groupBy(inner, ([first = '']) => first)) {
    const at = result.get(name);
    const deeper = those.map(([, ...rest]) => rest);
    if (isJsonObject(at)) result.set(name, withoutMembers(at, deeper));
  }
  return Object.fromEntries(result);
}
