import {
  isJsonObject,
  sameJson,
  type Json,
  type JsonObject,
} from '../../../../src/core/values/json/json.ts';
import type { State } from './ledger.ts';
import { invalidMembers, isValid, keptValue, kinds, type Kind, type Setting } from './values.ts';

/** The result of a write. */
export interface Placed {
  readonly fields: ReadonlyMap<string, Json>;
  readonly unknowns: ReadonlyMap<string, Json>;
  /** The changed fields, as in the row of the write. */
  readonly data: JsonObject;
  /** The `unknowns` of the answer: names of fields that wait in `_unknowns_`. */
  readonly told: readonly string[];
}

/** The field for which a write is refused. */
export interface Unusable {
  readonly unusable: 'path' | 'kind';
}

/**
 * Places the sent fields one by one (docs/design/page-rules.md#invalid-values). `shown` has the
 * members of a read: a caller that sends them back changes nothing.
 */
export function place(
  before: State | undefined,
  sent: JsonObject,
  shown: JsonObject,
): Placed | Unusable {
  const given = new Map(
    [...opened(sent)].filter(([name, value]) => !sameJson(ownValue(shown, name), value)),
  );
  const old = before?.fields ?? new Map<string, Json>();
  const said = new Map([...waiting(before, sent), ...given]);
  const kind = kindOf(said, old);
  if (kind === undefined) return { unusable: 'kind' };

  const fields = new Map<string, Json>();
  const unknowns = new Map<string, Json>();
  const placeOne = (name: string, setting: Setting): void => {
    const value = said.get(name);
    const kept = old.get(name);
    if (value === null) return;
    const next = value === undefined ? undefined : keptValue(name, value, setting);
    const stays = kept !== undefined && isValid(name, kept, setting);
    if (next !== undefined) fields.set(name, next);
    else if (stays) fields.set(name, kept);
    if (next !== undefined) return;
    if (value !== undefined) unknowns.set(name, value);
    else if (kept !== undefined && !stays) unknowns.set(name, kept);
  };
  // The engine depends on the kind, and all other fields on both.
  placeOne('engine', { kind, engine: undefined });
  const isRecord = kind.endsWith('-record');
  if (isRecord && !fields.has('engine') && !unknowns.has('engine')) fields.set('engine', 'form');
  const setting = { kind, engine: fields.get('engine') };
  const apart = ['engine', 'enginedata'];
  const others = [...old.keys(), ...said.keys()].filter((name) => !apart.includes(name));
  for (const name of new Set(others)) placeOne(name, setting);
  placeEnginedata({
    sent: given.get('enginedata'),
    waits: new Map(waiting(before, sent)).get('enginedata'),
    kept: old.get('enginedata'),
    put: (field, unknown) => {
      if (field !== undefined) fields.set('enginedata', field);
      if (unknown !== undefined) unknowns.set('enginedata', unknown);
    },
    setting,
  });
  fields.set('kind', kind);
  if (!fields.has('origin')) fields.set('origin', '*');
  if (!fields.has('path')) return { unusable: 'path' };
  return {
    fields,
    unknowns,
    data: difference(before, { fields, unknowns }),
    told: [...unknowns.keys()],
  };
}

/** Places the members of enginedata one by one; an invalid one does not replace a valid value. */
function placeEnginedata({
  sent,
  waits,
  kept,
  put,
  setting,
}: {
  readonly sent: Json | undefined;
  readonly waits: Json | undefined;
  readonly kept: Json | undefined;
  readonly put: (field: JsonObject | undefined, unknown: Json | undefined) => void;
  readonly setting: Setting;
}): void {
  if (sent === null) return;
  const old = isJsonObject(kept) ? kept : undefined;
  const merged = isJsonObject(waits) ? { ...old, ...waits } : old;
  const whole = isJsonObject(sent) ? sent : merged;
  const other = [sent, waits].find((value) => value !== undefined);
  const unusable = isJsonObject(other) ? undefined : other;
  if (whole === undefined) {
    put(undefined, unusable);
    return;
  }
  const wrong = invalidMembers(whole, setting);
  const members = Object.entries(whole).filter(([name]) => !wrong.includes(name));
  const before = old === undefined ? [] : Object.entries(old);
  const oldWrong = invalidMembers(old ?? {}, setting);
  const stays = before.filter(([name]) => wrong.includes(name) && !oldWrong.includes(name));
  const field = Object.fromEntries([...members, ...stays]);
  const unknown = Object.fromEntries(
    Object.entries(whole).filter(([name]) => wrong.includes(name)),
  );
  if (wrong.length === 0) put(field, unusable);
  else put(Object.keys(field).length === 0 ? undefined : field, unknown);
}

/**
 * The values that stay in `_unknowns_`: none if null removes them, and none of a field that is sent
 * with its value in the record.
 */
function waiting(
  before: State | undefined,
  sent: JsonObject,
): readonly (readonly [string, Json])[] {
  const { _unknowns_: nested = {}, ...named } = sent;
  if (nested === null) return [];
  return [...(before?.unknowns ?? [])].filter(([name]) => {
    if (isJsonObject(nested) && Object.hasOwn(nested, name)) return true;
    const said = ownValue(named, name);
    return said === undefined || !sameJson(before?.fields.get(name), said);
  });
}

/** The sent fields and those inside `_unknowns_`; a field outside takes precedence. */
function opened({ _unknowns_: nested, ...named }: JsonObject): ReadonlyMap<string, Json> {
  const outer = Object.entries(named);
  if (nested === undefined) return new Map(outer);
  const inner = isJsonObject(nested) ? opened(nested) : [['_unknowns_', nested] as const];
  return new Map([...inner, ...outer]);
}

function ownValue(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** The sent kind, or else the one before, or content for a rule with content. */
function kindOf(said: ReadonlyMap<string, Json>, old: ReadonlyMap<string, Json>): Kind | undefined {
  const sent = said.get('kind');
  const before = sent === null ? undefined : old.get('kind');
  const inferred = (said.get('content') ?? null) === null ? undefined : 'content';
  const usable = [sent, before, inferred].map(asKind).find((kind) => kind !== undefined);
  return usable ?? ((sent ?? null) === null ? 'content' : undefined);
}

function asKind(value: Json | undefined): Kind | undefined {
  return kinds.find((kind) => kind === value);
}

/** The edit that turns a record into another one. */
export function difference(
  before: State | undefined,
  after: Pick<Placed, 'fields' | 'unknowns'>,
): JsonObject {
  const fields = changes(before?.fields ?? new Map<string, Json>(), after.fields);
  const unknowns = changes(before?.unknowns ?? new Map<string, Json>(), after.unknowns);
  return Object.keys(unknowns).length === 0 ? fields : { ...fields, _unknowns_: unknowns };
}

function changes(before: ReadonlyMap<string, Json>, after: ReadonlyMap<string, Json>): JsonObject {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return Object.fromEntries(
    names
      .filter((name) => !sameJson(before.get(name), after.get(name)))
      .map((name) => [name, after.get(name) ?? null]),
  );
}
